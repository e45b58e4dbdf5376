//! A fault that would always happen, now and then.

use super::{Chance, Tamper, Turn};
use crate::serve::ClientId;

/// Shows a fault some of the frames only.
#[derive(Debug, Clone)]
pub struct Sometimes<T> {
    fault: T,
    chance: Chance,
}

impl<T: Tamper> Sometimes<T> {
    /// Shows `fault` frames so often.
    pub fn new(fault: T, chance: Chance) -> Self {
        Self { fault, chance }
    }
}

impl<T: Tamper> Tamper for Sometimes<T> {
    fn handle_open(&mut self, client: ClientId) {
        self.fault.handle_open(client);
    }

    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        if self.chance.hits() { self.fault.handle_client(frame, turn) } else { Some(frame) }
    }

    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        if self.chance.hits() { self.fault.handle_relay(frame, turn) } else { turn.say(frame) }
    }
}
