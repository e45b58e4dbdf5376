//! The world: clocks, the heap of what is to happen, engines and relays.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::honest::{Said, at_once};
use super::node::{EngineId, Node};
use super::remote::{Delivery, Remote, relay_url};
use crate::engine::{Command, Config, ConnId, Input, RelayOptions, RelayReport};
use crate::ingest::verify;
use crate::plan::Interest;
use crate::protocol::{Event, Filter, FilterKey, ItemSet, RelayUrl};
use crate::runtime::{CloseReason, Frame, Instant, Now};
use crate::serve::ClientId;
use crate::store::{Batch, Store};

/// The wall clock of a new world, in seconds since 1970.
pub const NOW_SECS: u64 = 1_700_000_000;

/// From one end of a connection to the other.
pub(super) const LATENCY: Duration = Duration::from_millis(5);

/// Things that may happen at one moment before it counts as a live-lock.
const STEPS_AT_ONCE_MAX: u64 = 200_000;

/// Virtual time within which [`World::finish`] expects the end.
const FINISH_WITHIN: Duration = Duration::from_secs(3600);

/// Lines of the trace that are kept, and characters of each.
const TRACE_LINES: usize = 200;
const TRACE_CHARS: usize = 160;

/// What is to happen.
#[derive(Debug)]
pub(super) enum Happening {
    /// To an engine; dropped if it has been restarted since.
    Input(EngineId, u64, Input),
    /// A frame arrives at an engine.
    ToEngine(EngineId, ConnId, Frame),
    /// The relay's end of a connection was closed.
    Cut(EngineId, ConnId, String),
    /// A connection attempt arrives.
    Open(EngineId, ConnId, RelayUrl, ClientId),
    /// A frame arrives at a relay.
    ToRelay(RelayUrl, ClientId, String),
    /// The engine's end of a connection was closed.
    Left(RelayUrl, ClientId),
}

/// Engines, relays, and everything between them.
#[derive(Debug)]
pub struct World {
    pub(super) instant: Instant,
    wall_secs: u64,
    sequence: u64,
    steps_at_once: u64,
    heap: BTreeMap<(Instant, u64), Happening>,
    pub(super) nodes: Vec<Node>,
    pub(super) lives: Vec<u64>,
    pub(super) relays: BTreeMap<RelayUrl, Remote>,
    /// Which engine's connection a client is.
    pub(super) clients: BTreeMap<ClientId, (EngineId, ConnId)>,
    pub(super) clients_made: u64,
    trace: VecDeque<String>,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// A world without anybody, at [`NOW_SECS`].
    pub fn new() -> Self {
        Self {
            // Nothing may take the origin for "never".
            instant: Instant::from_origin(Duration::from_secs(1_000)),
            wall_secs: NOW_SECS - 1_000,
            sequence: 0,
            steps_at_once: 0,
            heap: BTreeMap::new(),
            nodes: Vec::new(),
            lives: Vec::new(),
            relays: BTreeMap::new(),
            clients: BTreeMap::new(),
            clients_made: 0,
            trace: VecDeque::new(),
        }
    }

    /// Both clocks.
    pub fn now(&self) -> Now {
        Now { instant: self.instant, unix_secs: self.wall_secs + self.instant.since_origin().as_secs() }
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
        self.lives.push(0);
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
        let events = events.iter().filter_map(|event| verify(event.clone()).ok()).collect();
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
        self.command(engine, Command::SetInterests { relay: relay.clone(), interests, options });
    }

    /// Gives an engine a command.
    pub fn command(&mut self, engine: EngineId, command: Command) {
        self.input(engine, Input::Command(command));
    }

    /// Gives an engine an input, as it is.
    pub fn input(&mut self, engine: EngineId, input: Input) {
        let now = self.now();
        self.nodes[engine.0].engine.handle(input, now);
        self.perform_all(engine);
    }

    /// An engine crashes and starts again over its store. It has to be told what to sync.
    pub fn restart(&mut self, engine: EngineId) {
        let now = self.now();
        self.lives[engine.0] += 1;
        // Its new connections are counted anew: nothing of the old ones may be taken for theirs.
        self.clients.retain(|_, (of, _)| *of != engine);
        self.heap.retain(|_, happening| match happening {
            Happening::ToEngine(of, ..) | Happening::Cut(of, ..) | Happening::Open(of, ..) => *of != engine,
            _ => true,
        });
        let conns = std::mem::take(&mut self.nodes[engine.0].conns);
        for conn in conns.into_values() {
            self.schedule(LATENCY, Happening::Left(conn.relay, conn.client));
        }
        self.nodes[engine.0].restart(now);
    }

    /// All connections of a relay break.
    pub fn cut(&mut self, url: &RelayUrl, words: &str) {
        let now = self.now();
        for client in self.relay_mut(url).close_all(now) {
            if let Some((engine, conn)) = self.clients.get(&client).copied() {
                self.schedule(LATENCY, Happening::Cut(engine, conn, words.to_owned()));
            }
        }
    }

    /// The wall clock steps.
    pub fn step_wall(&mut self, secs: i64) {
        self.wall_secs = self.wall_secs.saturating_add_signed(secs);
    }

    /// Runs until the engine has ended, and gives back its reports.
    ///
    /// # Panics
    /// It does not end within an hour of virtual time, or a coverage mark claims what is not held.
    pub fn finish(&mut self, engine: EngineId) -> Vec<RelayReport> {
        assert!(
            self.run_until(FINISH_WITHIN, |world| world.node(engine).ended.is_some()),
            "no end: {:#?}\n{}",
            self.node(engine).reports(),
            self.trace()
        );
        self.node(engine).ended.clone().unwrap_or_default()
    }

