//! An engine with its store, its clocks, its connections, and a record of what it did.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::checks::Watch;
use super::discovering::Ledger;
use super::honest::at_once;
use super::peers::Peers;
use super::world::Happening;
use crate::engine::{Config, ConnId, Effect, Engine, Notice, RelayOptions, RelayReport, Sizes};
use crate::peer::View;
use crate::plan::Interest;
use crate::protocol::{Event, Filter, FilterKey, ItemSet, RelayUrl, Window};
use crate::runtime::{CloseReason, Frame, Instant, Now};
use crate::serve::ClientId;
use crate::store::{Coverage, MemoryStore, Proof, Query, Store};

/// One engine of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineId(pub(super) usize);

impl std::fmt::Display for EngineId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "engine {}", self.0)
    }
}

/// When the store fails. Counts are of calls that still succeed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreFaults {
    /// Commits.
    pub commits: Option<usize>,
    /// Looks at what is known.
    pub reads: Option<usize>,
    /// Item sets.
    pub items: Option<usize>,
}

impl StoreFaults {
    /// Counts one call down. Does it fail?
    pub(super) fn fails(left: &mut Option<usize>) -> bool {
        match left {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }
}

/// How a store fails by chance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskFaults {
    /// The longest that a commit takes beside the usual.
    pub slow_max: Duration,
    /// Commits that fail, per mille.
    pub commit_errors: u32,
    /// Looks at what is known, and item sets, that fail, per mille.
    pub read_errors: u32,
    /// The disk is full: every commit with events fails.
    pub full: bool,
}

/// What an engine has been told to sync with one relay, to be told again after a crash.
pub(super) type Wish = (BTreeSet<Interest>, RelayOptions);

/// A connection, as the engine's side has it.
#[derive(Debug)]
pub(super) struct Conn {
    pub client: ClientId,
    pub relay: RelayUrl,
    pub reading: bool,
    /// Frames that wait until the engine reads again.
    pub backlog: VecDeque<Frame>,
}

/// An engine and its world.
#[derive(Debug)]
pub struct Node {
    pub(super) engine: Engine,
    /// What is durable.
    pub(super) store: MemoryStore,
    /// How the engine is configured when it starts next.
    pub config: Config,
    pub(super) seed: u64,
    /// How often it was started before.
    pub(super) life: u64,
    pub(super) conns: BTreeMap<ConnId, Conn>,
    pub(super) filters: BTreeMap<FilterKey, Filter>,
    pub(super) wishes: BTreeMap<RelayUrl, Wish>,
    /// The number of the author whose key answers challenges (NIP-42), if there is one.
    pub signs_as: Option<u8>,
    /// When the store fails.
    pub faults: StoreFaults,
    /// How it fails by chance.
    pub disk: DiskFaults,
    /// How long checks and commits take.
    pub work_takes: Duration,
    /// Start it again, with the same wishes, when its store has failed.
    pub supervised: bool,
    /// Everything that was announced.
    pub notices: Vec<Notice>,
    /// The reports at the end, once there is one.
    pub ended: Option<Vec<RelayReport>>,
    /// Reasons for which connections were closed from this side.
    pub closed: Vec<CloseReason>,
    /// Every change of reading.
    pub reading: Vec<bool>,
    /// Events in each commit.
    pub commits: Vec<usize>,
    /// How far its wall clock is off, in seconds.
    pub wall_offset_secs: i64,
    /// Every earlier offset, with the world's wall time until which it held.
    pub(super) offsets: Vec<(u64, i64)>,
    /// How far its monotonic clock is behind: that of some machines stands still while they sleep.
    pub(super) lag: Duration,
    /// How late its next timer is.
    pub(super) lateness: Duration,
    /// How late its timers may be.
    pub late_max: Duration,
    /// It does not run: it has crashed, and is not started yet.
    pub(super) is_down: bool,
    /// It sleeps; what happens to it meanwhile waits here.
    pub(super) asleep: Option<VecDeque<Happening>>,
    /// It crashes after so many more inputs.
    pub(super) crash_in: Option<u64>,
    /// What the checks remember of it, if it discovers relays.
    pub(super) ledger: Ledger,
    /// Its configured peers, and what the checks remember of them.
    pub(super) peers: Peers,
    /// What the checks remember of each relay.
    pub(super) watches: BTreeMap<RelayUrl, Watch>,
    /// Proofs that were seen to be true.
    pub(super) proven: BTreeSet<(RelayUrl, FilterKey, (u64, u64, u64))>,
    /// When it was last ticked, and how often at that moment.
    pub(super) ticks: (Instant, u32),
    /// Inputs handled.
    pub(super) handles: u64,
    /// When it was made.
    pub(super) began_at: Instant,
}

