//! Opening the store that the operator names.

use std::path::{Path, PathBuf};

use super::Failure;
use crate::native::store::{NativeStore, NativeStoreConfig};

/// The store that the program uses.
pub type ProgramStore = NativeStore;

/// Opens the store at `path`, and makes it if there is none.
///
/// # Errors
/// It cannot be opened or made, or another process has it.
pub async fn open(path: &Path) -> Result<ProgramStore, Failure> {
    let path: PathBuf = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || NativeStore::open(path, NativeStoreConfig::default())).await;
    opened.map_err(Failure::new)?.map_err(Failure::new)
}

/// Opens the store at `path`, for commands that only read: a store that is not there is a mistake of the caller.
///
/// # Errors
/// There is none, or it cannot be opened.
pub async fn open_existing(path: &Path) -> Result<ProgramStore, Failure> {
    match NativeStore::file_at(path).try_exists() {
        Ok(true) => open(path).await,
        Ok(false) => Err(Failure::new(format!("there is no store at {}", path.display()))),
        Err(error) => Err(Failure::new(format!("store {} cannot be read: {error}", path.display()))),
    }
}
