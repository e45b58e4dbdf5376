//! The task that moves the outbound buffer to the socket: all frames that wait go in as few writes as the system takes.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::outbound::{Outbound, Task};
use super::sender::close_frame;
use crate::native::config::SocketConfig;
use crate::native::link::Link;
use crate::runtime::CloseReason;

/// Capacity of a buffer that is kept between writes, in bytes.
const BUFFER_BYTES_KEPT: usize = 256 << 10;

/// Writes until the connection ends; then says goodbye, within the time for closing.
pub(super) async fn run(mut socket: WriteHalf<Link>, outbound: Arc<Outbound>, config: Arc<SocketConfig>) {
    let end = async {
        outbound.finishing().await;
        tokio::time::sleep(config.close_timeout).await;
    };
    tokio::select! {
        result = write_all(&mut socket, &outbound, &config) => if let Err(reason) = result {
            outbound.fail(reason);
        },
        // Whatever the relay has not taken by now is lost with the connection.
        () = end => {}
    }
}

async fn write_all(
    socket: &mut (impl AsyncWrite + Unpin),
    outbound: &Outbound,
    config: &SocketConfig,
) -> Result<(), CloseReason> {
    let mut buffer = Vec::new();
    loop {
        match outbound.next_task(&mut buffer).await {
            Task::Write => write(socket, &buffer, config).await?,
            Task::Finish(code) => return say_goodbye(socket, code).await.map_err(|error| lost(&error)),
        }
        buffer.clear();
        buffer.shrink_to(BUFFER_BYTES_KEPT);
    }
}

async fn write(
    socket: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    config: &SocketConfig,
) -> Result<(), CloseReason> {
    // The timeout counts from the last progress: a slow relay is slow, one that takes nothing is stuck.
    let stuck = |_| CloseReason::Backlogged;
    while !bytes.is_empty() {
        let written = timeout(config.write_timeout, socket.write(bytes)).await.map_err(stuck)?;
        match written.map_err(|error| lost(&error))? {
            0 => return Err(lost(&io::ErrorKind::WriteZero.into())),
            count => bytes = &bytes[count..],
        }
    }
    timeout(config.write_timeout, socket.flush()).await.map_err(stuck)?.map_err(|error| lost(&error))
}

async fn say_goodbye(socket: &mut (impl AsyncWrite + Unpin), code: Option<CloseCode>) -> io::Result<()> {
    if let Some(code) = code {
        socket.write_all(&close_frame(code).map_err(io::Error::other)?).await?;
    }
    socket.flush().await?;
    socket.shutdown().await
}

fn lost(error: &io::Error) -> CloseReason {
    CloseReason::Io(error.to_string())
}
