//! The receiving half: reads the socket, and names why it ended.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocket};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::handshake::Inbound;
use super::outbound::Outbound;
use crate::native::config::SocketConfig;
use crate::runtime::{CloseReason, Frame, FrameReceiver};

/// Receives the frames of one connection, which ends when this is dropped.
pub struct NativeReceiver {
    socket: WebSocket<Inbound>,
    outbound: Arc<Outbound>,
    config: Arc<SocketConfig>,
    ended: Option<CloseReason>,
}

impl NativeReceiver {
    pub(super) fn new(socket: WebSocket<Inbound>, outbound: Arc<Outbound>, config: Arc<SocketConfig>) -> Self {
        Self { socket, outbound, config, ended: None }
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, frames: &mut Vec<Frame>) -> Poll<Result<(), CloseReason>> {
        if let Some(reason) = &self.ended {
            return Poll::Ready(Err(reason.clone()));
        }
        match self.outbound.poll_reading(cx) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(reason)) => return Poll::Ready(Err(self.end(reason))),
            Poll::Pending => return Poll::Pending,
        }
        self.socket.get_mut().wake_by(cx.waker());
        match self.read(frames) {
            Ok(0) => match self.outbound.failure() {
                Some(reason) => Poll::Ready(Err(self.end(reason))),
                None => Poll::Pending,
            },
            Ok(_) => Poll::Ready(Ok(())),
            Err(reason) => Poll::Ready(Err(self.end(reason))),
        }
    }

    /// Appends the frames that are there already; returns how many.
    fn read(&mut self, frames: &mut Vec<Frame>) -> Result<usize, CloseReason> {
        let (mut count, mut bytes) = (0, 0);
        while count < self.config.receive_frames_max && bytes < self.config.receive_bytes_max {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    count += 1;
                    bytes += text.len();
                    frames.push(text.into());
                }
                // tungstenite has the pong ready; it goes out with its next call.
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(Message::Binary(_) | Message::Frame(_)) => {
                    return Err(CloseReason::Protocol("binary message".into()));
                }
                Ok(Message::Close(goodbye)) => {
                    return match self.socket.flush() {
                        Ok(()) | Err(Error::ConnectionClosed) => Err(CloseReason::Remote(words(goodbye))),
                        Err(error) => Err(close_reason(error)),
                    };
                }
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(close_reason(error)),
            }
        }
        Ok(count)
    }

    fn end(&mut self, reason: CloseReason) -> CloseReason {
        self.outbound.finish(match &reason {
            CloseReason::FrameTooLarge => Some(CloseCode::Size),
            CloseReason::InvalidUtf8 => Some(CloseCode::Invalid),
            CloseReason::Protocol(_) => Some(CloseCode::Protocol),
            CloseReason::Remote(_) => None,
            _ => Some(CloseCode::Normal),
        });
        self.ended.insert(reason).clone()
    }
}

impl FrameReceiver for NativeReceiver {
    async fn receive(&mut self, frames: &mut Vec<Frame>) -> Result<(), CloseReason> {
        std::future::poll_fn(|cx| self.poll_receive(cx, frames)).await
    }
}

impl Drop for NativeReceiver {
    fn drop(&mut self) {
        self.outbound.finish(Some(CloseCode::Normal));
    }
}

fn words(goodbye: Option<CloseFrame>) -> String {
    match goodbye {
        Some(frame) if frame.reason.is_empty() => u16::from(frame.code).to_string(),
        Some(frame) => format!("{} {}", u16::from(frame.code), frame.reason),
        None => String::new(),
    }
}

fn close_reason(error: Error) -> CloseReason {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => CloseReason::FrameTooLarge,
        Error::Utf8(_) => CloseReason::InvalidUtf8,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            CloseReason::Io("ended without a closing handshake".into())
        }
        Error::Protocol(ProtocolError::NonZeroReservedBits) => {
            CloseReason::Protocol("reserved bits are set: compressed, though no compression was agreed on".into())
        }
        Error::Protocol(error) => CloseReason::Protocol(error.to_string()),
        Error::ConnectionClosed | Error::AlreadyClosed => CloseReason::Remote(String::new()),
        Error::Io(error) => CloseReason::Io(error.to_string()),
        error => CloseReason::Protocol(error.to_string()),
    }
}
