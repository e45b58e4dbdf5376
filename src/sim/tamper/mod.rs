//! Faults: what stands between an honest relay and its clients.

mod answers;
mod authentication;
mod chance;
mod forged;
mod frames;
mod info;
mod negentropy;
mod publishing;
mod reconciling;
mod refusals;
mod replies;
mod sometimes;
mod strays;

use std::fmt::Debug;
use std::time::Duration;

pub use answers::{AnswerFault, Answers};
pub use authentication::{AuthDemands, AuthFault};
pub use chance::Chance;
pub use forged::{Forged, Forgery, Place};
pub use frames::{FrameFault, Frames};
pub use info::Info;
pub use negentropy::{Infinite, NegRefusal, NegentropyRefused, ShortCodec};
pub use publishing::{OkFault, Oks};
pub use reconciling::{Loss, NOTICES, REFUSALS, Replacement, SessionFault, Sessions};
pub use refusals::{ClosesAfter, LateChallenge, NoOk, RateLimit, RateLimitBy, SubscriptionCap};
pub use replies::{Altered, Eose, EoseFault, Ignores, LimitZero, Missing, PageCap, Shuffled};
pub use sometimes::Sometimes;
pub use strays::{Stray, Strays};

use super::honest::Said;
use crate::protocol::{ClientMessage, Event, Filter, RelayMessage};
use crate::runtime::Now;
use crate::serve::ClientId;

/// A fault. The default of both handlers is to pass a frame on as it is.
pub trait Tamper: Debug {
    /// A client has connected.
    fn handle_open(&mut self, _client: ClientId) {}

    /// A frame of a client: gives back what the relay gets to see of it.
    fn handle_client(&mut self, frame: String, _turn: &mut Turn) -> Option<String> {
        Some(frame)
    }

    /// A frame of the relay: whatever the client is to get goes to `turn`.
    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        turn.say(frame);
    }
}

/// Where a frame was going.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the relay.
    Up,
    /// To the client.
    Down,
}

/// What a tamper can do while it handles one frame.
#[derive(Debug)]
pub struct Turn {
    /// Whose frame it is.
    pub client: ClientId,
    /// The clocks.
    pub now: Now,
    said: Vec<(ClientId, Said, Duration)>,
    injected: Vec<&'static str>,
}

impl Turn {
    pub(super) fn new(client: ClientId, now: Now) -> Self {
        Self { client, now, said: Vec::new(), injected: Vec::new() }
    }

    /// Counts a fault that takes effect, under the name of its kind.
    pub fn inject(&mut self, kind: &'static str) {
        self.injected.push(kind);
    }

    /// Sends a frame to the client.
    pub fn say(&mut self, frame: impl Into<String>) {
        self.say_later(frame, Duration::ZERO);
    }

    /// Sends a frame to the client, with a delay.
    pub fn say_later(&mut self, frame: impl Into<String>, delay: Duration) {
        self.said.push((self.client, Said::Frame(frame.into()), delay));
    }

    /// Closes the connection with these words.
    pub fn close(&mut self, words: &str) {
        self.said.push((self.client, Said::Close(words.to_owned()), Duration::ZERO));
    }

    /// What is said, and the faults that took effect.
    pub(super) fn into_parts(self) -> (Vec<(ClientId, Said, Duration)>, Vec<&'static str>) {
        (self.said, self.injected)
    }
}

/// A closure as a tamper: for what a single test needs. It sees the frames of both sides and gives back what goes on.
pub struct Seen<F>(pub F);

impl<F> Debug for Seen<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seen")
    }
}

impl<F: FnMut(Direction, String, &mut Turn) -> Option<String>> Tamper for Seen<F> {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        (self.0)(Direction::Up, frame, turn)
    }

    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        if let Some(frame) = (self.0)(Direction::Down, frame, turn) {
            turn.say(frame);
        }
    }
}

/// The subscription that a frame of this kind names, by a look at its first bytes: most frames do not concern a tamper.
fn name_of<'f>(frame: &'f str, kind: &str) -> Option<&'f str> {
    let name = frame.strip_prefix("[\"")?.strip_prefix(kind)?.strip_prefix("\",\"")?;
    name.split('"').next()
}

/// The subscription and filters of a REQ.
fn req_of(frame: &str) -> Option<(String, Vec<Filter>)> {
    if !frame.starts_with("[\"REQ\"") {
        return None;
    }
    match ClientMessage::parse(frame) {
        Ok(ClientMessage::Req { subscription, filters }) => Some((subscription.into_owned(), filters)),
        _ => None,
    }
}

/// The subscription and event of an EVENT from a relay.
fn event_of(frame: &str) -> Option<(String, Event)> {
    if !frame.starts_with("[\"EVENT\"") {
        return None;
    }
    match RelayMessage::parse(frame) {
        Ok(RelayMessage::Event { subscription, json }) => {
            Some((subscription.into_owned(), Event::parse(json.to_owned().into()).ok()?))
        }
        _ => None,
    }
}

/// The subscription of an EOSE.
fn eose_of(frame: &str) -> Option<String> {
    if !frame.starts_with("[\"EOSE\"") {
        return None;
    }
    match RelayMessage::parse(frame) {
        Ok(RelayMessage::Eose { subscription, .. }) => subscription.map(std::borrow::Cow::into_owned),
        _ => None,
    }
}
