//! Engines that discover: what surrounds them in a daemon, and whether they want what they should.
//!
//! A started engine is told what is held, in any order and by and by; clients of the daemon's own relay service publish
//! events, which the engine judges. [`Acceptance`] says on its own what is wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::acceptance::{Acceptance, Versions, address_of, is_indexed, is_newer};
use super::checks::Watch;
use super::honest::at_once;
use super::node::{EngineId, Node, Wish};
use super::pool::check;
use super::wire::up_to;
use super::world::{Happening, World};
use crate::discover::{DiscoverConfig, Discovery};
use crate::engine::{Command, Direction, Input, Origin, RelayOptions, Sizes};
use crate::peer::View;
use crate::protocol::{Event, Filter, RelayUrl, Window};
use crate::store::{Batch, Outcome, Store};

/// How discovered relays are synced.
const DISCOVERED: RelayOptions = RelayOptions { direction: Direction::Down, method: None, live: true, trusted: false };

/// What is held is told to a started engine within this.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// In how many parts.
const TOLD_IN: usize = 3;

/// How long a client's event takes into the store, and how long it then takes for the engine to learn of it, at most.
const CLIENT_TAKES_MAX: Duration = Duration::from_secs(2);

/// What is held for so long, in seconds, has been told to the engine.
const KNOWN_AFTER_SECS: u64 = 10;

/// What is remembered of an engine that discovers, beside its store.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Announcements, issues, patches and pull requests that were held at some time since this life began, or since
    /// nothing was left of what had been judged before: each with when it came, in seconds since 1970.
    seen: BTreeMap<[u8; 32], (Event, u64)>,
    /// What was judged good for clients.
    promised: Vec<Event>,
    /// Configurations that what is on its way may have been judged by, each with when it came; the last one holds.
    configs: Vec<(DiscoverConfig, u64)>,
    /// Events of clients that are being judged.
    questions: BTreeMap<u64, Vec<Event>>,
    /// How many questions there were.
    asked: u64,
    /// Times that the engine is being told what is held.
    telling: usize,
    /// Has something changed since nothing was on its way?
    is_stale: bool,
}

impl Ledger {
    pub(super) fn new(config: &DiscoverConfig) -> Self {
        Self { configs: vec![(config.clone(), 0)], ..Self::default() }
    }

    fn everything(&self) -> Vec<&Event> {
        self.seen.values().map(|(event, _)| event).chain(&self.promised).collect()
    }

    /// Is this wanted, by anything that was held and that was configured while it may have been judged?
    fn may_want(&self, event: &Event) -> bool {
        let wants = |config| Acceptance::new(config, self.everything(), Versions::All).wants(event);
        self.configs.iter().rev().any(|(config, _)| wants(config))
    }
}

impl Node {
    /// What it is to have of each relay of a world, and how: as it was told, and as follows from what it holds.
    pub(super) fn wanted(&self, now_secs: u64) -> BTreeMap<RelayUrl, Wish> {
        let mut wanted = self.told();
        if let Some(config) = &self.config.discovery {
            let held = self.events(now_secs);
            for (relay, interests) in Acceptance::new(config, &held, Versions::Newest).targets() {
                wanted.entry(relay).or_insert((interests, DISCOVERED));
            }
        }
        wanted
    }

    fn holds(&self, id: &[u8; 32]) -> bool {
        let events = at_once(self.store.events(vec![*id])).expect("the store in memory does not fail");
        events.into_iter().any(|event| event.is_some())
    }

    /// Is another version of the same event held, which stands against this one?
    fn has_newer(&self, event: &Event, now_secs: u64) -> bool {
        let address = address_of(event);
        if !matches!(address.kind, 10_000..20_000 | 30_000..40_000) {
            return false;
        }
        let filter = Filter::new().kind(event.kind).author(event.pubkey);
        let items = at_once(self.store.held_items(&filter, Window::ALL, &View::all(), now_secs));
        let ids = items.expect("the store in memory does not fail").items().iter().map(|item| item.id).collect();
        let records = at_once(self.store.events(ids)).expect("the store in memory does not fail");
        let held = records.into_iter().flatten().filter_map(|record| Event::parse(record.json).ok());
        let is_one = address.kind < 20_000;
        held.filter(|other| is_one || address_of(other) == address).any(|other| is_newer(&other, event))
    }

    /// A started engine has learnt nothing yet.
    pub(super) fn begin_ledger(&mut self, now_secs: u64) {
        let Some(config) = &self.config.discovery else { return };
        let known_from = now_secs + TOLD_WITHIN.as_secs();
        let held = self.events(now_secs).into_iter().filter(is_indexed);
        let seen = held.map(|event| (event.id.to_bytes(), (event, known_from))).collect();
        let asked = self.ledger.asked;
        self.ledger = Ledger { seen, configs: vec![(config.clone(), known_from)], asked, ..Ledger::default() };
    }

