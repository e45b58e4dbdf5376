//! Events as they travel: parsed fields beside the very bytes that they came in.

use std::ops::Deref;

use bytes::Bytes;
pub use nostr::event::EventId;
pub use nostr::key::PublicKey;

/// Why bytes are no event (NIP-01).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventError {
    /// What is wrong, in words.
    pub reason: String,
}

impl std::fmt::Display for EventError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not a Nostr event: {}", self.reason)
    }
}

impl std::error::Error for EventError {}

/// An event that somebody sent. Its shape was checked; its id and signature were not: see
/// [`Verified`](crate::ingest::Verified).
///
/// The JSON is kept as it came (a reference into the frame, no copy), so that what is stored and passed on is what
/// was signed and sent. Dereferences to [`nostr::event::Event`].
#[derive(Debug, Clone)]
pub struct Event {
    fields: nostr::event::Event,
    json: Bytes,
}

impl Event {
    /// Parses the JSON object of one event. `json` must hold that object and nothing else.
    ///
    /// # Errors
    /// The object lacks a field, or a field has the wrong form.
    pub fn parse(json: Bytes) -> Result<Self, EventError> {
        match serde_json::from_slice(&json) {
            Ok(fields) => Ok(Self { fields, json }),
            Err(error) => Err(EventError { reason: error.to_string() }),
        }
    }

    /// The same for a part of a frame that is known to be text: `json` must lie inside `frame`, which the event keeps a
    /// reference to.
    ///
    /// # Errors
    /// See [`Event::parse`].
    pub fn parse_in(frame: &Bytes, json: &str) -> Result<Self, EventError> {
        match serde_json::from_str(json) {
            Ok(fields) => Ok(Self { fields, json: frame.slice_ref(json.as_bytes()) }),
            Err(error) => Err(EventError { reason: error.to_string() }),
        }
    }

    /// The JSON that the event came in.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The JSON as text. Parsing has shown it to be UTF-8.
    pub fn json_str(&self) -> &str {
        std::str::from_utf8(&self.json).expect("serde_json accepts UTF-8 only")
    }

    /// The parsed fields.
    pub fn fields(&self) -> &nostr::event::Event {
        &self.fields
    }

    /// Seconds since 1970, as the author claims.
    pub fn created_at_secs(&self) -> u64 {
        self.fields.created_at.as_secs()
    }

    /// The kind as a number.
    pub fn kind_number(&self) -> u16 {
        self.fields.kind.as_u16()
    }

    /// The moment from which the event must not be stored or served any more (NIP-40), in seconds since 1970.
    pub fn expires_at_secs(&self) -> Option<u64> {
        self.fields.tags.expiration().map(|at| at.as_secs())
    }
}

impl Deref for Event {
    type Target = nostr::event::Event;

    fn deref(&self) -> &nostr::event::Event {
        &self.fields
    }
}

impl From<nostr::event::Event> for Event {
    /// An event made here, written as `nostr` writes it.
    fn from(fields: nostr::event::Event) -> Self {
        let json = serde_json::to_vec(&fields).expect("an event has only strings and numbers").into();
        Self { fields, json }
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl Eq for Event {}
