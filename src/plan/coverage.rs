//! What earlier passes have proven, and what is therefore left to fetch.

use std::time::Duration;

use crate::protocol::Window;
use crate::store::Proof;

/// What is left of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Todo {
    /// Windows to fetch, newest first.
    pub windows: Vec<Window>,
    /// Proofs that still hold and are to be kept in the coverage mark.
    pub kept: Vec<Proof>,
}

/// The windows of `wanted` that recent `proofs` leave to be paged. A proof counts for `valid_for` after the relay was
/// asked: what the relay got later with an old date can be found by asking again only. What is newer than the moment
/// of a proof, less `overlap_secs`, is asked for in any case. Where what was new has come ever since, up to the moment
/// `carried_until_secs`, but for gaps that were closed by dates, that moment counts for every proof. The proofs themselves
/// stay as old as they are: what came in such a gap with an old date is not known.
pub fn windows_to_fetch(
    wanted: Window,
    proofs: &[Proof],
    carried_until_secs: u64,
    now_secs: u64,
    valid_for: Duration,
    overlap_secs: u64,
) -> Todo {
    let is_recent = |proof: &&Proof| {
        // A moment in the future comes from a clock that was wrong: such a proof proves nothing.
        let until_secs = proof.asked_at_secs.max(carried_until_secs);
        until_secs <= now_secs && now_secs - until_secs <= valid_for.as_secs()
    };
    let mut kept: Vec<Proof> = Vec::new();
    for proof in proofs.iter().filter(is_recent) {
        let until_secs = proof.asked_at_secs.max(carried_until_secs);
        let until = proof.window.until.min(until_secs.saturating_sub(overlap_secs + 1));
        let window = Window { until, ..proof.window }.intersect(&wanted);
        if !window.is_empty() {
            kept.push(Proof { window, ..*proof });
        }
    }
    kept.sort_by_key(|proof| std::cmp::Reverse(proof.window.until));
    Todo { windows: subtract(wanted, &kept), kept }
}

/// `wanted` without the windows of `proofs`, which are sorted newest first; newest first.
fn subtract(wanted: Window, proofs: &[Proof]) -> Vec<Window> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut left = Vec::new();
    let mut until = wanted.until;
    for proof in proofs {
        if proof.window.until < until {
            left.push(Window { since: proof.window.until + 1, until });
        }
        match proof.window.since.checked_sub(1) {
            Some(below) if below >= wanted.since => until = until.min(below),
            _ => return left,
        }
    }
    left.push(Window { since: wanted.since, until });
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Method;

    const QUARTER: Duration = Duration::from_secs(900);

    fn proof(since: u64, until: u64, asked_at_secs: u64) -> Proof {
        Proof { window: Window { since, until }, method: Method::Req, asked_at_secs }
    }

    fn todo(proofs: &[Proof], now: u64) -> Vec<Window> {
        windows_to_fetch(Window::ALL, proofs, 0, now, QUARTER, 300).windows
    }

    #[test]
    fn without_proof_everything_is_fetched() {
        assert_eq!(todo(&[], 10_000), vec![Window::ALL]);
        assert_eq!(
            todo(&[proof(0, Window::OPEN, 9_000)], 10_000),
            vec![Window::ALL],
            "older than a quarter of an hour"
        );
        assert_eq!(todo(&[proof(0, Window::OPEN, 10_001)], 10_000), vec![Window::ALL], "from the future");
    }

    #[test]
    fn a_recent_proof_leaves_what_came_since_with_an_overlap() {
        assert_eq!(todo(&[proof(0, Window::OPEN, 9_900)], 10_000), vec![Window { since: 9_600, until: Window::OPEN }]);
    }

    #[test]
    fn an_old_proof_is_carried_on_and_stays_old() {
        let todo = windows_to_fetch(Window::ALL, &[proof(0, Window::OPEN, 1_000)], 9_900, 10_000, QUARTER, 300);
        assert_eq!(todo.windows, vec![Window { since: 9_600, until: Window::OPEN }]);
        assert_eq!(todo.kept, vec![proof(0, 9_599, 1_000)]);
    }

    #[test]
    fn a_pass_cut_short_is_continued_below() {
        assert_eq!(
            todo(&[proof(5_000, Window::OPEN, 9_900)], 10_000),
            vec![Window { since: 9_600, until: Window::OPEN }, Window { since: 0, until: 4_999 }]
        );
    }

    #[test]
    fn an_empty_result_is_proof_too() {
        let wanted = Window { since: 100, until: 200 };
        assert!(windows_to_fetch(wanted, &[proof(100, 200, 9_900)], 0, 10_000, QUARTER, 300).windows.is_empty());
    }
}
