//! The world: clocks, the heap of what is to happen, engines and relays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::honest::at_once;
use super::node::{EngineId, Node};
use super::pool::check;
use super::remote::{Remote, relay_url};
use super::trace::Trace;
use super::wire::{LATENCY, Wire};
use crate::engine::{Command, Config, ConnId, Input, RelayOptions, RelayReport, Rng, Ticket};
use crate::plan::Interest;
use crate::protocol::{Event, Filter, FilterKey, ItemSet, RelayUrl};
use crate::runtime::{Frame, Instant, Now};
use crate::serve::ClientId;
use crate::store::{Batch, Store};

/// The wall clock of a new world, in seconds since 1970.
pub const NOW_SECS: u64 = 1_700_000_000;

/// Virtual time within which [`World::finish`] expects the end.
const FINISH_WITHIN: Duration = Duration::from_secs(3600);

/// What is to happen.
#[derive(Debug)]
pub(super) enum Happening {
    /// To an engine; dropped if it has been restarted since.
    Input(EngineId, u64, Input),
    /// A batch becomes durable, or fails to.
    Durable(EngineId, u64, Ticket, Batch, Result<(), String>),
    /// What clients of an engine's own relay service published, and was judged good, reaches its store.
    FromClients(EngineId, u64, Vec<Event>),
    /// A frame arrives at an engine.
    ToEngine(EngineId, u64, ConnId, Frame),
    /// A connection has come to its end, as the engine's end sees it.
    Cut(EngineId, u64, ConnId, Ending),
    /// A connection attempt arrives.
    Open(EngineId, u64, ConnId, RelayUrl, ClientId),
    /// A frame arrives at a relay.
    ToRelay(RelayUrl, ClientId, String),
    /// The engine's end of a connection was closed.
    Left(RelayUrl, ClientId),
    /// An engine whose store has failed is ended by whoever supervises it.
    Crash(EngineId, u64),
    /// A crashed engine starts again.
    Start(EngineId),
    /// An engine that sleeps wakes.
    Wake(EngineId),
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// The relay closed it, with these words.
    Closed(String),
    /// The link broke.
    Broke,
    /// More was to be sent than it took.
    Backlogged,
    /// A frame is larger than the engine's end takes.
    TooLarge,
}

/// Engines, relays, and everything between them.
#[derive(Debug)]
pub struct World {
    pub(super) instant: Instant,
    wall_secs: u64,
    sequence: u64,
    pub(super) steps_at_once: u64,
    pub(super) heap: BTreeMap<(Instant, u64), Happening>,
    pub(super) nodes: Vec<Node>,
    pub(super) relays: BTreeMap<RelayUrl, Remote>,
    pub(super) wires: BTreeMap<ClientId, Wire>,
    pub(super) clients_made: u64,
    pub(super) trace: Trace,
    /// The chance of the network, the disks and the timers. Where there are no faults, none is taken.
    pub(super) rng: Rng,
    /// Faults of the network, the disks, the processes and the clocks that took effect, by kind.
    pub(super) injected: BTreeMap<&'static str, u64>,
    /// Nothing more is to be discovered: what is wanted of relays does not change any more.
    pub(super) is_settled: bool,
    /// Frames that engines sent.
    pub frames_up: u64,
    /// Bytes on their way to a relay on one connection, beyond which it is given up, as by a runtime.
    pub outbound_bytes_max: usize,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// A world without anybody, at [`NOW_SECS`].
    pub fn new() -> Self {
        Self::with_seed(0)
    }

    /// The same, with a chance that `seed` determines.
    pub fn with_seed(seed: u64) -> Self {
        Self {
            // Nothing may take the origin for "never".
            instant: Instant::from_origin(Duration::from_secs(1_000)),
            wall_secs: NOW_SECS - 1_000,
            sequence: 0,
            steps_at_once: 0,
            heap: BTreeMap::new(),
            nodes: Vec::new(),
            relays: BTreeMap::new(),
            wires: BTreeMap::new(),
            clients_made: 0,
            trace: Trace::default(),
            rng: Rng::new(seed),
            injected: BTreeMap::new(),
            is_settled: false,
            frames_up: 0,
            outbound_bytes_max: 4 << 20,
        }
    }

    /// Both clocks of the relays, and of engines whose clocks are right.
    pub fn now(&self) -> Now {
        Now { instant: self.instant, unix_secs: self.wall_secs + self.instant.since_origin().as_secs() }
    }

    /// Both clocks of an engine.
    pub fn clocks(&self, engine: EngineId) -> Now {
        self.nodes[engine.0].clocks(self.now())
    }

    /// Adds a relay.
    ///
    /// # Panics
    /// `url` is no relay URL.
    pub fn add_relay(&mut self, url: &str, remote: Remote) -> RelayUrl {
        let url = relay_url(url);
        self.relays.insert(url.clone(), remote);
        url
    }

    /// Adds an engine with an empty store.
    pub fn add_engine(&mut self, config: Config) -> EngineId {
        let id = EngineId(self.nodes.len());
        self.nodes.push(Node::new(config, id.0 as u64 + 1, self.now()));
        self.watch_peers(id);
        id
    }

    /// An engine.
    pub fn node(&self, engine: EngineId) -> &Node {
        &self.nodes[engine.0]
    }

    /// An engine, to be changed.
    pub fn node_mut(&mut self, engine: EngineId) -> &mut Node {
        &mut self.nodes[engine.0]
    }

    /// A relay.
    pub fn relay(&self, url: &RelayUrl) -> &Remote {
        &self.relays[url]
    }

