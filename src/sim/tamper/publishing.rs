//! Faults of OK, the answer to a published event.

use super::{Chance, Tamper, Turn};
use crate::protocol::message::relay;
use crate::protocol::{ClientMessage, Event, RelayMessage};

/// What may be wrong with an OK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OkFault {
    /// It does not come, though the event was taken.
    Lost,
    /// It says no, though the event was taken.
    False,
    /// It comes twice.
    Twice,
    /// It asks for less traffic, and the event is not taken.
    RateLimited,
    /// It refuses an event that is none of the relay's business.
    Refused,
}

impl OkFault {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "ok lost",
            Self::False => "ok false",
            Self::Twice => "ok twice",
            Self::RateLimited => "ok rate-limited",
            Self::Refused => "event refused",
        }
    }
}

/// A relay some of whose OKs are wrong.
#[derive(Debug, Clone)]
pub struct Oks {
    fault: OkFault,
    chance: Chance,
}

impl Oks {
    /// With this fault, so often.
    pub fn new(fault: OkFault, chance: Chance) -> Self {
        Self { fault, chance }
    }
}

impl Tamper for Oks {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        let words = match self.fault {
            OkFault::RateLimited => "rate-limited: slow down",
            OkFault::Refused => "blocked: not here",
            _ => return Some(frame),
        };
        let Some(event) = published(&frame).filter(|_| self.chance.hits()) else { return Some(frame) };
        turn.inject(self.fault.name());
        turn.say(relay::ok(&event.id.to_hex(), false, words));
        None
    }

    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        let concerns = matches!(self.fault, OkFault::Lost | OkFault::False | OkFault::Twice);
        if !concerns || !frame.starts_with("[\"OK\"") || !self.chance.hits() {
            return turn.say(frame);
        }
        let Ok(RelayMessage::Ok { id, .. }) = RelayMessage::parse(&frame) else { return turn.say(frame) };
        turn.inject(self.fault.name());
        match self.fault {
            OkFault::Lost => {}
            OkFault::Twice => {
                turn.say(frame.clone());
                turn.say(frame);
            }
            _ => turn.say(relay::ok(&id, false, "error: the database is locked")),
        }
    }
}

fn published(frame: &str) -> Option<Event> {
    if !frame.starts_with("[\"EVENT\"") {
        return None;
    }
    match ClientMessage::parse(frame) {
        Ok(ClientMessage::Event { json }) => Event::parse(json.to_owned().into()).ok(),
        _ => None,
    }
}
