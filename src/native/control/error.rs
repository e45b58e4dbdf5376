//! What can go wrong with the control plane, in words for the one who can put it right.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::peer::SpecMistakes;

/// Why something was not done. Then nothing has changed.
#[derive(Debug)]
pub enum ControlError {
    /// What was said of a peer, a rule or a filter is wrong: all mistakes.
    Mistakes(SpecMistakes),
    /// There is no peer of this name.
    UnknownPeer(String),
    /// It cannot be done, for this reason.
    Refused(String),
    /// A file cannot be used.
    File(FileError),
    /// The runtime is shutting down.
    Stopped,
}

/// A file of the control plane cannot be used.
#[derive(Debug)]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub fault: FileFault,
}

/// What can be wrong with a file of the control plane.
#[derive(Debug)]
pub enum FileFault {
    /// Another process uses it.
    Locked,
    /// The system failed, or does not let us.
    Io(io::Error),
    /// It is not there, though a file is that is only written with it.
    Missing {
        /// That file.
        beside: PathBuf,
    },
    /// It is larger than any such file.
    TooLarge {
        /// The bound, in bytes.
        bytes_max: u64,
    },
    /// It would be larger than it may be, and could not be read again.
    Full {
        /// Its size, in bytes.
        bytes: u64,
        /// The bound, in bytes.
        bytes_max: u64,
    },
    /// It is not as it was written.
    Corrupt {
        /// Where, counted from one; `None` if that cannot be told.
        line: Option<usize>,
        /// What is wrong.
        detail: String,
    },
    /// A later version of this program wrote it.
    Newer {
        /// Its format.
        found: u64,
        /// The newest that is known here.
        known: u64,
    },
    /// It has a secret that others can read.
    Readable {
        /// Its permissions.
        mode: u32,
    },
    /// It has no secret key, or not the one that it should.
    Key(String),
}

impl FileError {
    pub(super) fn new(path: &Path, fault: impl Into<FileFault>) -> Self {
        Self { path: path.to_owned(), fault: fault.into() }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.fault {
            FileFault::Locked => write!(
                f,
                "{path} is in use by another process: stop that one, or tell the daemon that runs over its socket"
            ),
            FileFault::Io(error) => write!(f, "{path} cannot be read and written: {error}"),
            FileFault::Missing { beside } => write!(
                f,
                "{path} is missing, though {} is there: without it there are no peers and no rules, and nothing is \
                 protected; restore it from a backup, or move that file away, too, to begin anew (`relaysync \
                 identity import` takes a key from a file)",
                beside.display()
            ),
            FileFault::TooLarge { bytes_max } => {
                write!(f, "{path} is larger than {bytes_max} bytes, so it is not what it should be")
            }
            FileFault::Full { bytes, bytes_max } => write!(
                f,
                "{path} would have {bytes} bytes, more than the {bytes_max} that are read again: take something out \
                 first, or raise control.file_bytes_max"
            ),
            FileFault::Corrupt { line, detail } => {
                write!(f, "{path}:")?;
                if let Some(line) = line {
                    write!(f, "{line}:")?;
                }
                write!(
                    f,
                    " it is not as it was written ({detail}); it is kept as it is: restore it from a backup, or move it \
                     away to begin anew"
                )
            }
            FileFault::Newer { found, known } => {
                write!(f, "{path} has format {found}, newer than the {known} known here: update this program")
            }
            FileFault::Readable { mode } => write!(
                f,
                "{path} has a secret key, and others can read it (mode {:03o}): chmod 600 {path}; if somebody may have \
                 read it, take another key",
                mode & 0o777
            ),
            FileFault::Key(detail) => write!(f, "key file {path}: {detail}"),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            FileFault::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mistakes(mistakes) => mistakes.fmt(f),
            Self::UnknownPeer(id) => write!(f, "there is no peer {id:?}; `relaysync peer list` has all of them"),
            Self::Refused(reason) => f.write_str(reason),
            Self::File(error) => error.fmt(f),
            Self::Stopped => f.write_str("the program is shutting down"),
        }
    }
}

impl std::error::Error for ControlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Mistakes(mistakes) => Some(mistakes),
            Self::File(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for FileFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FileError> for ControlError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl From<SpecMistakes> for ControlError {
    fn from(mistakes: SpecMistakes) -> Self {
        Self::Mistakes(mistakes)
    }
}
