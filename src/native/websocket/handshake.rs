//! The upgrade from HTTP to WebSocket, and the blocking-style stream that tungstenite reads.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::handshake::HandshakeError;
use tokio_tungstenite::tungstenite::handshake::client::ClientHandshake;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::protocol::{WebSocket, WebSocketConfig};

use super::USER_AGENT;
use super::outbound::Outbound;
use crate::native::config::SocketConfig;
use crate::native::dial::connect_error;
use crate::native::link::Link;
use crate::protocol::RelayUrl;
use crate::runtime::ConnectError;

/// Room for one pong and one close frame beside what the outbound buffer takes, in bytes.
const CONTROL_BYTES_MAX: usize = 1024;

/// A link as tungstenite sees it: where the socket would block, the task that is being polled is woken later.
pub(super) struct Inbound {
    socket: ReadHalf<Link>,
    answers: Answers,
    waker: Waker,
}

/// Where tungstenite writes to.
enum Answers {
    /// The socket: it writes its request.
    Socket(WriteHalf<Link>),
    /// The outbound buffer: it answers pings and closes.
    Outbound(Arc<Outbound>),
}

/// Upgrades `link`. Gives the socket for reading, the half for writing, and the outbound buffer between.
pub(super) async fn upgrade(
    link: Link,
    url: &RelayUrl,
    frame_bytes_max: usize,
    config: &SocketConfig,
) -> Result<(WebSocket<Inbound>, WriteHalf<Link>, Arc<Outbound>), ConnectError> {
    let mut request = url.as_str().into_client_request().map_err(handshake_error)?;
    request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    let limits = WebSocketConfig::default()
        .read_buffer_size(config.read_buffer_bytes)
        .write_buffer_size(0)
        .max_write_buffer_size(CONTROL_BYTES_MAX)
        .max_frame_size(Some(frame_bytes_max))
        .max_message_size(Some(frame_bytes_max));
    let (socket, write_half) = tokio::io::split(link);
    let inbound = Inbound { socket, answers: Answers::Socket(write_half), waker: Waker::noop().clone() };
    let mut handshake = Some(ClientHandshake::start(inbound, request, Some(limits)).map_err(handshake_error)?);
    let mut socket = std::future::poll_fn(|cx| {
        let Some(mut round) = handshake.take() else { return Poll::Pending };
        round.get_mut().get_mut().wake_by(cx.waker());
        match round.handshake() {
            Ok((socket, _response)) => Poll::Ready(Ok(socket)),
            Err(HandshakeError::Interrupted(round)) => {
                handshake = Some(round);
                Poll::Pending
            }
            Err(HandshakeError::Failure(error)) => Poll::Ready(Err(handshake_error(error))),
        }
    })
    .await?;
    let outbound = Arc::new(Outbound::new(config.outbound_bytes_max));
    match std::mem::replace(&mut socket.get_mut().answers, Answers::Outbound(Arc::clone(&outbound))) {
        Answers::Socket(write_half) => Ok((socket, write_half, outbound)),
        Answers::Outbound(_) => Err(ConnectError::Handshake("upgraded twice".into())),
    }
}

fn handshake_error(error: Error) -> ConnectError {
    match error {
        Error::Protocol(ProtocolError::HandshakeIncomplete) => {
            ConnectError::Handshake("the server closed the connection".into())
        }
        Error::Io(error) => connect_error(&error),
        Error::Http(response) => ConnectError::Handshake(format!("the server answered HTTP {}", response.status())),
        Error::AttackAttempt | Error::Capacity(CapacityError::TooManyHeaders) => {
            ConnectError::Handshake("the server's answer is too long".into())
        }
        error => ConnectError::Handshake(error.to_string()),
    }
}

impl Inbound {
    /// From now on `waker` is woken when the socket can be read.
    pub(super) fn wake_by(&mut self, waker: &Waker) {
        self.waker.clone_from(waker);
    }
}

fn or_would_block<T>(poll: Poll<io::Result<T>>) -> io::Result<T> {
    match poll {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl Read for Inbound {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        let mut cx = Context::from_waker(&self.waker);
        or_would_block(Pin::new(&mut self.socket).poll_read(&mut cx, &mut buffer))?;
        Ok(buffer.filled().len())
    }
}

impl Write for Inbound {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.answers {
            Answers::Socket(socket) => {
                let mut cx = Context::from_waker(&self.waker);
                or_would_block(Pin::new(socket).poll_write(&mut cx, bytes))
            }
            Answers::Outbound(outbound) => outbound.push_control(bytes).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.answers {
            Answers::Socket(socket) => {
                let mut cx = Context::from_waker(&self.waker);
                or_would_block(Pin::new(socket).poll_flush(&mut cx))
            }
            Answers::Outbound(_) => Ok(()),
        }
    }
}
