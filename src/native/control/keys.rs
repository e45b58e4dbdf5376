//! The files with secret keys: the one that is configured, and the one that is kept here.
//!
//! The control state says which key is kept here. A new one is written beside the old one first, then the state names
//! it, then it takes the old one's place: whenever the process is killed, the key that the state names is there.

use std::path::{Path, PathBuf};

use super::Secret;
use super::durable;
use super::error::{FileError, FileFault};
use crate::protocol::PublicKey;

/// The largest key file, in bytes: a key has 64, the rest is room for white space.
const FILE_BYTES_MAX: u64 = 4096;
/// What is behind the store's name, for the key that is kept here.
const KEPT: &str = ".identity-key";
/// And for the one that is to replace it.
const NEXT: &str = ".identity-key.next";

/// Who may read a key file beside its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// Nobody: so it was made.
    Nobody,
    /// Its group: so services are given their secrets.
    Group,
}

impl Readers {
    #[cfg(unix)]
    const fn forbidden_mode(self) -> u32 {
        match self {
            Self::Nobody => 0o077,
            Self::Group => 0o037,
        }
    }
}

/// Reads a secret key, nsec or hexadecimal, from a file. No error repeats what the file holds.
///
/// # Errors
/// There is no such file, it holds something else, or others can read it.
pub(super) fn read(path: &Path, readers: Readers) -> Result<Secret, FileError> {
    let missing = || FileError::new(path, FileFault::Key("it is missing".to_owned()));
    read_if_there(path, readers)?.ok_or_else(missing)
}

fn read_if_there(path: &Path, readers: Readers) -> Result<Option<Secret>, FileError> {
    let fault = |detail: &str| FileError::new(path, FileFault::Key(detail.to_owned()));
    let bytes = durable::read(path, FILE_BYTES_MAX).map_err(|error| match error {
        Some(error) => FileError::new(path, error),
        None => FileError::new(path, FileFault::TooLarge { bytes_max: FILE_BYTES_MAX }),
    })?;
    let Some(bytes) = bytes else { return Ok(None) };
    check_mode(path, readers)?;
    let secret = std::str::from_utf8(&bytes).ok().and_then(Secret::parse);
    let reason = "it must hold one secret key, as nsec1… or 64 hexadecimal digits; it is kept as it is";
    secret.map(Some).ok_or_else(|| fault(reason))
}

#[cfg(unix)]
fn check_mode(path: &Path, readers: Readers) -> Result<(), FileError> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(path).map_err(|error| FileError::new(path, error))?;
    match metadata.permissions().mode() {
        mode if mode & readers.forbidden_mode() != 0 => Err(FileError::new(path, FileFault::Readable { mode })),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn check_mode(_path: &Path, _readers: Readers) -> Result<(), FileError> {
    Ok(())
}

/// The file of the key that is kept here.
#[derive(Debug)]
pub(super) struct KeptKey {
    path: PathBuf,
    next: PathBuf,
}

impl KeptKey {
    pub(super) fn beside(store_file: &Path) -> Self {
        Self { path: durable::beside(store_file, KEPT), next: durable::beside(store_file, NEXT) }
    }

    /// The file of the key in use.
    pub(super) fn file(&self) -> &Path {
        &self.path
    }

    /// The key that the state names, or one that is there though the state names none. A change that was cut off in the
    /// middle is brought to its end, or undone, if the state does not know of it.
    ///
    /// # Errors
    /// The key that the state names is not there, or a file cannot be used.
    pub(super) fn settle(&self, named: Option<PublicKey>) -> Result<Option<Secret>, FileError> {
        let Some(named) = named else {
            // Its state may have been moved away, so it may be the only copy of who we were.
            self.move_next_aside()?;
            return read_if_there(&self.path, Readers::Nobody);
        };
        // Unreadable, it may be one that was cut off: then the state names the other.
        let next = read_if_there(&self.next, Readers::Nobody);
        if let Ok(Some(next)) = next
            && next.pubkey() == named
        {
            self.adopt()?;
            return Ok(Some(next));
        }
        let kept = read(&self.path, Readers::Nobody)?;
        if kept.pubkey() != named {
            let detail = format!(
                "it has the key of {}, not that of {}, which is our identity; it is kept as it is: restore the right \
                 one, or configure one by identity.key_file",
                kept.pubkey().to_hex(),
                named.to_hex()
            );
            return Err(FileError::new(&self.path, FileFault::Key(detail)));
        }
        durable::remove(&self.next).map_err(|error| FileError::new(&self.next, error))?;
        Ok(Some(kept))
    }

    /// Writes a key beside the one that is kept; durable on return. It is nobody's until the state names it.
    pub(super) fn prepare(&self, secret: &Secret) -> Result<(), FileError> {
        let created = durable::create(&self.next, secret.to_file_text().as_bytes());
        created.map_err(|error| FileError::new(&self.next, error))
    }

    /// Puts the prepared key in its place.
    pub(super) fn adopt(&self) -> Result<(), FileError> {
        durable::rename(&self.next, &self.path).map_err(|error| FileError::new(&self.path, error))
    }

    fn move_next_aside(&self) -> Result<(), FileError> {
        if self.next.exists() {
            let aside = durable::move_aside(&self.next, "unused");
            let aside = aside.map_err(|error| FileError::new(&self.next, error))?;
            tracing::warn!("a key that nothing names is kept as {}", aside.display());
        }
        Ok(())
    }
}
