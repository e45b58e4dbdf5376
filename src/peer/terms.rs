//! How a relay proves itself, and what is synced with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Pin, PinScope};
use crate::engine::RelayOptions;
use crate::protocol::{Filter, PublicKey};

/// Is encryption required?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsMode {
    /// Yes: nothing is sent to a `ws://` URL.
    #[default]
    Required,
    /// No: for relays on this machine or in a network that is trusted otherwise. With a `wss://` URL authorities, and
    /// pins if there are any, are checked all the same.
    Disabled,
}

/// Who vouches for the relay's certificate?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// A known authority, and the pins.
    #[default]
    Full,
    /// The pins alone, as for a certificate that its owner has signed. Its host name and its dates count all the same.
    Pin,
}

/// What is asked of the encryption of connections to a relay, WebSocket and HTTP (NIP-11) alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TlsTerms {
    /// Is it required?
    pub mode: TlsMode,
    /// The host name that the certificate must be for; by default that of the URL.
    pub hostname: Option<String>,
    /// The keys that the relay may prove itself by: any one of them is enough; two while one replaces the other. None
    /// where no key is pinned.
    pub pins: BTreeSet<Pin>,
    /// Whose keys they are.
    pub pin_scope: PinScope,
    /// Who vouches for the certificate.
    pub verify: Verify,
}

/// The field of the relay information document (NIP-11) that has the relay's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
pub enum IdentityField {
    /// `self`, the relay's own key.
    #[default]
    #[serde(rename = "self")]
    OwnKey,
    /// `self`, or where a document has none, `pubkey`, the key of its administrator.
    #[serde(rename = "pubkey")]
    AdministratorKey,
}

/// How a relay proves itself, and who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The name that the events it brings are noted under.
    pub id: Arc<str>,
    /// Its key: rules grant to this one, and its relay information document must name it.
    pub principal: PublicKey,
    /// Where that document has it.
    pub identity: IdentityField,
    /// Answer its challenges (NIP-42) with our server identity?
    pub authenticates: bool,
    /// How connections are encrypted.
    pub tls: Arc<TlsTerms>,
    /// What is dated up to so many seconds before the last proven moment is asked for again after a short absence.
    pub overlap_secs: u64,
}

/// A configured peer, as the engine syncs with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peering {
    /// How it proves itself.
    pub terms: Terms,
    /// What is synced: whatever satisfies one of these.
    pub filters: Vec<Arc<Filter>>,
    /// How.
    pub options: RelayOptions,
}
