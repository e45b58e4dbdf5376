//! What is seen of peers while the daemon runs, and what is remembered of that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::RelayReport;
use crate::peer::{Glimpse, Heard, PeerMarks, Tally};
use crate::protocol::RelayUrl;

/// What was last seen of each peer.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// By the name of the peer: all that there are.
    peers: BTreeMap<String, Seen>,
    /// What the engine that runs has said of each relay, whether it is a peer's or not.
    glimpses: BTreeMap<RelayUrl, Glimpse>,
    /// The marks are not as they were written last.
    is_dirty: bool,
}

/// What was seen of a peer.
#[derive(Debug)]
struct Seen {
    relay: RelayUrl,
    /// What is remembered.
    marks: PeerMarks,
    /// What the engine said last, since the peer is as it is now.
    report: Option<Said>,
    /// What was counted before `base`: by engines before this one, or at another relay.
    before: Tally,
    /// There has been a connection before `base`.
    was_connected: bool,
    /// What the engine had said of the relay when it became this peer's.
    base: Option<Glimpse>,
}

/// What an engine said of a peer's relay, and when.
#[derive(Debug, Clone)]
struct Said {
    report: Arc<RelayReport>,
    at: Instant,
}

/// All that is seen of one peer at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Sight {
    /// The report that was heard last, and is not outdated.
    report: Option<Arc<RelayReport>>,
    /// It was heard too long ago.
    is_old: bool,
    pub(super) marks: PeerMarks,
    /// What was counted at the peer since the daemon started, or since it was added.
    pub(super) tally: Tally,
}

impl Sight {
    pub(super) fn heard(&self) -> Heard<'_> {
        match &self.report {
            Some(_) if self.is_old => Heard::TooLongAgo,
            Some(report) => Heard::Report(report),
            None => Heard::Nothing,
        }
    }
}

impl Board {
    /// One for these peers, with what is remembered of them.
    pub(super) fn new<'p>(
        peers: impl Iterator<Item = (&'p str, &'p RelayUrl)>,
        mut marks: BTreeMap<String, PeerMarks>,
    ) -> Self {
        let peers = peers
            .map(|(id, relay)| (id.to_owned(), Seen::of(relay.clone(), None, marks.remove(id).unwrap_or_default())));
        let peers = peers.collect();
        Self { peers, glimpses: BTreeMap::new(), is_dirty: !marks.is_empty() }
    }

    /// Takes over what an engine says of its relays.
    pub(super) fn hear(&mut self, reports: &[RelayReport]) {
        let at = Instant::now();
        let by_relay: BTreeMap<&RelayUrl, &RelayReport> =
            reports.iter().map(|report| (&report.relay, report)).collect();
        for seen in self.peers.values_mut() {
            let report = by_relay.get(&seen.relay).copied();
            if let Some(report) = report {
                self.is_dirty |= seen.marks.observe(report, self.glimpses.get(&seen.relay));
            }
            seen.report = report.map(|report| Said { report: Arc::new(report.clone()), at });
        }
        self.glimpses = reports.iter().map(|report| (report.relay.clone(), Glimpse::of(report))).collect();
    }

    /// There is a peer at this relay, from now on or still. What was said of the relay was said of it under other terms.
    pub(super) fn begin(&mut self, id: &str, relay: &RelayUrl) {
        let base = self.glimpses.get(relay).cloned();
        match self.peers.get_mut(id) {
            Some(seen) if seen.relay == *relay => seen.report = None,
            Some(seen) => {
                let now = self.glimpses.get(&seen.relay);
                seen.close(now);
                (seen.relay, seen.base, seen.report) = (relay.clone(), base, None);
            }
            None => {
                self.peers.insert(id.to_owned(), Seen::of(relay.clone(), base, PeerMarks::default()));
            }
        }
    }

    /// The engine was told other terms of this relay: what it has said of it does not count any more.
    pub(super) fn outdate(&mut self, relay: &RelayUrl) {
        self.peers.values_mut().filter(|seen| seen.relay == *relay).for_each(|seen| seen.report = None);
    }

    /// The engine has ended. A new one counts from nothing.
    pub(super) fn end_engine(&mut self) {
        for seen in self.peers.values_mut() {
            seen.close(self.glimpses.get(&seen.relay));
            seen.report = None;
        }
        self.glimpses.clear();
    }

    /// What is seen of a peer. What was heard longer ago than `age_max` is not told.
    pub(super) fn sight(&self, id: &str, age_max: Duration) -> Sight {
        let Some(seen) = self.peers.get(id) else { return Sight::default() };
        let said = seen.report.clone();
        Sight {
            is_old: said.as_ref().is_some_and(|said| said.at.elapsed() > age_max),
            report: said.map(|said| said.report),
            marks: seen.marks.clone(),
            tally: seen.tally(self.glimpses.get(&seen.relay)),
        }
    }

    /// There is no such peer any more.
    pub(super) fn forget(&mut self, id: &str) {
        self.is_dirty |= self.peers.remove(id).is_some();
    }

    /// The marks to be written, if they have changed since this was asked last.
    pub(super) fn take_marks(&mut self) -> Option<BTreeMap<String, PeerMarks>> {
        let marks = self.peers.iter().map(|(id, seen)| (id.clone(), seen.marks.clone()));
        std::mem::take(&mut self.is_dirty).then(|| marks.collect())
    }

    /// They could not be written.
    pub(super) fn untake_marks(&mut self) {
        self.is_dirty = true;
    }
}

