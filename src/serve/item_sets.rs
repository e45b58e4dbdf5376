//! The item sets kept for reconciliations, so that a store is not read for each. A set is read once, extended as
//! events are stored, and forgotten as soon as something in it may have been removed.

use std::sync::Arc;
use std::time::Duration;

use super::io::{ClientId, Ticket, Tickets};
use crate::peer::View;
use crate::protocol::{Event, Filter, Item, ItemSet, Window, filter};
use crate::runtime::Instant;

/// Which session of which client waits for a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) client: ClientId,
    pub(super) session: String,
    pub(super) serial: u64,
}

/// How many, how large and how old the sets may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) sets_max: usize,
    pub(super) records_max: usize,
    pub(super) age_max: Duration,
}

/// Sets by filter, without its window and limit, window, and what is seen of it.
#[derive(Debug)]
pub(super) struct ItemSets {
    bounds: Bounds,
    /// Least recently used first.
    kept: Vec<Kept>,
    loading: Vec<Loading>,
}

#[derive(Debug)]
struct Scope {
    filter: Filter,
    window: Window,
    view: View,
}

#[derive(Debug)]
struct Kept {
    scope: Scope,
    set: Arc<ItemSet>,
    /// Stored since; merged when somebody asks.
    added: Vec<Item>,
    read_at: Instant,
}

#[derive(Debug)]
struct Loading {
    ticket: Ticket,
    scope: Scope,
    waiters: Vec<Waiter>,
    added: Vec<Item>,
    /// Something may have been removed after the store was read: good for those who wait, not to be kept.
    stale: bool,
}

/// The answer to [`ItemSets::request`].
#[derive(Debug)]
pub(super) enum Found {
    /// Here it is.
    Set(Arc<ItemSet>),
    /// It is being read already; the waiter was noted.
    Awaited,
    /// It must be read under this ticket; the waiter was noted.
    Read(Ticket),
}

impl ItemSets {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, kept: Vec::new(), loading: Vec::new() }
    }

    /// Asks for a set that has the items of `filter` (which has no window and limit) that are seen through `view` in
    /// `window`, and maybe more outside of it.
    pub(super) fn request(
        &mut self,
        filter: &Filter,
        window: Window,
        view: &View,
        waiter: Waiter,
        tickets: &mut Tickets,
        now: Instant,
    ) -> Found {
        let age_max = self.bounds.age_max;
        self.kept.retain(|kept| now.since(kept.read_at) < age_max);
        if let Some(index) = self.kept.iter().position(|kept| kept.scope.covers(filter, window, view)) {
            let mut kept = self.kept.remove(index);
            kept.merge();
            let set = kept.set.clone();
            self.kept.push(kept);
            return Found::Set(set);
        }
        if let Some(loading) = self.loading.iter_mut().find(|loading| loading.scope.covers(filter, window, view)) {
            // What was removed since that read began must not be offered to those who ask only now.
            if !loading.stale {
                loading.waiters.push(waiter);
                return Found::Awaited;
            }
        }
        let ticket = tickets.issue();
        let scope = Scope { filter: filter.clone(), window, view: view.clone() };
        self.loading.push(Loading { ticket, scope, waiters: vec![waiter], added: Vec::new(), stale: false });
        Found::Read(ticket)
    }

    /// Takes a set that was read (`None`: in vain); gives back who waits for it, and the set with what came meanwhile.
    pub(super) fn loaded(
        &mut self,
        ticket: Ticket,
        set: Option<Arc<ItemSet>>,
        now: Instant,
    ) -> (Vec<Waiter>, Option<Arc<ItemSet>>) {
        let Some(index) = self.loading.iter().position(|loading| loading.ticket == ticket) else {
            return (Vec::new(), None);
        };
        let Loading { scope, waiters, added, stale, .. } = self.loading.swap_remove(index);
        let Some(set) = set else { return (waiters, None) };
        let mut kept = Kept { scope, set, added, read_at: now };
        kept.merge();
        let set = kept.set.clone();
        if !stale && set.len() <= self.bounds.records_max {
            self.kept.push(kept);
            self.evict();
        }
        (waiters, Some(set))
    }

    /// Notes that `event` was stored.
    pub(super) fn stored(&mut self, event: &Event) {
        let item = Item::of(event);
        if removes_others(event) {
            self.kept.retain(|kept| !kept.scope.may_lose_to(event));
            for loading in self.loading.iter_mut().filter(|loading| loading.scope.may_lose_to(event)) {
                loading.stale = true;
            }
        }
        for kept in self.kept.iter_mut().filter(|kept| kept.scope.has(event)) {
            kept.added.push(item);
        }
        for loading in self.loading.iter_mut().filter(|loading| loading.scope.has(event)) {
            loading.added.push(item);
        }
    }

    /// Events were stored that nobody knows: no set is complete any more, nor are those that are being read.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
        self.loading.iter_mut().for_each(|loading| loading.stale = true);
    }

    fn evict(&mut self) {
        let records = |kept: &[Kept]| kept.iter().map(|kept| kept.set.len()).sum::<usize>();
        while self.kept.len() > self.bounds.sets_max || records(&self.kept) > self.bounds.records_max {
            self.kept.remove(0);
        }
    }
}

impl Kept {
    fn merge(&mut self) {
        if !self.added.is_empty() {
            self.set = Arc::new(self.set.union(self.added.drain(..)));
        }
    }
}

impl Scope {
    fn covers(&self, filter: &Filter, window: Window, view: &View) -> bool {
        self.filter == *filter && self.window.intersect(&window) == window && self.view == *view
    }

    fn has(&self, event: &Event) -> bool {
        self.window.contains(event.created_at_secs()) && filter::matches(&self.filter, event) && self.view.shows(event)
    }

    /// May `event`, just stored, have removed something that this scope has?
    fn may_lose_to(&self, event: &Event) -> bool {
        let same_kind = event.kind.is_replaceable() || event.kind.is_addressable();
        self.filter.authors.as_ref().is_none_or(|authors| authors.contains(&event.pubkey))
            && (!same_kind || self.filter.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.kind)))
    }
}

/// Deletions (NIP-09), vanish requests (NIP-62) and new versions remove what was stored before.
fn removes_others(event: &Event) -> bool {
    matches!(event.kind_number(), 5 | 62) || event.kind.is_replaceable() || event.kind.is_addressable()
}
