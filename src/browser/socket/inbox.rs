//! What a socket has told and nobody has taken yet.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use js_sys::JsString;

use crate::browser::BrowserConfig;
use crate::runtime::{CloseReason, Frame};

/// Frames wait as the browser's own strings: its memory shrinks again, that of WebAssembly does not.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    frames: VecDeque<JsString>,
    waiting_units: usize,
    is_open: bool,
    ended: Option<CloseReason>,
    waker: Option<Waker>,
}

impl Inbox {
    /// The socket is open.
    pub(super) fn opened(&mut self) {
        self.is_open = true;
        self.wake();
    }

    /// The connection has ended. The first reason that is given is the one that holds.
    pub(super) fn end(&mut self, reason: CloseReason) {
        self.ended.get_or_insert(reason);
        self.wake();
    }

    /// Has it ended?
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// A frame has come. Says why the connection has to end, if it has to.
    pub(super) fn push(
        &mut self,
        frame: JsString,
        frame_bytes_max: usize,
        waiting_units_max: usize,
    ) -> Option<CloseReason> {
        // Each unit is one byte at least.
        let units = frame.length() as usize;
        if units > frame_bytes_max {
            return Some(CloseReason::FrameTooLarge);
        }
        if self.waiting_units + units > waiting_units_max {
            return Some(CloseReason::Flood);
        }
        self.waiting_units += units;
        self.frames.push_back(frame);
        self.wake();
        None
    }

    /// Is the socket open, or has it ended?
    pub(super) fn poll_opened(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CloseReason>> {
        match &self.ended {
            Some(reason) => Poll::Ready(Err(reason.clone())),
            None if self.is_open => Poll::Ready(Ok(())),
            None => self.wait(cx),
        }
    }

    /// Is there a frame, or will there be none any more?
    pub(super) fn poll_filled(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.frames.is_empty() && self.ended.is_none() { self.wait(cx) } else { Poll::Ready(()) }
    }

    /// Appends the frames that are there, up to the bounds. The end comes after the last frame.
    pub(super) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        frames: &mut Vec<Frame>,
        frame_bytes_max: usize,
        config: &BrowserConfig,
    ) -> Poll<Result<(), CloseReason>> {
        let (mut count, mut bytes) = (0, 0);
        while count < config.receive_frames_max && bytes < config.receive_bytes_max {
            let Some(frame) = self.frames.pop_front() else { break };
            self.waiting_units -= frame.length() as usize;
            let text = String::from(frame);
            if text.len() > frame_bytes_max {
                self.frames.clear();
                return Poll::Ready(Err(self.ended.insert(CloseReason::FrameTooLarge).clone()));
            }
            count += 1;
            bytes += text.len();
            frames.push(text.into());
        }
        match &self.ended {
            _ if count > 0 => Poll::Ready(Ok(())),
            Some(reason) => Poll::Ready(Err(reason.clone())),
            None => self.wait(cx),
        }
    }

    fn wait<T>(&mut self, cx: &Context<'_>) -> Poll<T> {
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
