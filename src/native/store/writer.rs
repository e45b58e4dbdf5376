//! Opening a store, and committing to it.

use std::path::Path;
use std::sync::Arc;

use redb::{Database, ReadableDatabase, ReadableTable, TableError, WriteTransaction};

use super::NativeStoreConfig;
use super::bodies::{self, Packer};
use super::contexts;
use super::create::create;
use super::error::StoreFault;
use super::layout::{self, RunTables};
use super::merge::{FAN_IN, Merge, level};
use super::run::{Run, RunWriter};
use super::view::View;
use crate::store::entry::Entry;
use crate::store::fates::Fates;
use crate::store::tables::Changes;
use crate::store::{Batch, Coverage, Outcome, StoreConfig, rules};

/// With each commit, every level's merge moves this many times the commit's entries: more than once, so that a merge
/// has ended before the next is due.
const MERGED_PER_ENTRY: usize = 2;
/// A merge moves at least so many entries with a commit.
const MERGED_ENTRIES_MIN: usize = 1024;

/// The one who writes.
pub(super) struct Writer {
    database: Database,
    config: StoreConfig,
    merges: Vec<Merge>,
    next_run: u64,
    /// May there be beginnings of merges in the file that go on no more, since their writer ended or a commit failed?
    has_leftovers: bool,
}

impl Writer {
    /// Opens or creates the file.
    pub(super) fn open(path: &Path, config: NativeStoreConfig) -> Result<(Self, View), StoreFault> {
        if !path.try_exists()? {
            create(path, prepare)?;
        }
        let database = Database::builder().set_cache_size(config.cache_bytes_max).create(path)?;
        prepare(&database)?;
        let mut writer = Self { database, config: config.store, merges: Vec::new(), next_run: 0, has_leftovers: true };
        let view = writer.restore()?;
        Ok((writer, view))
    }

    fn restore(&mut self) -> Result<View, StoreFault> {
        let transaction = self.database.begin_read()?;
        let numbers = transaction.open_table(layout::NUMBERS)?;
        let number = |name| Ok::<u64, StoreFault>(numbers.get(name)?.map_or(0, |number| number.value()));
        self.next_run = number(layout::NUMBER_NEXT_RUN)?;
        let mut runs = Vec::new();
        for row in transaction.open_table(layout::RUNS)?.iter()? {
            let (number, bytes) = row?;
            runs.push(Arc::new(Run::from_bytes(number.value(), bytes.value())?));
        }
        let mut fates = Fates::default();
        for row in transaction.open_table(layout::FATES)?.iter()? {
            let (block, bytes) = row?;
            fates.restore(block.value(), bytes.value())?;
        }
        let next_sequence = number(layout::NUMBER_NEXT_SEQUENCE)?;
        Ok(View { tables: layout::Tables::open(&transaction)?, runs, fates, next_sequence, swept_secs: 0 })
    }

    /// Commits `batch` on top of `base`, the latest view. Gives the next one, if anything has changed.
    pub(super) fn commit(&mut self, base: &View, batch: Batch) -> Result<(Vec<Outcome>, Option<View>), StoreFault> {
        let mut changes = rules::apply(base, batch, &self.config)?;
        let outcomes = std::mem::take(&mut changes.outcomes);
        if changes.is_empty() {
            return Ok((outcomes, None));
        }
        let next_run = self.next_run;
        match self.write(base, changes) {
            Ok(view) => Ok((outcomes, Some(view))),
            Err(fault) => {
                self.merges.clear();
                self.next_run = next_run;
                self.has_leftovers = true;
                Err(fault)
            }
        }
    }

    fn write(&mut self, base: &View, changes: Changes) -> Result<View, StoreFault> {
        let transaction = self.database.begin_write()?;
        write_bodies(&transaction, base, &changes)?;
        write_coverage(&transaction, &changes.coverage)?;
        contexts::write(&transaction, &changes.contexts)?;
        let mut fates = base.fates.clone();
        let mut fates_table = transaction.open_table(layout::FATES)?;
        for block in fates.extend(&changes.fates) {
            fates_table.insert(block, fates.block(block).unwrap_or_default())?;
        }
        drop(fates_table);
        let (next_sequence, swept_secs) = (changes.next_sequence, changes.swept_secs);
        let runs = self.write_runs(&transaction, base, changes, &fates)?;
        let mut numbers = transaction.open_table(layout::NUMBERS)?;
        numbers.insert(layout::NUMBER_NEXT_SEQUENCE, next_sequence)?;
        numbers.insert(layout::NUMBER_NEXT_RUN, self.next_run)?;
        drop(numbers);
        transaction.commit()?;
        let tables = layout::Tables::open(&self.database.begin_read()?)?;
        Ok(View { tables, runs, fates, next_sequence, swept_secs })
    }