impl Seen {
    fn of(relay: RelayUrl, base: Option<Glimpse>, marks: PeerMarks) -> Self {
        Self { relay, marks, report: None, before: Tally::default(), was_connected: false, base }
    }

    /// What was counted, if the engine that runs has said `now` of the relay.
    fn tally(&self, now: Option<&Glimpse>) -> Tally {
        let counted = now.map(|now| Tally::since(self.base.as_ref(), now, self.was_connected));
        self.before + counted.unwrap_or_default()
    }

    /// The engine that has said `now` of the relay says no more of it for this peer.
    fn close(&mut self, now: Option<&Glimpse>) {
        self.before = self.tally(now);
        self.was_connected |= now.is_some_and(|now| now.has_connected_since(self.base.as_ref()));
        self.base = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::admin::samples;

    const URL: &str = "wss://a.example";

    fn counted(received: u64, connections: u64) -> RelayReport {
        let mut report = samples::relay(URL);
        (report.counters.received, report.counters.connections) = (received, connections);
        report.last_error = Some("of whoever was there first".to_owned());
        report
    }

    fn board(id: &str) -> Board {
        Board::new([(id, &RelayUrl::parse(URL).unwrap())].into_iter(), BTreeMap::new())
    }

    fn sight(board: &Board, id: &str) -> Sight {
        board.sight(id, Duration::from_secs(3600))
    }

    #[test]
    fn what_was_counted_for_a_removed_peer_does_not_pass_to_the_next_one() {
        let mut board = board("a");
        board.hear(&[counted(100, 3)]);
        assert_eq!((sight(&board, "a").tally.events_received, sight(&board, "a").tally.reconnects), (100, 2));
        board.forget("a");
        board.begin("b", &RelayUrl::parse(URL).unwrap());
        assert_eq!(sight(&board, "b").tally, Tally::default());
        board.hear(&[counted(101, 4)]);
        let seen = sight(&board, "b");
        assert_eq!((seen.tally.events_received, seen.tally.reconnects, seen.marks.last_error), (1, 0, None));
    }

    #[test]
    fn a_connection_by_a_later_engine_was_made_again() {
        let mut board = board("a");
        board.hear(&[counted(100, 1)]);
        board.end_engine();
        board.hear(&[counted(5, 1)]);
        assert_eq!((sight(&board, "a").tally.events_received, sight(&board, "a").tally.reconnects), (105, 1));
        board.end_engine();
        assert_eq!(sight(&board, "a").tally.reconnects, 1);
    }

    #[test]
    fn what_was_heard_under_other_terms_or_long_ago_does_not_count() {
        let mut board = board("a");
        board.hear(&[counted(100, 1)]);
        assert!(matches!(sight(&board, "a").heard(), Heard::Report(_)));
        assert!(matches!(board.sight("a", Duration::ZERO).heard(), Heard::TooLongAgo));
        board.begin("a", &RelayUrl::parse(URL).unwrap());
        assert!(matches!(sight(&board, "a").heard(), Heard::Nothing));
        assert_eq!(sight(&board, "a").tally.events_received, 100, "it is the same peer");
        board.hear(&[counted(100, 1)]);
        board.outdate(&RelayUrl::parse(URL).unwrap());
        assert!(matches!(sight(&board, "a").heard(), Heard::Nothing));
        board.hear(&[]);
        assert!(matches!(sight(&board, "a").heard(), Heard::Nothing));
    }
}
