//! An engine with its store, its connections, and a record of what it did.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::honest::at_once;
use crate::engine::{Config, ConnId, Effect, Engine, Notice, RelayReport, Sizes};
use crate::protocol::{Event, Filter, FilterKey, ItemSet, RelayUrl, Window};
use crate::runtime::{CloseReason, Frame, Instant, Now};
use crate::serve::ClientId;
use crate::store::{Coverage, MemoryStore, Query, Snapshot, Store};

/// One engine of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineId(pub(super) usize);

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
    pub(super) store: MemoryStore,
    pub(super) config: Config,
    pub(super) seed: u64,
    pub(super) conns: BTreeMap<ConnId, Conn>,
    pub(super) filters: BTreeMap<FilterKey, Filter>,
    /// The number of the author whose key answers challenges (NIP-42), if there is one.
    pub signs_as: Option<u8>,
    /// When the store fails.
    pub faults: StoreFaults,
    /// How long checks and commits take.
    pub work_takes: std::time::Duration,
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
}

impl Node {
    pub(super) fn new(config: Config, seed: u64, now: Now) -> Self {
        Self {
            engine: Engine::new(config.clone(), Snapshot::default(), seed, now),
            store: MemoryStore::default(),
            config,
            seed,
            conns: BTreeMap::new(),
            filters: BTreeMap::new(),
            signs_as: None,
            faults: StoreFaults::default(),
            work_takes: std::time::Duration::from_millis(1),
            notices: Vec::new(),
            ended: None,
            closed: Vec::new(),
            reading: Vec::new(),
            commits: Vec::new(),
        }
    }

    /// A new engine over the same store, as after a crash: whatever was not durable is gone.
    pub(super) fn restart(&mut self, now: Now) {
        let snapshot = at_once(self.store.load()).expect("the store in memory does not fail");
        self.seed += 1;
        self.engine = Engine::new(self.config.clone(), snapshot, self.seed, now);
        self.conns.clear();
        self.ended = None;
    }

    /// How things stand at every relay.
    pub fn reports(&self) -> Vec<RelayReport> {
        self.engine.reports()
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

    /// The items of all events that are held.
    pub fn held(&self, now_secs: u64) -> Arc<ItemSet> {
        let items = at_once(self.store.held_items(&Filter::new(), Window::ALL, now_secs));
        items.expect("the store in memory does not fail")
    }

    /// All events that are held, newest first.
    pub fn events(&self, now_secs: u64) -> Vec<Event> {
        let query = Query { filter: Filter::new(), after: None, limit: usize::MAX, bytes_max: usize::MAX, now_secs };
        let page = at_once(self.store.query(query)).expect("the store in memory does not fail");
        page.records.into_iter().filter_map(|record| Event::parse(record.json).ok()).collect()
    }

    pub(super) fn deadline(&self, now: Instant) -> Option<(Instant, &'static str)> {
        self.engine.deadline().map(|(at, why)| (at.max(now), why))
    }

    pub(super) fn effects(&mut self) -> Vec<Effect> {
        std::iter::from_fn(|| self.engine.poll_effect()).collect()
    }
}
