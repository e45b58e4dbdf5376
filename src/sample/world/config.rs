//! What sort of world.

use std::collections::BTreeSet;

use crate::protocol::RelayUrl;
use crate::sample::Burst;

/// What world to make. The same configuration makes the same bytes on every machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldConfig {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// The relays; at least one. The first is the one to start from.
    pub relays: Vec<RelayUrl>,
    /// The URL of our own service, which accepted repositories list.
    pub service_url: RelayUrl,
    /// How many repositories list our service; at least as many as there are relays.
    pub repositories: usize,
    /// How many events in all; at least 25 a repository, so that there is something of everything.
    pub events: usize,
    /// The earliest date, in seconds since 1970.
    pub from_secs: u64,
    /// The latest date, in seconds since 1970.
    pub to_secs: u64,
    /// Many events of accepted repositories that have one date, if any; at most half of all.
    pub burst: Option<Burst>,
    /// The relays (places) that keep deletions (NIP-09) to pass them on; no deletion is placed at others.
    pub deletions_at: BTreeSet<usize>,
}

impl WorldConfig {
    /// 10 repositories and 300 events.
    pub fn small(relays: Vec<RelayUrl>) -> Self {
        let repositories = relays.len().max(10);
        Self {
            seed: 1,
            burst: None,
            deletions_at: (0..relays.len()).collect(),
            relays,
            service_url: RelayUrl::parse("wss://grasp.example").expect("it is a relay URL"),
            repositories,
            events: 30 * repositories,
            from_secs: 1_704_067_200,
            to_secs: 1_735_689_599,
        }
    }

    /// 200 repositories and 20,000 events.
    pub fn large(relays: Vec<RelayUrl>) -> Self {
        Self { repositories: 200, events: 20_000, ..Self::small(relays) }
    }
}
