//! New runs: of the entries of a commit, and of runs that are merged.

use std::sync::Arc;

use super::run::{Made, Run, RunWriter, number_of};
use crate::store::entry::{Entry, Index, Key, Rank, Sequence};

/// So many runs of one size are merged into one of the next.
pub(super) const FAN_IN: usize = 8;
/// A merge makes no run of more rows: it must not keep a commit waiting for long.
pub(super) const ROWS_MAX: usize = 1 << 17;
/// Runs of up to so many rows are of the lowest size.
const ROWS_LOWEST: usize = 64;
/// No row.
const DROPPED: u32 = u32::MAX;

/// A run of all these entries; `None` if there are none.
pub(super) fn run_of(number: u64, mut entries: Vec<Entry>) -> Option<Made> {
    entries.sort_unstable();
    // A tag that an event has twice.
    entries.dedup();
    let times = entries.iter().filter(|entry| entry.index() == Index::Time);
    let mut writer = RunWriter::new(number, times.map(|entry| *entry.rank().as_bytes()).collect());
    for of_key in entries.chunk_by(|one, other| one.key() == other.key()) {
        if !matches!(of_key[0].index(), Index::Time | Index::Id) {
            let rows: Vec<u32> = of_key.iter().filter_map(|entry| writer.row(&entry.rank())).collect();
            writer.push(of_key[0].key().as_bytes(), rows);
        }
    }
    (!entries.is_empty()).then(|| writer.finish())
}

/// The runs that are to be merged next, if any are.
pub(super) fn due(runs: &[Arc<Run>]) -> Option<Vec<Arc<Run>>> {
    let level = |run: &Run| run.rows().div_ceil(ROWS_LOWEST).max(1).ilog(FAN_IN) as usize;
    let mut levels: Vec<Vec<Arc<Run>>> = Vec::new();
    for run in runs {
        levels.resize_with(levels.len().max(level(run) + 1), Vec::new);
        levels[level(run)].push(run.clone());
    }
    levels.into_iter().filter(|runs| runs.len() >= FAN_IN).find_map(|runs| {
        let mut rows = 0;
        let fitting = runs.into_iter().take_while(|run| {
            rows += run.rows();
            rows <= ROWS_MAX
        });
        let fitting: Vec<Arc<Run>> = fitting.collect();
        (fitting.len() > 1).then_some(fitting)
    })
}

/// What of the memory of an event is taken over into a merged run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// All of it: it is held.
    All,
    /// That it is gone.
    Trace,
    /// Nothing.
    Nothing,
}

/// Merges runs into one.
pub(super) fn merge(number: u64, runs: &[Arc<Run>], kept: impl Fn(&Rank) -> Kept) -> Made {
    let mut places: Vec<(usize, usize)> = Vec::with_capacity(runs.iter().map(|run| run.rows()).sum());
    let mut fates: Vec<Vec<Kept>> = Vec::with_capacity(runs.len());
    for (position, run) in runs.iter().enumerate() {
        fates.push((0..run.rows()).map(|row| kept(&run.rank(row))).collect());
        places.extend((0..run.rows()).filter(|row| fates[position][*row] != Kept::Nothing).map(|row| (position, row)));
    }
    // Sorted sequences one after the other: the stable sort merges them.
    places.sort_by(|one, other| runs[one.0].ranks()[one.1].cmp(&runs[other.0].ranks()[other.1]));
    let mut rows: Vec<Vec<u32>> = runs.iter().map(|run| vec![DROPPED; run.rows()]).collect();
    for (row, (position, old)) in (0..).zip(&places) {
        rows[*position][*old] = row;
    }
    let ranks = places.iter().map(|(position, row)| runs[*position].ranks()[*row]).collect();
    let mut writer = RunWriter::new(number, ranks);
    let mut heads = vec![0; runs.len()];
    let mut merged: Vec<u32> = Vec::new();
    while let Some(key) = runs.iter().zip(&heads).filter_map(|(run, head)| run.keys().get(*head)).min() {
        let outlives = Key::from_bytes(key).is_some_and(|key| key.index().remembers_gone());
        merged.clear();
        for (position, run) in runs.iter().enumerate() {
            if run.keys().get(heads[position]) != Some(key) {
                continue;
            }
            let old_rows = run.postings(heads[position]).iter().map(number_of);
            let stays = |row: &usize| outlives || fates[position][*row] == Kept::All;
            merged.extend(old_rows.filter(stays).map(|row| rows[position][row]).filter(|row| *row != DROPPED));
        }
        merged.sort_unstable();
        writer.push(key, merged.iter().copied());
        let key = *key;
        for (run, head) in runs.iter().zip(&mut heads) {
            *head += usize::from(run.keys().get(*head) == Some(&key));
        }
    }
    writer.finish()
}

/// The numbers of the events that runs know.
pub(super) fn sequences(runs: &[Arc<Run>]) -> Vec<Sequence> {
    let mut sequences: Vec<Sequence> =
        runs.iter().flat_map(|run| (0..run.rows()).map(|row| run.rank(row).sequence())).collect();
    sequences.sort_unstable();
    sequences
}
