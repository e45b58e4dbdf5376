//! The names of the records, and what is kept in the small ones.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::backing::{Name, Shelf};
use super::record;
use crate::store::entry::{SEQUENCE_MAX, Sequence};
use crate::store::fates::Fates;
use crate::store::tables::Damaged;
use crate::store::{Coverage, RequestContext};

/// The version of everything that is written here.
pub(super) const FORMAT: u32 = 1;

pub(super) const META: &str = "meta";
const RUN: &str = "run/";
const FATES: &str = "fates/";
const MARK: &str = "mark/";
const CONTEXT: &str = "context/";

/// What a record of the index is, by its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Meta,
    Run(u64),
    Fates(u64),
    Mark,
    Context,
}

impl Kind {
    pub(super) fn of(name: &str) -> Option<Self> {
        let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
        if name == META {
            Some(Self::Meta)
        } else if let Some(digits) = name.strip_prefix(RUN) {
            number(digits).map(Self::Run)
        } else if let Some(digits) = name.strip_prefix(FATES) {
            number(digits).map(Self::Fates)
        } else if name.starts_with(MARK) {
            Some(Self::Mark)
        } else {
            name.starts_with(CONTEXT).then_some(Self::Context)
        }
    }
}

pub(super) fn run_name(number: u64) -> String {
    format!("{RUN}{number:016x}")
}

pub(super) fn fates_name(block: u64) -> String {
    format!("{FATES}{block:016x}")
}

pub(super) fn mark_name(mark: &Coverage) -> String {
    format!("{MARK}{} {}", mark.relay, mark.filter.0)
}

pub(super) fn context_name(first: Sequence) -> String {
    format!("{CONTEXT}{first:010x}")
}

pub(super) fn index(name: String) -> Name {
    Name { shelf: Shelf::Index, name }
}

/// The numbers of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Meta {
    pub(super) format: u32,
    pub(super) next_sequence: Sequence,
    pub(super) next_run: u64,
    /// How many commits there were: tells whether one that was interrupted has taken place.
    pub(super) commits: u64,
    /// What is dated no later than this, in seconds since 1970, was pruned for want of space.
    pub(super) floor_secs: Option<u64>,
}

/// Who brought the events with numbers from the key to the first of these.
pub(super) type Contexts = BTreeMap<Sequence, (Sequence, RequestContext)>;

/// A record of something that serde knows.
pub(super) fn put_json<T: serde::Serialize>(name: String, value: &T) -> (Name, Bytes) {
    let json = serde_json::to_vec(value).expect("records have only strings, numbers and keys of text");
    let sealed = record::seal(&name, json);
    (index(name), sealed)
}

/// What [`put_json`] has written.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(name: &str, bytes: &Bytes) -> Result<T, Damaged> {
    let content = record::open(name, bytes)?;
    serde_json::from_slice(&content).map_err(|error| Damaged { what: format!("record {name}: {error}") })
}

/// A segment as its name tells of it: nothing else needs to be read to know what is where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentName {
    pub(super) first: Sequence,
    pub(super) last: Sequence,
    /// How many bodies are in it.
    pub(super) bodies: u32,
    /// The size of its record.
    pub(super) bytes: u32,
}

impl SegmentName {
    pub(super) fn parse(name: &str) -> Option<Self> {
        let parts: Vec<u64> =
            name.split('-').map(|part| u64::from_str_radix(part, 16).ok()).collect::<Option<Vec<u64>>>()?;
        let [first, last, bodies, bytes] = parts[..] else { return None };
        let segment = Self { first, last, bodies: bodies.try_into().ok()?, bytes: bytes.try_into().ok()? };
        (first <= last && last <= SEQUENCE_MAX && bodies > 0 && segment.text() == name).then_some(segment)
    }

    /// How many of its bodies are of events that are gone.
    pub(super) fn dead(&self, fates: &Fates) -> u64 {
        let held = (self.last - self.first + 1).saturating_sub(fates.gone(self.first, self.last));
        u64::from(self.bodies).saturating_sub(held)
    }

    pub(super) fn text(&self) -> String {
        format!("{:010x}-{:010x}-{:08x}-{:08x}", self.first, self.last, self.bodies, self.bytes)
    }

    pub(super) fn key(&self) -> Name {
        Name { shelf: Shelf::Segments, name: self.text() }
    }

    /// What a body has in it, on average.
    pub(super) fn body_bytes(&self) -> u64 {
        u64::from(self.bytes / self.bodies.max(1))
    }
}
