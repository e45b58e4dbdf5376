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

/// The windows of `wanted` that recent `proofs` leave to be paged. A proof counts for `valid_for` after the last moment
/// to which it was followed live: what the relay got later with an old date can be found by asking again only. What is
/// newer than that moment, less `overlap_secs`, is asked for in any case.
pub fn windows_to_fetch(
    wanted: Window,
    proofs: &[Proof],
    now_secs: u64,
    valid_for: Duration,
    overlap_secs: u64,
) -> Todo {
    let is_recent = |proof: &&Proof| {
        // A moment in the future comes from a clock that was wrong: such a proof proves nothing.
        proof.fresh_secs() <= now_secs && now_secs - proof.fresh_secs() <= valid_for.as_secs()
    };
    let mut kept: Vec<Proof> = Vec::new();
    for proof in proofs.iter().filter(is_recent) {
        let until = proof.window.until.min(proof.fresh_secs().saturating_sub(overlap_secs + 1));
        let window = Window { until, ..proof.window }.intersect(&wanted);
        if !window.is_empty() {
            kept.push(Proof { window, ..*proof });
        }
    }
    kept.sort_by_key(|proof| std::cmp::Reverse(proof.window.until));
    let kept = merge(kept);
    Todo { windows: uncovered(wanted, &kept), kept }
}

/// Joins proofs that adjoin, newest first: each quick pass adds one. The older moment counts for both.
fn merge(proofs: Vec<Proof>) -> Vec<Proof> {
    let mut merged: Vec<Proof> = Vec::new();
    for proof in proofs {
        match merged.last_mut() {
            Some(above)
                if above.method == proof.method && above.window.since <= proof.window.until.saturating_add(1) =>
            {
                above.window.since = above.window.since.min(proof.window.since);
                above.asked_at_secs = above.asked_at_secs.min(proof.asked_at_secs);
                above.followed_until_secs = above.followed_until_secs.min(proof.fresh_secs());
            }
            _ => merged.push(proof),
        }
    }
    merged
}

/// What both of two filters are proven for, if `left` and `right` are their proofs, newest first: the older moment counts.
pub fn intersect(left: &[Proof], right: &[Proof]) -> Vec<Proof> {
    let both = |left: &Proof, right: &Proof| Proof {
        window: left.window.intersect(&right.window),
        // Where one was fetched by pages, the whole was not reconciled.
        method: left.method.max(right.method),
        asked_at_secs: left.asked_at_secs.min(right.asked_at_secs),
        followed_until_secs: left.fresh_secs().min(right.fresh_secs()),
    };
    let mut proofs: Vec<Proof> =
        left.iter().flat_map(|left| right.iter().map(move |right| both(left, right))).collect();
    proofs.retain(|proof| !proof.window.is_empty());
    proofs.sort_by_key(|proof| std::cmp::Reverse(proof.window.until));
    proofs
}

/// What is left of proofs where one second, since 1970, is not proven any more.
pub fn without(proofs: &[Proof], second: u64) -> Vec<Proof> {
    let parts = |proof: &Proof| {
        let Window { since, until } = proof.window;
        if !(since..=until).contains(&second) {
            return [Some(*proof), None];
        }
        let part = |window: Window| (!window.is_empty()).then_some(Proof { window, ..*proof });
        let above = second.checked_add(1).and_then(|since| part(Window { since, until }));
        let below = second.checked_sub(1).and_then(|until| part(Window { since, until }));
        [above, below]
    };
    proofs.iter().flat_map(parts).flatten().collect()
}

/// `wanted` without the windows of `proofs`, which are sorted newest first; newest first.
pub fn uncovered(wanted: Window, proofs: &[Proof]) -> Vec<Window> {
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
        Proof::new(Window { since, until }, Method::Req, asked_at_secs)
    }

    fn todo(proofs: &[Proof], now: u64) -> Vec<Window> {
        windows_to_fetch(Window::ALL, proofs, now, QUARTER, 300).windows
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
    fn a_pass_cut_short_is_continued_below() {
        assert_eq!(
            todo(&[proof(5_000, Window::OPEN, 9_900)], 10_000),
            vec![Window { since: 9_600, until: Window::OPEN }, Window { since: 0, until: 4_999 }]
        );
    }

    #[test]
    fn what_two_filters_are_proven_for_is_proven_as_of_the_older_moment() {
        let left = [proof(500, Window::OPEN, 900), proof(0, 300, 800)];
        let right = [Proof { followed_until_secs: 880, ..proof(200, 700, 850) }];
        let both = [
            Proof { followed_until_secs: 880, ..proof(500, 700, 850) },
            Proof { followed_until_secs: 800, ..proof(200, 300, 800) },
        ];
        assert_eq!(intersect(&left, &right), both);
        assert_eq!(intersect(&right, &left), both);
        assert_eq!(intersect(&left, &[]), []);
    }

    #[test]
    fn an_empty_result_is_proof_too() {
        let wanted = Window { since: 100, until: 200 };
        assert!(windows_to_fetch(wanted, &[proof(100, 200, 9_900)], 10_000, QUARTER, 300).windows.is_empty());
    }

    #[test]
    fn followed_proofs_stay_what_they_are_and_adjoining_ones_are_one() {
        let followed = |until| {
            let proofs = [proof(5_000, Window::OPEN, 8_000), proof(0, 4_999, 5_300)];
            let proofs = proofs.map(|proof| Proof { followed_until_secs: until, ..proof });
            windows_to_fetch(Window::ALL, &proofs, 10_000, QUARTER, 300)
        };
        assert_eq!(followed(0).windows, vec![Window::ALL]);
        assert_eq!(followed(9_000).windows, vec![Window::ALL], "away for too long");
        assert_eq!(followed(10_001).windows, vec![Window::ALL], "from the future");
        assert_eq!(followed(9_900).windows, vec![Window { since: 9_600, until: Window::OPEN }]);
        assert_eq!(followed(9_900).kept, vec![Proof { followed_until_secs: 9_900, ..proof(0, 9_599, 5_300) }]);
    }
}
