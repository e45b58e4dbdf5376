//! Where the control plane keeps what it is told, and its bounds.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::Secret;
use crate::protocol::{Filter, PublicKey};

/// Where the control plane keeps what it is told, who we are by configuration, and its bounds.
#[derive(Debug, Clone)]
pub struct ControlConfig {
    /// The store's file: the files of the control plane lie beside it, and begin with its name.
    pub store_file: PathBuf,
    /// A file with our secret key, which has precedence over one that is kept here.
    pub key_file: Option<PathBuf>,
    /// Our secret key itself, for embedders, which has precedence over all others.
    pub key: Option<Secret>,
    /// What is protected by configuration, beside what is through [`Access::protect`](super::Access::protect).
    pub protected: Vec<Filter>,
    /// The keys that may govern this daemon over HTTP (NIP-98).
    pub admins: BTreeSet<PublicKey>,
    /// Every bound.
    pub bounds: ControlBounds,
}

/// The bounds of the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlBounds {
    /// Peers.
    pub peers_max: usize,
    /// A peer's specification, in bytes of JSON.
    pub spec_bytes_max: usize,
    /// Access rules.
    pub rules_max: usize,
    /// Filters that protect, beside those that are configured.
    pub protected_max: usize,
    /// A filter of a rule, or of what is protected, in bytes of JSON.
    pub match_bytes_max: usize,
    /// Our former public keys that are remembered, and those of each peer.
    pub previous_keys_max: usize,
    /// The largest file that is read, and written, in bytes.
    pub file_bytes_max: u64,
    /// Who opens the files waits so long for another process to let go of them, as a command that is about to end does.
    pub lock_wait: Duration,
    /// What happened last at peers is written down at most so often, and at the end.
    pub marks_interval: Duration,
    /// What an engine has said of a peer longer ago than this does not tell any more whether sync works. It is to say
    /// something more often (`sync.progress_interval`).
    pub report_age_max: Duration,
    /// Orders to the daemon that wait, like that to sync with a peer at once.
    pub orders_max: usize,
}

impl Default for ControlBounds {
    fn default() -> Self {
        Self {
            peers_max: 1_000,
            spec_bytes_max: 64 << 10,
            rules_max: 10_000,
            protected_max: 1_000,
            match_bytes_max: 64 << 10,
            previous_keys_max: 100,
            file_bytes_max: 64 << 20,
            lock_wait: Duration::from_secs(5),
            marks_interval: Duration::from_secs(5),
            report_age_max: Duration::from_secs(60),
            orders_max: 16,
        }
    }
}

impl ControlConfig {
    /// Beside this file of a store, without a configured key, by the default bounds.
    pub fn beside(store_file: impl Into<PathBuf>) -> Self {
        Self {
            store_file: store_file.into(),
            key_file: None,
            key: None,
            protected: Vec::new(),
            admins: BTreeSet::new(),
            bounds: ControlBounds::default(),
        }
    }
}
