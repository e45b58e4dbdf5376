//! Discovery inside the engine: what is stored is observed, what follows from it becomes interests, and what comes from
//! relays is judged before it is checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::refused::Refused;
use super::relay::Relay;
use super::{Direction, Engine, Notice, RelayOptions};
use crate::discover::{DiscoverConfig, Discovery};
use crate::engine::Effect;
use crate::ingest::Source;
use crate::plan::Interest;
use crate::protocol::{Event, RelayUrl};

/// How relays are synced that were discovered: followed, downwards.
pub(super) const DISCOVERED: RelayOptions =
    RelayOptions { direction: Direction::Down, method: None, live: true, trusted: false };

/// Who has brought an event by another way than the engine: it is not published to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bringer {
    /// The peer of this name, as a client of our own relay service.
    Peer(Arc<str>),
    /// A relay, to somebody else who syncs with it.
    Relay(RelayUrl),
}

/// Where an event comes from that the engine has not brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was held before, and is read again: at the start, or after some of the feed was missed.
    Held,
    /// It has just been stored by somebody else, such as a client of our own relay service: relays that are published to
    /// are to have it.
    Client,
}

impl Engine {
    /// Events that are held now and that no relay of ours has brought.
    pub(super) fn accept(&mut self, events: &[Event], origin: Origin, brought: &BTreeMap<[u8; 32], Bringer>) {
        for event in events {
            self.observe(event);
            if origin == Origin::Client {
                let bringer = brought.get(event.id.as_bytes());
                self.pass_on(event, |relay| bringer.is_some_and(|bringer| relay.is_bringer(bringer)));
            }
        }
    }

    /// Events that relays have brought are held now.
    pub(super) fn handle_stored(&mut self, stored: Vec<(Source, Event)>) {
        for (source, event) in stored {
            self.observe(&event);
            self.pass_on(&event, |relay| relay.number() == source.relay);
        }
    }

    /// What is protected, discovery has no part in: what follows from it would tell strangers of it.
    fn observe(&mut self, event: &Event) {
        let Some(discovery) = self.discovery.as_mut().filter(|_| !self.access.protects(event)) else { return };
        discovery.observe(event, self.now.instant);
        let wanted = discovery.layer_one_with(event);
        for (relay, seconds) in self.refused.release(&wanted) {
            self.with_relay(relay, |relay, ctx| relay.ask_again(&seconds, ctx));
        }
    }

    /// Relays that are published to get what others bring.
    fn pass_on(&mut self, event: &Event, has_brought: impl Fn(&Relay) -> bool) {
        let is_meant = |number: &usize| self.relays.get(*number).is_some_and(|relay| !has_brought(relay));
        let up: Vec<usize> = self.up.iter().copied().filter(is_meant).collect();
        for number in up {
            self.with_relay(number, |relay, ctx| {
                relay.offer_stored(event, ctx);
                relay.pump(ctx);
            });
        }
    }

    /// Says of each event whether it is wanted. What is protected is for the access rules to let in, and makes nothing
    /// else wanted: the answer would tell of it.
    pub(super) fn judge(&mut self, ticket: u64, events: &[Event]) {
        let judge = |event: &Event| match &mut self.discovery {
            Some(discovery) if !self.access.protects(event) => {
                discovery.judge(event).err().map(|objection| objection.to_string())
            }
            _ => None,
        };
        let objections = events.iter().map(judge).collect();
        self.out.push_back(Effect::Notify(Notice::Judged { ticket, objections }));
    }

    /// Takes a new configuration of discovery; without one before, discovery begins.
    pub(super) fn discover(&mut self, config: DiscoverConfig) {
        let rules = config.rules();
        match &mut self.discovery {
            Some(discovery) => discovery.reconfigure(config, self.now.instant),
            None => self.discovery = Some(Discovery::new(config, self.now.instant)),
        }
        self.pipeline.keep = self.kept();
        let before = std::mem::replace(&mut self.rules, rules);
        if before != rules {
            self.refused = Refused::default();
            (0..self.relays.len()).for_each(|number| self.with_relay(number, |relay, ctx| relay.handle_rules(ctx)));
        }
    }

    /// Something is protected that was not: what followed from it is asked for no more. Which that was is not known any
    /// more, so discovery begins anew, and waits to be told of all that is held.
    pub(super) fn forget_observed(&mut self) {
        let Some(discovery) = &mut self.discovery else { return };
        let mut gone: BTreeMap<RelayUrl, Vec<Interest>> =
            discovery.flush().into_iter().map(|change| (change.relay, change.removed)).collect();
        for relay in self.by_url.keys() {
            gone.entry(relay.clone()).or_default().extend(discovery.interests_of(relay));
        }
        *discovery = Discovery::new(discovery.config().clone(), self.now.instant);
        self.awaits_held = true;
        for (relay, interests) in gone.into_iter().filter(|(_, interests)| !interests.is_empty()) {
            let Some(number) = self.by_url.get(&relay).copied() else { continue };
            self.with_relay(number, |relay, ctx| relay.change_interests(Vec::new(), &interests, relay.options(), ctx));
        }
    }

    /// Hands out what is wanted of relays once the batch window has ended.
    pub(super) fn poll_discovery(&mut self) {
        let now = self.now.instant;
        let Some(discovery) = self.discovery.as_mut().filter(|_| !self.stopping && !self.awaits_held) else { return };
        if discovery.deadline().is_none_or(|at| at > now) {
            return;
        }
        let changes = discovery.poll(now);
        let (added, removed) =
            changes.iter().fold((0, 0), |sum, change| (sum.0 + change.added.len(), sum.1 + change.removed.len()));
        tracing::info!(relays = changes.len(), added, removed, "what is wanted of relays has changed");
        for change in changes {
            let number = self.register(change.relay);
            self.with_relay(number, |relay, ctx| {
                let discovered = RelayOptions { live: !ctx.config.one_shot, ..DISCOVERED };
                let options = if relay.is_configured { relay.options() } else { discovered };
                relay.change_interests(change.added, &change.removed, options, ctx);
            });
        }
    }
}
