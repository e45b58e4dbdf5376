//! The task of one client's connection.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, Stream, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::hub::Line;
use crate::native::link::Link;
use crate::runtime::Frame;
use crate::serve::{ClientId, Cut, ServeInput};

/// The ways from connections to the hub.
#[derive(Debug, Clone)]
pub(super) struct Links {
    /// Bounded, so that a busy hub slows sockets down.
    pub(super) arrivals: mpsc::Sender<Arrival>,
    pub(super) reports: mpsc::UnboundedSender<ServeInput>,
}

/// What a connection tells the hub, in order.
#[derive(Debug)]
pub(super) enum Arrival {
    Opened { client: ClientId, challenge: String, line: Line },
    Frames { client: ClientId, frames: Vec<Frame> },
    Closed { client: ClientId },
}

/// What the hub hands to a connection.
#[derive(Debug)]
pub(super) enum Outgoing {
    Frames(Vec<String>),
    Close(Cut),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) client: ClientId,
    pub(super) links: Links,
    pub(super) frames_at_once_max: usize,
    pub(super) close_max: Duration,
}

/// Bytes handed to the socket before the hub learns of it.
const WRITTEN_BYTES_MAX: usize = 64 * 1024;

type Socket = WebSocketStream<Link>;

/// How a connection ends.
enum End {
    /// The client has closed it, or the link broke.
    Gone,
    /// We end it.
    Cut(Cut),
}

impl Connection {
    /// Serves the client until one side ends the connection.
    pub(super) async fn run(self, socket: Socket, challenge: String) {
        let (outgoing, mut outgoing_receiver) = mpsc::unbounded_channel();
        let (reading, mut is_reading) = watch::channel(true);
        let (client, line) = (self.client, Line { outgoing, reading });
        if self.links.arrivals.send(Arrival::Opened { client, challenge, line }).await.is_err() {
            return self.say_goodbye(socket, Cut::Shutdown).await;
        }
        let is_forgotten = is_reading.clone();
        let (mut sink, mut stream) = socket.split();
        let end = tokio::select! {
            end = self.write(&mut sink, &mut outgoing_receiver) => end,
            end = self.read(&mut stream, &mut is_reading) => end,
            end = self.outlive(is_forgotten) => end,
        };
        if self.links.arrivals.send(Arrival::Closed { client }).await.is_err() {
            tracing::trace!("the hub has ended before client {}", client.0);
        }
        if let (End::Cut(cut), Ok(socket)) = (end, sink.reunite(stream)) {
            self.say_goodbye(socket, cut).await;
        }
    }

    async fn say_goodbye(&self, mut socket: Socket, cut: Cut) {
        tracing::debug!("client {} was cut: {cut}", self.client.0);
        let frame = CloseFrame { code: CloseCode::from(cut.code()), reason: cut.to_string().into() };
        let goodbye = async {
            socket.close(Some(frame)).await?;
            // To leave at once would throw away what the client has not read yet.
            while socket.next().await.transpose()?.is_some() {}
            // Encryption has a goodbye of its own, without which the client takes the end for a fault.
            socket.get_mut().shutdown().await?;
            Ok::<(), Error>(())
        };
        match timeout(self.close_max, goodbye).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("client {} left without a goodbye: {error}", self.client.0),
            Err(_) => tracing::debug!("client {} did not answer the goodbye", self.client.0),
        }
    }

    /// Writes frames as they come, with as few system calls as possible: what is there is gathered, then flushed.
    /// What was taken off the hub is reported soon, or a client that reads all the time would seem to read nothing.
    async fn write(
        &self,
        sink: &mut SplitSink<Socket, Message>,
        outgoing: &mut mpsc::UnboundedReceiver<Outgoing>,
    ) -> End {
        loop {
            // The hub forgets a client only after a `Close`, or when the client is gone.
            let Some(mut next) = outgoing.recv().await else { return End::Cut(Cut::Shutdown) };
            let mut bytes = 0;
            let cut = loop {
                match next {
                    Outgoing::Close(cut) => break Some(cut),
                    Outgoing::Frames(frames) => {
                        for frame in frames {
                            bytes += frame.len();
                            if sink.feed(Message::Text(frame.into())).await.is_err() {
                                return End::Gone;
                            }
                        }
                    }
                }
                match outgoing.try_recv() {
                    Ok(more) if bytes < WRITTEN_BYTES_MAX => next = more,
                    Ok(more) => {
                        self.report_written(std::mem::take(&mut bytes));
                        next = more;
                    }
                    Err(_) => break None,
                }
            };
            match cut {
                None if sink.flush().await.is_err() => return End::Gone,
                None => self.report_written(bytes),
                Some(cut) => {
                    let flushed = timeout(self.close_max, sink.flush()).await;
                    return if matches!(flushed, Ok(Ok(()))) || flushed.is_err() { End::Cut(cut) } else { End::Gone };
                }
            }
        }
    }

    /// Ends some time after the hub has forgotten the client: it may take nothing of what is to be written before.
    async fn outlive(&self, mut is_forgotten: watch::Receiver<bool>) -> End {
        while is_forgotten.changed().await.is_ok() {}
        tokio::time::sleep(self.close_max).await;
        End::Gone
    }

    fn report_written(&self, bytes: usize) {
        if self.links.reports.send(ServeInput::Written { client: self.client, bytes }).is_err() {
            tracing::trace!("the hub has ended before client {}", self.client.0);
        }
    }

    async fn read(&self, stream: &mut SplitStream<Socket>, is_reading: &mut watch::Receiver<bool>) -> End {
        loop {
            if is_reading.wait_for(|is_reading| *is_reading).await.is_err() {
                // The hub has forgotten this client; the writing side knows why.
                return std::future::pending().await;
            }
            let mut frames = Vec::new();
            let end = self.take_frames(stream, &mut frames).await;
            let client = self.client;
            if !frames.is_empty() && self.links.arrivals.send(Arrival::Frames { client, frames }).await.is_err() {
                return End::Cut(Cut::Shutdown);
            }
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// Waits for a frame, then takes those that are there already.
    async fn take_frames(&self, stream: &mut SplitStream<Socket>, frames: &mut Vec<Frame>) -> Option<End> {
        poll_fn(|context| {
            while frames.len() < self.frames_at_once_max {
                match Pin::new(&mut *stream).poll_next(context) {
                    Poll::Ready(Some(Ok(message))) => match text_of(message) {
                        Ok(frame) => frames.extend(frame),
                        Err(cut) => return Poll::Ready(Some(End::Cut(cut))),
                    },
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(end_of(error))),
                    Poll::Ready(None) => return Poll::Ready(Some(End::Gone)),
                    Poll::Pending if frames.is_empty() => return Poll::Pending,
                    Poll::Pending => break,
                }
            }
            Poll::Ready(None)
        })
        .await
    }
}

/// The text of a message; `None` for what keeps a connection alive.
fn text_of(message: Message) -> Result<Option<Frame>, Cut> {
    match message {
        Message::Text(text) => Frame::new(text.into()).map(Some).map_err(|_| Cut::InvalidUtf8),
        Message::Binary(_) => Err(Cut::NotText),
        Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => Ok(None),
    }
}

fn end_of(error: Error) -> End {
    match error {
        Error::Capacity(_) => End::Cut(Cut::FrameTooLarge),
        Error::Utf8(_) => End::Cut(Cut::InvalidUtf8),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => End::Gone,
        Error::Protocol(error) => End::Cut(Cut::Protocol(error.to_string())),
        _ => End::Gone,
    }
}
