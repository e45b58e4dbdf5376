//! What is to be sent, and what the two halves of a connection and its writer tell one another.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::runtime::{CloseReason, SendError};

/// Shared by sender, receiver and writer of one connection. Bounded in bytes.
pub(super) struct Outbound {
    bytes_max: usize,
    state: Mutex<State>,
    /// Wakes the writer: there are bytes, or the connection is to end.
    writer: Notify,
    /// Wakes the writer's watch: the connection is to end.
    finish: Notify,
}

struct State {
    /// Frames as they go on the wire, whole ones only.
    bytes: Vec<u8>,
    /// What the writer has taken and not yet handed to the system.
    in_flight_bytes: usize,
    /// May the receiver read the socket?
    reading: bool,
    /// The connection is to end, with this code as our goodbye (`None`: the relay has had its answer).
    finishing: Option<Option<CloseCode>>,
    /// Why the writer gave up.
    failure: Option<CloseReason>,
    /// The receiver, while it waits.
    receiver: Option<Waker>,
}

/// What the writer has to do next.
pub(super) enum Task {
    /// Send what is in the buffer.
    Write,
    /// Say goodbye and end.
    Finish(Option<CloseCode>),
}

impl Outbound {
    pub(super) fn new(bytes_max: usize) -> Self {
        let state = State {
            bytes: Vec::new(),
            in_flight_bytes: 0,
            reading: true,
            finishing: None,
            failure: None,
            receiver: None,
        };
        Self { bytes_max, state: Mutex::new(state), writer: Notify::new(), finish: Notify::new() }
    }

    /// Appends a frame of about `bytes` bytes, written by `encode`.
    pub(super) fn push(&self, bytes: usize, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), SendError> {
        let mut state = self.state();
        if state.finishing.is_some() || state.failure.is_some() {
            return Err(SendError::Closed);
        }
        if state.waiting_bytes() + bytes > self.bytes_max {
            return Err(SendError::Full);
        }
        encode(&mut state.bytes);
        drop(state);
        self.writer.notify_one();
        Ok(())
    }

    /// Appends a control frame that the WebSocket protocol itself asks for. A full buffer takes none, so that a relay
    /// that sends pings but reads no pongs cannot make it grow.
    pub(super) fn push_control(&self, frame: &[u8]) -> io::Result<()> {
        match self.push(frame.len(), |bytes| bytes.extend_from_slice(frame)) {
            // Nobody needs a pong of a connection that ends.
            Ok(()) | Err(SendError::Closed) => Ok(()),
            Err(SendError::Full) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Ends the connection once what is in the buffer has been sent.
    pub(super) fn finish(&self, code: Option<CloseCode>) {
        let mut state = self.state();
        if state.finishing.is_none() {
            state.finishing = Some(code);
        }
        state.wake_receiver();
        drop(state);
        self.writer.notify_one();
        self.finish.notify_one();
    }

    /// The writer could not go on.
    pub(super) fn fail(&self, reason: CloseReason) {
        let mut state = self.state();
        state.failure.get_or_insert(reason);
        state.wake_receiver();
    }

    /// Stops or resumes the receiver.
    pub(super) fn set_reading(&self, reading: bool) {
        let mut state = self.state();
        state.reading = reading;
        if reading {
            state.wake_receiver();
        }
    }

    /// May the receiver read? Pending while it may not; an error once the connection is over and reading is in vain.
    /// Either way its task is woken by the next change.
    pub(super) fn poll_reading(&self, cx: &mut Context<'_>) -> Poll<Result<(), CloseReason>> {
        let mut state = self.state();
        match &state.failure {
            // After an error of the system, what the relay sent before is still there to be read.
            Some(CloseReason::Io(_)) if state.reading && state.finishing.is_none() => {}
            Some(reason) => return Poll::Ready(Err(reason.clone())),
            None if state.finishing.is_some() => return Poll::Ready(Err(CloseReason::Done)),
            None => {}
        }
        match &mut state.receiver {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        if state.reading { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Why the writer gave up, if it did.
    pub(super) fn failure(&self) -> Option<CloseReason> {
        self.state().failure.clone()
    }

    /// Waits for something to do, and swaps the empty `buffer` for what is to be sent.
    pub(super) async fn next_task(&self, buffer: &mut Vec<u8>) -> Task {
        loop {
            if let Some(task) = self.take_task(buffer) {
                return task;
            }
            self.writer.notified().await;
        }
    }

    /// Waits until the connection is to end.
    pub(super) async fn finishing(&self) {
        while self.state().finishing.is_none() {
            self.finish.notified().await;
        }
    }

    fn take_task(&self, buffer: &mut Vec<u8>) -> Option<Task> {
        let mut state = self.state();
        state.in_flight_bytes = 0;
        if state.bytes.is_empty() {
            return state.finishing.map(Task::Finish);
        }
        std::mem::swap(&mut state.bytes, buffer);
        state.in_flight_bytes = buffer.len();
        Some(Task::Write)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock in a half-changed state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn waiting_bytes(&self) -> usize {
        self.bytes.len() + self.in_flight_bytes
    }

    fn wake_receiver(&mut self) {
        if let Some(waker) = self.receiver.take() {
            waker.wake();
        }
    }
}
