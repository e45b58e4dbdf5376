//! What has changed since the last batch.

use std::collections::BTreeSet;

use super::arena::{RelayNumber, RepoNumber, RootNumber};

/// One thing wanted of a relay, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Want {
    Announcements,
    Repo(RepoNumber),
    Root(RootNumber),
}

/// Differences between what was handed out and what is wanted now. What comes and goes in between leaves
/// no trace. What goes and comes again is in both: what relays sent meanwhile was refused, so it has to be begun anew.
#[derive(Debug, Default)]
pub(super) struct Changes {
    added: BTreeSet<(RelayNumber, Want)>,
    removed: BTreeSet<(RelayNumber, Want)>,
}

impl Changes {
    /// It is wanted from now on, and was not before; or the other way round.
    pub(super) fn toggle(&mut self, relay: RelayNumber, want: Want, added: bool) {
        let change = (relay, want);
        let is_new = match added {
            true => self.added.insert(change),
            false => self.added.remove(&change) || self.removed.insert(change),
        };
        debug_assert!(is_new, "{change:?} was {} already", if added { "added" } else { "removed" });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.added.len() + self.removed.len()
    }

    /// The next change, by relay. `true` says that it was added; what is removed comes first.
    pub(super) fn next(&mut self) -> Option<(RelayNumber, Want, bool)> {
        let (added, removed) = (self.added.first().copied(), self.removed.first().copied());
        match (added, removed) {
            (Some(added), Some(removed)) if added.0 < removed.0 => self.take_added(),
            (_, Some((relay, want))) => {
                self.removed.pop_first();
                Some((relay, want, false))
            }
            (Some(_), None) => self.take_added(),
            (None, None) => None,
        }
    }

    fn take_added(&mut self) -> Option<(RelayNumber, Want, bool)> {
        self.added.pop_first().map(|(relay, want)| (relay, want, true))
    }
}
