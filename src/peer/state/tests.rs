use super::*;
use crate::peer::{Tally, WORDS_CHARS_MAX};

fn report(change: impl FnOnce(&mut RelayReport)) -> RelayReport {
    let mut report = RelayReport::live("wss://a.example");
    change(&mut report);
    report
}

fn failed(at_secs: u64, words: &str, kind: Option<FailureKind>) -> RelayReport {
    report(|report| {
        report.last_error = Some(words.to_owned());
        (report.last_error_secs, report.last_error_kind) = (Some(at_secs), kind);
    })
}

/// The last error after each of `reports`.
fn errors(reports: &[RelayReport]) -> Vec<Option<(String, Option<FailureKind>, u64)>> {
    let (mut marks, mut before) = (PeerMarks::default(), None);
    let observe = |report: &RelayReport| {
        marks.observe(report, before.as_ref());
        before = Some(Glimpse::of(report));
        marks.last_error.clone().map(|error| (error.text, error.kind, error.at_secs))
    };
    reports.iter().map(observe).collect()
}

#[test]
fn a_failure_has_the_time_and_kind_of_itself_and_not_of_the_recovery() {
    let (refused, lost) = (Some(FailureKind::ConnectionRefused), Some(FailureKind::ConnectionLost));
    let error = |words: &str, kind, at| Some((words.to_owned(), kind, at));
    let seen = errors(&[
        failed(1, "refused", refused),
        // It is well again, and what had failed before is still told of.
        failed(1, "refused", refused),
        failed(20, "lost", lost),
        // The same failure, much later.
        failed(50, "lost", lost),
    ]);
    assert_eq!(seen[..2], [error("refused", refused, 1), error("refused", refused, 1)]);
    assert_eq!(seen[2..], [error("lost", lost, 20), error("lost", lost, 50)]);
}

#[test]
fn what_was_before_the_peer_was_is_not_its() {
    let old = report(|report| {
        (report.last_error_secs, report.last_error) = (Some(1), Some("of another".to_owned()));
        report.moments.connected_secs = Some(5);
        (report.counters.connections, report.counters.received) = (3, 100);
    });
    let base = Glimpse::of(&old);
    let mut marks = PeerMarks::default();
    assert!(!marks.observe(&old, Some(&base)), "{marks:?}");
    let mut new = old;
    (new.counters.connections, new.counters.received, new.moments.eose_secs) = (5, 107, Some(9));
    assert!(marks.observe(&new, Some(&base)));
    assert_eq!(
        (marks.last_error.as_ref(), marks.moments.connected_secs, marks.moments.eose_secs),
        (None, None, Some(9))
    );
    let tally = Tally::since(Some(&base), &Glimpse::of(&new), false);
    assert_eq!((tally.events_received, tally.reconnects), (7, 1));
    // With an engine before it, each connection is one that was made again.
    assert_eq!(Tally::since(None, &Glimpse::of(&new), true).reconnects, 5);
}

#[test]
fn words_without_end_are_not_kept() {
    let mut marks = PeerMarks::default();
    marks.observe(&failed(1, &"x".repeat(1 << 20), None), None);
    assert_eq!(marks.last_error.unwrap().text.chars().count(), WORDS_CHARS_MAX);
}
