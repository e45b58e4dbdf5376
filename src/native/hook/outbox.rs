//! What is still to be delivered, on disk: written before the events are committed, removed after delivery.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use redb::{Database, Durability, ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction};

use super::config::HookConfig;
use crate::native::store::{StoreError, StoreFault, create};
use crate::protocol::Address;

/// Events to hand on, by repository and id.
const IDS: TableDefinition<(&str, &[u8; 32]), ()> = TableDefinition::new("relaysync hook ids");
/// Repositories to hand on alone, as their events were too many.
const UNLISTED: TableDefinition<&str, ()> = TableDefinition::new("relaysync hook unlisted");
/// Repositories with a new state, for which others that follow it were not looked up yet.
const STATES: TableDefinition<&str, ()> = TableDefinition::new("relaysync hook states");

/// What is to be done for one repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct News {
    /// Events to hand on.
    pub(super) ids: BTreeSet<[u8; 32]>,
    /// There were more than are listed.
    pub(super) unlisted: bool,
    /// It has a new state, which others may follow.
    pub(super) state: bool,
}

/// What is to be written or removed together.
pub(super) type Entries = BTreeMap<Address, News>;

/// The file. Its methods block.
pub(super) struct Outbox {
    path: PathBuf,
    /// `None` once it is closed.
    database: Option<Database>,
}

impl Outbox {
    /// Opens or makes the file, and reads what an earlier process has left.
    pub(super) fn open(path: &Path, config: &HookConfig) -> Result<(Self, Entries), StoreError> {
        let open = || {
            if !path.try_exists()? {
                create(path, prepare)?;
            }
            let database = Database::builder().set_cache_size(config.cache_bytes_max).create(path)?;
            prepare(&database)?;
            let entries = read(&database)?;
            Ok((database, entries))
        };
        let (database, entries) = open().map_err(|fault| StoreError { path: path.to_owned(), fault })?;
        Ok((Self { path: path.to_owned(), database: Some(database) }, entries))
    }

    /// Leaves the file to the next one who opens it. Nothing is written any more.
    pub(super) fn close(&mut self) {
        self.database = None;
    }

    /// Writes `entries`; they are durable when this returns.
    pub(super) fn add(&self, entries: &Entries) -> Result<(), StoreError> {
        self.write(Durability::Immediate, |tables| {
            for (address, news) in entries {
                let address = address.to_string();
                for id in &news.ids {
                    tables.ids.insert((address.as_str(), id), ())?;
                }
                if news.unlisted {
                    tables.unlisted.insert(address.as_str(), ())?;
                }
                if news.state {
                    tables.states.insert(address.as_str(), ())?;
                }
            }
            Ok(())
        })
    }

    /// Removes `entries`. After a crash some may be there again: what was delivered is delivered once more then.
    pub(super) fn remove(&self, entries: &Entries) -> Result<(), StoreError> {
        self.write(Durability::None, |tables| {
            for (address, news) in entries {
                let address = address.to_string();
                for id in &news.ids {
                    tables.ids.remove((address.as_str(), id))?;
                }
                if news.unlisted {
                    tables.unlisted.remove(address.as_str())?;
                }
                if news.state {
                    tables.states.remove(address.as_str())?;
                }
            }
            Ok(())
        })
    }

    /// Makes removals durable.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        self.write(Durability::Immediate, |_| Ok(()))
    }

    fn write(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut Tables<'_>) -> Result<(), StoreFault>,
    ) -> Result<(), StoreError> {
        let write = || {
            let mut transaction = self.database.as_ref().ok_or(StoreFault::Stopped)?.begin_write()?;
            transaction.set_durability(durability).map_err(|error| StoreFault::Damaged(error.to_string()))?;
            change(&mut Tables::open(&transaction)?)?;
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|fault| StoreError { path: self.path.clone(), fault })
    }
}

struct Tables<'t> {
    ids: Table<'t, (&'static str, &'static [u8; 32]), ()>,
    unlisted: Table<'t, &'static str, ()>,
    states: Table<'t, &'static str, ()>,
}

impl<'t> Tables<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Self, StoreFault> {
        Ok(Self {
            ids: transaction.open_table(IDS)?,
            unlisted: transaction.open_table(UNLISTED)?,
            states: transaction.open_table(STATES)?,
        })
    }
}

/// Makes the tables that are missing.
fn prepare(database: &Database) -> Result<(), StoreFault> {
    let transaction = database.begin_write()?;
    Tables::open(&transaction)?;
    transaction.commit()?;
    Ok(())
}

fn read(database: &Database) -> Result<Entries, StoreFault> {
    let transaction = database.begin_read()?;
    let mut entries = Entries::default();
    for row in transaction.open_table(IDS)?.iter()? {
        let (key, _) = row?;
        let (address, id) = key.value();
        entries.entry(address_of(address)?).or_default().ids.insert(*id);
    }
    for row in transaction.open_table(UNLISTED)?.iter()? {
        entries.entry(address_of(row?.0.value())?).or_default().unlisted = true;
    }
    for row in transaction.open_table(STATES)?.iter()? {
        entries.entry(address_of(row?.0.value())?).or_default().state = true;
    }
    Ok(entries)
}

fn address_of(text: &str) -> Result<Address, StoreFault> {
    Address::parse(text).map_err(|error| StoreFault::Damaged(error.to_string()))
}
