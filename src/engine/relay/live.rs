//! Subscriptions to what is new: which packs each follows, and how it stands.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::{HistoryId, Tickets};
use crate::plan::Pack;
use crate::relay::{Budget, Refusal};

/// A subscription to what is new: for one filter of the caller's, or for as many others as go into a request.
#[derive(Debug)]
pub(super) struct Live {
    /// The packs that it follows.
    pub packs: BTreeSet<Pack>,
    pub subscription: Option<u64>,
    /// `limit: 0` was not understood: ask `since` now instead.
    pub by_since: bool,
    /// The open subscription asks `since`, so what is dated back does not come.
    pub is_dated: bool,
    /// Other packs are followed than the open subscription asks for: it is to be sent again in its own place.
    pub is_changed: bool,
    /// It took the place of others, before these ended: since when all of its packs are followed, in seconds since 1970.
    pub since_secs: Option<u64>,
    /// The relay does not serve it, in these words.
    pub refused: Option<String>,
    /// How often it was refused for want of authentication although that had been accepted, since it was served.
    pub futile: u32,
    /// The words of its last refusal, until it is served.
    pub last_refusal: Option<String>,
}

impl Live {
    fn new(packs: BTreeSet<Pack>, by_since: bool) -> Self {
        Self {
            packs,
            subscription: None,
            by_since,
            is_dated: false,
            is_changed: false,
            since_secs: None,
            refused: None,
            futile: 0,
            last_refusal: None,
        }
    }

    /// Does the relay want authentication before it serves this?
    pub(super) fn lacks_auth(&self) -> bool {
        self.refused.as_ref().is_some_and(|words| Refusal::read(words) == Refusal::AuthRequired)
    }

    /// It is asked for again as at first. Was it refused?
    pub(super) fn forget_refusal(&mut self) -> bool {
        let was_refused = self.refused.take().is_some();
        self.by_since &= !was_refused;
        self.futile = 0;
        was_refused
    }

    /// Can it be put together with others?
    fn is_layered(&self) -> bool {
        self.packs.first().is_some_and(|pack| pack.layer().is_some())
    }
}

/// All live subscriptions of a relay.
#[derive(Debug, Default)]
pub(super) struct Lives {
    by_id: BTreeMap<HistoryId, Live>,
    id_of: BTreeMap<Pack, HistoryId>,
    /// Packs to be followed that are in no subscription yet.
    ungrouped: BTreeSet<Pack>,
    /// Open subscriptions whose packs have others by now: they end once those are served.
    pub retiring: Vec<u64>,
    /// Packs that the retiring subscriptions follow without a break, all of them since this moment at the latest, in
    /// seconds since 1970.
    pub continued: (BTreeSet<Pack>, u64),
    /// `limit: 0` was not understood for packs of several.
    by_since: bool,
    /// All that can be done until a subscription ends is done.
    pub waits_for_room: bool,
    /// Packs that have been in an open subscription before.
    opened: BTreeSet<Pack>,
}

impl Lives {
    /// This is to be followed, if it is to have a subscription of its own.
    pub(super) fn add(&mut self, pack: &Pack) {
        self.waits_for_room = false;
        if pack.is_followed() && !self.id_of.contains_key(pack) {
            self.ungrouped.insert(pack.clone());
        }
    }

    /// This is not to be followed any more. Gives back the subscription that has nothing left to follow.
    pub(super) fn remove(&mut self, pack: &Pack) -> Option<u64> {
        self.ungrouped.remove(pack);
        self.opened.remove(pack);
        self.waits_for_room = false;
        let id = self.id_of.remove(pack)?;
        let live = self.by_id.get_mut(&id)?;
        live.packs.remove(pack);
        live.is_changed = true;
        if live.packs.is_empty() { self.by_id.remove(&id)?.subscription } else { None }
    }

    /// A pack that asks for less takes the place of another.
    pub(super) fn swap(&mut self, old: &Pack, new: &Pack) {
        self.waits_for_room = false;
        if self.ungrouped.remove(old) {
            self.ungrouped.insert(new.clone());
        }
        let Some(id) = self.id_of.remove(old) else { return };
        let Some(live) = self.by_id.get_mut(&id) else { return };
        live.packs.remove(old);
        live.packs.insert(new.clone());
        live.is_changed = true;
        self.id_of.insert(new.clone(), id);
    }

    /// Puts packs that are in no subscription into new ones: as many together as the relay takes in a request.
    pub(super) fn group(&mut self, budget: &Budget, tickets: &mut Tickets) {
        let mut group: (BTreeSet<Pack>, usize) = Default::default();
        for pack in std::mem::take(&mut self.ungrouped) {
            if pack.layer().is_none() {
                self.insert([pack].into(), tickets);
                continue;
            }
            let bytes = pack.filter_bytes();
            let is_full = group.0.len() >= budget.filters_max() || group.1 + bytes > budget.request_bytes_max();
            if is_full && !group.0.is_empty() {
                self.insert(std::mem::take(&mut group).0, tickets);
            }
            group.0.insert(pack);
            group.1 += bytes;
        }
        if !group.0.is_empty() {
            self.insert(group.0, tickets);
        }
    }

