//! Runs of the index: what is known of the events of some commits, sorted, in the very bytes that are written.
//!
//! A run has a row for each event, its [`Rank`], in the order of ranks. The index by time is that order. The index by id
//! is the rows in the order of their ids. Every other index is a list of keys, each with the rows that it has: 4 bytes an
//! entry, where an [`Entry`] has 64, and in the same order. Nothing is decoded when a run is read: it is searched as it
//! is.

use std::ops::ControlFlow;

use bytes::Bytes;

use super::layout::run_name;
use super::record;
use crate::store::entry::{Entry, Index, KEY_BYTES, Key, RANK_BYTES, Range, Rank};
use crate::store::tables::Damaged;

type KeyBytes = [u8; KEY_BYTES];
type RankBytes = [u8; RANK_BYTES];

const HEAD_BYTES: usize = 12;

/// A run, to be searched.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) number: u64,
    content: Bytes,
    rows: usize,
    keys: usize,
}

impl Run {
    /// Opens what was read as run `number`.
    pub(super) fn open(number: u64, bytes: &Bytes) -> Result<Self, Damaged> {
        let name = run_name(number);
        let content = record::open(&name, bytes)?;
        Self::decode(number, content).ok_or_else(|| Damaged { what: format!("record {name}") })
    }

    fn decode(number: u64, content: Bytes) -> Option<Self> {
        let (head, _) = content.split_first_chunk::<HEAD_BYTES>()?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        let (rows, keys, postings) = (word(0), word(4), word(8));
        let bytes = HEAD_BYTES
            .checked_add(rows.checked_mul(RANK_BYTES + 4)?)?
            .checked_add(keys.checked_mul(KEY_BYTES + 4)?)?
            .checked_add(postings.checked_mul(4)?)?;
        let run = Self { number, content, rows, keys };
        // What the parts say of each other holds, as a record is written whole: its checksum stands for that.
        (bytes == run.content.len() && run.ends().last().map_or(0, number_of) == postings).then_some(run)
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// What it takes, in memory as in the backing.
    pub(super) fn bytes(&self) -> usize {
        self.content.len()
    }

    pub(super) fn ranks(&self) -> &[RankBytes] {
        self.content[HEAD_BYTES..][..self.rows * RANK_BYTES].as_chunks().0
    }

    pub(super) fn rank(&self, row: usize) -> Rank {
        Rank::from_bytes(&self.ranks()[row])
    }

    fn by_id(&self) -> &[[u8; 4]] {
        self.content[HEAD_BYTES + self.rows * RANK_BYTES..][..self.rows * 4].as_chunks().0
    }

    fn keys_at(&self) -> usize {
        HEAD_BYTES + self.rows * (RANK_BYTES + 4)
    }

    pub(super) fn keys(&self) -> &[KeyBytes] {
        self.content[self.keys_at()..][..self.keys * KEY_BYTES].as_chunks().0
    }

    fn ends(&self) -> &[[u8; 4]] {
        self.content[self.keys_at() + self.keys * KEY_BYTES..][..self.keys * 4].as_chunks().0
    }

    /// The rows of the key at `position`, ascending.
    pub(super) fn postings(&self, position: usize) -> &[[u8; 4]] {
        let all: &[[u8; 4]] = self.content[self.keys_at() + self.keys * (KEY_BYTES + 4)..].as_chunks().0;
        let start = position.checked_sub(1).map_or(0, |before| number_of(&self.ends()[before]));
        &all[start..number_of(&self.ends()[position])]
    }

    /// The positions of the keys in `range`.
    fn positions(&self, range: &Range) -> std::ops::Range<usize> {
        let keys = self.keys();
        let (first, last) = (range.first.key(), range.last.key());
        let start = keys.partition_point(|key| key < first.as_bytes());
        if first == last {
            return start..start + usize::from(keys.get(start) == Some(first.as_bytes()));
        }
        start..start + keys[start..].partition_point(|key| key <= last.as_bytes())
    }

    /// Those of the `rows` of one key whose entries are in `range`.
    fn within<'r>(&self, rows: &'r [[u8; 4]], key: &Key, range: &Range) -> &'r [[u8; 4]] {
        let ranks = self.ranks();
        let is_before = |row: &[u8; 4], bound: &Rank| ranks[number_of(row)] < *bound.as_bytes();
        let start = match range.first.key() == *key {
            true => rows.partition_point(|row| is_before(row, &range.first.rank())),
            false => 0,
        };
        let rows = &rows[start..];
        match range.last.key() == *key {
            true => &rows[..rows.partition_point(|row| ranks[number_of(row)] <= *range.last.rank().as_bytes())],
            false => rows,
        }
    }

    /// The rows of the index by time that are in `range`.
    pub(super) fn times(&self, range: &Range) -> std::ops::Range<usize> {
        let (first, last) = (range.first.rank(), range.last.rank());
        let start = self.ranks().partition_point(|rank| rank < first.as_bytes());
        start..start + self.ranks()[start..].partition_point(|rank| rank <= last.as_bytes())
    }

    /// The rows whose ids begin as the key of the index by id says, in order.
    fn ids(&self, key: &Key) -> &[[u8; 4]] {
        let half = &key.as_bytes()[1..];
        let ranks = self.ranks();
        let half_of = |row: &[u8; 4]| &ranks[number_of(row)][8..8 + half.len()];
        let by_id = self.by_id();
        let start = by_id.partition_point(|row| half_of(row) < half);
        let found = by_id[start..].iter().take_while(|row| half_of(row) == half).count();
        &by_id[start..start + found]
    }

    /// Hands over the entries in `range`, ascending.
    pub(super) fn scan(&self, range: &Range, each: &mut dyn FnMut(&Entry) -> ControlFlow<()>) -> Result<(), Damaged> {
        let first = range.first.key();
        let ranks = self.ranks();
        let mut hand = |key: &Key, row: usize| each(&Entry::new(key, &Rank::from_bytes(&ranks[row])));
        match first.index() {
            Index::Time => {
                let _ = self.times(range).try_for_each(|row| hand(&first, row));
            }
            Index::Id => {
                let is_within = |rank: &RankBytes| {
                    *range.first.rank().as_bytes() <= *rank && *rank <= *range.last.rank().as_bytes()
                };
                let rows = self.ids(&first).iter().map(number_of).filter(|row| is_within(&ranks[*row]));
                let _ = { rows }.try_for_each(|row| hand(&first, row));
            }
            _ => {
                for position in self.positions(range) {
                    let key = self.key(position)?;
                    let rows = self.within(self.postings(position), &key, range);
                    if rows.iter().try_for_each(|row| hand(&key, number_of(row))).is_break() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// How many entries `range` has.
    pub(super) fn count(&self, range: &Range) -> Result<usize, Damaged> {
        let first = range.first.key();
        match first.index() {
            Index::Time => Ok(self.times(range).len()),
            Index::Id => Ok(self.ids(&first).len()),
            _ => self.positions(range).try_fold(0, |entries, position| {
                let key = self.key(position)?;
                Ok(entries + self.within(self.postings(position), &key, range).len())
            }),
        }
    }

    fn key(&self, position: usize) -> Result<Key, Damaged> {
        let damaged = || Damaged { what: format!("record {} has a key of an unknown index", run_name(self.number)) };
        Key::from_bytes(&self.keys()[position]).ok_or_else(damaged)
    }
}

/// A number of a row, or of postings.
pub(super) fn number_of(bytes: &[u8; 4]) -> usize {
    u32::from_le_bytes(*bytes) as usize
}

/// A run that was just made, with its record.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) run: Run,
    pub(super) record: Bytes,
}

/// Writes a run: first all ranks, then key by key, ascending.
#[derive(Debug)]
pub(super) struct RunWriter {
    number: u64,
    ranks: Vec<RankBytes>,
    keys: Vec<KeyBytes>,
    ends: Vec<u32>,
    postings: Vec<u32>,
}

impl RunWriter {
    /// A run of these rows, ascending.
    pub(super) fn new(number: u64, ranks: Vec<RankBytes>) -> Self {
        debug_assert!(ranks.is_sorted());
        Self { number, ranks, keys: Vec::new(), ends: Vec::new(), postings: Vec::new() }
    }

    /// The row of an event.
    pub(super) fn row(&self, rank: &Rank) -> Option<u32> {
        self.ranks.binary_search(rank.as_bytes()).ok().map(|row| row as u32)
    }

    /// Takes the rows of the next key, ascending.
    pub(super) fn push(&mut self, key: &KeyBytes, rows: impl IntoIterator<Item = u32>) {
        let before = self.postings.len();
        self.postings.extend(rows);
        if self.postings.len() > before {
            self.keys.push(*key);
            self.ends.push(self.postings.len() as u32);
        }
    }

    pub(super) fn finish(self) -> Made {
        let Self { number, ranks, keys, ends, postings } = self;
        let mut by_id: Vec<u32> = (0..ranks.len() as u32).collect();
        by_id.sort_unstable_by_key(|row| (&ranks[*row as usize][8..40], *row));
        let bytes = HEAD_BYTES + ranks.len() * (RANK_BYTES + 4) + keys.len() * (KEY_BYTES + 4) + postings.len() * 4;
        let mut content = Vec::with_capacity(bytes + 8);
        for count in [ranks.len(), keys.len(), postings.len()] {
            content.extend_from_slice(&(count as u32).to_le_bytes());
        }
        content.extend_from_slice(ranks.as_flattened());
        by_id.iter().for_each(|row| content.extend_from_slice(&row.to_le_bytes()));
        content.extend_from_slice(keys.as_flattened());
        ends.iter().chain(&postings).for_each(|number| content.extend_from_slice(&number.to_le_bytes()));
        let (rows, keys) = (ranks.len(), keys.len());
        let record = record::seal(&run_name(number), content);
        Made { run: Run { number, content: record.slice(..bytes), rows, keys }, record }
    }
}
