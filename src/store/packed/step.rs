//! One commit: what it changes, worked out before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::PackedConfig;
use super::backing::{Durability, Write};
use super::build::{self, Kept};
use super::cache::Cache;
use super::content::{Content, Loaded};
use super::layout::{self, META, Meta, SegmentName};
use super::prune;
use super::ragged::{self, Ragged};
use super::run::Run;
use super::segment::{Packed, Packer, Segment};
use crate::store::entry::Rank;
use crate::store::fates::Fates;
use crate::store::tables::{Changes, Damaged};
use crate::store::{Coverage, Outcome};

/// What the index takes for an event, about.
const INDEX_BYTES: u64 = 150;
/// So many rows of a run tell how much of it was pruned.
const ROWS_SAMPLED: usize = 1024;

/// A commit that is to be made.
#[derive(Debug)]
pub(super) struct Draft {
    changes: Changes,
    fates: Fates,
    fate_blocks: Vec<u64>,
    floor_secs: Option<u64>,
    ragged: Ragged,
    /// Segments that nothing is left of.
    dead: Vec<SegmentName>,
    /// Segments that are to be packed anew, without what is gone.
    due: Vec<SegmentName>,
    /// The last segment, if it is small: what is new is put behind it.
    tail: Option<SegmentName>,
}

impl Draft {
    /// What is to be done for `changes`.
    pub(super) fn new(content: &Content, mut changes: Changes, config: &PackedConfig) -> Self {
        refuse_pruned(&mut changes, content.meta.floor_secs);
        let (mut fates, mut ragged) = (content.fates.clone(), content.ragged.clone());
        fates.extend(&changes.fates);
        ragged::note(&mut ragged, content, &fates, &changes.fates);
        let pruned = prune::oldest(content, &fates, excess(content, &ragged, &changes, config));
        changes.fates.extend(&pruned.fates);
        let fate_blocks = fates.extend(&changes.fates);
        ragged::note(&mut ragged, content, &fates, &pruned.fates);
        let (dead, mut due) = ragged::due(&ragged, content, config);
        let last = content.segments.last_key_value().map(|(_, name)| *name);
        let is_small = |name: &SegmentName| (name.bytes as usize) < config.tail_bytes_max && !dead.contains(name);
        let tail = last.filter(|name| is_small(name) && !changes.held.is_empty());
        due.retain(|name| Some(*name) != tail);
        let floor_secs = pruned.floor_secs.or(content.meta.floor_secs);
        Self { changes, fates, fate_blocks, floor_secs, ragged, dead, due, tail }
    }