    /// Runs for so long.
    pub fn run(&mut self, duration: Duration) {
        self.run_until(duration, |_| false);
    }

    /// Runs until `condition` holds, at most so long. Does it hold?
    pub fn run_until(&mut self, at_most: Duration, condition: impl Fn(&Self) -> bool) -> bool {
        let end = self.instant + at_most;
        while !condition(self) {
            if !self.step(end) {
                return condition(self);
            }
        }
        true
    }

    /// What happened last.
    pub fn trace(&self) -> String {
        self.trace.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Lets the next thing happen, if it does before `end`; else it is `end`.
    fn step(&mut self, end: Instant) -> bool {
        let heap = self.heap.keys().next().map(|(at, _)| *at);
        let engines = self.nodes.iter().filter_map(|node| node.deadline(self.instant).map(|(at, _)| at)).min();
        let relays = self.relays.values().filter_map(Remote::deadline).min();
        let Some(at) = [heap, engines, relays].into_iter().flatten().min().filter(|at| *at <= end) else {
            self.advance_to(end);
            return false;
        };
        self.advance_to(at);
        if heap == Some(at) {
            if let Some((_, happening)) = self.heap.pop_first() {
                self.happen(happening);
            }
        } else if engines == Some(at) {
            self.tick_engines(at);
        } else {
            self.tick_relays();
        }
        true
    }

    fn advance_to(&mut self, at: Instant) {
        if at > self.instant {
            self.instant = at;
            self.steps_at_once = 0;
        }
        self.steps_at_once += 1;
        assert!(self.steps_at_once < STEPS_AT_ONCE_MAX, "live-lock:\n{}", self.trace());
    }

    fn tick_engines(&mut self, at: Instant) {
        for number in 0..self.nodes.len() {
            if let Some((_, why)) = self.nodes[number].deadline(self.instant).filter(|(due, _)| *due <= at) {
                self.note(format!("engine {number}: tick, {why}"));
                self.input(EngineId(number), Input::Tick);
            }
        }
    }

    fn tick_relays(&mut self) {
        let now = self.now();
        let due = |relay: &Remote| relay.deadline().is_some_and(|at| at <= now.instant);
        let urls: Vec<RelayUrl> =
            self.relays.iter().filter(|(_, relay)| due(relay)).map(|(url, _)| url.clone()).collect();
        for url in urls {
            let deliveries = self.relay_mut(&url).tick(now);
            self.deliver(deliveries);
        }
    }

    fn happen(&mut self, happening: Happening) {
        let now = self.now();
        match happening {
            Happening::Input(engine, life, input) if life == self.lives[engine.0] => self.input(engine, input),
            Happening::Input(..) => {}
            Happening::ToEngine(engine, conn, frame) => self.arrive(engine, conn, frame),
            Happening::Cut(engine, conn, words) => {
                self.note(format!("engine {}: {conn:?} closed by the relay {words:?}", engine.0));
                if self.nodes[engine.0].conns.remove(&conn).is_some() {
                    self.input(engine, Input::Disconnected { conn, reason: CloseReason::Remote(words) });
                }
            }
            Happening::Open(engine, conn, url, client) => {
                if self.nodes[engine.0].conns.contains_key(&conn) {
                    self.note(format!("{url}: {client:?} connects"));
                    self.input(engine, Input::Connected { conn });
                    let deliveries = self.relay_mut(&url).open(client, now);
                    self.deliver(deliveries);
                }
            }
            Happening::ToRelay(url, client, frame) => {
                self.note(format!("{url} <- {frame}"));
                let deliveries = self.relay_mut(&url).receive(client, frame, now);
                self.deliver(deliveries);
            }
            Happening::Left(url, client) => self.relay_mut(&url).close(client, now),
        }
    }

    fn arrive(&mut self, engine: EngineId, conn: ConnId, frame: Frame) {
        let Some(open) = self.nodes[engine.0].conns.get_mut(&conn) else { return };
        let url = open.relay.clone();
        if !open.reading {
            open.backlog.push_back(frame);
            return;
        }
        self.note(format!("{url} -> {}", frame.as_str()));
        self.input(engine, Input::Frames { conn, frames: vec![frame] });
    }

    fn deliver(&mut self, deliveries: Vec<Delivery>) {
        for (client, said, delay) in deliveries {
            let Some((engine, conn)) = self.clients.get(&client).copied() else { continue };
            let happening = match said {
                Said::Frame(frame) => Happening::ToEngine(engine, conn, frame.into()),
                Said::Close(words) => Happening::Cut(engine, conn, words),
            };
            self.schedule(LATENCY + delay, happening);
        }
    }

    /// The result of a piece of work reaches the engine.
    pub(super) fn answer(&mut self, engine: EngineId, input: Input) {
        let takes = self.nodes[engine.0].work_takes;
        let life = self.lives[engine.0];
        self.schedule(takes, Happening::Input(engine, life, input));
    }

    pub(super) fn schedule(&mut self, delay: Duration, happening: Happening) {
        self.sequence += 1;
        self.heap.insert((self.instant + delay, self.sequence), happening);
    }

    pub(super) fn note(&mut self, mut line: String) {
        if line.len() > TRACE_CHARS {
            let end = (0..=TRACE_CHARS).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
            line.truncate(end);
        }
        if self.trace.len() == TRACE_LINES {
            self.trace.pop_front();
        }
        self.trace.push_back(format!("{:>12?} {line}", self.instant.since_origin()));
    }
}
