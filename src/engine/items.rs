//! Item sets that are shared: loaded once for all relays that fetch the same filter at about the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{HistoryId, Ticket, Tickets};
use crate::peer::View;
use crate::protocol::{Filter, FilterKey, ItemSet, Window};
use crate::runtime::Instant;

/// Who waits for a set: the relay's number and its history.
pub(super) type Waiter = (usize, HistoryId);

/// What a set has: of a filter, what may be seen.
type Choice = (FilterKey, View);

/// Sets loaded or being loaded.
#[derive(Debug)]
pub(super) struct ItemCache {
    age_max: Duration,
    loading: BTreeMap<Ticket, (Choice, Vec<Waiter>)>,
    loaded: BTreeMap<Choice, (Arc<ItemSet>, Instant)>,
}

/// What to do for a history that wants a set.
pub(super) enum Wanted {
    /// Here it is.
    Ready(Arc<ItemSet>),
    /// Load it, under this ticket.
    Load(Ticket),
    /// It is being loaded.
    Waiting,
}

impl ItemCache {
    /// Sets older than `age_max` are loaded anew.
    pub(super) fn new(age_max: Duration) -> Self {
        Self { age_max, loading: BTreeMap::new(), loaded: BTreeMap::new() }
    }

    pub(super) fn want(&mut self, choice: &Choice, waiter: Waiter, now: Instant, tickets: &mut Tickets) -> Wanted {
        if let Some((set, at)) = self.loaded.get(choice)
            && now - *at <= self.age_max
        {
            return Wanted::Ready(set.clone());
        }
        if let Some((_, waiters)) = self.loading.values_mut().find(|(loading, _)| loading == choice) {
            waiters.push(waiter);
            return Wanted::Waiting;
        }
        let ticket = tickets.next();
        self.loading.insert(ticket, (choice.clone(), vec![waiter]));
        Wanted::Load(ticket)
    }

    /// A set was loaded, or could not be. Gives back who waits for it; `None` if it was not asked for.
    pub(super) fn handle_loaded(
        &mut self,
        ticket: Ticket,
        set: Option<&Arc<ItemSet>>,
        now: Instant,
    ) -> Option<Vec<Waiter>> {
        let (choice, waiters) = self.loading.remove(&ticket)?;
        if let Some(set) = set {
            self.loaded.insert(choice, (set.clone(), now));
        }
        Some(waiters)
    }

    /// Sets that are held.
    pub(super) fn sets(&self) -> usize {
        self.loaded.len()
    }

    /// Sets that are being loaded.
    pub(super) fn loads(&self) -> usize {
        self.loading.len()
    }

    /// Forgets a filter's sets, so that the next history sees what is held by then.
    pub(super) fn forget(&mut self, key: &FilterKey) {
        self.loaded.retain(|(of, _), _| of != key);
    }

    /// Forgets sets that no history uses any more.
    pub(super) fn prune(&mut self, now: Instant) {
        let age_max = self.age_max;
        self.loaded.retain(|_, (set, at)| Arc::strong_count(set) > 1 || now - *at <= age_max);
    }
}

/// A whole filter's set, as far as `view` shows it.
pub(super) fn load(filter: &Arc<Filter>, view: View, ticket: Ticket) -> super::Effect {
    let (filter, window) = (filter.clone(), Window::of(filter));
    super::Effect::LoadItems { ticket, filter, window, view }
}