    fn insert(&mut self, packs: BTreeSet<Pack>, tickets: &mut Tickets) {
        let id = tickets.next_history();
        self.id_of.extend(packs.iter().map(|pack| (pack.clone(), id)));
        let mut live = Live::new(packs, false);
        live.by_since = self.by_since && live.is_layered();
        self.by_id.insert(id, live);
    }

    /// Dissolves the subscriptions of several packs, so that they are put together anew. What is open of them stays
    /// open until the new ones are served; `opened_secs` says since when, if it is served.
    pub(super) fn dissolve(&mut self, opened_secs: impl Fn(u64) -> Option<u64>) {
        self.waits_for_room = false;
        let layered: Vec<HistoryId> =
            self.by_id.iter().filter(|(_, live)| live.is_layered()).map(|(id, _)| *id).collect();
        for live in layered.iter().filter_map(|id| self.by_id.remove(id)) {
            if let Some(subscription) = live.subscription {
                self.retiring.push(subscription);
                let opened = opened_secs(subscription).filter(|_| !live.is_changed && !live.is_dated);
                if let Some(opened) = live.since_secs.or(opened) {
                    self.continued.0.extend(live.packs.iter().cloned());
                    self.continued.1 = self.continued.1.max(opened);
                }
            }
            self.ungrouped.extend(live.packs);
        }
        self.id_of.retain(|_, id| self.by_id.contains_key(id));
    }

    /// A pack stands for several others from now on, which are removed afterwards.
    pub(super) fn continue_as(&mut self, old: &[Pack], new: &Pack) {
        if old.iter().all(|pack| self.continued.0.contains(pack)) {
            self.continued.0.insert(new.clone());
        }
    }

    /// Forgets what was open: the connection is gone. Packs of several are put together anew.
    pub(super) fn reset(&mut self) {
        for live in self.by_id.values_mut() {
            (live.subscription, live.refused, live.is_changed, live.since_secs) = (None, None, false, None);
        }
        self.dissolve(|_| None);
        self.end_handover();
    }

    /// Nothing is continued any more. Gives back what is to be closed.
    pub(super) fn end_handover(&mut self) -> Vec<u64> {
        self.continued = Default::default();
        std::mem::take(&mut self.retiring)
    }

    /// The packs of this subscription go apart: the relay did not take so many together.
    pub(super) fn split(&mut self, id: HistoryId) {
        self.waits_for_room = false;
        let Some(live) = self.by_id.remove(&id) else { return };
        self.id_of.retain(|_, of| *of != id);
        self.ungrouped.extend(live.packs);
    }

    /// `limit: 0` is not understood for this.
    pub(super) fn ask_by_since(&mut self, id: HistoryId) {
        let Some(live) = self.by_id.get_mut(&id) else { return };
        live.by_since = true;
        self.by_since |= live.is_layered();
    }

    /// All are asked for as at first. Was one refused?
    pub(super) fn forget_refusals(&mut self) -> bool {
        self.by_since = false;
        let mut was_refused = false;
        for live in self.by_id.values_mut() {
            was_refused |= live.forget_refusal();
        }
        was_refused
    }

    /// A subscription is opened. Has what it follows been followed before, and with a break since?
    pub(super) fn note_opened(&mut self, id: HistoryId) -> bool {
        let Some(live) = self.by_id.get(&id) else { return false };
        let (continued, _) = &self.continued;
        let again = live.packs.iter().any(|pack| self.opened.contains(pack) && !continued.contains(pack));
        self.opened.extend(live.packs.iter().cloned());
        again
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (HistoryId, &Live)> {
        self.by_id.iter().map(|(id, live)| (*id, live))
    }

    /// All of them, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Live> {
        self.by_id.values_mut()
    }

    /// In the order of what they follow.
    pub(super) fn in_order(&self) -> Vec<HistoryId> {
        let mut order: Vec<(&Pack, HistoryId)> =
            self.by_id.iter().filter_map(|(id, live)| Some((live.packs.first()?, *id))).collect();
        order.sort();
        order.into_iter().map(|(_, id)| id).collect()
    }

    /// The one of this number.
    pub(super) fn get(&self, id: HistoryId) -> Option<&Live> {
        self.by_id.get(&id)
    }

    /// The one of this number, to be changed.
    pub(super) fn get_mut(&mut self, id: HistoryId) -> Option<&mut Live> {
        self.by_id.get_mut(&id)
    }

    /// The one that follows this pack. What has none of its own comes with the announcements.
    pub(super) fn of(&self, pack: &Pack) -> Option<&Live> {
        let id = match pack.is_followed() {
            true => self.id_of.get(pack),
            false => self.id_of.get(&Pack::announcements()),
        };
        self.by_id.get(id?)
    }

    /// Is everything that is to be followed in an open subscription?
    pub(super) fn are_all_open(&self) -> bool {
        self.ungrouped.is_empty() && self.by_id.values().all(|live| live.subscription.is_some())
    }

    /// Subscriptions for packs of several.
    pub(super) fn groups(&self) -> usize {
        self.by_id.values().filter(|live| live.is_layered()).count()
    }

    /// Filters that are followed.
    pub(super) fn filters(&self) -> usize {
        self.id_of.len()
    }
}
