//! Which relays there are: each has a number as long as it is on record.

use super::Engine;
use super::relay::{Pending, Relay};
use crate::protocol::RelayUrl;

impl Engine {
    /// A relay is registered once, and stays as long as something is wanted of it; connections come and go.
    pub(super) fn register(&mut self, url: RelayUrl) -> usize {
        if let Some(number) = self.by_url.get(&url) {
            return *number;
        }
        let coverage = self.coverage.remove(&url).unwrap_or_default();
        let free = if self.relays.len() < self.config.relays_kept_max { None } else { self.forget_a_relay() };
        let number = free.unwrap_or(self.relays.len());
        let relay = Relay::new(url.clone(), number, &self.config, coverage);
        match self.relays.get_mut(number) {
            Some(place) => *place = relay,
            None => {
                self.relays.push(relay);
                self.deadline_of.push(None);
            }
        }
        self.by_url.insert(url, number);
        // It is nobody yet, and has its rights as such.
        self.with_relay(number, |relay, ctx| {
            relay.handle_rights(ctx);
        });
        number
    }

    /// Anybody can announce ever other relays: those that nothing is wanted of make room for them. Gives the free place.
    fn forget_a_relay(&mut self) -> Option<usize> {
        let is_free = |number: &usize| {
            self.relays[*number].is_forgettable(self.now.instant, &self.config) && self.pipeline.bytes_of(*number) == 0
        };
        let waits = |pending: &Pending, number| match pending {
            Pending::Known { relay, .. } | Pending::Events { relay, .. } | Pending::Outbox { relay } => {
                *relay == number
            }
        };
        let number = (0..self.relays.len())
            .filter(is_free)
            .find(|number| !self.pending.values().any(|pending| waits(pending, *number)))?;
        self.with_relay(number, |relay, ctx| relay.remove_marks(ctx));
        self.by_url.remove(&self.relays[number].url);
        Some(number)
    }
}