    /// The engine has been told something that is held.
    pub(super) fn note_told(&mut self) {
        self.ledger.telling = self.ledger.telling.saturating_sub(1);
    }

    /// These are held now.
    pub(super) fn note_stored(&mut self, events: &[Event], outcomes: &[Outcome], now_secs: u64) {
        for event in
            events.iter().zip(outcomes).filter(|(_, outcome)| **outcome == Outcome::Stored).map(|(event, _)| event)
        {
            self.ledger.is_stale |= Discovery::observes(event.kind_number());
            if is_indexed(event) {
                self.ledger.seen.insert(event.id.to_bytes(), (event.clone(), now_secs));
            }
        }
    }

    /// Once nothing is on its way that was judged before, what is gone does not count any more.
    pub(super) fn settle_ledger(&mut self) {
        if !self.ledger.is_stale || self.ledger.telling > 0 || self.sizes().pipeline_events > 0 {
            return;
        }
        let gone: Vec<[u8; 32]> = self.ledger.seen.keys().filter(|id| !self.holds(id)).copied().collect();
        gone.iter().for_each(|id| drop(self.ledger.seen.remove(id)));
        let last = self.ledger.configs.len().saturating_sub(1);
        self.ledger.configs.drain(..last);
        self.ledger.is_stale = false;
    }
}

impl World {
    /// Tells an engine that has just been added what it was given to hold.
    pub fn begin_discovering(&mut self, engine: EngineId) {
        let now_secs = self.now().unix_secs;
        self.nodes[engine.0].begin_ledger(now_secs);
        self.tell_held(engine);
    }

    /// A new configuration of discovery, for the engine and for those that follow it.
    pub(super) fn note_config(&mut self, engine: EngineId, config: &DiscoverConfig) {
        let now_secs = self.now().unix_secs;
        let node = &mut self.nodes[engine.0];
        node.config.discovery = Some(config.clone());
        node.ledger.configs.push((config.clone(), now_secs));
        node.ledger.is_stale = true;
        node.watches.values_mut().for_each(Watch::forget_requests);
    }

    /// Tells a started engine what is held, in any order.
    pub(super) fn tell_held(&mut self, engine: EngineId) {
        let node = &self.nodes[engine.0];
        if node.config.discovery.is_none() {
            return;
        }
        let life = node.life;
        let mut events = node.events(self.now().unix_secs);
        events.retain(|event| Discovery::KINDS.contains(&event.kind_number()));
        for at in (1..events.len()).rev() {
            events.swap(at, (self.rng.bits() % (at as u64 + 1)) as usize);
        }
        for part in events.chunks(events.len().div_ceil(TOLD_IN).max(1)) {
            let delay = up_to(&mut self.rng, TOLD_WITHIN);
            let command = Command::Accepted { events: part.to_vec(), origin: Origin::Held, brought: BTreeMap::new() };
            self.nodes[engine.0].ledger.telling += 1;
            self.schedule(delay, Happening::Input(engine, life, Input::Command(command)));
        }
        self.schedule(TOLD_WITHIN, Happening::Input(engine, life, Input::Command(Command::AllHeld)));
    }

    /// Clients of the daemon's own relay service publish these: what is wanted is stored.
    pub fn publish_to(&mut self, engine: EngineId, events: &[Event]) {
        let node = &mut self.nodes[engine.0];
        if !node.is_up() {
            return;
        }
        node.ledger.asked += 1;
        let ticket = node.ledger.asked;
        node.ledger.questions.insert(ticket, events.to_vec());
        self.command(engine, Command::Judge { ticket, events: events.to_vec() });
    }

    /// The engine has judged what clients published.
    pub(super) fn take_judgement(&mut self, engine: EngineId, ticket: u64, objections: &[Option<String>]) {
        let ledger = &mut self.nodes[engine.0].ledger;
        let Some(events) = ledger.questions.remove(&ticket) else { return };
        assert_eq!(events.len(), objections.len(), "as many judgements as events");
        let mut accepted = Vec::new();
        for (event, objection) in events.into_iter().zip(objections) {
            if objection.is_none() {
                assert!(ledger.may_want(&event), "{} of a client is judged good and not wanted", event.id);
                ledger.promised.push(event.clone());
                accepted.push(event);
            }
        }
        let life = self.nodes[engine.0].life;
        let delay = up_to(&mut self.rng, CLIENT_TAKES_MAX);
        self.schedule(delay, Happening::FromClients(engine, life, accepted));
    }

