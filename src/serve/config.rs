//! What an operator decides about a relay service, and the relay information document (NIP-11) that says so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::peer::AccessRules;
use crate::protocol::relay_info::{Limitation, RelayInfo};
use crate::protocol::{PublicKey, RelayUrl};

/// Identity, rules and bounds of a relay service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeConfig {
    /// The name in the relay information document.
    pub name: Option<String>,
    /// The description in the relay information document.
    pub description: Option<String>,
    /// The administrator's key in the relay information document, hexadecimal.
    pub pubkey: Option<String>,
    /// The URLs under which clients know this relay. The `relay` tag of an AUTH event must name the host of one of
    /// them; without any, no AUTH succeeds. A binding to sockets adds the address it listens on.
    pub urls: Vec<RelayUrl>,
    /// Which events are protected, and who may read and write them; until [`ServeInput::Access`](super::ServeInput::Access)
    /// says otherwise.
    pub access: Arc<AccessRules>,
    /// The keys of configured peers, and their names, which are noted with what they publish; until
    /// [`ServeInput::Peers`](super::ServeInput::Peers) says otherwise.
    pub peers: Arc<BTreeMap<PublicKey, Arc<str>>>,
    /// The relay's own key, as in its information document (`self`).
    pub identity: Option<PublicKey>,
    /// Only authenticated clients (NIP-42) may read and write.
    pub auth_required: bool,
    /// While anything is protected, challenge clients as soon as they connect, not only once they are refused something. What
    /// is hidden from strangers is left out of wide requests without a word, so who may see more is to say who it is first.
    pub challenges_early: bool,
    /// How far the time of an AUTH event may be off, either way.
    pub auth_age_max: Duration,
    /// AUTH messages a connection; one more ends it, because each costs a signature check.
    pub auth_attempts_max: usize,
    /// Ask for each event of a client whether it is wanted ([`ServeEffect::Judge`](super::ServeEffect::Judge)).
    pub judged: bool,
    /// Answer set reconciliation (NIP-77). If not, NEG-OPEN gets a NOTICE, as from relays that have never heard of it.
    pub negentropy: bool,
    /// Say in EOSE whether the store has more for the filters (NIP-67). Clients go by the position of elements and do
    /// not notice; for one that insists on two of them, turn it off.
    pub eose_hints: bool,

    /// The largest frame taken from a client, in bytes; a larger one ends its connection.
    pub frame_bytes_max: usize,
    /// Characters of a subscription id, REQ and NEG-OPEN alike.
    pub subscription_id_chars_max: usize,
    /// Open subscriptions a client.
    pub subscriptions_max: usize,
    /// Filters a REQ or COUNT.
    pub filters_max: usize,
    /// Stored events a filter at most; a larger `limit` is cut to it without a word, as relays do.
    pub page_events_max: usize,
    /// Stored events for a filter without `limit`.
    pub page_events_default: usize,
    /// Stored events read at a time, in bytes: what a slow reader may have pending of one subscription.
    pub read_bytes_max: usize,
    /// Reads of the store in flight for one client; its other subscriptions wait their turn.
    pub reads_max: usize,
    /// COUNTs in flight for one client.
    pub counts_max: usize,

    /// Events a client may publish in a minute, and at once; more are refused as `rate-limited:`.
    pub events_per_minute_max: u64,
    /// REQs, COUNTs and NEG-OPENs of a client in a minute, and at once; more are refused as `rate-limited:`.
    pub requests_per_minute_max: u64,
    /// Bytes of frames of a client in a minute, and at once; what goes beyond is refused as `rate-limited:`.
    pub bytes_per_minute_max: u64,

    /// Bytes waiting to be taken by one client; beyond that its connection ends.
    pub outbound_bytes_max: usize,
    /// Bytes waiting to be taken by all clients together; beyond that the connections end of those that have the most.
    pub outbound_total_bytes_max: usize,
    /// While more bytes than this wait for a client, no further stored events are read for it. Once half of what may
    /// wait for all clients does, none are read for a client that has anything waiting.
    pub outbound_pause_bytes: usize,
    /// Bytes of events of one client waiting to be stored; beyond that nothing more is read from its socket.
    pub pending_bytes_max: usize,
    /// Bytes of events of all clients waiting to be stored; beyond that nothing more is read from who sends events.
    pub pending_total_bytes_max: usize,
    /// Events verified, judged, and committed, at a time.
    pub batch_events_max: usize,

    /// Open reconciliations a client.
    pub negentropy_sessions_max: usize,
    /// Items of one reconciliation; more are refused with this number.
    pub negentropy_records_max: usize,
    /// The largest reconciliation message sent, in bytes (twice that as hexadecimal); at least 4,096.
    pub negentropy_frame_bytes_max: usize,
    /// A reconciliation in which the client has been silent so long is closed.
    pub negentropy_idle_max: Duration,
    /// Item sets kept for further reconciliations.
    pub item_sets_max: usize,
    /// Items in all sets kept, 40 bytes each.
    pub item_sets_records_max: usize,
    /// A set is read anew once it is so old: items that have expired (NIP-40) are offered no longer than that.
    pub item_set_age_max: Duration,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            name: Some("relaysync".into()),
            description: None,
            pubkey: None,
            urls: Vec::new(),
            access: Arc::default(),
            peers: Arc::default(),
            identity: None,
            auth_required: false,
            challenges_early: true,
            auth_age_max: Duration::from_secs(600),
            auth_attempts_max: 32,
            judged: false,
            negentropy: true,
            eose_hints: true,
            frame_bytes_max: 512 * 1024,
            subscription_id_chars_max: 64,
            subscriptions_max: 200,
            filters_max: 50,
            page_events_max: 5_000,
            page_events_default: 500,
            read_bytes_max: 256 * 1024,
            reads_max: 4,
            counts_max: 8,
            events_per_minute_max: 120_000,
            requests_per_minute_max: 12_000,
            bytes_per_minute_max: 512 * 1024 * 1024,
            outbound_bytes_max: 32 * 1024 * 1024,
            outbound_total_bytes_max: 256 * 1024 * 1024,
            outbound_pause_bytes: 512 * 1024,
            pending_bytes_max: 4 * 1024 * 1024,
            pending_total_bytes_max: 64 * 1024 * 1024,
            batch_events_max: 1_000,
            negentropy_sessions_max: 16,
            negentropy_records_max: 1_000_000,
            negentropy_frame_bytes_max: 60_000,
            negentropy_idle_max: Duration::from_secs(120),
            item_sets_max: 16,
            item_sets_records_max: 2_000_000,
            item_set_age_max: Duration::from_secs(300),
        }
    }
}

