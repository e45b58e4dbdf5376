//! A world of git hosting (NIP-34) for tests and the demo of proactive sync: repositories, what refers to them, and
//! much that only looks as if it did, spread over a few relays.
//!
//! The world knows the answer: which events a complete daemon holds in the end, and no others. It says so from how it
//! made each event, not by applying the rules of acceptance, so that it can be compared with those who do.
//!
//! ```
//! use relaysync::protocol::RelayUrl;
//! use relaysync::sample::world::{Form, World, WorldConfig};
//!
//! let relays = ["ws://127.0.0.1:7001", "ws://127.0.0.1:7002", "ws://127.0.0.1:7003"];
//! let relays: Vec<_> = relays.iter().map(|url| RelayUrl::parse(url).unwrap()).collect();
//! let world = World::new(WorldConfig::small(relays));
//! assert_eq!(world.events().len(), 300);
//! assert!(world.wanted().len() > 200);
//! assert!(!world.reached_only_by(Form::UpperE).is_empty());
//! ```
//!
//! Who starts at the first relay alone finds all of the others: most announcements are there; some are only at relays
//! that others announce, and the last relay is known only to repositories that the first has never heard of, and only
//! by their `clone` URLs.

mod claim;
mod config;
mod events;
mod repository;
mod scribe;
mod strangers;
mod tags;

use std::collections::{BTreeMap, BTreeSet};

pub use self::claim::{Claim, Form, Reason};
pub use self::config::WorldConfig;
use self::scribe::Scribe;
use crate::protocol::{Address, Event, RelayUrl};

/// An event of the world.
#[derive(Debug, Clone)]
pub struct WorldEvent {
    /// The event. A forged one does not verify.
    pub event: Event,
    /// Who holds it: places in [`WorldConfig::relays`].
    pub relays: BTreeSet<usize>,
    /// What is to become of it.
    pub claim: Claim,
}

/// Repositories, the events around them, and where they are.
pub struct World {
    scribe: Scribe,
    events: Vec<WorldEvent>,
}

impl World {
    /// Makes the world. Signing takes about 50 µs an event on one core; with the feature `native` all cores sign.
    pub fn new(config: WorldConfig) -> Self {
        let mut scribe = Scribe::new(config);
        let events = scribe.write_world();
        Self { scribe, events }
    }

    /// What it was made from.
    pub fn config(&self) -> &WorldConfig {
        self.scribe.config()
    }

    /// All events, those that were posted later included.
    pub fn events(&self) -> &[WorldEvent] {
        &self.events
    }

    /// The repositories that list our service, by address, each with the relays that it lists (places in
    /// [`WorldConfig::relays`]).
    pub fn repositories(&self) -> BTreeMap<Address, BTreeSet<usize>> {
        self.scribe.repositories().iter().map(|repository| (repository.address(), repository.relays.clone())).collect()
    }

    /// What the relay at this place holds, oldest first but for small disorder.
    pub fn held_by(&self, relay: usize) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |held| held.relays.contains(&relay)).map(|held| &held.event)
    }

    /// The ids of exactly those events that a complete daemon holds.
    pub fn wanted(&self) -> BTreeSet<[u8; 32]> {
        self.ids(|claim| matches!(claim, Claim::Wanted(_)))
    }

    /// The ids of the wanted events that nothing but this form of reference leads to.
    pub fn reached_only_by(&self, form: Form) -> BTreeSet<[u8; 32]> {
        self.ids(|claim| matches!(claim, Claim::Wanted(forms) if **forms == [form]))
    }

    fn ids(&self, is_meant: impl Fn(&Claim) -> bool) -> BTreeSet<[u8; 32]> {
        self.events.iter().filter(|held| is_meant(&held.claim)).map(|held| held.event.id.to_bytes()).collect()
    }

    /// What the world claims of an event. Of a forged copy and its original, it is the original's.
    pub fn claim(&self, id: &[u8; 32]) -> Option<&Claim> {
        let of_id = self.events.iter().filter(|held| held.event.id.to_bytes() == *id).map(|held| &held.claim);
        of_id.min_by_key(|claim| !matches!(claim, Claim::Wanted(_)))
    }

    /// New events, dated `now_secs` (seconds since 1970), about repositories that list the relay at this place. They
    /// are wanted, are part of the world from now on, and that relay alone is to hold them; to put them there is the
    /// caller's part.
    ///
    /// # Panics
    /// There is no such relay.
    pub fn post(&mut self, relay: usize, events: usize, now_secs: u64) -> Vec<WorldEvent> {
        let posted = self.scribe.post(relay, events, now_secs);
        self.events.extend(posted.iter().cloned());
        posted
    }

    /// A new repository, dated `now_secs`, that lists our service and these relays (places), and its first issue. The
    /// first of the relays is to hold both.
    ///
    /// # Panics
    /// There are no such relays.
    pub fn found(&mut self, relays: &[usize], now_secs: u64) -> Vec<WorldEvent> {
        let founded = self.scribe.found(relays, now_secs);
        self.events.extend(founded.iter().cloned());
        founded
    }

    /// The relays, by place; the first is the one to start from.
    pub fn relays(&self) -> &[RelayUrl] {
        &self.config().relays
    }
}

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
