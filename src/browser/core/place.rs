//! Where a core keeps its events: in the browser's database, or in memory.

use bytes::Bytes;

use crate::browser::idb::IndexedDb;
use crate::store::packed::backing::{Contents, Write};
use crate::store::packed::{Backing, BackingError, MemoryBacking, PackedStore};

/// What a core's store is.
pub(super) type CoreStore = PackedStore<Place>;

/// One of two backings, known when the core is opened: a store over each would double what pages download.
#[derive(Debug)]
pub(super) enum Place {
    /// The browser's database.
    Database(IndexedDb),
    /// Memory.
    Memory(MemoryBacking),
}

impl Place {
    /// Lets go of the database.
    pub(super) fn close(&self) {
        match self {
            Self::Database(database) => database.close(),
            Self::Memory(_) => {}
        }
    }
}

impl Backing for Place {
    fn name(&self) -> &str {
        match self {
            Self::Database(database) => database.name(),
            Self::Memory(memory) => memory.name(),
        }
    }

    async fn load(&self) -> Result<Contents, BackingError> {
        match self {
            Self::Database(database) => database.load().await,
            Self::Memory(memory) => memory.load().await,
        }
    }

    async fn read(&self, names: Vec<String>) -> Result<Vec<Option<Bytes>>, BackingError> {
        match self {
            Self::Database(database) => database.read(names).await,
            Self::Memory(memory) => memory.read(names).await,
        }
    }

    async fn write(&self, write: Write) -> Result<(), BackingError> {
        match self {
            Self::Database(database) => database.write(write).await,
            Self::Memory(memory) => memory.write(write).await,
        }
    }
}
