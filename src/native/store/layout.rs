//! The tables of the file.

use redb::{ReadOnlyTable, ReadTransaction, Table, TableDefinition, TableError, WriteTransaction};

use super::error::StoreFault;

/// The version of everything that is written here and in the blobs.
pub(super) const FORMAT: u64 = 1;

type Blobs<K> = TableDefinition<'static, K, &'static [u8]>;

/// Single numbers, by name.
pub(super) const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("relaysync numbers");
/// Runs by number: see [`Run`](super::run::Run).
pub(super) const RUNS: Blobs<u64> = TableDefinition::new("runs");
/// The entries of runs, by run and position.
pub(super) const CHUNKS: Blobs<(u64, u32)> = TableDefinition::new("chunks");
/// Runs being merged into, with the number of chunks that they have so far.
pub(super) const UNFINISHED: TableDefinition<u64, u32> = TableDefinition::new("unfinished");
/// Packed bodies, by the lowest sequence number that they may have.
pub(super) const BODIES: Blobs<u64> = TableDefinition::new("bodies");
/// Blocks of fates.
pub(super) const FATES: Blobs<u64> = TableDefinition::new("fates");
/// Coverage marks as JSON, by relay and filter.
pub(super) const COVERAGE: Blobs<&str> = TableDefinition::new("coverage");

/// Who brought events, by the first sequence number that it holds for: the last one, and the context as JSON. Stores
/// that were made before it was kept get it with the next write.
pub(super) const CONTEXTS: Blobs<u64> = TableDefinition::new("contexts");

/// The name of the format version in [`NUMBERS`].
pub(super) const NUMBER_FORMAT: &str = "format";
/// The name of the next sequence number in [`NUMBERS`].
pub(super) const NUMBER_NEXT_SEQUENCE: &str = "next_sequence";
/// The name of the next run's number in [`NUMBERS`].
pub(super) const NUMBER_NEXT_RUN: &str = "next_run";

/// The tables that are read while a store is in use, at one moment.
pub(super) struct Tables {
    pub(super) chunks: ReadOnlyTable<(u64, u32), &'static [u8]>,
    pub(super) bodies: ReadOnlyTable<u64, &'static [u8]>,
    pub(super) coverage: ReadOnlyTable<&'static str, &'static [u8]>,
    pub(super) contexts: Option<ReadOnlyTable<u64, &'static [u8]>>,
}

impl Tables {
    pub(super) fn open(transaction: &ReadTransaction) -> Result<Self, StoreFault> {
        Ok(Self {
            chunks: transaction.open_table(CHUNKS)?,
            bodies: transaction.open_table(BODIES)?,
            coverage: transaction.open_table(COVERAGE)?,
            contexts: contexts(transaction)?,
        })
    }
}

fn contexts(transaction: &ReadTransaction) -> Result<Option<ReadOnlyTable<u64, &'static [u8]>>, StoreFault> {
    match transaction.open_table(CONTEXTS) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The tables of a run, to be written.
pub(super) struct RunTables<'t> {
    pub(super) runs: Table<'t, u64, &'static [u8]>,
    pub(super) chunks: Table<'t, (u64, u32), &'static [u8]>,
    pub(super) unfinished: Table<'t, u64, u32>,
}

impl<'t> RunTables<'t> {
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Self, StoreFault> {
        Ok(Self {
            runs: transaction.open_table(RUNS)?,
            chunks: transaction.open_table(CHUNKS)?,
            unfinished: transaction.open_table(UNFINISHED)?,
        })
    }

    /// Removes a run, or what there is of one.
    pub(super) fn remove(&mut self, run: u64, chunks: u32) -> Result<(), StoreFault> {
        for position in 0..chunks {
            self.chunks.remove((run, position))?;
        }
        self.runs.remove(run)?;
        self.unfinished.remove(run)?;
        Ok(())
    }

    /// Removes the runs that were being merged into when their writer ended.
    pub(super) fn remove_unfinished(&mut self) -> Result<(), StoreFault> {
        let mut unfinished = Vec::new();
        for row in redb::ReadableTable::iter(&self.unfinished)? {
            let (run, chunks) = row?;
            unfinished.push((run.value(), chunks.value()));
        }
        unfinished.into_iter().try_for_each(|(run, chunks)| self.remove(run, chunks))
    }
}
