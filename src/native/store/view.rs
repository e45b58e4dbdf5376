//! The state of a store after one commit, for all who read.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::error::StoreFault;
use super::layout;
use super::run::{CHUNK_ENTRIES, Chunk, Run, entry};
use super::{bodies, contexts};
use crate::store::entry::{Entry, Range, Sequence};
use crate::store::fates::Fates;
use crate::store::tables::{Body, Tables};
use crate::store::{Outcome, RequestContext, Snapshot};

/// What one commit left. It stays as it is, however long it is looked at.
pub(super) struct View {
    pub(super) tables: layout::Tables,
    pub(super) runs: Vec<Arc<Run>>,
    pub(super) fates: Fates,
    pub(super) next_sequence: Sequence,
    pub(super) swept_secs: u64,
}

impl View {
    pub(super) fn load(&self) -> Result<Snapshot, StoreFault> {
        let mut coverage = Vec::new();
        for row in redb::ReadableTable::iter(&self.tables.coverage)? {
            let (key, json) = row?;
            let mark = serde_json::from_slice(json.value());
            coverage.push(mark.map_err(|error| StoreFault::Damaged(format!("coverage of {}: {error}", key.value())))?);
        }
        Ok(Snapshot { coverage })
    }

    fn scan_run(
        &self,
        run: &Run,
        range: &Range,
        each: &mut dyn FnMut(&Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreFault> {
        let first_chunk = run.chunk_of(&range.first);
        for position in first_chunk..run.chunks() {
            if position > first_chunk && run.begins_behind(position, &range.last) {
                break;
            }
            let chunk = Chunk::read(&self.tables.chunks, run.number, position)?;
            let entries = chunk.entries();
            let begin = entries.partition_point(|bytes| bytes < range.first.as_bytes());
            for bytes in &entries[begin..] {
                if bytes > range.last.as_bytes() || each(&entry(bytes)?).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// How many entries of `run` come before `bound`.
    fn position(&self, run: &Run, bound: &Entry) -> Result<usize, StoreFault> {
        let position = run.chunk_of(bound);
        let chunk = Chunk::read(&self.tables.chunks, run.number, position)?;
        let offset = chunk.entries().partition_point(|bytes| bytes < bound.as_bytes());
        Ok(position as usize * CHUNK_ENTRIES + offset)
    }
}

impl Tables for View {
    type Error = StoreFault;

    fn scan(&self, range: &Range, each: &mut dyn FnMut(&Entry) -> ControlFlow<()>) -> Result<(), StoreFault> {
        self.runs.iter().filter(|run| run.may_have(range)).try_for_each(|run| self.scan_run(run, range, each))
    }

    fn estimate(&self, range: &Range) -> Result<usize, StoreFault> {
        let mut entries = 0;
        for run in self.runs.iter().filter(|run| run.may_have(range)) {
            entries += self.position(run, &range.last)?.saturating_sub(self.position(run, &range.first)?);
        }
        Ok(entries)
    }

    fn fate(&self, sequence: Sequence) -> Option<Outcome> {
        self.fates.of(sequence)
    }

    fn body(&self, sequence: Sequence) -> Result<Option<Body>, StoreFault> {
        bodies::find(&self.tables.bodies, sequence)
    }

    fn context(&self, sequence: Sequence) -> Result<Option<RequestContext>, StoreFault> {
        contexts::find(&self.tables, sequence)
    }

    fn next_sequence(&self) -> Sequence {
        self.next_sequence
    }

    fn swept_secs(&self) -> u64 {
        self.swept_secs
    }
}
