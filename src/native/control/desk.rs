//! Where everything that is told is written down: on disk first, then for all to see.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use super::error::{FileError, FileFault};
use super::identity::{IdentityInfo, IdentitySource};
use super::keys::{self, KeptKey, Readers};
use super::state::{Named, State};
use super::{ControlBounds, ControlConfig, ControlError, Desired, Secret, Signer, durable, sealed};
use crate::native::clock::unix_secs;
use crate::peer::{AccessRules, PeerMarks};
use crate::protocol::{Filter, PublicKey};

const STATE: &str = ".control.json";
const MARKS: &str = ".marks.json";
const LOCK: &str = ".control.lock";

/// Everything that is told, and its files.
pub(super) struct Desk {
    pub(super) bounds: ControlBounds,
    pub(super) key: KeptKey,
    pub(super) state: Arc<State>,
    /// The key of our identity.
    pub(super) secret: Option<Secret>,
    /// What is protected by configuration.
    pub(super) protected: Arc<BTreeSet<Filter>>,
    admins: Arc<BTreeSet<PublicKey>>,
    state_file: PathBuf,
    marks_file: PathBuf,
    desired: watch::Sender<Arc<Desired>>,
    signer: Signer,
    /// A write has failed after which the file may have what was not acknowledged.
    is_unsure: bool,
    /// There was no state when it was opened.
    pub(super) is_new: bool,
    /// Something has changed that is not shown yet.
    is_unseen: bool,
    /// Held for as long as the files are ours; `None` once they are not any more.
    pub(super) lock: Option<Lock>,
}

impl Desk {
    /// Opens the files; gives what happened last at peers, too.
    pub(super) fn open(config: ControlConfig) -> Result<(Self, BTreeMap<String, PeerMarks>), ControlError> {
        let ControlConfig { store_file, key_file, key, protected, admins, bounds } = config;
        let lock = lock_file(&durable::beside(&store_file, LOCK))?;
        let state_file = state_file(&store_file);
        let marks_file = durable::beside(&store_file, MARKS);
        let state: Option<State> = sealed::read(&state_file, bounds.file_bytes_max)?;
        if state.is_none() {
            refuse_remains(&state_file, [KeptKey::beside(&store_file).file(), &marks_file])?;
        }
        let marks = read_marks(&marks_file, bounds.file_bytes_max)?;
        let configured = match (key, key_file) {
            (Some(key), _) => Some(key),
            (None, Some(path)) => Some(keys::read(&path, Readers::Group)?),
            (None, None) => None,
        };
        let mut desk = Self {
            bounds,
            key: KeptKey::beside(&store_file),
            is_new: state.is_none(),
            state: Arc::new(state.unwrap_or_default()),
            secret: None,
            protected: Arc::new(protected.into_iter().collect()),
            admins: Arc::new(admins),
            state_file,
            marks_file,
            desired: watch::Sender::new(Arc::new(Desired::nothing())),
            signer: Signer::default(),
            is_unsure: false,
            is_unseen: true,
            lock: Some(lock),
        };
        desk.find_identity(configured)?;
        desk.publish();
        Ok((desk, marks))
    }

    pub(super) fn watch(&self) -> watch::Receiver<Arc<Desired>> {
        self.desired.subscribe()
    }

    pub(super) fn signer(&self) -> Signer {
        self.signer.clone()
    }

    /// We are whom the configuration says; else whose key is kept here, if one is.
    fn find_identity(&mut self, configured: Option<Secret>) -> Result<(), ControlError> {
        let now = |pubkey, source| Named { pubkey, source, created_secs: unix_secs() };
        let mut state = State::clone(&self.state);
        let (secret, named) = if let Some(secret) = configured {
            let named = now(secret.pubkey(), IdentitySource::Configured);
            (Some(secret), Some(named))
        } else {
            let secret = self.key.settle(state.kept.map(|kept| kept.pubkey))?;
            if state.kept.is_none() {
                // The state may have been moved away; the key is ours all the same.
                state.kept = secret.as_ref().map(|secret| now(secret.pubkey(), IdentitySource::Imported));
            }
            (secret, state.kept)
        };
        let is_other =
            |named: &Named| state.identity.is_none_or(|old| (old.pubkey, old.source) != (named.pubkey, named.source));
        if let Some(named) = named.filter(is_other) {
            state.rename(named, self.bounds.previous_keys_max);
        } else if named.is_none()
            && let Some(former) = state.identity.take()
        {
            // It was configured, and is not any more.
            state.previous.insert(0, former.pubkey);
            state.previous.truncate(self.bounds.previous_keys_max);
        }
        self.secret = secret;
        if state != *self.state {
            self.write(state)?;
        }
        Ok(())
    }

    /// Makes `state` the one that holds: on disk first, then, by [`Desk::publish`], for all to see.
    pub(super) fn write(&mut self, state: State) -> Result<(), ControlError> {
        self.check_certain()?;
        let text = sealed::text(&self.state_file, &state, self.bounds.file_bytes_max)?;
        if let Err(error) = durable::replace(&self.state_file, &text) {
            // It may have its name already, but not for good: what holds is put back, now or before the next change.
            self.is_unsure = true;
            if let Err(error) = self.check_certain() {
                tracing::error!("nothing can be changed until it can be written again: {error}");
            }
            return Err(FileError::new(&self.state_file, error).into());
        }
        self.state = Arc::new(state);
        self.is_unseen = true;
        Ok(())
    }

