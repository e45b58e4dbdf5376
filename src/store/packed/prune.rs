//! What goes when there is no more room: the oldest events, whole seconds at a time.

use std::collections::BTreeMap;

use super::content::Content;
use super::run::Run;
use crate::protocol::Window;
use crate::store::Coverage;
use crate::store::Outcome;
use crate::store::entry::{Rank, Sequence};
use crate::store::fates::Fates;

/// Deletion and vanish requests stay: what they took back must not return.
pub(crate) fn is_spared(kind: u16) -> bool {
    matches!(kind, 5 | 62)
}

/// The oldest events.
#[derive(Debug, Default)]
pub(super) struct Oldest {
    pub(super) fates: BTreeMap<Sequence, Outcome>,
    /// The newest second of which some were chosen.
    pub(super) floor_secs: Option<u64>,
}

/// Chooses the oldest events whose bodies have about `bytes` together. `fates` says who is gone already.
pub(super) fn oldest(content: &Content, fates: &Fates, bytes: u64) -> Oldest {
    let mut oldest = Oldest::default();
    if bytes == 0 {
        return oldest;
    }
    let mut ends: Vec<usize> = content.runs.iter().map(|run| rows_above(run, content.meta.floor_secs)).collect();
    let mut freed = 0;
    while let Some((position, rank)) = last_of_all(content, &ends) {
        if freed >= bytes && oldest.floor_secs.is_some_and(|floor| floor < rank.created_at()) {
            break;
        }
        ends[position] -= 1;
        let sequence = rank.sequence();
        let Some(name) = content.segment_of(sequence) else { continue };
        if fates.of(sequence).is_none() && !is_spared(rank.kind()) {
            oldest.fates.insert(sequence, Outcome::Pruned);
            oldest.floor_secs = Some(rank.created_at());
            freed += name.body_bytes();
        }
    }
    oldest
}

/// How many rows are newer than `floor`.
fn rows_above(run: &Run, floor_secs: Option<u64>) -> usize {
    let Some(floor) = floor_secs else { return run.rows() };
    let bound = Rank::new(floor, &[0; 32], 0, 0);
    run.ranks().partition_point(|rank| rank < bound.as_bytes())
}

/// The oldest row, in which run.
fn last_of_all(content: &Content, ends: &[usize]) -> Option<(usize, Rank)> {
    let lasts = content.runs.iter().zip(ends).enumerate();
    lasts.filter_map(|(at, (run, end))| Some((at, run.rank(end.checked_sub(1)?)))).max_by_key(|(_, rank)| *rank)
}

/// What a mark proves of a store from which everything up to `floor_secs` was pruned.
pub(super) fn cut(mark: &Coverage, floor_secs: u64) -> Coverage {
    let mut cut = mark.clone();
    let since = floor_secs.saturating_add(1);
    cut.windows.retain(|proof| proof.window.until > floor_secs);
    for proof in &mut cut.windows {
        proof.window = Window { since: proof.window.since.max(since), ..proof.window };
    }
    cut
}
