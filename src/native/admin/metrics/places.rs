//! Which relays have labels of their own.
//!
//! Anybody can name relays in an announcement, and each label costs whoever stores the metrics. So only so many relays
//! have one; the rest are counted together. A relay keeps its place for as long as it is known: one that moved between
//! the two would make counters jump.

use std::collections::BTreeMap;

use crate::engine::RelayReport;
use crate::protocol::RelayUrl;

/// The label of the relays that have none of their own. No URL is spelled like this.
const OTHER: &str = "other";

/// Who has a label of its own.
#[derive(Debug)]
pub(super) struct Places {
    named_max: usize,
    /// Each relay of the last report: is it named?
    is_named: BTreeMap<RelayUrl, bool>,
}

/// What is written under one label.
pub(super) struct Group<'r> {
    pub(super) label: &'r str,
    pub(super) relays: Vec<&'r RelayReport>,
}

impl Group<'_> {
    pub(super) fn sum(&self, value: impl Fn(&RelayReport) -> u64) -> u64 {
        self.relays.iter().map(|relay| value(relay)).sum()
    }

    /// Is this one relay's own label?
    pub(super) fn is_named(&self) -> bool {
        self.label != OTHER
    }
}

impl Places {
    pub(super) fn new(named_max: usize) -> Self {
        Self { named_max, is_named: BTreeMap::new() }
    }

    /// `relays` by their labels; places of those that are not among them any more are free for newcomers.
    pub(super) fn groups<'r>(&mut self, relays: &'r [RelayReport]) -> Vec<Group<'r>> {
        let before = std::mem::take(&mut self.is_named);
        let known = relays.iter().filter_map(|relay| Some((relay.relay.clone(), *before.get(&relay.relay)?)));
        self.is_named = known.collect();
        let mut named = self.is_named.values().filter(|is_named| **is_named).count();
        for relay in relays {
            self.is_named.entry(relay.relay.clone()).or_insert_with(|| {
                let has_place = named < self.named_max;
                named += usize::from(has_place);
                has_place
            });
        }
        let (own, other): (Vec<_>, Vec<_>) = relays.iter().partition(|relay| self.is_named[&relay.relay]);
        let mut groups: Vec<_> =
            own.into_iter().map(|relay| Group { label: relay.relay.as_str(), relays: vec![relay] }).collect();
        if !other.is_empty() {
            groups.push(Group { label: OTHER, relays: other });
        }
        groups
    }
}
