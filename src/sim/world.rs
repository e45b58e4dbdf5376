//! The world: clocks, the heap of what is to happen, engines and relays.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::honest::{Said, at_once};
use super::node::{Conn, EngineId, Node, StoreFaults};
use super::note;
use super::remote::{Connects, Delivery, Remote, relay_url};
use crate::engine::{Command, Config, ConnId, Effect, Input, Notice, RelayOptions, RelayReport, Ticket};
use crate::ingest::{Verdict, verify};
use crate::plan::Interest;
use crate::protocol::{Event, Filter, FilterKey, ItemSet, RelayUrl};
use crate::runtime::{CloseReason, ConnectError, Dial, Frame, Instant, Now, SignError};
use crate::serve::ClientId;
use crate::store::{Batch, Store};

/// The wall clock of a new world, in seconds since 1970.
pub const NOW_SECS: u64 = 1_700_000_000;

/// From one end of a connection to the other.
const LATENCY: Duration = Duration::from_millis(5);

/// Things that may happen at one moment before it counts as a live-lock.
const STEPS_AT_ONCE_MAX: u64 = 200_000;

/// Virtual time within which [`World::finish`] expects the end.
const FINISH_WITHIN: Duration = Duration::from_secs(3600);

/// Lines of the trace that are kept, and characters of each.
const TRACE_LINES: usize = 200;
const TRACE_CHARS: usize = 160;

/// What is to happen.
#[derive(Debug)]
enum Happening {
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
    instant: Instant,
    wall_secs: u64,
    sequence: u64,
    steps_at_once: u64,
    heap: BTreeMap<(Instant, u64), Happening>,
    nodes: Vec<Node>,
    lives: Vec<u64>,
    relays: BTreeMap<RelayUrl, Remote>,
    /// Which engine's connection a client is.
    clients: BTreeMap<ClientId, (EngineId, ConnId)>,
    clients_made: u64,
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

    fn perform_all(&mut self, engine: EngineId) {
        for effect in self.nodes[engine.0].effects() {
            self.perform(engine, effect);
        }
    }

    fn perform(&mut self, engine: EngineId, effect: Effect) {
        match effect {
            Effect::Connect { conn, dial } => self.connect(engine, conn, &dial),
            Effect::Send { conn, frame } => {
                if let Some(open) = self.nodes[engine.0].conns.get(&conn) {
                    let (url, client) = (open.relay.clone(), open.client);
                    self.schedule(LATENCY, Happening::ToRelay(url, client, frame));
                }
            }
            Effect::SetReading { conn, reading } => self.set_reading(engine, conn, reading),
            Effect::Close { conn, reason } => {
                self.note(format!("engine {}: closes {conn:?}, {reason}", engine.0));
                self.nodes[engine.0].closed.push(reason);
                if let Some(open) = self.nodes[engine.0].conns.remove(&conn) {
                    self.schedule(LATENCY, Happening::Left(open.relay, open.client));
                }
            }
            Effect::FetchInfo { dial } => self.fetch_info(engine, dial),
            Effect::Sign { conn, relay, challenge } => {
                let result = self.sign(engine, &relay, &challenge);
                self.answer(engine, Input::Signed { conn, result });
            }
            Effect::Notify(notice) => {
                let node = &mut self.nodes[engine.0];
                if let Notice::Finished(reports) | Notice::Stopped(reports) = &notice {
                    node.ended = Some(reports.clone());
                }
                node.notices.push(notice);
            }
            Effect::Verify { ticket, events, look_up } => self.verify(engine, ticket, events, look_up),
            Effect::Commit { ticket, batch } => self.commit(engine, ticket, batch),
            Effect::LoadItems { ticket, filter, window } => {
                let node = &mut self.nodes[engine.0];
                let result = match StoreFaults::fails(&mut node.faults.items) {
                    true => Err("the disk is on fire".to_owned()),
                    false => at_once(node.store.items(&filter, window)).map_err(|error| error.to_string()),
                };
                self.answer(engine, Input::Items { ticket, result });
            }
            Effect::CheckKnown { ticket, ids } => {
                let result = self.known(engine, ids);
                self.answer(engine, Input::Known { ticket, result });
            }
            Effect::LoadEvents { ticket, ids } => {
                let result = at_once(self.nodes[engine.0].store.events(ids)).map_err(|error| error.to_string());
                self.answer(engine, Input::Events { ticket, result });
            }
        }
    }

    fn connect(&mut self, engine: EngineId, conn: ConnId, dial: &Dial) {
        let now = self.now();
        let refused = |error| Input::Disconnected { conn, reason: CloseReason::Connect(error) };
        let Some(remote) = self.relays.get_mut(&dial.url) else {
            return self.answer(engine, refused(ConnectError::Dns("no such relay".into())));
        };
        remote.attempts.push(now.instant);
        match remote.connects.clone() {
            Connects::Hangs => {}
            Connects::Refused(error) => self.answer(engine, refused(error)),
            Connects::Always => {
                self.clients_made += 1;
                let (client, relay) = (ClientId(self.clients_made), dial.url.clone());
                self.clients.insert(client, (engine, conn));
                let open = Conn { client, relay: relay.clone(), reading: true, backlog: VecDeque::new() };
                self.nodes[engine.0].conns.insert(conn, open);
                self.schedule(LATENCY, Happening::Open(engine, conn, relay, client));
            }
        }
    }

