//! Merging runs, a little at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use redb::ReadOnlyTable;

use super::error::StoreFault;
use super::layout::RunTables;
use super::run::{Chunk, Run, RunWriter, entry};
use crate::store::entry::{ENTRY_BYTES, Entry};
use crate::store::fates::Fates;

/// So many runs of one level become one.
pub(super) const FAN_IN: usize = 8;

/// The level of a run: runs of one level have like sizes.
pub(super) fn level(entries: u64) -> u32 {
    (entries / FAN_IN as u64).checked_ilog(FAN_IN as u64).unwrap_or(0)
}

/// Some runs on their way to become one.
pub(super) struct Merge {
    pub(super) level: u32,
    inputs: Vec<Input>,
    heads: BinaryHeap<Reverse<(Entry, usize)>>,
    writer: RunWriter,
}

/// A run being read, with a copy of its current chunk: it is read over many transactions and must hold none open.
struct Input {
    run: Arc<Run>,
    next_chunk: u32,
    chunk: Vec<[u8; ENTRY_BYTES]>,
    offset: usize,
}

impl Input {
    fn next(&mut self, chunks: &ReadOnlyTable<(u64, u32), &'static [u8]>) -> Result<Option<Entry>, StoreFault> {
        if self.offset == self.chunk.len() {
            if self.next_chunk == self.run.chunks() {
                return Ok(None);
            }
            let chunk = Chunk::read(chunks, self.run.number, self.next_chunk)?;
            self.chunk.clear();
            self.chunk.extend_from_slice(chunk.entries());
            self.next_chunk += 1;
            self.offset = 0;
        }
        let next = entry(&self.chunk[self.offset])?;
        self.offset += 1;
        Ok(Some(next))
    }
}

impl Merge {
    /// Begins to merge `runs` into a run of this number.
    pub(super) fn begin(
        chunks: &ReadOnlyTable<(u64, u32), &'static [u8]>,
        level: u32,
        runs: Vec<Arc<Run>>,
        number: u64,
    ) -> Result<Self, StoreFault> {
        let writer = RunWriter::new(number, runs.iter().map(|run| run.points).sum());
        let input = |run| Input { run, next_chunk: 0, chunk: Vec::new(), offset: 0 };
        let mut merge = Self { level, inputs: runs.into_iter().map(input).collect(), heads: BinaryHeap::new(), writer };
        for (position, input) in merge.inputs.iter_mut().enumerate() {
            merge.heads.extend(input.next(chunks)?.map(|entry| Reverse((entry, position))));
        }
        Ok(merge)
    }

    pub(super) fn reads(&self, run: &Run) -> bool {
        self.inputs.iter().any(|input| input.run.number == run.number)
    }

    /// Moves up to `entries_max` entries. Those of events that are gone are left behind, but for those by which they
    /// are remembered. True once there is nothing left to move.
    pub(super) fn advance(
        &mut self,
        chunks: &ReadOnlyTable<(u64, u32), &'static [u8]>,
        tables: &mut RunTables,
        fates: &Fates,
        entries_max: usize,
    ) -> Result<bool, StoreFault> {
        for _ in 0..entries_max {
            let Some(mut head) = self.heads.peek_mut() else { return Ok(true) };
            let Reverse((entry, position)) = *head;
            match self.inputs[position].next(chunks)? {
                Some(next) => *head = Reverse((next, position)),
                None => drop(PeekMut::pop(head)),
            }
            if entry.index().remembers_gone() || fates.of(entry.rank().sequence()).is_none() {
                self.writer.push(tables, &entry)?;
            }
        }
        self.writer.pause(tables)?;
        Ok(self.heads.is_empty())
    }

    /// Replaces the inputs by the new run, which may be empty.
    pub(super) fn finish(self, tables: &mut RunTables) -> Result<(Vec<u64>, Run), StoreFault> {
        let run = self.writer.finish(tables)?;
        let inputs: Vec<u64> = self.inputs.iter().map(|input| input.run.number).collect();
        for input in &self.inputs {
            tables.remove(input.run.number, input.run.chunks())?;
        }
        Ok((inputs, run))
    }
}