    /// What clients published is stored, and then the engine is told.
    pub(super) fn store_from_clients(&mut self, engine: EngineId, events: Vec<Event>) {
        if self.nodes[engine.0].disk.full {
            return;
        }
        let now_secs = self.clocks(engine).unix_secs;
        let batch = Batch {
            events: events.iter().filter_map(|event| check(event.clone()).ok()).collect(),
            now_secs,
            ..Batch::default()
        };
        let outcomes = self.apply(engine, batch).expect("the store in memory does not fail");
        let is_new = |(_, outcome): &(Event, Outcome)| *outcome == Outcome::Stored;
        let stored: Vec<Event> = events.into_iter().zip(outcomes).filter(is_new).map(|(event, _)| event).collect();
        self.note(engine, "stores from clients", &stored.len().to_string());
        let (life, delay) = (self.nodes[engine.0].life, up_to(&mut self.rng, CLIENT_TAKES_MAX));
        let command = Command::Accepted { events: stored, origin: Origin::Client, brought: BTreeMap::new() };
        self.nodes[engine.0].ledger.telling += 1;
        self.schedule(delay, Happening::Input(engine, life, Input::Command(command)));
    }

    /// What a discovering engine stores is wanted, or comes from a relay whose word counts.
    pub(super) fn check_accepted(&self, engine: EngineId, event: &Event) {
        let node = &self.nodes[engine.0];
        let is_trusted = |(relay, (_, options)): (&RelayUrl, &Wish)| {
            options.trusted && self.relays[relay].honest().got_at_secs.contains_key(event.id.as_bytes())
        };
        assert!(
            node.ledger.may_want(event) || node.wishes.iter().any(is_trusted),
            "{} is stored and not accepted: {}",
            event.id,
            event.json_str()
        );
    }

    /// Those of these events of a relay that an engine has to have, by what it has known since before the relay was
    /// asked.
    pub(super) fn needed(
        &self,
        engine: EngineId,
        relay: &RelayUrl,
        ids: Vec<[u8; 32]>,
        asked_at_secs: u64,
    ) -> Vec<[u8; 32]> {
        let node = &self.nodes[engine.0];
        let is_known = |since: u64| since + KNOWN_AFTER_SECS <= asked_at_secs;
        let Some((config, _)) = node.ledger.configs.last().filter(|(_, since)| is_known(*since)) else {
            return Vec::new();
        };
        let seen = node.ledger.seen.iter().filter(|(id, (_, since))| is_known(*since) && node.holds(id));
        let held: Vec<&Event> = seen.map(|(_, (event, _))| event).collect();
        self.wanted_of(engine, relay, ids, &Acceptance::new(config, held, Versions::Newest))
    }

    /// Those of these events of a relay that are wanted, unless a newer version is held.
    pub(super) fn wanted_of(
        &self,
        engine: EngineId,
        relay: &RelayUrl,
        ids: Vec<[u8; 32]>,
        acceptance: &Acceptance<'_>,
    ) -> Vec<[u8; 32]> {
        let (node, now_secs) = (&self.nodes[engine.0], self.now().unix_secs);
        let records =
            at_once(self.relays[relay].honest().store().events(ids)).expect("the store in memory does not fail");
        let events = records.into_iter().flatten().filter_map(|record| Event::parse(record.json).ok());
        let needed = events.filter(|event| acceptance.wants(event) && !node.has_newer(event, now_secs));
        needed.map(|event| event.id.to_bytes()).collect()
    }

    /// What discovery holds stays within what its configuration allows.
    pub(super) fn check_discovery_sizes(&self, engine: EngineId, sizes: &Sizes) {
        let config = &self.nodes[engine.0].config;
        let Some(discovery) = &config.discovery else { return };
        let (held, most) = (&sizes.discovery, discovery);
        assert!(
            sizes.refused_ids <= config.refused_ids_max
                && sizes.outbox_events <= sizes.relays * config.outbox_events_max
                && held.repositories <= most.repositories_max
                && held.roots <= most.roots_max
                && held.relays <= most.relays_max + most.bootstrap.len()
                && held.promises <= most.promises_max,
            "too much is held of what was discovered: {sizes:?}"
        );
    }

    /// Relays that an engine is to have something of, now, and that there are.
    pub(super) fn wanted_relays(&self, engine: EngineId) -> BTreeMap<RelayUrl, Wish> {
        let mut wanted = self.nodes[engine.0].wanted(self.now().unix_secs);
        wanted.retain(|relay, (interests, _)| self.relays.contains_key(relay) && !interests.is_empty());
        wanted
    }

    /// The ids of what `wish` selects of a relay.
    pub(super) fn selected(&self, relay: &RelayUrl, (interests, _): &Wish) -> BTreeSet<[u8; 32]> {
        let now_secs = self.now().unix_secs;
        let packs = interests.iter().flat_map(crate::plan::Interest::packs);
        let items = packs.map(|pack| self.relays[relay].honest().items(&pack.filter(), pack.window(), now_secs));
        items.flat_map(|items| items.items().iter().map(|item| item.id).collect::<Vec<_>>()).collect()
    }
}
