//! What an operator says of a peer: which relay it is, how it proves itself, and what is synced with it.
//!
//! ```
//! use relaysync::peer::PeerSpec;
//!
//! let spec = PeerSpec::parse(
//!     r##"{
//!         "id": "tribes-primary",
//!         "url": "wss://relay-a.example/relay",
//!         "auth_pubkey": "aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4",
//!         "filters": [{"kinds": [5000], "#r": ["tribes.accounts.user", "tribes.chat.tribe"]}],
//!         "tls": {"pins": [{"type": "spki_sha256", "value": "sha256/rHH8tQB1jOfXbwXxBPjqW6dmzP5dSxnZ6EWJFQ1kWWA="}]}
//!     }"##,
//! )
//! .unwrap();
//! assert!(spec.enabled);
//!
//! // All mistakes at once, each with its place and what to write instead.
//! let mistakes = PeerSpec::parse(r#"{"id": "", "url": "http://relay-a.example", "filters": [], "tls": {}}"#);
//! let paths: Vec<String> = mistakes.unwrap_err().0.into_iter().map(|mistake| mistake.path).collect();
//! assert_eq!(paths, ["id", "url", "auth_pubkey", "filters", "tls.pins"]);
//! ```

mod parse;

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{
    AccessRules, Capability, IdentityField, Peering, Pin, PinScope, SpecMistakes, Terms, TlsMode, TlsTerms, Verify,
};
use crate::engine::{Direction, RelayOptions};
use crate::protocol::{Filter, PublicKey, RelayUrl};
use crate::store::Method;

/// A peer as it is configured. In JSON it has these names, except where something else is said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeerSpec {
    /// Its name here: 1 to 64 letters, digits and punctuation marks, no two peers the same.
    pub id: String,
    /// The relay. No two peers have the same one.
    pub url: RelayUrl,
    /// Is it synced with? In JSON `enabled?` is taken, too; true by default.
    pub enabled: bool,
    /// The key that the relay has for servers, which rules grant to.
    pub auth_pubkey: PublicKey,
    /// Where its relay information document (NIP-11) has that key: `self` (the default) or `pubkey`.
    pub auth_pubkey_field: IdentityField,
    /// Which way events go: `down` (the default), `up` or `both`.
    pub direction: Direction,
    /// How what is stored is synced: `auto` (the default), `req_stream` or `negentropy`.
    pub mode: SyncMode,
    /// What is synced: whatever satisfies one of these (NIP-01).
    pub filters: Vec<Arc<Filter>>,
    /// What is dated up to so many seconds before the last proven moment is asked for again after a short absence; 300
    /// by default. In JSON `overlap_window_seconds`.
    #[serde(rename = "overlap_window_seconds")]
    pub overlap_secs: u64,
    /// Do we say who we are, when the relay asks? In JSON `{"type": "nip42"}` (the default) or `{"type": "none"}`.
    pub auth: PeerAuth,
    /// How connections are encrypted.
    #[serde(serialize_with = "serialize_tls")]
    pub tls: Arc<TlsTerms>,
    /// Whatever else the operator wants to keep with it; nothing here looks at it.
    pub metadata: Metadata,
}

/// How what is stored is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// As what is held, and what the relay can do, suggest.
    #[default]
    Auto,
    /// By pages (NIP-01).
    ReqStream,
    /// By set reconciliation (NIP-77).
    Negentropy,
}

/// Do we say who we are, when the relay asks?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum PeerAuth {
    /// Yes, by NIP-42.
    #[default]
    Nip42,
    /// No.
    None,
}

/// A JSON object, kept letter by letter.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Metadata(Box<RawValue>);

impl Metadata {
    /// The JSON.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl Default for Metadata {
    fn default() -> Self {
        Self(RawValue::from_string("{}".to_owned()).expect("it is JSON"))
    }
}

impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl PeerSpec {
    /// What of a short absence is asked for again, unless something else is said, in seconds.
    pub const OVERLAP_SECS_DEFAULT: u64 = 300;
    /// The longest overlap, in seconds: a year.
    pub const OVERLAP_SECS_MAX: u64 = 365 * 24 * 3600;
    /// The most levels of lists and objects in [`PeerSpec::metadata`].
    pub const METADATA_DEPTH_MAX: usize = 32;
    /// The longest name, in characters.
    pub const ID_CHARS_MAX: usize = 64;

    /// Reads the JSON form.
    ///
    /// # Errors
    /// All mistakes at once.
    pub fn parse(json: &str) -> Result<Self, SpecMistakes> {
        parse::parse(json)
    }

    /// The same, as the engine syncs with it.
    pub fn peering(&self) -> Peering {
        Peering {
            terms: Terms {
                id: self.id.as_str().into(),
                principal: self.auth_pubkey,
                identity: self.auth_pubkey_field,
                authenticates: self.auth == PeerAuth::Nip42,
                tls: self.tls.clone(),
                overlap_secs: self.overlap_secs,
            },
            filters: self.filters.clone(),
            options: RelayOptions {
                direction: self.direction,
                method: match self.mode {
                    SyncMode::Auto => None,
                    SyncMode::ReqStream => Some(Method::Req),
                    SyncMode::Negentropy => Some(Method::Negentropy),
                },
                live: true,
                // The operator has said what is wanted of it: discovery has no say in that, the access rules have.
                trusted: true,
            },
        }
    }

    /// Is encryption required of a URL that has none, so that it is never connected to?
    pub fn is_downgraded(&self) -> bool {
        self.tls.mode == TlsMode::Required && !self.url.is_tls()
    }

    /// Does anything protect what a filter selects?
    fn protection(filter: &Filter, access: &AccessRules) -> Option<String> {
        let what = match access.protects_all(filter) {
            true => return None,
            false if access.may_protect(filter) => {
                "these events are only partly protected: every client of this relay can read and write the others"
            }
            false => "nothing protects these events: every client of this relay can read and write them",
        };
        let remedy = "protect them by access.protected in the configuration, or by `relaysync access protect`";
        Some(format!("{what}; {remedy}"))
    }

    /// Do the access rules keep a filter from being synced?
    fn rights(&self, filter: &Filter, access: &AccessRules) -> Option<String> {
        if !access.names(filter) {
            return None;
        }
        let lacks = |is_wanted: bool, capability| is_wanted && !access.covers([&self.auth_pubkey], capability, filter);
        let lacking: Vec<&str> = [
            (self.direction.is_down(), Capability::SyncWrite, "sync_write"),
            (self.direction.is_up(), Capability::SyncRead, "sync_read"),
        ]
        .into_iter()
        .filter_map(|(is_wanted, capability, name)| lacks(is_wanted, capability).then_some(name))
        .collect();
        let words = "is not granted to auth_pubkey, so this is not synced; grant it by `relaysync access grant`";
        (!lacking.is_empty()).then(|| format!("{} {words}", lacking.join(" and ")))
    }

    /// What is allowed, but hardly meant, where these rules hold.
    pub fn warnings(&self, access: &AccessRules) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.is_downgraded() {
            warnings.push(format!(
                "tls.mode is \"required\", and {} is not encrypted: it is not connected to; write wss:// in url, or \
                 \"disabled\" in tls.mode",
                self.url
            ));
        } else if !self.url.is_tls() {
            warnings.push("url is ws://: everybody on the way can read and change what is synced".to_owned());
        } else if self.tls.pins.is_empty() {
            warnings.push("tls.pins is empty: whoever has a certificate for the host name is taken for it".to_owned());
        }
        if self.direction.is_up() && self.auth == PeerAuth::None {
            warnings.push("auth.type is \"none\": a relay that protects these events does not take them".to_owned());
        }
        for (index, filter) in self.filters.iter().enumerate() {
            let of_filter = Self::protection(filter, access).into_iter().chain(self.rights(filter, access));
            warnings.extend(of_filter.map(|warning| format!("filters[{index}]: {warning}")));
        }
        warnings
    }
}

impl<'de> Deserialize<'de> for PeerSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(json.get()).map_err(serde::de::Error::custom)
    }
}

fn serialize_tls<S: Serializer>(tls: &TlsTerms, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Form<'t> {
        mode: TlsMode,
        #[serde(skip_serializing_if = "Option::is_none")]
        hostname: Option<&'t str>,
        pins: Vec<PinForm>,
        pin_scope: PinScope,
        verify: Verify,
    }
    #[derive(Serialize)]
    struct PinForm {
        r#type: &'static str,
        value: Pin,
    }
    let TlsTerms { mode, hostname, pins, pin_scope, verify } = tls;
    let pins = pins.iter().map(|&value| PinForm { r#type: parse::PIN_TYPE, value }).collect();
    let form = Form { mode: *mode, hostname: hostname.as_deref(), pins, pin_scope: *pin_scope, verify: *verify };
    form.serialize(serializer)
}

#[cfg(test)]
mod tests;
