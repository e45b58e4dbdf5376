//! What a [`PackedStore`](super::PackedStore) is kept in: named records, read and written without a notion of events.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::runtime::{MaybeSend, MaybeSync};

/// The record that holds the epoch: see [`Write::epoch`].
pub const EPOCH: &str = "epoch";

/// The two kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shelf {
    /// All of them are read when the store is opened.
    Index,
    /// Read one by one, when they are needed: only their names are read when the store is opened.
    Segments,
}

/// The name of a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Where it is.
    pub shelf: Shelf,
    /// Its name there.
    pub name: String,
}

/// How sure a write must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It outlives the process. After a failure of the machine's power it may be missing, with all writes after it.
    #[default]
    Relaxed,
    /// It outlives a failure of the machine's power, with all writes before it.
    Strict,
}

/// What is to be written: all of it or nothing.
#[derive(Debug, Clone, Default)]
pub struct Write {
    /// Records to put, in place of those of the same names.
    pub puts: Vec<(Name, Bytes)>,
    /// Records to remove. A record that is put as well is there afterwards.
    pub deletes: Vec<Name>,
    /// The write takes place only if the record [`EPOCH`] holds this number, 0 where it is missing. Whoever opens a store
    /// raises it, so that nobody who had it open before can write to it ever again.
    pub epoch: u64,
    /// How sure it must be.
    pub durability: Durability,
}

/// All that is read when a store is opened, of one moment.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// The records of [`Shelf::Index`].
    pub index: Vec<(String, Bytes)>,
    /// The names of the records of [`Shelf::Segments`].
    pub segments: Vec<String>,
}

/// Why a backing did not do what it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackingError {
    /// The quota or the disk is full. Nothing was written.
    Quota(String),
    /// Another epoch has begun. Nothing was written.
    Deposed,
    /// The connection is lost. It may or may not have been written.
    Lost(String),
    /// A later version of this program has made the database.
    NewerFormat,
    /// Anything else. It may or may not have been written.
    Failed(String),
}

impl fmt::Display for BackingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota(detail) => write!(f, "no space is left ({detail})"),
            Self::Deposed => f.write_str("it was opened elsewhere since"),
            Self::Lost(detail) => write!(f, "the connection to it is lost ({detail})"),
            Self::NewerFormat => f.write_str("a later version has made it"),
            Self::Failed(detail) => f.write_str(detail),
        }
    }
}

impl std::error::Error for BackingError {}

/// Named records that outlive the store. A write whose future is dropped takes place as a whole or not at all.
pub trait Backing: MaybeSend + MaybeSync + 'static {
    /// What it is called in messages.
    fn name(&self) -> &str;

    /// Reads all that is needed to open a store.
    ///
    /// # Errors
    /// It cannot be read.
    fn load(&self) -> impl Future<Output = Result<Contents, BackingError>> + MaybeSend;

    /// Reads segments, in the order of `names`; `None` for those that do not exist.
    ///
    /// # Errors
    /// They cannot be read.
    fn read(&self, names: Vec<String>) -> impl Future<Output = Result<Vec<Option<Bytes>>, BackingError>> + MaybeSend;

    /// Writes all of `write` or nothing.
    ///
    /// # Errors
    /// See [`BackingError`].
    fn write(&self, write: Write) -> impl Future<Output = Result<(), BackingError>> + MaybeSend;
}

/// The number in the record [`EPOCH`]; 0 if it is missing or is no number.
pub fn epoch_of(record: Option<&[u8]>) -> u64 {
    record.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Records in memory. Clones share them, so that a store can be opened again.
#[derive(Debug, Clone, Default)]
pub struct MemoryBacking {
    records: Arc<Mutex<BTreeMap<Name, Bytes>>>,
}

impl MemoryBacking {
    /// Changes the records behind the back of the store: for tests of what becomes of damage.
    pub fn alter<R>(&self, alter: impl FnOnce(&mut BTreeMap<Name, Bytes>) -> R) -> R {
        alter(&mut self.records.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Backing for MemoryBacking {
    fn name(&self) -> &str {
        "in memory"
    }

    async fn load(&self) -> Result<Contents, BackingError> {
        Ok(self.alter(|records| {
            let mut contents = Contents::default();
            for (key, bytes) in &*records {
                match key.shelf {
                    Shelf::Index => contents.index.push((key.name.clone(), bytes.clone())),
                    Shelf::Segments => contents.segments.push(key.name.clone()),
                }
            }
            contents
        }))
    }

    async fn read(&self, names: Vec<String>) -> Result<Vec<Option<Bytes>>, BackingError> {
        let keys = names.into_iter().map(|name| Name { shelf: Shelf::Segments, name });
        Ok(self.alter(|records| keys.map(|key| records.get(&key).cloned()).collect()))
    }

    async fn write(&self, write: Write) -> Result<(), BackingError> {
        self.alter(|records| {
            let epoch = records.get(&Name { shelf: Shelf::Index, name: EPOCH.to_owned() });
            if epoch_of(epoch.map(|bytes| &bytes[..])) != write.epoch {
                return Err(BackingError::Deposed);
            }
            for key in &write.deletes {
                records.remove(key);
            }
            records.extend(write.puts);
            Ok(())
        })
    }
}
