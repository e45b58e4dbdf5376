//! The secret key. Nothing here shows it, and there is no way to get it out but into its file.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use nostr::key::{Keys, SecretKey};
use nostr::nips::nip19::ToBech32;

use crate::protocol::PublicKey;

/// Our secret key. It signs, and is never shown, written to logs, or exported.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Keys);

impl Secret {
    /// Reads a key, nsec or hexadecimal; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Keys::parse(text.trim()).ok().map(Self)
    }

    /// A new key, by chance.
    ///
    /// # Errors
    /// The system has no chance to give.
    pub fn generate() -> std::io::Result<Self> {
        loop {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
            // Not every number is a key, but nearly.
            if let Ok(key) = SecretKey::from_slice(&bytes) {
                return Ok(Self(Keys::new(key)));
            }
        }
    }

    /// The key that others know.
    pub fn pubkey(&self) -> PublicKey {
        self.0.public_key()
    }

    /// The text of its file: nsec, which shows by itself whether it is as it was written.
    pub(super) fn to_file_text(&self) -> String {
        let Ok(text) = self.0.secret_key().to_bech32();
        format!("{text}\n")
    }

    pub(in crate::native) fn keys(&self) -> &Keys {
        &self.0
    }
}

impl From<Keys> for Secret {
    fn from(keys: Keys) -> Self {
        Self(keys)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret(of {})", self.pubkey().to_hex())
    }
}

/// Who signs the answers to challenges (NIP-42): can be told another key while it is in use. All clones are one.
#[derive(Debug, Clone, Default)]
pub struct Signer(Arc<RwLock<Option<Secret>>>);

impl Signer {
    /// One with this key, or none.
    pub fn new(secret: Option<Secret>) -> Self {
        Self(Arc::new(RwLock::new(secret)))
    }

    /// From now on it signs with this key.
    pub fn set(&self, secret: Option<Secret>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = secret;
    }

    pub(in crate::native) fn secret(&self) -> Option<Secret> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