    /// Is there nothing to write?
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.dead.is_empty() && self.due.is_empty()
    }

    /// One outcome an event of the batch.
    pub(super) fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.changes.outcomes)
    }

    /// The segments that must be read first.
    pub(super) fn needs(&self) -> impl Iterator<Item = &SegmentName> {
        self.due.iter().chain(&self.tail)
    }

    /// Works out what is to be written.
    pub(super) fn step(
        mut self,
        content: &Content,
        loaded: &Loaded,
        config: &PackedConfig,
        epoch: u64,
    ) -> Result<Step, Damaged> {
        let mut write = Write { epoch, ..Write::default() };
        let packed = self.pack(loaded, config)?;
        let removed: Vec<SegmentName> = self.dead.iter().chain(self.needs()).copied().collect();
        write.deletes.extend(removed.iter().map(SegmentName::key));
        write.puts.extend(packed.iter().map(|packed| (packed.name.key(), packed.record.clone())));
        for block in &self.fate_blocks {
            let name = layout::fates_name(*block);
            let bytes = self.fates.block(*block).unwrap_or_default().to_vec();
            let sealed = super::record::seal(&name, bytes);
            write.puts.push((layout::index(name), sealed));
        }
        let mut meta = Meta {
            next_sequence: self.changes.next_sequence,
            floor_secs: self.floor_secs,
            commits: content.meta.commits + 1,
            ..content.meta.clone()
        };
        let runs = self.runs(content, config, &mut meta, &mut write);
        let marks = self.marks(content);
        for mark in &marks {
            let name = layout::mark_name(mark);
            match mark.windows.is_empty() {
                true => write.deletes.push(layout::index(name)),
                false => write.puts.push(layout::put_json(name, mark)),
            }
        }
        if let Some((first, ..)) = self.changes.contexts.first() {
            write.puts.push(layout::put_json(layout::context_name(*first), &self.changes.contexts));
        }
        write.puts.push(layout::put_json(META.to_owned(), &meta));
        let strict = config.durability == Durability::Strict || !marks.is_empty();
        write.durability = if strict { Durability::Strict } else { Durability::Relaxed };
        Ok(Step { write, meta, runs, removed, packed, marks, draft: self })
    }

    fn pack(&self, loaded: &Loaded, config: &PackedConfig) -> Result<Vec<Packed>, Damaged> {
        let mut packed = Vec::new();
        for name in &self.due {
            let mut packer = Packer::new(usize::MAX);
            self.repack(name, loaded, &mut packer)?;
            packed.extend(packer.finish());
        }
        let mut packer = Packer::new(config.segment_bytes_max);
        if let Some(tail) = &self.tail {
            self.repack(tail, loaded, &mut packer)?;
        }
        for (sequence, event) in &self.changes.held {
            if self.fates.of(*sequence).is_none() {
                packer.push(*sequence, event.pubkey.as_bytes(), event.json())?;
            }
        }
        packed.extend(packer.finish());
        Ok(packed)
    }

    /// Packs what is still held of a segment.
    fn repack(&self, name: &SegmentName, loaded: &Loaded, packer: &mut Packer) -> Result<(), Damaged> {
        let text = name.text();
        let lost = || Damaged { what: format!("segment {text} is missing") };
        let segment = loaded.get(&text).ok_or_else(lost)?;
        let held = segment.bodies().filter(|(sequence, _)| self.fates.of(*sequence).is_none());
        held.into_iter().try_for_each(|(sequence, body)| packer.push(sequence, &body.author, &body.json))
    }

    /// The runs after this commit.
    fn runs(&mut self, content: &Content, config: &PackedConfig, meta: &mut Meta, write: &mut Write) -> Vec<Arc<Run>> {
        let mut runs = content.runs.clone();
        let mut entries = std::mem::take(&mut self.changes.entries);
        entries.extend(std::mem::take(&mut self.changes.points));
        if is_crowded(&runs, config) {
            // It would be given up again.
            entries.retain(|entry| self.fates.of(entry.rank().sequence()) != Some(Outcome::Pruned));
        }
        let kept = |rank: &Rank| match self.fates.of(rank.sequence()) {
            None => Kept::All,
            Some(_) => Kept::Trace,
        };
        let mut made = Vec::new();
        meta.next_run += 1;
        made.extend(build::run_of(meta.next_run, entries));
        runs.extend(made.iter().map(|made| Arc::new(made.run.clone())));
        while let Some(inputs) = build::due(&runs) {
            meta.next_run += 1;
            let merged = build::merge(meta.next_run, &inputs, kept);
            replace(&mut runs, &inputs, &merged.run);
            made.push(merged);
        }
        if let Some(input) = self.forgettable(&runs, config) {
            meta.next_run += 1;
            let inputs = [input];
            let merged = build::merge(meta.next_run, &inputs, |rank| match self.fates.of(rank.sequence()) {
                Some(Outcome::Pruned) => Kept::Nothing,
                _ => kept(rank),
            });
            replace(&mut runs, &inputs, &merged.run);
            made.push(merged);
        }
        let stays = |number: u64| runs.iter().any(|run| run.number == number);
        let gone = content.runs.iter().filter(|run| !stays(run.number));
        write.deletes.extend(gone.map(|run| layout::index(layout::run_name(run.number))));
        let new = made.into_iter().filter(|made| stays(made.run.number));
        write.puts.extend(new.map(|made| (layout::index(layout::run_name(made.run.number)), made.record)));
        runs
    }

    /// A run with much memory of what was pruned, where the index has outgrown its part of the room: the floor is memory
    /// enough.
    fn forgettable(&self, runs: &[Arc<Run>], config: &PackedConfig) -> Option<Arc<Run>> {
        if !is_crowded(runs, config) {
            return None;
        }
        let is_worth_it = |run: &&Arc<Run>| {
            // A sample says enough, and each commit asks.
            let rows = || (0..run.rows()).step_by(run.rows() / ROWS_SAMPLED + 1);
            let is_pruned = |row: &usize| self.fates.of(run.rank(*row).sequence()) == Some(Outcome::Pruned);
            rows().filter(is_pruned).count() * 4 >= rows().count().max(1)
        };
        runs.iter().filter(is_worth_it).max_by_key(|run| run.bytes()).cloned()
    }

    /// The marks that change; those without windows go.
    fn marks(&mut self, content: &Content) -> Vec<Coverage> {
        let new = std::mem::take(&mut self.changes.coverage);
        let Some(floor) = self.floor_secs else { return new };
        let mut marks: BTreeMap<_, Coverage> = BTreeMap::new();
        if content.meta.floor_secs != self.floor_secs {
            let cut = content.coverage.iter().map(|(key, mark)| (key, prune::cut(mark, floor), mark));
            marks.extend(cut.filter(|(_, cut, mark)| cut != *mark).map(|(key, cut, _)| (key.clone(), cut)));
        }
        marks.extend(new.iter().map(|mark| ((mark.relay.clone(), mark.filter.clone()), prune::cut(mark, floor))));
        marks.into_values().collect()
    }
}

