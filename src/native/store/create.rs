//! Making a store's file: whole, or not at all.
//!
//! The database writes to its file several times before it is one. A process that is killed meanwhile would leave a
//! file that is no store, in the place where the next process looks for one. So a file of another name is prepared,
//! and gets its own name when it is whole.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use redb::Database;

use super::error::StoreFault;

/// What is appended to a store's name while it is being made.
const UNFINISHED: &str = ".relaysync-unfinished";

/// Makes a store at `path`, where there is none; what is in it at first, `prepare` decides. Another process may do the
/// same at the same time: then one of the two stores is used.
pub(in crate::native) fn create(
    path: &Path,
    prepare: impl FnOnce(&Database) -> Result<(), StoreFault>,
) -> Result<(), StoreFault> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    let database = match database(&unfinished) {
        // It is in nobody's use, or else it would be locked: its maker was killed.
        Err(StoreFault::Foreign(_)) => {
            remove(&unfinished)?;
            database(&unfinished)?
        }
        result => result?,
    };
    prepare(&database)?;
    drop(database);
    publish(&unfinished, path)?;
    remove(&unfinished)
}

/// A database that nobody else on this machine can read, whatever others are allowed by default: what it holds may be
/// protected.
fn database(path: &Path) -> Result<Database, StoreFault> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path)?);
    Ok(Database::create(path)?)
}

/// Gives the finished file its name, never in place of another.
fn publish(unfinished: &Path, path: &Path) -> Result<(), StoreFault> {
    match fs::hard_link(unfinished, path) {
        Ok(()) => Ok(()),
        // Another process was faster.
        Err(_) if path.exists() => Ok(()),
        // Not every file system has links.
        Err(_) => Ok(fs::rename(unfinished, path)?),
    }
}

fn remove(file: &Path) -> Result<(), StoreFault> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
