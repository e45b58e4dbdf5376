//! Segments that still have bodies of events that are gone, and when they are packed anew without them.
//!
//! Nobody finds a body whose event is gone, so there is no hurry: each commit works off a bounded part. What authors took
//! back goes first.

use std::collections::BTreeMap;

use super::PackedConfig;
use super::content::Content;
use super::layout::SegmentName;
use crate::store::Outcome;
use crate::store::entry::Sequence;
use crate::store::fates::Fates;

/// A segment without a size cap is packed anew once one in so many of its bodies is dead.
const DEAD_PART: u64 = 4;
/// The same with a size cap, as dead bodies take room beside what the cap allows.
const DEAD_PART_CAPPED: u64 = 8;

/// The dead bodies of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Remains {
    bodies: u64,
    /// What its author took back may be among them.
    is_urgent: bool,
}

/// Segments with dead bodies, by their first numbers.
pub(super) type Ragged = BTreeMap<Sequence, Remains>;

/// Finds them in what was read.
pub(super) fn found(content: &Content) -> Ragged {
    let with_dead = content.segments.values().filter(|name| name.dead(&content.fates) > 0);
    let remains = with_dead.map(|name| {
        let last = name.last.min(content.meta.next_sequence);
        let is_urgent = (name.first..=last).any(|sequence| content.fates.of(sequence).is_some_and(is_taken_back));
        (name.first, Remains { bodies: name.dead(&content.fates), is_urgent })
    });
    remains.collect()
}

/// Notes what `new` fates leave behind; they are among `fates`.
pub(super) fn note(ragged: &mut Ragged, content: &Content, fates: &Fates, new: &BTreeMap<Sequence, Outcome>) {
    let mut touched: BTreeMap<Sequence, (SegmentName, bool)> = BTreeMap::new();
    for (sequence, fate) in new {
        if let Some(name) = content.segment_of(*sequence) {
            touched.entry(name.first).or_insert((*name, false)).1 |= is_taken_back(*fate);
        }
    }
    for (first, (name, is_urgent)) in touched {
        let bodies = name.dead(fates);
        if bodies > 0 {
            let remains = ragged.entry(first).or_insert(Remains { bodies, is_urgent });
            *remains = Remains { bodies, is_urgent: remains.is_urgent || is_urgent };
        }
    }
}

/// What the dead bodies take, about, in bytes.
pub(super) fn dead_bytes(ragged: &Ragged, content: &Content) -> u64 {
    let named = ragged.iter().filter_map(|(first, remains)| Some((content.segments.get(first)?, remains)));
    named.map(|(name, remains)| remains.bodies * name.body_bytes()).sum()
}

/// The segments of which nothing is left, and those that one commit packs anew.
pub(super) fn due(ragged: &Ragged, content: &Content, config: &PackedConfig) -> (Vec<SegmentName>, Vec<SegmentName>) {
    let part = if config.bytes_max.is_some() { DEAD_PART_CAPPED } else { DEAD_PART };
    let (mut dead, mut urgent, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (first, remains) in ragged {
        let Some(name) = content.segments.get(first) else { continue };
        let bodies = u64::from(name.bodies);
        if remains.bodies >= bodies {
            dead.push(*name);
        } else if remains.is_urgent {
            urgent.push(*name);
        } else if remains.bodies * part >= bodies {
            others.push(*name);
        }
    }
    let mut bytes = 0;
    let fits = |name: &SegmentName| {
        let is_first = bytes == 0;
        bytes += name.bytes as usize;
        is_first || bytes <= config.repack_bytes_max
    };
    (dead, urgent.into_iter().chain(others).take_while(fits).collect())
}

fn is_taken_back(fate: Outcome) -> bool {
    matches!(fate, Outcome::Deleted | Outcome::Vanished)
}
