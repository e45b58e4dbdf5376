//! What was counted at peers.

use serde::{Deserialize, Serialize};

use super::{Glimpse, PeerState, WorkerState, rfc3339};
use crate::engine::Counters;

/// What was counted at one peer since the daemon started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerStats {
    /// Its name.
    pub server_id: String,
    /// The counts.
    #[serde(flatten)]
    pub tally: Tally,
    /// When EOSE came last, in seconds since 1970; in JSON text (RFC 3339).
    #[serde(rename = "last_remote_eose_at", with = "rfc3339::optional")]
    pub last_remote_eose_secs: Option<u64>,
    /// The last failure, in words.
    pub last_error: Option<String>,
}

/// What was counted at all peers since the daemon started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncStats {
    /// Peers.
    pub servers_total: u64,
    /// Of them, enabled.
    pub servers_enabled: u64,
    /// Of them, worked on.
    pub servers_running: u64,
    /// Of them, connected.
    pub servers_connected: u64,
    /// The counts, taken together.
    #[serde(flatten)]
    pub tally: Tally,
}

/// Counts at a peer, or at several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Events that came, and were asked for.
    pub events_received: u64,
    /// Of these, new, and held now.
    pub events_accepted: u64,
    /// Of these, held already.
    pub events_duplicate: u64,
    /// Of these, not taken: superseded, deleted, expired, with a wrong signature, or protected from this peer.
    pub events_rejected: u64,
    /// Events that the peer took from us.
    pub events_published: u64,
    /// Events that the peer did not take from us.
    pub events_refused: u64,
    /// Times that what is stored was looked at.
    pub query_runs: u64,
    /// Live subscriptions that were opened again.
    pub subscription_restarts: u64,
    /// Connections after the first.
    pub reconnects: u64,
}

impl Tally {
    /// What one engine has counted at a relay.
    pub fn of(counters: &Counters) -> Self {
        Self {
            events_received: counters.received,
            events_accepted: counters.stored,
            events_duplicate: counters.duplicate,
            events_rejected: counters.unwanted + counters.invalid + counters.forbidden,
            events_published: counters.published,
            events_refused: counters.refused,
            query_runs: counters.histories,
            subscription_restarts: counters.subscription_restarts,
            reconnects: counters.connections.saturating_sub(1),
        }
    }

    /// What one engine has counted at a relay by `now`, of which it had counted `base` before it was this peer's. `follows`:
    /// has an engine before it had a connection for the peer?
    pub fn since(base: Option<&Glimpse>, now: &Glimpse, follows: bool) -> Self {
        let (base, now) = (base.map(|base| &base.counters), &now.counters);
        let connections = now.connections - base.map_or(0, |base| base.connections).min(now.connections);
        let all = base.map_or_else(|| Self::of(now), |base| Self::of(now).without(Self::of(base)));
        Self { reconnects: connections.saturating_sub(u64::from(!follows)), ..all }
    }

    fn without(self, other: Self) -> Self {
        Self {
            events_received: self.events_received.saturating_sub(other.events_received),
            events_accepted: self.events_accepted.saturating_sub(other.events_accepted),
            events_duplicate: self.events_duplicate.saturating_sub(other.events_duplicate),
            events_rejected: self.events_rejected.saturating_sub(other.events_rejected),
            events_published: self.events_published.saturating_sub(other.events_published),
            events_refused: self.events_refused.saturating_sub(other.events_refused),
            query_runs: self.query_runs.saturating_sub(other.query_runs),
            subscription_restarts: self.subscription_restarts.saturating_sub(other.subscription_restarts),
            reconnects: self.reconnects.saturating_sub(other.reconnects),
        }
    }
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            events_received: self.events_received + other.events_received,
            events_accepted: self.events_accepted + other.events_accepted,
            events_duplicate: self.events_duplicate + other.events_duplicate,
            events_rejected: self.events_rejected + other.events_rejected,
            events_published: self.events_published + other.events_published,
            events_refused: self.events_refused + other.events_refused,
            query_runs: self.query_runs + other.query_runs,
            subscription_restarts: self.subscription_restarts + other.subscription_restarts,
            reconnects: self.reconnects + other.reconnects,
        }
    }
}

impl SyncStats {
    /// Of all these peers, each with what it is at.
    pub fn of<'p>(peers: impl IntoIterator<Item = (&'p PeerState, Tally)>) -> Self {
        peers.into_iter().fold(Self::default(), |sum, (peer, tally)| Self {
            servers_total: sum.servers_total + 1,
            servers_enabled: sum.servers_enabled + u64::from(peer.state != WorkerState::Stopped),
            servers_running: sum.servers_running + u64::from(peer.state == WorkerState::Running),
            servers_connected: sum.servers_connected + u64::from(peer.connected),
            tally: sum.tally + tally,
        })
    }
}
