//! How this relay stands, for whoever wants to know.

use super::Relay;
use crate::engine::standing::{FilterStanding, Sight, Standing};
use crate::engine::{Config, HistoryId};
use crate::plan::Pack;
use crate::protocol::FilterKey;
use crate::runtime::Instant;
use crate::store::{Coverage, Proof};

impl Relay {
    /// See [`Sight`].
    pub(in crate::engine) fn sight(&self, now: Instant) -> Sight {
        let counters = &self.counters;
        Sight {
            phase: self.phase(now),
            connected: self.conn().is_some(),
            failures: self.health.failures(),
            refused: self.auth_refused.is_some(),
            filters: (self.packs.len(), self.progress.confirmed().len()),
            gaps: (self.gaps.len(), self.gaps_dropped.values().sum()),
            events: counters.stored
                + counters.duplicate
                + counters.unwanted
                + counters.invalid
                + counters.published
                + counters.refused,
            connections: counters.connections + counters.connections_failed,
            histories: counters.histories,
            has_found: false,
        }
    }

    pub(in crate::engine) fn standing(&self, now: Instant, config: &Config) -> Standing {
        let report = self.report(now, config);
        let filters = self.packs.iter().filter(|pack| pack.is_opaque()).map(|pack| FilterStanding {
            filter: pack.key().clone(),
            settled: self.progress.confirmed().contains(pack) || self.direction_of(pack).is_none(),
            gaps: report.gaps.iter().filter(|gap| gap.filter == *pack.key()).cloned().collect(),
            gaps_dropped: self.gaps_dropped.get(pack.key()).copied().unwrap_or_default(),
            denied: self.denied.contains_key(pack),
            followed_secs: self.followed_secs(pack),
        });
        let followed_secs = self.progress.confirmed().iter().map(|pack| self.followed_secs(pack)).min().flatten();
        Standing { filters: filters.collect(), settled: self.is_settled(), followed_secs, report }
    }

    /// Up to when the newest of a pack is proven.
    fn followed_secs(&self, pack: &Pack) -> Option<u64> {
        self.coverage.get(pack.key()).and_then(|mark| mark.windows.first()).map(Proof::fresh_secs)
    }

    /// Does what comes for this come live?
    pub(in crate::engine) fn is_live_source(&self, owner: HistoryId) -> bool {
        self.lives.get(owner).is_some()
    }

    /// What is proven of a filter, and durable.
    pub(in crate::engine) fn proven(&self, filter: &FilterKey) -> Option<Coverage> {
        let is_through = self.progress.confirmed().iter().any(|pack| pack.key() == filter);
        self.coverage.get(filter).filter(|_| is_through).cloned()
    }
}
