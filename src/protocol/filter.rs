//! Filters (NIP-01): parsing that refuses what it does not know, matching, and windows of time.

use std::fmt;

pub use nostr::filter::Filter;
use nostr::filter::MatchEventOptions;

use super::hex;

/// What a filter given by a caller may not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// What is wrong and what to write instead.
    pub reason: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid filter: {}", self.reason)
    }
}

impl std::error::Error for FilterError {}

/// Parses a filter that an operator or caller wrote. Unknown fields and empty lists are errors here, because relays
/// ignore the former and disagree on the latter: both would quietly select other events than were meant.
///
/// # Errors
/// Says which field is at fault.
pub fn parse_strict(json: &str) -> Result<Filter, FilterError> {
    let fault = |reason: String| FilterError { reason };
    let value: serde_json::Value = serde_json::from_str(json).map_err(|error| fault(error.to_string()))?;
    let fields = value.as_object().ok_or_else(|| fault("it must be one JSON object, like {\"kinds\":[1]}".into()))?;
    for (name, value) in fields {
        if name == "search" {
            return Err(fault("\"search\" (NIP-50) selects other events on each relay, so it cannot be synced".into()));
        }
        if !is_field(name) {
            return Err(fault(format!(
                "unknown field {name:?}; known are ids, authors, kinds, since, until, limit and #a to #Z"
            )));
        }
        if value.is_null() {
            return Err(fault(format!("{name:?} is null; leave the field out to select all")));
        }
        if value.as_array().is_some_and(Vec::is_empty) {
            return Err(fault(format!(
                "{name:?} is an empty list, which selects nothing; leave the field out to select all"
            )));
        }
    }
    serde_json::from_value(value).map_err(|error| fault(error.to_string()))
}

/// Is this the name of a field that filters have (NIP-01, NIP-50)?
pub(super) fn is_field(name: &str) -> bool {
    let is_tag = || name.len() == 2 && name.starts_with('#') && name.as_bytes()[1].is_ascii_alphabetic();
    matches!(name, "ids" | "authors" | "kinds" | "since" | "until" | "limit" | "search") || is_tag()
}

/// Does `event` satisfy `filter`? `limit` and `search` are not looked at. An empty list is satisfied by nothing.
pub fn matches(filter: &Filter, event: &nostr::event::Event) -> bool {
    const WITHOUT_TAGS: MatchEventOptions = MatchEventOptions::new().tags(false).nip50(false);
    !is_void(filter) && filter.match_event(event, WITHOUT_TAGS) && tags_match(filter, event)
}

/// Can no event satisfy `filter`, because it has an empty list or a window that ends before it begins?
pub fn is_void(filter: &Filter) -> bool {
    filter.ids.as_ref().is_some_and(|ids| ids.is_empty())
        || filter.authors.as_ref().is_some_and(|authors| authors.is_empty())
        || filter.kinds.as_ref().is_some_and(|kinds| kinds.is_empty())
        || filter.generic_tags.values().any(|values| values.is_empty())
        || matches!((filter.since, filter.until), (Some(since), Some(until)) if since > until)
}

// nostr's own tag match builds an index of the event's tags for each call; a walk needs no allocation.
fn tags_match(filter: &Filter, event: &nostr::event::Event) -> bool {
    filter.generic_tags.iter().all(|(name, values)| {
        event.tags.iter().any(|tag| {
            tag.single_letter_tag() == Some(*name) && tag.content().is_some_and(|content| values.contains(content))
        })
    })
}

/// A stable name for a filter without its window and limit: 16 bytes of SHA-256 over its canonical JSON, in
/// hexadecimal. Coverage is kept under it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct FilterKey(pub String);

impl FilterKey {
    /// The key of `filter`. Two filters that differ only in `limit` share one.
    pub fn of(filter: &Filter) -> Self {
        let bare = Filter { limit: None, ..filter.clone() };
        let json = serde_json::to_vec(&bare).expect("a filter has only strings and numbers");
        Self::hash(&json)
    }

    /// The key of what is fetched for these `parts`, where its filter does not say all: of no filter.
    pub fn of_parts(name: &str, parts: impl Iterator<Item = String>) -> Self {
        let mut text = name.to_owned();
        for part in parts {
            text.push('\n');
            text.push_str(&part);
        }
        Self::hash(text.as_bytes())
    }

    fn hash(bytes: &[u8]) -> Self {
        let hash = bitcoin_hashes::sha256::Hash::hash(bytes).to_byte_array();
        Self(hex::encode(&hash[..16]))
    }
}

/// A closed range of `created_at`, in seconds since 1970; both ends belong to it, as `since` and `until` do in NIP-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Window {
    /// The first second.
    pub since: u64,
    /// The last second; [`Window::OPEN`] for no end.
    pub until: u64,
}

impl Window {
    /// The `until` of a window that is open upwards.
    pub const OPEN: u64 = u64::MAX;
    /// All of time.
    pub const ALL: Self = Self { since: 0, until: Self::OPEN };

    /// The window that `filter` itself asks for.
    pub fn of(filter: &Filter) -> Self {
        Self {
            since: filter.since.map_or(0, |at| at.as_secs()),
            until: filter.until.map_or(Self::OPEN, |at| at.as_secs()),
        }
    }

    /// Does the window hold this second?
    pub fn contains(&self, secs: u64) -> bool {
        (self.since..=self.until).contains(&secs)
    }

    /// Does the window hold no second at all?
    pub fn is_empty(&self) -> bool {
        self.since > self.until
    }

    /// What both windows hold; empty if they do not meet.
    pub fn intersect(&self, other: &Self) -> Self {
        Self { since: self.since.max(other.since), until: self.until.min(other.until) }
    }

    /// `filter` narrowed to this window, without a limit. An end that is open leaves the field out.
    pub fn apply(&self, filter: &Filter) -> Filter {
        let window = self.intersect(&Self::of(filter));
        Filter {
            since: (window.since > 0).then(|| window.since.into()),
            until: (window.until < Self::OPEN).then(|| window.until.into()),
            limit: None,
            ..filter.clone()
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.since, self.until) {
            (0, Self::OPEN) => f.write_str("all of time"),
            (since, Self::OPEN) => write!(f, "since {since}"),
            (0, until) => write!(f, "until {until}"),
            (since, until) if since == until => write!(f, "second {since}"),
            (since, until) => write!(f, "{since} to {until}"),
        }
    }
}