    /// Are the files ours, and is what holds what is on disk? Where a write has failed, it is written again.
    ///
    /// # Errors
    /// They are not, or it cannot be written.
    pub(super) fn check_certain(&mut self) -> Result<(), ControlError> {
        self.check_open()?;
        if self.is_unsure {
            sealed::write(&self.state_file, &*self.state, self.bounds.file_bytes_max)?;
            self.is_unsure = false;
        }
        Ok(())
    }

    /// The same, if anything is other than it was; gives back whether it is.
    pub(super) fn write_if(&mut self, is_other: bool, state: State) -> Result<bool, ControlError> {
        if is_other {
            self.write(state)?;
        }
        Ok(is_other)
    }

    pub(super) fn write_marks(&self, marks: &BTreeMap<String, PeerMarks>) -> Result<(), ControlError> {
        self.check_open()?;
        Ok(sealed::write(&self.marks_file, marks, self.bounds.file_bytes_max)?)
    }

    /// Are the files ours?
    pub(super) fn check_open(&self) -> Result<(), ControlError> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(ControlError::Refused("the daemon has ended".to_owned())),
        }
    }

    pub(super) fn configure(&mut self, protected: Vec<Filter>, admins: BTreeSet<PublicKey>) {
        self.protected = Arc::new(protected.into_iter().collect());
        self.admins = Arc::new(admins);
        self.is_unseen = true;
    }

    /// Shows what is on disk to whoever watches, if it is not seen yet. Who signs changes first: who hears that we are somebody else may ask.
    pub(super) fn publish(&mut self) {
        if !std::mem::take(&mut self.is_unseen) {
            return;
        }
        self.signer.set(self.secret.clone());
        let protected: BTreeSet<Filter> = self.protected.union(&self.state.protected).cloned().collect();
        self.desired.send_replace(Arc::new(Desired {
            identity: self.identity_info(),
            access: Arc::new(AccessRules::new(protected, self.state.rules.iter().cloned())),
            admins: self.admins.clone(),
            protected: self.protected.clone(),
            state: self.state.clone(),
        }));
    }

    pub(super) fn identity_info(&self) -> Option<IdentityInfo> {
        let Named { pubkey, source, created_secs } = self.state.identity?;
        Some(IdentityInfo { pubkey, source, created_at_secs: created_secs, previous: self.state.previous.clone() })
    }

    /// Refuses more than are taken.
    pub(super) fn check_count(&self, what: &str, count: usize, max: usize) -> Result<(), ControlError> {
        if count > max {
            return Err(ControlError::Refused(format!("{count} {what} are more than the {max} that are taken")));
        }
        Ok(())
    }
}

impl Desired {
    fn nothing() -> Self {
        Self {
            identity: None,
            access: Arc::default(),
            admins: Arc::default(),
            protected: Arc::default(),
            state: Arc::default(),
        }
    }
}

/// Where the state is kept.
pub(super) fn state_file(store_file: &Path) -> PathBuf {
    durable::beside(store_file, STATE)
}

/// The files are ours for as long as this is.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing it would do, but for a child process that is just being made, and has it open, too, for a moment.
        if let Err(error) = self.0.unlock() {
            tracing::debug!("the files of the control plane are let go of late: {error}");
        }
    }
}

/// Where one of `others` is, there has been a state: without it nothing would be protected any more.
fn refuse_remains(state_file: &Path, others: [&Path; 2]) -> Result<(), FileError> {
    match others.into_iter().find(|other| other.exists()) {
        Some(other) => Err(FileError::new(state_file, FileFault::Missing { beside: other.to_owned() })),
        None => Ok(()),
    }
}

fn lock_file(path: &Path) -> Result<Lock, FileError> {
    let fault = |fault: FileFault| FileError::new(path, fault);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| FileError::new(folder, error))?;
    }
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| fault(error.into()))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(fault(FileFault::Locked)),
        Err(TryLockError::Error(error)) => Err(fault(error.into())),
    }
}

/// What happened last at peers. If it is not as it was written, it is moved aside: it is no more than a memory.
fn read_marks(path: &Path, bytes_max: u64) -> Result<BTreeMap<String, PeerMarks>, FileError> {
    let error = match sealed::read(path, bytes_max) {
        Ok(marks) => return Ok(marks.unwrap_or_default()),
        Err(error) => error,
    };
    if !matches!(error.fault, FileFault::Corrupt { .. } | FileFault::TooLarge { .. }) {
        return Err(error);
    }
    let aside = durable::move_aside(path, "corrupt").map_err(|error| FileError::new(path, error))?;
    tracing::error!("{error}; what happened last at peers is forgotten, and the file is now {}", aside.display());
    Ok(BTreeMap::new())
}