impl ServeConfig {
    /// The relay information document.
    pub fn relay_info(&self) -> RelayInfo {
        let mut nips = vec![json!(1), json!(9), json!(11), json!(40), json!(42), json!(45), json!(62)];
        nips.extend(self.eose_hints.then(|| json!(67)));
        nips.push(json!(70));
        nips.extend(self.negentropy.then(|| json!(77)));
        RelayInfo {
            name: self.name.clone(),
            description: self.description.clone(),
            pubkey: self.pubkey.clone(),
            relay_key: self.identity.map(|key| key.to_hex()),
            // It must be a URL, or nothing.
            software: Some(env!("CARGO_PKG_HOMEPAGE").to_owned()).filter(|url| !url.is_empty()),
            version: Some(env!("CARGO_PKG_VERSION").into()),
            supported_nips: Some(nips),
            limitation: Limitation {
                max_message_length: Some(self.frame_bytes_max as u64),
                max_subscriptions: Some(self.subscriptions_max as u64),
                max_filters: Some(self.filters_max as u64),
                max_subid_length: Some(self.subscription_id_chars_max as u64),
                max_limit: Some(self.page_events_max as u64),
                default_limit: Some(self.page_events_default.min(self.page_events_max) as u64),
                auth_required: Some(self.auth_required),
                restricted_writes: Some(self.auth_required || self.judged || !self.access.is_open()),
            },
        }
    }

    /// How many stored events a filter with this `limit` gets at most.
    pub(super) fn page_events(&self, limit: Option<usize>) -> usize {
        limit.unwrap_or(self.page_events_default).min(self.page_events_max)
    }
}
