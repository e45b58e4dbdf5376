//! What callers get back, beside reports on jobs.

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use crate::engine::PublishAnswer;
use crate::ingest::Invalid;
use crate::protocol::RelayUrl;
use crate::store::Sequence;
use crate::store::{Method, Outcome, Record};

/// Events of a job, in the order in which they were stored. The three lists are equally long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// The events.
    pub records: Vec<Record>,
    /// Which relay brought each; `None` if that is not known: the caller has added it, or it was stored by an earlier
    /// process.
    pub from: Vec<Option<RelayUrl>>,
    /// Whether each came from a live subscription.
    pub live: Vec<bool>,
    /// Everything up to this number was given out: where another job goes on ([`JobSpec::after`](super::JobSpec::after)).
    pub cursor: Sequence,
}

/// What became of an event that the caller has added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is genuine, and the store has decided.
    Committed(Outcome),
    /// It is not genuine.
    Invalid(Invalid),
}

impl Added {
    /// One word: an [`Outcome`] in small letters, or `invalid`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Committed(Outcome::Stored) => "stored",
            Self::Committed(Outcome::Duplicate) => "duplicate",
            Self::Committed(Outcome::Superseded) => "superseded",
            Self::Committed(Outcome::Deleted) => "deleted",
            Self::Committed(Outcome::Vanished) => "vanished",
            Self::Committed(Outcome::Expired) => "expired",
            Self::Committed(Outcome::Pruned) => "pruned",
            Self::Committed(Outcome::Ephemeral) => "ephemeral",
            Self::Invalid(_) => "invalid",
        }
    }

    /// Why it is not genuine, in words.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Committed(_) => None,
            Self::Invalid(why) => Some(why.reason()),
        }
    }
}

/// What became of an event that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishReport {
    /// In our own store. What is not genuine is sent to nobody.
    pub outcome: Added,
    /// At each relay, in the order in which they were named.
    pub relays: Vec<RelayAnswer>,
}

/// One relay's answer to an event. Serializes as `{ relay, accepted, duplicate, code, reason }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayAnswer {
    /// The relay.
    pub relay: RelayUrl,
    /// What it said, or why it said nothing.
    pub answer: PublishAnswer,
}

impl Serialize for RelayAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("RelayAnswer", 5)?;
        fields.serialize_field("relay", &self.relay)?;
        fields.serialize_field("accepted", &self.answer.is_accepted())?;
        fields.serialize_field("duplicate", &self.answer.is_duplicate())?;
        fields.serialize_field("code", self.answer.code())?;
        fields.serialize_field("reason", self.answer.reason())?;
        fields.end()
    }
}

/// What is proven about a filter at one relay. Seconds are since 1970, and `None` where a window is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelayCoverage {
    /// The relay.
    pub relay: RelayUrl,
    /// All that the filter asks for is proven, and lately enough that a report would rely on it.
    pub complete: bool,
    /// What is proven, newest first, whether lately or not.
    pub windows: Vec<ProvenWindow>,
    /// What is not proven, or not lately enough, newest first.
    pub gaps: Vec<OpenWindow>,
}

/// A window of time that is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvenWindow {
    /// Its first second.
    pub since: Option<u64>,
    /// Its last second.
    pub until: Option<u64>,
    /// How it was proven.
    pub method: Method,
    /// As of when: what the relay got later with an older date is not known.
    pub asked_at: u64,
    /// Up to when what is dated newer has been followed without a break.
    pub followed_until: u64,
}

/// A window of time that is not proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OpenWindow {
    /// Its first second.
    pub since: Option<u64>,
    /// Its last second.
    pub until: Option<u64>,
}

/// What became of lines of events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// Lines that were not empty.
    pub lines: u64,
    /// Events that are held now and were not before.
    pub stored: u64,
    /// Events that were held already.
    pub duplicate: u64,
    /// Events superseded, deleted, vanished, expired or ephemeral.
    pub unwanted: u64,
    /// Events with a wrong id or signature.
    pub invalid: u64,
    /// Lines that are no event.
    pub malformed: u64,
    /// The first line, from 1, that is no genuine event, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
}

/// Events as lines of JSON, in the order in which they were stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// One event a line, byte for byte as it was signed and sent, but that line breaks between its parts are spaces.
    pub text: String,
    /// Where to go on; `None` if this was all.
    pub next: Option<Sequence>,
}