fn replace(runs: &mut Vec<Arc<Run>>, inputs: &[Arc<Run>], merged: &Run) {
    runs.retain(|run| inputs.iter().all(|input| input.number != run.number));
    runs.push(Arc::new(merged.clone()));
}

/// Has the index outgrown its part of the room?
fn is_crowded(runs: &[Arc<Run>], config: &PackedConfig) -> bool {
    let bytes: u64 = runs.iter().map(|run| run.bytes() as u64).sum();
    config.bytes_max.is_some_and(|bytes_max| bytes > bytes_max / 2)
}

/// What comes and is older than what was pruned is not stored at all.
fn refuse_pruned(changes: &mut Changes, floor_secs: Option<u64>) {
    let Some(floor) = floor_secs else { return };
    let stored = changes.outcomes.iter_mut().filter(|outcome| **outcome == Outcome::Stored);
    for (outcome, (sequence, event)) in stored.zip(&changes.held) {
        if event.created_at_secs() <= floor && !prune::is_spared(event.kind_number()) {
            *outcome = Outcome::Pruned;
            changes.fates.entry(*sequence).or_insert(Outcome::Pruned);
        }
    }
}

/// By how much the store is larger than it should be, with what comes. Bodies that are dead already are no reason to prune
/// more: they go when their segments are packed anew. Nor is an index that is large with the memory of what is gone.
fn excess(content: &Content, ragged: &Ragged, changes: &Changes, config: &PackedConfig) -> u64 {
    let Some(bytes_max) = config.bytes_max else { return 0 };
    let comes = changes.held.iter().filter(|(sequence, _)| !changes.fates.contains_key(sequence));
    let incoming: u64 = comes.map(|(_, event)| event.json().len() as u64 + INDEX_BYTES).sum();
    let bodies = (content.segments_bytes() + incoming).saturating_sub(ragged::dead_bytes(ragged, content));
    let over_all = (bodies + content.runs_bytes()).saturating_sub(bytes_max);
    over_all.min(bodies.saturating_sub(bytes_max / 2)).min(config.prune_bytes_max)
}

/// A commit, to be written and then applied.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) write: Write,
    pub(super) meta: Meta,
    runs: Vec<Arc<Run>>,
    removed: Vec<SegmentName>,
    packed: Vec<Packed>,
    marks: Vec<Coverage>,
    draft: Draft,
}

impl Step {
    /// It is written: so it holds.
    pub(super) fn apply(self, content: &mut Content, cache: &mut Cache) {
        let Self { meta, runs, removed, packed, marks, draft, .. } = self;
        (content.meta, content.runs, content.fates) = (meta, runs, draft.fates);
        content.ragged = draft.ragged;
        for name in removed {
            content.segments.remove(&name.first);
            content.ragged.remove(&name.first);
            cache.remove(&name.text());
        }
        for Packed { name, segment, .. } in packed {
            content.segments.insert(name.first, name);
            cache.insert(name.text(), segment);
        }
        for mark in marks {
            let key = (mark.relay.clone(), mark.filter.clone());
            match mark.windows.is_empty() {
                true => content.coverage.remove(&key),
                false => content.coverage.insert(key, mark),
            };
        }
        let contexts = draft.changes.contexts.into_iter();
        content.contexts.extend(contexts.map(|(first, last, context)| (first, (last, context))));
        content.swept_secs = draft.changes.swept_secs;
    }
}

/// Of these segments, those that are in memory; the names of the others.
pub(super) fn in_memory<'n>(names: impl Iterator<Item = &'n SegmentName>, cache: &Cache) -> (Loaded, BTreeSet<String>) {
    let (mut loaded, mut missing) = (Loaded::new(), BTreeSet::new());
    for name in names {
        let text = name.text();
        match cache.find(&text) {
            Some(segment) => drop::<Option<Segment>>(loaded.insert(text, segment.clone())),
            None => drop(missing.insert(text)),
        }
    }
    (loaded, missing)
}