    /// A relay, to be changed.
    ///
    /// # Panics
    /// There is none of this name.
    pub fn relay_mut(&mut self, url: &RelayUrl) -> &mut Remote {
        self.relays.get_mut(url).expect("the relay was added")
    }

    /// What an engine holds.
    pub fn held(&self, engine: EngineId) -> Arc<ItemSet> {
        self.node(engine).held(self.now().unix_secs)
    }

    /// What a relay holds.
    pub fn held_by(&self, url: &RelayUrl) -> Arc<ItemSet> {
        self.relay(url).held(self.now().unix_secs)
    }

    /// Puts events into an engine's store before it starts.
    pub fn give(&mut self, engine: EngineId, events: &[Event]) {
        let events = events.iter().filter_map(|event| check(event.clone()).ok()).collect();
        let batch = Batch { events, now_secs: self.now().unix_secs, ..Batch::default() };
        at_once(self.node(engine).store.commit(batch)).expect("the store in memory does not fail");
    }

    /// Others publish events to a relay.
    pub fn publish(&mut self, url: &RelayUrl, events: &[Event]) {
        let now = self.now();
        let deliveries = self.relay_mut(url).publish(events, now);
        self.deliver(deliveries);
    }

    /// Tells an engine to sync all events of a relay into its store.
    pub fn sync(&mut self, engine: EngineId, url: &RelayUrl) {
        self.sync_with(engine, url, [Filter::new()], RelayOptions::default());
    }

    /// Tells an engine to sync what these filters select.
    pub fn sync_with(
        &mut self,
        engine: EngineId,
        relay: &RelayUrl,
        filters: impl IntoIterator<Item = Filter>,
        options: RelayOptions,
    ) {
        let mut interests = BTreeSet::new();
        for filter in filters {
            self.nodes[engine.0].filters.insert(FilterKey::of(&filter), filter.clone());
            interests.insert(Interest::Opaque(Arc::new(filter)));
        }
        self.nodes[engine.0].wishes.insert(relay.clone(), (interests.clone(), options));
        self.command(engine, Command::SetInterests { relay: relay.clone(), interests, options });
    }

    /// Gives an engine a command.
    pub fn command(&mut self, engine: EngineId, command: Command) {
        if let Command::SetInterests { relay, .. } = &command
            && let Some(watch) = self.nodes[engine.0].watches.get_mut(relay)
        {
            watch.link.disturb();
        }
        if let Command::Discover(config) = &command {
            self.note_config(engine, config);
        }
        if let Command::ChangeInterests { added, .. } = &command {
            let filters =
                added.iter().flat_map(Interest::packs).map(|pack| (pack.key().clone(), (*pack.filter()).clone()));
            self.nodes[engine.0].filters.extend(filters);
        }
        self.note_peers(engine, &command);
        self.input(engine, Input::Command(command));
    }

    /// All connections of a relay break.
    pub fn cut(&mut self, url: &RelayUrl, words: &str) {
        let now = self.now();
        for client in self.relay_mut(url).close_all(now) {
            self.end_wire(client, LATENCY, Ending::Closed(words.to_owned()));
        }
    }

    /// A relay says this to everybody.
    pub fn say(&mut self, url: &RelayUrl, frame: &str) {
        let deliveries = self.relay_mut(url).say_to_all(frame);
        self.deliver(deliveries);
    }

    /// The wall clock steps.
    pub fn step_wall(&mut self, secs: i64) {
        self.wall_secs = self.wall_secs.saturating_add_signed(secs);
    }

    /// Runs until the engine has ended, and gives back its reports.
    ///
    /// # Panics
    /// It does not end within an hour of virtual time, or something that must always hold does not.
    pub fn finish(&mut self, engine: EngineId) -> Vec<RelayReport> {
        assert!(
            self.run_until(FINISH_WITHIN, |world| world.node(engine).ended.is_some()),
            "no end: {:#?}\n{}",
            self.node(engine).reports(),
            self.trace()
        );
        self.node(engine).ended.clone().unwrap_or_default()
    }

    /// What happened last.
    pub fn trace(&self) -> String {
        self.trace.lines().map(|line| line + "\n").collect()
    }

    /// What happened last, line by line.
    pub fn trace_lines(&self) -> Vec<String> {
        self.trace.lines().collect()
    }

    /// Tells every line of the trace as it happens.
    pub(super) fn tell_trace(&mut self, tell: Option<fn(&str)>) {
        self.trace.tell = tell;
    }

    /// A hash over everything that happened.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    pub(super) fn note(&mut self, whom: impl std::fmt::Display, what: &str, text: &str) {
        self.trace.note(self.instant, whom, what, text);
    }

    /// Counts a fault that takes effect.
    pub(super) fn inject(&mut self, kind: &'static str) {
        *self.injected.entry(kind).or_default() += 1;
    }

    /// Faults that took effect, by kind, those of relays among them.
    pub fn injected(&self) -> BTreeMap<&'static str, u64> {
        let mut all = self.injected.clone();
        for (kind, times) in self.relays.values().flat_map(|relay| &relay.injected) {
            *all.entry(kind).or_default() += times;
        }
        all
    }

    /// The result of a piece of work reaches the engine.
    pub(super) fn answer(&mut self, engine: EngineId, input: Input) {
        let takes = self.nodes[engine.0].work_takes;
        self.answer_in(engine, takes, input);
    }

    pub(super) fn answer_in(&mut self, engine: EngineId, takes: Duration, input: Input) {
        let life = self.nodes[engine.0].life;
        self.schedule(takes, Happening::Input(engine, life, input));
    }

    pub(super) fn schedule(&mut self, delay: Duration, happening: Happening) {
        self.sequence += 1;
        self.heap.insert((self.instant + delay, self.sequence), happening);
    }
}
