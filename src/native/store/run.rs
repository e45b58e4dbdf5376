//! Sorted runs of index entries, cut into chunks.

use redb::{AccessGuard, ReadOnlyTable};

use super::error::StoreFault;
use super::key_filter::KeyFilter;
use super::layout::RunTables;
use crate::store::entry::{ENTRY_BYTES, Entry, Range};

/// A chunk with its key fits the eight pages that the database would give it anyway.
pub(super) const CHUNK_ENTRIES: usize = 510;

/// What is kept in memory of a run: the first entry of each chunk, and a filter over the keys of its points.
pub(super) struct Run {
    pub(super) number: u64,
    pub(super) entries: u64,
    pub(super) points: u64,
    fences: Vec<Entry>,
    last: Entry,
    filter: KeyFilter,
}

impl Run {
    pub(super) fn chunks(&self) -> u32 {
        self.fences.len() as u32
    }

    /// May the run have something in `range`?
    pub(super) fn may_have(&self, range: &Range) -> bool {
        let apart = range.first > self.last || self.fences.first().is_none_or(|first| range.last < *first);
        if apart {
            return false;
        }
        match range.key() {
            Some(key) if key.index().is_point() => self.filter.may_contain(&key),
            _ => true,
        }
    }

    /// The chunk in which `entry` is, if the run has it.
    pub(super) fn chunk_of(&self, entry: &Entry) -> u32 {
        (self.fences.partition_point(|first| first <= entry) as u32).saturating_sub(1)
    }

    /// Does the chunk at `position` begin behind `entry`, or is there none?
    pub(super) fn begins_behind(&self, position: u32, entry: &Entry) -> bool {
        self.fences.get(position as usize).is_none_or(|first| first > entry)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(20 + (self.fences.len() + 1) * ENTRY_BYTES);
        bytes.extend_from_slice(&self.entries.to_le_bytes());
        bytes.extend_from_slice(&self.points.to_le_bytes());
        bytes.extend_from_slice(&self.chunks().to_le_bytes());
        self.fences.iter().chain([&self.last]).for_each(|entry| bytes.extend_from_slice(entry.as_bytes()));
        bytes.extend(self.filter.bytes());
        bytes
    }

    /// A run that was written before.
    pub(super) fn from_bytes(number: u64, bytes: &[u8]) -> Result<Self, StoreFault> {
        Self::decode(number, bytes).ok_or_else(|| StoreFault::Damaged(format!("run {number}")))
    }

    fn decode(number: u64, bytes: &[u8]) -> Option<Self> {
        let (entries, rest) = bytes.split_first_chunk::<8>()?;
        let (points, rest) = rest.split_first_chunk::<8>()?;
        let (chunks, rest) = rest.split_first_chunk::<4>()?;
        let fences_bytes = (u32::from_le_bytes(*chunks) as usize).checked_add(1)?.checked_mul(ENTRY_BYTES)?;
        let (fences, filter) = rest.split_at_checked(fences_bytes)?;
        let mut fences = fences.as_chunks().0.iter().map(Entry::from_bytes).collect::<Option<Vec<Entry>>>()?;
        Some(Self {
            number,
            entries: u64::from_le_bytes(*entries),
            points: u64::from_le_bytes(*points),
            last: fences.pop()?,
            fences,
            filter: KeyFilter::from_bytes(filter)?,
        })
    }
}

/// A chunk, to be read.
pub(super) struct Chunk(AccessGuard<'static, &'static [u8]>);

impl Chunk {
    pub(super) fn read(
        table: &ReadOnlyTable<(u64, u32), &'static [u8]>,
        run: u64,
        position: u32,
    ) -> Result<Self, StoreFault> {
        let lost = || StoreFault::Damaged(format!("chunk {position} of run {run} is missing"));
        table.get((run, position))?.map(Self).ok_or_else(lost)
    }

    pub(super) fn entries(&self) -> &[[u8; ENTRY_BYTES]] {
        self.0.value().as_chunks().0
    }
}

/// An entry that was read.
pub(super) fn entry(bytes: &[u8; ENTRY_BYTES]) -> Result<Entry, StoreFault> {
    Entry::from_bytes(bytes).ok_or_else(|| StoreFault::Damaged("an index entry of an unknown index".into()))
}

/// Writes a run, entry by entry, ascending.
pub(super) struct RunWriter {
    run: Run,
    chunk: Vec<u8>,
}

impl RunWriter {
    pub(super) fn new(number: u64, points_max: u64) -> Self {
        let last = Range::expired(0, 0).first;
        let filter = KeyFilter::new(points_max as usize);
        let run = Run { number, entries: 0, points: 0, fences: Vec::new(), last, filter };
        Self { run, chunk: Vec::with_capacity(CHUNK_ENTRIES * ENTRY_BYTES) }
    }

    pub(super) fn push(&mut self, tables: &mut RunTables, entry: &Entry) -> Result<(), StoreFault> {
        if self.chunk.is_empty() {
            self.run.fences.push(*entry);
        }
        if entry.index().is_point() {
            self.run.points += 1;
            self.run.filter.insert(&entry.key());
        }
        self.run.entries += 1;
        self.run.last = *entry;
        self.chunk.extend_from_slice(entry.as_bytes());
        if self.chunk.len() == CHUNK_ENTRIES * ENTRY_BYTES {
            self.flush(tables)?;
        }
        Ok(())
    }

    fn flush(&mut self, tables: &mut RunTables) -> Result<(), StoreFault> {
        if !self.chunk.is_empty() {
            let position = self.run.chunks() - 1;
            tables.chunks.insert((self.run.number, position), self.chunk.as_slice())?;
            self.chunk.clear();
        }
        Ok(())
    }

    /// Notes how far the run has come, for whoever finds it unfinished.
    pub(super) fn pause(&self, tables: &mut RunTables) -> Result<(), StoreFault> {
        tables.unfinished.insert(self.run.number, self.run.chunks())?;
        Ok(())
    }

    pub(super) fn finish(mut self, tables: &mut RunTables) -> Result<Run, StoreFault> {
        self.flush(tables)?;
        tables.unfinished.remove(self.run.number)?;
        tables.runs.insert(self.run.number, self.run.to_bytes().as_slice())?;
        Ok(self.run)
    }
}