    fn write_runs(
        &mut self,
        transaction: &WriteTransaction,
        base: &View,
        changes: Changes,
        fates: &Fates,
    ) -> Result<Vec<Arc<Run>>, StoreFault> {
        let mut tables = RunTables::open(transaction)?;
        if std::mem::take(&mut self.has_leftovers) {
            tables.remove_unfinished()?;
        }
        let mut runs = base.runs.clone();
        let points = changes.points.len() as u64;
        let mut entries = changes.entries;
        entries.extend(changes.points);
        if !entries.is_empty() {
            runs.push(Arc::new(self.write_run(&mut tables, &mut entries, points)?));
        }
        self.begin_merges(base)?;
        let entries_max = (entries.len() * MERGED_PER_ENTRY).max(MERGED_ENTRIES_MIN);
        for mut merge in std::mem::take(&mut self.merges) {
            if !merge.advance(&base.tables.chunks, &mut tables, fates, entries_max)? {
                self.merges.push(merge);
                continue;
            }
            let (inputs, run) = merge.finish(&mut tables)?;
            runs.retain(|run| !inputs.contains(&run.number));
            runs.push(Arc::new(run));
        }
        Ok(runs)
    }

    fn write_run(&mut self, tables: &mut RunTables, entries: &mut Vec<Entry>, points: u64) -> Result<Run, StoreFault> {
        entries.sort_unstable();
        // A tag that an event has twice.
        entries.dedup();
        let mut writer = RunWriter::new(self.take_run_number(), points);
        for entry in entries.iter() {
            writer.push(tables, entry)?;
        }
        writer.finish(tables)
    }

    /// Begins a merge on every level that has enough runs for one, and none yet.
    fn begin_merges(&mut self, base: &View) -> Result<(), StoreFault> {
        let idle = |run: &&Arc<Run>| !self.merges.iter().any(|merge| merge.reads(run));
        let mut levels: Vec<Vec<Arc<Run>>> = Vec::new();
        for run in base.runs.iter().filter(idle) {
            let level = level(run.entries) as usize;
            levels.resize_with(levels.len().max(level + 1), Vec::new);
            levels[level].push(run.clone());
        }
        for (level, runs) in (0..).zip(levels) {
            if runs.len() >= FAN_IN && !self.merges.iter().any(|merge| merge.level == level) {
                let number = self.take_run_number();
                self.merges.push(Merge::begin(&base.tables.chunks, level, runs, number)?);
            }
        }
        Ok(())
    }

    fn take_run_number(&mut self) -> u64 {
        self.next_run += 1;
        self.next_run
    }
}

/// Sees that the database is a store, which a new one becomes.
fn prepare(database: &Database) -> Result<(), StoreFault> {
    if !has_format(database)? {
        let transaction = database.begin_write()?;
        create_tables(&transaction)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Is the file a store of ours? False if it is new; an error if it is another program's or has a later format.
fn has_format(database: &Database) -> Result<bool, StoreFault> {
    let transaction = database.begin_read()?;
    let numbers = match transaction.open_table(layout::NUMBERS) {
        Ok(numbers) => numbers,
        Err(TableError::TableDoesNotExist(_)) if transaction.list_tables()?.next().is_none() => return Ok(false),
        Err(TableError::TableDoesNotExist(_)) => return Err(StoreFault::Foreign("its tables are others".into())),
        Err(error) => return Err(error.into()),
    };
    match numbers.get(layout::NUMBER_FORMAT)?.map(|number| number.value()) {
        Some(found) if found > layout::FORMAT => Err(StoreFault::NewerFormat { found, known: layout::FORMAT }),
        Some(_) => Ok(true),
        None => Err(StoreFault::Damaged("it has no format version".into())),
    }
}

fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreFault> {
    transaction.open_table(layout::NUMBERS)?.insert(layout::NUMBER_FORMAT, layout::FORMAT)?;
    transaction.open_table(layout::BODIES)?;
    transaction.open_table(layout::FATES)?;
    transaction.open_table(layout::COVERAGE)?;
    transaction.open_table(layout::CONTEXTS)?;
    RunTables::open(transaction)?;
    Ok(())
}

fn write_bodies(transaction: &WriteTransaction, base: &View, changes: &Changes) -> Result<(), StoreFault> {
    let mut table = transaction.open_table(layout::BODIES)?;
    bodies::remove(
        &mut table,
        &base.tables.bodies,
        changes.fates.keys().copied().take_while(|sequence| *sequence < base.next_sequence),
    )?;
    let mut packer = Packer::default();
    for (sequence, event) in &changes.held {
        if !changes.fates.contains_key(sequence) {
            packer.push(&mut table, *sequence, event.pubkey.as_bytes(), event.json())?;
        }
    }
    packer.flush(&mut table)
}

fn write_coverage(transaction: &WriteTransaction, coverage: &[Coverage]) -> Result<(), StoreFault> {
    let mut table = transaction.open_table(layout::COVERAGE)?;
    for mark in coverage {
        let key = format!("{} {}", mark.relay, mark.filter.0);
        if mark.windows.is_empty() {
            table.remove(key.as_str())?;
            continue;
        }
        let json = serde_json::to_vec(mark).expect("a mark has only strings and numbers");
        table.insert(key.as_str(), json.as_slice())?;
    }
    Ok(())
}
