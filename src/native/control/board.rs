//! What is seen of peers while the daemon runs, and what is remembered of that.

use std::collections::BTreeMap;

use crate::engine::RelayReport;
use crate::peer::{PeerMarks, Tally};
use crate::protocol::RelayUrl;

/// What was last seen of each peer.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// What the engine said last, by relay.
    reports: BTreeMap<RelayUrl, RelayReport>,
    /// What engines before this one have counted, by relay.
    before: BTreeMap<RelayUrl, Tally>,
    /// What is remembered, by the name of the peer.
    marks: BTreeMap<String, PeerMarks>,
    /// The marks are not as they were written last.
    is_dirty: bool,
}

impl Board {
    pub(super) fn new(marks: BTreeMap<String, PeerMarks>) -> Self {
        Self { marks, ..Self::default() }
    }

    /// Takes over what an engine says at `now_secs` of the relays of `peers`, which are all there are. What is not a peer's
    /// is left.
    pub(super) fn hear<'p>(
        &mut self,
        peers: impl Iterator<Item = (&'p str, &'p RelayUrl)>,
        reports: &[RelayReport],
        now_secs: u64,
    ) {
        let reports: BTreeMap<&RelayUrl, &RelayReport> = reports.iter().map(|report| (&report.relay, report)).collect();
        let peers: BTreeMap<&str, &RelayUrl> = peers.collect();
        let known = self.marks.len();
        self.marks.retain(|id, _| peers.contains_key(id.as_str()));
        self.is_dirty |= self.marks.len() < known;
        self.reports.clear();
        for (id, relay) in peers {
            let Some(&report) = reports.get(relay) else { continue };
            if !self.marks.contains_key(id) {
                self.marks.insert(id.to_owned(), PeerMarks::default());
            }
            self.is_dirty |= self.marks.get_mut(id).is_some_and(|marks| marks.observe(report, now_secs));
            self.reports.insert(relay.clone(), report.clone());
        }
    }

    /// The engine has ended. A new one counts from nothing.
    pub(super) fn end_engine(&mut self) {
        for (relay, report) in std::mem::take(&mut self.reports) {
            let before = self.before.entry(relay).or_default();
            *before = *before + Tally::of(&report.counters);
        }
    }

    pub(super) fn report(&self, relay: &RelayUrl) -> Option<&RelayReport> {
        self.reports.get(relay)
    }

    /// What was counted at a relay since the daemon started.
    pub(super) fn tally(&self, relay: &RelayUrl) -> Tally {
        let now = self.report(relay).map(|report| Tally::of(&report.counters)).unwrap_or_default();
        self.before.get(relay).copied().unwrap_or_default() + now
    }

    pub(super) fn marks(&self, id: &str) -> PeerMarks {
        self.marks.get(id).cloned().unwrap_or_default()
    }

    /// There is no such peer any more.
    pub(super) fn forget(&mut self, id: &str, relay: &RelayUrl) {
        self.is_dirty |= self.marks.remove(id).is_some();
        self.before.remove(relay);
        self.reports.remove(relay);
    }

    /// The marks to be written, if they have changed since this was asked last.
    pub(super) fn take_marks(&mut self) -> Option<BTreeMap<String, PeerMarks>> {
        std::mem::take(&mut self.is_dirty).then(|| self.marks.clone())
    }

    /// They could not be written.
    pub(super) fn untake_marks(&mut self) {
        self.is_dirty = true;
    }
}
