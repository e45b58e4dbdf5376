//! What is proven of a filter: by marks in the store, and by engines that follow it, which know more than they have stored.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_channel::oneshot;
use futures_util::future::{Either, join_all, select};

use super::entry::pruned_of;
use super::report::ends_of;
use super::runner::Asker;
use super::shared::Shared;
use super::{JobError, OpenWindow, ProvenWindow, RelayCoverage};
use crate::engine::Command;
use crate::plan::{Interest, uncovered};
use crate::protocol::{Filter, FilterKey, RelayUrl, Window};
use crate::runtime::{Clock, Runtime};
use crate::store::{Coverage, Proof, Store};

impl<R: Runtime> Shared<R> {
    /// See [`Jobs::coverage`](super::Jobs::coverage).
    pub(super) async fn coverage(&self, filter: &Filter) -> Result<Vec<RelayCoverage>, JobError> {
        let key = FilterKey::of(filter);
        let snapshot = self.runtime.store().load().await.map_err(JobError::of_store)?;
        let stored = snapshot.coverage.into_iter().filter(|mark| mark.filter == key);
        let mut marks: BTreeMap<RelayUrl, Coverage> = stored.map(|mark| (mark.relay.clone(), mark)).collect();
        for mark in self.ask_engines(filter, &key).await {
            let held = marks.get(&mark.relay).map_or(0, freshest_secs);
            if freshest_secs(&mark) >= held {
                marks.insert(mark.relay.clone(), mark);
            }
        }
        let (wanted, now_secs) = (Window::of(filter), self.runtime.clock().now().unix_secs);
        let floor_secs = self.runtime.store().floor_secs();
        let held = (wanted, floor_secs.and_then(|floor| pruned_of(Some(filter), wanted, floor)));
        let valid_for_secs = self.config.proof_valid_for.as_secs();
        Ok(marks.into_values().map(|mark| coverage_of(mark, held, now_secs, valid_for_secs)).collect())
    }

    async fn ask_engines(&self, filter: &Filter, key: &FilterKey) -> Vec<Coverage> {
        let answers = {
            let mut state = self.lock();
            let interest = Interest::Opaque(filter.clone().into());
            let mut answers = Vec::new();
            let first = state.next_number();
            for runner in state.runners.values_mut().filter(|runner| runner.wants(&interest)) {
                let (asker, answer) = oneshot::channel();
                let command = Command::Prove { ticket: first, filter: key.clone() };
                runner.ask(first, command, Asker::Prove(asker));
                answers.push(answer);
            }
            answers
        };
        let clock = self.runtime.clock();
        let late = pin!(clock.sleep_until(clock.now().instant + self.config.answer_timeout));
        match select(join_all(answers), late).await {
            // An engine that has ended meanwhile has stored what it knew.
            Either::Left((answers, _)) => answers.into_iter().filter_map(Result::ok).flatten().collect(),
            Either::Right(_) => Vec::new(),
        }
    }
}

fn freshest_secs(mark: &Coverage) -> u64 {
    mark.windows.iter().map(Proof::fresh_secs).max().unwrap_or_default()
}

/// Proofs count as they do for engines: those that are recent, and not from a moment that is still to come.
fn coverage_of(
    mark: Coverage,
    (wanted, pruned): (Window, Option<Window>),
    now_secs: u64,
    valid_for_secs: u64,
) -> RelayCoverage {
    // What was pruned is the oldest of what is wanted. Engines do not know of it.
    let since = pruned.map_or(wanted.since, |pruned| pruned.until.saturating_add(1));
    let held = Window { since: since.max(wanted.since), ..wanted };
    let clipped = mark.windows.iter().map(|proof| Proof { window: proof.window.intersect(&held), ..*proof });
    let proofs: Vec<Proof> = clipped.filter(|proof| !proof.window.is_empty()).collect();
    let counts = |proof: &&Proof| (now_secs.saturating_sub(valid_for_secs)..=now_secs).contains(&proof.fresh_secs());
    let mut recent: Vec<Proof> = proofs.iter().filter(counts).copied().collect();
    recent.sort_by_key(|proof| std::cmp::Reverse(proof.window.until));
    let gaps: Vec<OpenWindow> = uncovered(wanted, &recent).into_iter().map(open_window).collect();
    RelayCoverage {
        relay: mark.relay,
        complete: gaps.is_empty(),
        windows: proofs.iter().map(proven_window).collect(),
        gaps,
    }
}

