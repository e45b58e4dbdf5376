//! The sending half.

use std::io::{self, Read, Write};
use std::sync::Arc;

use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig, WebSocketContext};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::outbound::Outbound;
use crate::runtime::{FrameSender, SendError};

/// Bytes of a frame's header with its mask, at most.
const HEADER_BYTES_MAX: usize = 14;

/// Queues frames for one connection, which ends when this is dropped.
pub struct NativeSender {
    encoder: WebSocketContext,
    outbound: Arc<Outbound>,
}

impl NativeSender {
    pub(super) fn new(outbound: Arc<Outbound>) -> Self {
        Self { encoder: encoder(), outbound }
    }
}

/// Writes and masks frames. Without a buffer of its own: each frame goes at once to where it shall go.
fn encoder() -> WebSocketContext {
    let config = WebSocketConfig::default().write_buffer_size(0).read_buffer_size(0);
    WebSocketContext::new(Role::Client, Some(config))
}

/// The frame that ends a connection.
pub(super) fn close_frame(code: CloseCode) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    encoder().close(&mut Buffer(&mut bytes), Some(CloseFrame { code, reason: "".into() }))?;
    Ok(bytes)
}

impl FrameSender for NativeSender {
    fn try_send(&mut self, frame: String) -> Result<(), SendError> {
        let encoder = &mut self.encoder;
        let mut encoded = Ok(());
        self.outbound.push(frame.len() + HEADER_BYTES_MAX, |bytes| {
            encoded = encoder.write(&mut Buffer(bytes), Message::text(frame));
        })?;
        // Writing to memory fails only once a close frame was written, and this encoder never writes one.
        encoded.map_err(|_| SendError::Closed)
    }

    fn set_reading(&mut self, reading: bool) {
        self.outbound.set_reading(reading);
    }

    fn close(&mut self) {
        self.outbound.finish(Some(CloseCode::Normal));
    }
}

impl Drop for NativeSender {
    fn drop(&mut self) {
        self.close();
    }
}

/// The outbound buffer as the stream that the encoder wants. It is never read.
struct Buffer<'a>(&'a mut Vec<u8>);

impl Write for Buffer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Buffer<'_> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}
