//! Which relays, and which peers, have labels of their own.
//!
//! Anybody can name relays in an announcement, and each label costs whoever stores the metrics. So only so many relays
//! have one; the rest are counted together. A relay keeps its place for as long as it is known: one that moved between
//! the two would make counters jump.

use std::collections::BTreeMap;

/// Who has a label of its own.
#[derive(Debug)]
pub(super) struct Places {
    named_max: usize,
    /// The label of those that have none of their own. Nobody is called that.
    other: &'static str,
    /// Each of the last report: is it named?
    is_named: BTreeMap<String, bool>,
}

/// What is written under one label.
pub(super) struct Group<'r, T> {
    pub(super) label: &'r str,
    pub(super) members: Vec<&'r T>,
    is_named: bool,
}

impl<T> Group<'_, T> {
    pub(super) fn sum(&self, value: impl Fn(&T) -> u64) -> u64 {
        self.members.iter().map(|member| value(member)).sum()
    }

    /// Is this one member's own label?
    pub(super) fn is_named(&self) -> bool {
        self.is_named
    }
}

impl Places {
    pub(super) fn new(named_max: usize, other: &'static str) -> Self {
        Self { named_max, other, is_named: BTreeMap::new() }
    }

    /// `members`, each with its name, by their labels; places of those that are not among them any more are free for
    /// newcomers.
    pub(super) fn groups<'r, T>(&mut self, members: &'r [T], name: impl Fn(&'r T) -> &'r str) -> Vec<Group<'r, T>> {
        let before = std::mem::take(&mut self.is_named);
        let names = members.iter().map(&name);
        self.is_named =
            names.filter_map(|name| before.get(name).map(|is_named| (name.to_owned(), *is_named))).collect();
        let mut named = self.is_named.values().filter(|is_named| **is_named).count();
        for member in members {
            self.is_named.entry(name(member).to_owned()).or_insert_with(|| {
                let has_place = named < self.named_max;
                named += usize::from(has_place);
                has_place
            });
        }
        let (own, others): (Vec<_>, Vec<_>) = members.iter().partition(|member| self.is_named[name(member)]);
        let own = own.into_iter().map(|member| Group { label: name(member), members: vec![member], is_named: true });
        let mut groups: Vec<_> = own.collect();
        if !others.is_empty() {
            groups.push(Group { label: self.other, members: others, is_named: false });
        }
        groups
    }
}
