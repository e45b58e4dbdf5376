//! The relay information document (NIP-11) as it stands.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::serve::ServeConfig;

/// What the document says, and its bytes, written anew only when that changes.
#[derive(Debug)]
pub(super) struct Document(Mutex<(ServeConfig, Bytes)>);

impl Document {
    pub(super) fn new(config: ServeConfig) -> Self {
        let json = write(&config);
        Self(Mutex::new((config, json)))
    }

    /// The document, as JSON.
    pub(super) fn json(&self) -> Bytes {
        // Both are replaced as a whole: a panic leaves what was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Documents served from now on say what `change` makes of it; gives what that gives.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut ServeConfig) -> R) -> R {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = current.0.clone();
        let result = change(&mut config);
        let json = write(&config);
        *current = (config, json);
        result
    }
}

fn write(config: &ServeConfig) -> Bytes {
    serde_json::to_vec(&config.relay_info()).expect("it has only strings and numbers").into()
}
