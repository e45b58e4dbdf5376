//! What the daemon says of itself: one snapshot, from which every page of the admin server is made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::discover::{DiscoveryCounters, DiscoverySizes};
use crate::engine::{Phase, RelayReport, Sizes};
use crate::native::hook;
use crate::peer::{Health, HealthStatus, PeerState, PeerStats, SyncStats};
use crate::protocol::RelayUrl;
use crate::runtime::Instant;
use crate::serve;

/// The daemon at one moment. Moments of the monotonic clock stay in this process and are not written out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonReport {
    /// The version of the program.
    pub version: String,
    /// The wall time at which the daemon started, in seconds since 1970.
    pub started_at_secs: u64,
    /// The wall time of this report, in seconds since 1970.
    pub made_at_secs: u64,
    /// The same on the monotonic clock.
    #[serde(skip)]
    pub made_at: Instant,
    /// What must have happened before the daemon is of use.
    pub readiness: Readiness,
    /// The engine.
    pub engine: EngineReport,
    /// What is known of each relay.
    pub relays: Vec<RelayReport>,
    /// The configured peers; `None` if there are none.
    pub peers: Option<PeersReport>,
    /// What was discovered; `None` if only configured relays are synced.
    pub discovery: Option<DiscoveryReport>,
    /// The relay service; `None` if there is none.
    pub service: Option<ServiceReport>,
    /// The store.
    pub store: StoreReport,
    /// The feed of newly stored events.
    pub feed: FeedReport,
    /// The git data hook; `None` if there is none.
    pub hook: Option<hook::Counters>,
    /// How often each bound has bitten, by its name, of those that no other counter is about.
    pub bounds: BTreeMap<String, u64>,
}

/// What must have happened before the daemon is of use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// The store is open.
    pub store: Stage,
    /// The index of repositories was rebuilt from the events held.
    pub index: Stage,
    /// The relay service listens.
    pub service: Stage,
}

/// How far one part of the daemon is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "stage", content = "reason")]
pub enum Stage {
    /// Not configured, so nothing waits for it.
    #[default]
    Off,
    /// Not ready, and why.
    Pending(String),
    /// Ready.
    Ready,
}

/// The engine and the loop that drives it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineReport {
    /// When the loop was last seen to move, on the monotonic clock.
    #[serde(skip)]
    pub moved_at: Instant,
    /// How often a new engine was built, as the store had failed.
    pub restarts: u64,
    /// Why the last one was given up.
    pub last_failure: Option<String>,
    /// How much it holds.
    pub sizes: Sizes,
}

/// The configured peers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeersReport {
    /// Is sync working with them?
    pub health: Health,
    /// What was counted at all of them.
    pub stats: SyncStats,
    /// Each of them, in the order of their names.
    pub peers: Vec<PeerReport>,
}

/// A configured peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerReport {
    /// Its relay.
    pub relay: RelayUrl,
    /// What it is at.
    pub runtime: PeerState,
    /// What was counted there.
    pub stats: PeerStats,
}

/// What discovery has found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveryReport {
    /// How much it holds.
    pub sizes: DiscoverySizes,
    /// Counts since it began.
    pub counters: DiscoveryCounters,
}

/// The relay service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceReport {
    /// Clients connected.
    pub clients_connected: u64,
    /// Counts since it started.
    pub counters: serve::Counters,
}

/// The store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreReport {
    /// The size of its file, in bytes.
    pub file_bytes: u64,
    /// Commits since the start, by whichever writer.
    pub commits: u64,
    /// Commits that failed.
    pub commits_failed: u64,
}

/// The feed of newly stored events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedReport {
    /// Events passed on.
    pub events: u64,
    /// Events that wait for a reader.
    pub queued: u64,
    /// Times that a reader fell behind, and has to read the store again instead.
    pub lags: u64,
}

/// What relays come to, taken together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Relays.
    pub relays: u64,
    /// Relays without a connection that should have one.
    pub unconnected: u64,
    /// Relays of which not everything has been asked yet.
    pub syncing: u64,
    /// Relays with gaps.
    pub with_gaps: u64,
    /// Gaps at all of them.
    pub gaps: u64,
}

impl DaemonReport {
    /// The report in which everything is still at its beginning.
    pub fn starting(started_at_secs: u64, now: Instant) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at_secs,
            made_at_secs: started_at_secs,
            made_at: now,
            readiness: Readiness {
                store: Stage::Pending("the store is not open yet".to_owned()),
                ..Readiness::default()
            },
            engine: EngineReport { moved_at: now, ..EngineReport::default() },
            relays: Vec::new(),
            peers: None,
            discovery: None,
            service: None,
            store: StoreReport::default(),
            feed: FeedReport::default(),
            hook: None,
            bounds: BTreeMap::new(),
        }
    }

    /// What the relays come to.
    pub fn verdict(&self) -> Verdict {
        let mut verdict = Verdict::default();
        for relay in &self.relays {
            let gaps = gaps_of(relay);
            verdict.relays += 1;
            verdict.gaps += gaps;
            verdict.with_gaps += u64::from(gaps > 0);
            match Standing::of(relay) {
                Standing::Settled => {}
                Standing::Syncing => verdict.syncing += 1,
                Standing::Waiting => verdict.unconnected += 1,
            }
        }
        verdict
    }

    /// Is everything wanted proven to be held, at relays that are all connected?
    pub fn is_complete(&self) -> bool {
        let peers_work = || {
            let status = self.peers.as_ref().map_or(HealthStatus::Idle, |peers| peers.health.status);
            matches!(status, HealthStatus::Ok | HealthStatus::Idle)
        };
        self.readiness.faults().next().is_none() && self.verdict().is_complete() && peers_work()
    }
}

/// How it stands with a relay, whether there are gaps or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Asked for everything.
    Settled,
    /// Something has not been asked yet, or not answered.
    Syncing,
    /// Not to be asked at the moment: no connection, or it wants rest.
    Waiting,
}

impl Standing {
    pub(crate) fn of(relay: &RelayReport) -> Self {
        match relay.phase {
            Phase::Waiting | Phase::Connecting | Phase::Cooldown => Self::Waiting,
            Phase::Syncing => Self::Syncing,
            Phase::Live | Phase::Polling | Phase::Done => Self::Settled,
        }
    }
}

/// Gaps at a relay, those that it keeps no record of included.
pub(crate) fn gaps_of(relay: &RelayReport) -> u64 {
    relay.gaps.len() as u64 + relay.gaps_dropped
}

impl Verdict {
    /// Is nothing missing, and nobody awaited?
    pub fn is_complete(&self) -> bool {
        (self.unconnected, self.syncing, self.gaps) == (0, 0, 0)
    }
}

impl Readiness {
    /// The parts that are not ready, by name, and why.
    pub fn faults(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("store", &self.store), ("index", &self.index), ("relay service", &self.service)].into_iter().filter_map(
            |(name, stage)| match stage {
                Stage::Pending(reason) => Some((name, reason.as_str())),
                Stage::Off | Stage::Ready => None,
            },
        )
    }
}
