//! Generated events on whose fate all relays agree, so that what is expected is exact.
//!
//! Two rules of NIP-01 and NIP-09 are not everybody's, and what they decide is left out. Of two versions with one date
//! rust-nostr's relay keeps the one that came last instead of the one with the lowest id: here no two versions have
//! one date. The npm relay carries deletions out but does not keep them: its events are without deletions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use relaysync::protocol::Event;
use relaysync::sample::{Burst, SampleConfig, generate};

use crate::peers::read_lines;
use crate::world::World;

/// Ids of events, in hexadecimal.
pub(crate) type Ids = BTreeSet<String>;

/// More than the 500 events that rust-nostr's relay, and the 100 that the npm relay, give in a page by default.
pub(crate) const BURST_EVENTS: usize = 700;
/// Dated up to ten years after the end of 2024, and so most of them in the future.
pub(crate) const FUTURE_EVENTS: usize = 150;

/// The date of the burst.
pub(crate) const BURST_SECOND: u64 = 1_710_000_000;
const TEN_YEARS_SECS: u64 = 10 * 365 * 86_400;
const DELETION: u16 = 5;

/// Which relay the events are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taste {
    /// All kinds, with deletions and what they delete.
    RustNostr,
    /// No deletions.
    Npm,
}

/// About `count` events of mixed kinds, with a burst and with dates in the future, oldest first.
pub(crate) fn sample(count: usize, seed: u64, taste: Taste) -> Vec<Event> {
    let config = SampleConfig {
        seed,
        events: count,
        burst: Some(Burst { second: BURST_SECOND, events: BURST_EVENTS.min(count / 2) }),
        future_events: FUTURE_EVENTS.min(count / 10),
        future_secs: TEN_YEARS_SECS,
        ..SampleConfig::default()
    };
    let mut events = generate(&config);
    drop_ties(&mut events);
    if taste == Taste::Npm {
        events.retain(|event| event.kind_number() != DELETION);
    }
    events
}

/// The events without the burst: for relays whose page cannot hold it.
pub(crate) fn spread(events: &[Event]) -> Vec<Event> {
    events.iter().filter(|event| event.created_at_secs() != BURST_SECOND).cloned().collect()
}

/// What a store keeps of the events: none of them deletes or supersedes another.
pub(crate) fn kept_together(world: &World, mut events: Vec<Event>) -> Vec<Event> {
    world.import("kept-together", &write(world.path(), "kept-together.jsonl", &events));
    let kept = world.held("kept-together");
    events.retain(|event| kept.contains(&event.id.to_hex()));
    events
}

/// Of versions with one date, leaves the one that NIP-01 keeps.
fn drop_ties(events: &mut Vec<Event>) {
    let mut lowest = BTreeMap::new();
    for event in events.iter() {
        if let Some(version) = version_of(event) {
            let id = lowest.entry(version).or_insert(event.id);
            *id = event.id.min(*id);
        }
    }
    events.retain(|event| version_of(event).is_none_or(|version| lowest[&version] == event.id));
}

type Version = (u16, [u8; 32], Option<String>, u64);

/// What two versions with one date have in common; `None` for events that have no versions.
fn version_of(event: &Event) -> Option<Version> {
    let identifier = event.kind.is_addressable().then(|| event.tags.identifier().unwrap_or_default());
    let has_versions = event.kind.is_replaceable() || event.kind.is_addressable();
    has_versions.then(|| (event.kind_number(), event.pubkey.to_bytes(), identifier, event.created_at_secs()))
}

/// Writes events into `folder`, one a line.
pub(crate) fn write<'a>(folder: &Path, name: &str, events: impl IntoIterator<Item = &'a Event>) -> PathBuf {
    let path = folder.join(name);
    let lines: String = events.into_iter().flat_map(|event| [event.json_str(), "\n"]).collect();
    std::fs::write(&path, lines).expect("a temporary folder can be written");
    path
}

/// The ids of events that are written one a line.
pub(crate) fn ids_of(lines: &[String]) -> Ids {
    let parse = |line: &String| Event::parse(line.clone().into()).expect("only events are written").id.to_hex();
    let ids: Ids = lines.iter().map(parse).collect();
    assert_eq!(ids.len(), lines.len(), "every event once");
    ids
}

/// The ids of the events in a file.
pub(crate) fn ids_in(path: &Path) -> Ids {
    ids_of(&read_lines(path))
}