fn open_window(window: Window) -> OpenWindow {
    let (since, until) = ends_of(window);
    OpenWindow { since, until }
}

fn proven_window(proof: &Proof) -> ProvenWindow {
    let (since, until) = ends_of(proof.window);
    let (asked_at, followed_until) = (proof.asked_at_secs, proof.fresh_secs());
    ProvenWindow { since, until, method: proof.method, asked_at, followed_until }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Method;

    fn mark(windows: Vec<Proof>) -> Coverage {
        let relay = RelayUrl::parse("wss://relay.example").unwrap();
        Coverage { relay, filter: FilterKey::of(&Filter::new()), packed: None, rules: 0, windows }
    }

    fn proof(since: u64, until: u64, asked_at_secs: u64) -> Proof {
        Proof::new(Window { since, until }, Method::Req, asked_at_secs)
    }

    #[test]
    fn what_is_proven_lately_for_all_of_time_is_complete() {
        let coverage = coverage_of(mark(vec![proof(0, Window::OPEN, 9_500)]), (Window::ALL, None), 10_000, 900);
        assert!(coverage.complete && coverage.gaps.is_empty());
        let window =
            ProvenWindow { since: None, until: None, method: Method::Req, asked_at: 9_500, followed_until: 9_500 };
        assert_eq!(coverage.windows, [window]);
    }

    #[test]
    fn what_was_proven_long_ago_or_in_the_future_is_told_and_does_not_count() {
        for asked in [9_000, 10_001] {
            let coverage = coverage_of(mark(vec![proof(0, Window::OPEN, asked)]), (Window::ALL, None), 10_000, 900);
            assert!(!coverage.complete);
            assert_eq!(coverage.windows.len(), 1);
            assert_eq!(coverage.gaps, [OpenWindow { since: None, until: None }]);
        }
    }

    #[test]
    fn gaps_are_what_the_proofs_leave_of_what_is_wanted() {
        let wanted = Window { since: 100, until: 5_000 };
        let proofs = vec![proof(4_000, Window::OPEN, 9_500), proof(0, 2_000, 9_400)];
        let coverage = coverage_of(mark(proofs), (wanted, None), 10_000, 900);
        assert_eq!(coverage.gaps, [OpenWindow { since: Some(2_001), until: Some(3_999) }]);
        assert_eq!((coverage.windows[0].until, coverage.windows[1].since), (Some(5_000), Some(100)));
    }

    #[test]
    fn what_was_pruned_is_a_gap_whatever_engines_have_proven() {
        let proofs = || mark(vec![proof(0, Window::OPEN, 9_500)]);
        let held = |window: Window, floor| (window, pruned_of(None, window, floor));
        let coverage = coverage_of(proofs(), held(Window::ALL, 4_000), 10_000, 900);
        assert!(!coverage.complete);
        assert_eq!(coverage.gaps, [OpenWindow { since: None, until: Some(4_000) }]);
        assert_eq!(coverage.windows[0].since, Some(4_001));
        let newer = Window { since: 4_001, until: Window::OPEN };
        assert!(coverage_of(proofs(), held(newer, 4_000), 10_000, 900).complete);
        let deletions = Filter::new().kind(5.into());
        assert_eq!(pruned_of(Some(&deletions), Window::ALL, 4_000), None, "they are kept");
    }
}