impl Node {
    pub(super) fn new(config: Config, seed: u64, now: Now) -> Self {
        Self {
            engine: Engine::new(config.clone(), crate::store::Snapshot::default(), seed, now),
            store: MemoryStore::default(),
            seed,
            life: 0,
            conns: BTreeMap::new(),
            filters: BTreeMap::new(),
            wishes: BTreeMap::new(),
            signs_as: None,
            faults: StoreFaults::default(),
            disk: DiskFaults::default(),
            work_takes: Duration::from_millis(1),
            supervised: false,
            notices: Vec::new(),
            ended: None,
            closed: Vec::new(),
            reading: Vec::new(),
            commits: Vec::new(),
            wall_offset_secs: 0,
            offsets: Vec::new(),
            lag: Duration::ZERO,
            lateness: Duration::ZERO,
            late_max: Duration::ZERO,
            is_down: false,
            asleep: None,
            crash_in: None,
            ledger: config.discovery.as_ref().map(Ledger::new).unwrap_or_default(),
            peers: Peers::default(),
            watches: BTreeMap::new(),
            proven: BTreeSet::new(),
            ticks: (Instant::ZERO, 0),
            handles: 0,
            began_at: now.instant,
            config,
        }
    }

    /// The process is gone, with everything that was not durable.
    pub(super) fn crash(&mut self) {
        self.life += 1;
        self.is_down = true;
        if self.asleep.take().is_some() {
            // Of a sleep that ended early, the clock of the next process knows nothing.
            self.lag = Duration::ZERO;
        }
        self.crash_in = None;
        self.conns.clear();
        self.peers.handle_crash();
        self.watches.values_mut().for_each(Watch::handle_crash);
    }

    /// A new engine over the same store.
    pub(super) fn start(&mut self, now: Now) {
        let snapshot = at_once(self.store.load()).expect("the store in memory does not fail");
        self.seed += 1;
        self.engine = Engine::new(self.config.clone(), snapshot, self.seed, now);
        self.is_down = false;
        self.ended = None;
    }

    /// Is it there to be given inputs?
    pub(super) fn is_up(&self) -> bool {
        !self.is_down && self.asleep.is_none()
    }

    /// Its clocks, when the world's are at `now`.
    pub(super) fn clocks(&self, now: Now) -> Now {
        Now {
            instant: Instant::from_origin(now.instant.since_origin().saturating_sub(self.lag)),
            unix_secs: now.unix_secs.saturating_add_signed(self.wall_offset_secs),
        }
    }

    /// The world's wall time, in seconds since 1970, when its clock showed `secs`: of several moments the first.
    pub(super) fn world_secs(&self, secs: u64) -> u64 {
        let mut from = 0;
        let mut candidates = Vec::new();
        for (until, offset) in self.offsets.iter().copied().chain([(u64::MAX, self.wall_offset_secs)]) {
            let at = secs.saturating_add_signed(-offset);
            if at >= from && at <= until {
                candidates.push(at);
            } else if at < from {
                // Its clock jumped over this moment.
                candidates.push(from);
            }
            from = until;
        }
        candidates.into_iter().min().unwrap_or(0)
    }

    /// What it has been told to sync, peers among the rest.
    pub(super) fn told(&self) -> BTreeMap<RelayUrl, Wish> {
        let mut told = self.wishes.clone();
        for (relay, peering) in &self.peers.peerings {
            let interests = peering.filters.iter().cloned().map(Interest::Opaque).collect();
            told.insert(relay.clone(), (interests, peering.options));
        }
        told
    }

    /// How things stand at every relay.
    pub fn reports(&self) -> Vec<RelayReport> {
        self.engine.reports()
    }

    /// What discovery has made of interests is known by what is fetched.
    pub(super) fn note_filter(&mut self, filter: &Filter) {
        if self.config.discovery.is_some() {
            self.filters.entry(FilterKey::of(filter)).or_insert_with(|| filter.clone());
        }
    }

    /// How much the engine holds.
    pub fn sizes(&self) -> Sizes {
        self.engine.sizes()
    }

    /// What is held.
    pub fn store(&self) -> &MemoryStore {
        &self.store
    }

    /// All coverage marks that are durable.
    pub fn coverage(&self) -> Vec<Coverage> {
        at_once(self.store.load()).expect("the store in memory does not fail").coverage
    }

    /// Is this proof of a mark one that was not looked at before?
    pub(super) fn is_new_proof(&mut self, mark: &Coverage, proof: &Proof) -> bool {
        let window = (proof.window.since, proof.window.until, proof.asked_at_secs);
        self.proven.insert((mark.relay.clone(), mark.filter.clone(), window))
    }

    /// The items of all events that are held.
    pub fn held(&self, now_secs: u64) -> Arc<ItemSet> {
        let items = at_once(self.store.held_items(&Filter::new(), Window::ALL, &View::all(), now_secs));
        items.expect("the store in memory does not fail")
    }

    /// All events that are held, newest first.
    pub fn events(&self, now_secs: u64) -> Vec<Event> {
        let query = Query {
            filter: Filter::new(),
            after: None,
            limit: usize::MAX,
            bytes_max: usize::MAX,
            now_secs,
            view: View::all(),
        };
        let page = at_once(self.store.query(query)).expect("the store in memory does not fail");
        page.records.into_iter().filter_map(|record| Event::parse(record.json).ok()).collect()
    }

    /// When it is to be ticked, on the world's clock.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        if !self.is_up() {
            return None;
        }
        self.engine.deadline().map(|(at, _)| (at + self.lag + self.lateness).max(now))
    }

    pub(super) fn effects(&mut self) -> VecDeque<Effect> {
        std::iter::from_fn(|| self.engine.poll_effect()).collect()
    }
}
