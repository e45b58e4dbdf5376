//! What can go wrong with a packed store.

use std::fmt;
use std::sync::Arc;

use super::backing::BackingError;
use crate::store::tables::Damaged;

/// Something is wrong with a store; says which and what to do.
#[derive(Debug, Clone)]
pub struct PackedError {
    /// What the store's [`Backing`](super::Backing) is called.
    pub name: Arc<str>,
    /// What is wrong.
    pub fault: PackedFault,
}

/// What can be wrong with a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackedFault {
    /// The quota or the disk is full. Nothing was written; the same batch may be committed again once there is space.
    Quota(String),
    /// The store was opened elsewhere since. This one writes nothing more.
    Deposed,
    /// It cannot be reached, though it was tried again. What was to be committed may or may not be written; to commit it
    /// again does no harm.
    Lost(String),
    /// The contents are damaged.
    Damaged(String),
    /// The database is another program's.
    Foreign(String),
    /// A later version of this program has written it.
    NewerFormat {
        /// The format that was found.
        found: u32,
        /// The newest that is known here.
        known: u32,
    },
    /// Anything else.
    Failed(String),
}

impl PackedFault {
    /// May the same succeed later, without anybody opening the store again?
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Quota(_) | Self::Lost(_) | Self::Failed(_))
    }
}

impl fmt::Display for PackedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store {}: {}", self.name, self.fault)
    }
}

impl fmt::Display for PackedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota(detail) => {
                write!(f, "no space is left ({detail}): free some, or open it with a smaller size; nothing was lost")
            }
            Self::Deposed => f.write_str("it was opened elsewhere since, and is used from there"),
            Self::Lost(detail) => write!(f, "the connection to the database is lost ({detail})"),
            Self::Damaged(detail) => write!(f, "it is damaged ({detail}): delete it and sync again"),
            Self::Foreign(detail) => write!(f, "the database is not a store of ours ({detail}): choose another name"),
            Self::NewerFormat { found, known } => {
                write!(f, "it has format {found}, newer than the {known} known here: load the latest version")
            }
            Self::Failed(detail) => write!(f, "it cannot be used ({detail})"),
        }
    }
}

impl std::error::Error for PackedError {}

impl From<Damaged> for PackedFault {
    fn from(damaged: Damaged) -> Self {
        Self::Damaged(damaged.what)
    }
}

impl From<BackingError> for PackedFault {
    fn from(error: BackingError) -> Self {
        match error {
            BackingError::Quota(detail) => Self::Quota(detail),
            BackingError::Deposed => Self::Deposed,
            BackingError::Lost(detail) => Self::Lost(detail),
            BackingError::NewerFormat => {
                Self::NewerFormat { found: super::layout::FORMAT + 1, known: super::layout::FORMAT }
            }
            BackingError::Failed(detail) => Self::Failed(detail),
        }
    }
}