    fn set_reading(&mut self, engine: EngineId, conn: ConnId, reading: bool) {
        let node = &mut self.nodes[engine.0];
        node.reading.push(reading);
        let Some(open) = node.conns.get_mut(&conn) else { return };
        open.reading = reading;
        if reading {
            for frame in std::mem::take(&mut open.backlog) {
                self.schedule(Duration::ZERO, Happening::ToEngine(engine, conn, frame));
            }
        }
    }

    fn fetch_info(&mut self, engine: EngineId, dial: Dial) {
        let info = self.relays.get(&dial.url).filter(|remote| remote.gives_info).map(|remote| remote.honest().info());
        let result = info.ok_or_else(|| ConnectError::Handshake("404".into()));
        self.answer(engine, Input::RelayInfo { relay: dial.url, result });
    }

    fn sign(
        &self,
        engine: EngineId,
        relay: &RelayUrl,
        challenge: &str,
    ) -> Result<crate::ingest::Verified<Event>, SignError> {
        let author = self.node(engine).signs_as.ok_or(SignError::NoKey)?;
        let draft = note(self.now().unix_secs).by(author).kind(22_242);
        let event = draft.tag("relay", relay.as_str()).tag("challenge", challenge).sign();
        verify(event).map_err(|why| SignError::Declined(format!("{why:?}")))
    }

    fn known(&mut self, engine: EngineId, ids: Vec<[u8; 32]>) -> Result<Vec<bool>, String> {
        let node = &mut self.nodes[engine.0];
        if StoreFaults::fails(&mut node.faults.reads) {
            return Err("the disk is on fire".to_owned());
        }
        at_once(node.store.known(ids)).map_err(|error| error.to_string())
    }

    fn verify(&mut self, engine: EngineId, ticket: Ticket, events: Vec<Event>, look_up: bool) {
        let known = match look_up {
            true => self.known(engine, events.iter().map(|event| event.id.to_bytes()).collect()),
            false => Ok(vec![false; events.len()]),
        };
        let verdict = |(event, known): (Event, bool)| match known {
            true => Verdict::Known,
            false => verify(event).map_or_else(Verdict::Invalid, Verdict::Valid),
        };
        let result = known.map(|known| events.into_iter().zip(known).map(verdict).collect());
        self.answer(engine, Input::Verified { ticket, result });
    }

    fn commit(&mut self, engine: EngineId, ticket: Ticket, batch: Batch) {
        let node = &mut self.nodes[engine.0];
        node.commits.push(batch.events.len());
        let marks = batch.coverage.clone();
        let result = match StoreFaults::fails(&mut node.faults.commits) {
            true => Err("the disk is on fire".to_owned()),
            false => at_once(node.store.commit(batch)).map_err(|error| error.to_string()),
        };
        if result.is_ok() {
            marks.iter().for_each(|mark| self.check_mark(engine, mark));
        }
        self.answer(engine, Input::Committed { ticket, result });
    }

    /// Everything that the relay held when it was asked, and that a mark covers, is held here, or known to be gone.
    fn check_mark(&self, engine: EngineId, mark: &crate::store::Coverage) {
        let (node, now_secs) = (self.node(engine), self.now().unix_secs);
        let (Some(filter), Some(remote)) = (node.filters.get(&mark.filter), self.relays.get(&mark.relay)) else {
            return;
        };
        if !remote.is_checked {
            return;
        }
        for proof in &mark.windows {
            let items = remote.honest().items(filter, proof.window, now_secs);
            let before = |id: &[u8; 32]| remote.honest().got_at_secs.get(id).is_none_or(|at| *at < proof.asked_at_secs);
            let ids: Vec<[u8; 32]> = items.items().iter().map(|item| item.id).filter(before).collect();
            let known = at_once(node.store.known(ids.clone())).expect("the store in memory does not fail");
            let missing = known.iter().filter(|known| !**known).count();
            assert_eq!(
                missing,
                0,
                "a mark of {} claims {} without having it\n{}",
                mark.relay,
                proof.window,
                self.trace()
            );
        }
    }

    /// The result of a piece of work reaches the engine.
    fn answer(&mut self, engine: EngineId, input: Input) {
        let takes = self.nodes[engine.0].work_takes;
        let life = self.lives[engine.0];
        self.schedule(takes, Happening::Input(engine, life, input));
    }

    fn schedule(&mut self, delay: Duration, happening: Happening) {
        self.sequence += 1;
        self.heap.insert((self.instant + delay, self.sequence), happening);
    }

    fn note(&mut self, mut line: String) {
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
