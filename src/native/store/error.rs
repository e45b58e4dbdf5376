//! What can go wrong with a store on disk, in words for the one who can put it right.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::store::tables::Damaged;

/// Something is wrong with a store; says which and what to do.
#[derive(Debug)]
pub struct StoreError {
    /// The store's file.
    pub path: PathBuf,
    /// What is wrong.
    pub fault: StoreFault,
}

/// What can be wrong with a store.
#[derive(Debug)]
pub enum StoreFault {
    /// It is open already, here or in another process.
    Locked,
    /// The system does not let us.
    Denied(io::Error),
    /// The disk or the quota is full.
    Full(io::Error),
    /// The system failed in another way.
    Io(io::Error),
    /// An earlier write failed, so nothing can be trusted before the store is opened again.
    Failed,
    /// The file is no store.
    Foreign(String),
    /// The contents are damaged.
    Damaged(String),
    /// A later version of this program wrote the file.
    NewerFormat {
        /// The file's format version.
        found: u64,
        /// The newest that is known here.
        known: u64,
    },
    /// The runtime is shutting down.
    Stopped,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.fault {
            StoreFault::Locked => {
                write!(f, "store {path} is in use by another process: stop that one, or choose another --store")
            }
            StoreFault::Denied(error) => {
                write!(f, "store {path} cannot be read and written ({error}): check its permissions and owner")
            }
            StoreFault::Full(error) => {
                write!(f, "no space is left for store {path} ({error}): free some and start again; nothing was lost")
            }
            StoreFault::Io(error) => write!(f, "store {path} cannot be used: {error}"),
            StoreFault::Failed => {
                write!(f, "store {path} is closed because a write failed earlier: put that right and start again")
            }
            StoreFault::Foreign(detail) => {
                write!(f, "{path} is not a store of this program ({detail}): choose another --store")
            }
            StoreFault::Damaged(detail) => {
                write!(f, "store {path} is damaged ({detail}): move it away and sync again, or restore a backup")
            }
            StoreFault::NewerFormat { found, known } => {
                write!(f, "store {path} has format {found}, newer than the {known} known here: update this program")
            }
            StoreFault::Stopped => write!(f, "store {path} was not reached: the program is shutting down"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            StoreFault::Denied(error) | StoreFault::Full(error) | StoreFault::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Damaged> for StoreFault {
    fn from(damaged: Damaged) -> Self {
        Self::Damaged(damaged.what)
    }
}

impl From<io::Error> for StoreFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied(error),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full(error)
            }
            // So redb names a file that does not begin as its own do.
            io::ErrorKind::InvalidData => Self::Foreign(error.to_string()),
            _ => Self::Io(error),
        }
    }
}

impl From<redb::Error> for StoreFault {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => Self::Locked,
            redb::Error::Io(error) => error.into(),
            redb::Error::PreviousIo | redb::Error::DatabaseClosed => Self::Failed,
            other => Self::Damaged(other.to_string()),
        }
    }
}

macro_rules! from_redb {
    ($($error:ident),*) => {
        $(
            impl From<redb::$error> for StoreFault {
                fn from(error: redb::$error) -> Self {
                    redb::Error::from(error).into()
                }
            }
        )*
    };
}

from_redb!(StorageError, DatabaseError, TransactionError, TableError, CommitError);
