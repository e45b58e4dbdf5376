//! What waits for delivery, in memory: decides what is due, and what on disk is needed no more.
//!
//! News goes through three states: *reserved* while its commit is under way, *ready* once it is held, *running* while it
//! is delivered. What is in none of them may be removed from the outbox.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::config::{Delivery, HookConfig};
use super::counters::Counters;
use super::outbox::{Entries, News};
use crate::protocol::Address;

/// What waits.
#[derive(Debug, Default)]
pub(super) struct Board {
    repositories: BTreeMap<Address, Repository>,
    queue: BTreeSet<(Instant, Address)>,
    /// Repositories with a state for which others were not looked up.
    states: BTreeSet<Address>,
    /// Ids of all repositories, in whatever state.
    ids: usize,
    /// What may be removed from the outbox, if it is not needed by then.
    removals: Entries,
    /// Deliveries that failed since one was taken, of whichever repository.
    failures: u64,
    pub(super) counters: Counters,
}

#[derive(Debug, Default)]
struct Repository {
    reserved: Reserved,
    ready: News,
    running: Option<News>,
    due: Option<Instant>,
    failures: u32,
}

/// What commits under way may make ready. Several may be about the same event.
#[derive(Debug, Default)]
struct Reserved {
    ids: BTreeMap<[u8; 32], u32>,
    unlisted: u32,
    states: u32,
}

/// One event's part in one repository's news.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// The event's place in its batch.
    pub(super) index: usize,
    pub(super) address: Address,
    pub(super) id: [u8; 32],
    /// Is it a state, to be looked up?
    pub(super) state: bool,
    listed: bool,
}

impl Board {
    /// Reserves room for an event, if there is any.
    pub(super) fn admit(
        &mut self,
        index: usize,
        address: Address,
        id: [u8; 32],
        state: bool,
        config: &HookConfig,
    ) -> Option<Item> {
        if !self.repositories.contains_key(&address) && self.repositories.len() >= config.repositories_max {
            self.counters.repositories_refused += 1;
            return None;
        }
        let repository = self.repositories.entry(address.clone()).or_default();
        let listed = self.ids < config.ids_max && repository.ids() < config.ids_per_repository_max;
        if listed {
            self.ids += 1;
            *repository.reserved.ids.entry(id).or_default() += 1;
        } else {
            self.counters.ids_unlisted += 1;
            repository.reserved.unlisted += 1;
        }
        repository.reserved.states += u32::from(state);
        Some(Item { index, address, id, state, listed })
    }

    /// The commit of an item is over: if it is news, it is ready to be delivered.
    pub(super) fn settle(&mut self, item: &Item, is_news: bool, now: Instant, config: &HookConfig) {
        let Some(repository) = self.repositories.get_mut(&item.address) else { return };
        repository.reserved.free(item);
        let removal = News {
            ids: item.listed.then_some(item.id).into_iter().collect(),
            unlisted: !item.listed,
            state: item.state,
        };
        if is_news {
            self.counters.events += 1;
            self.ids -= repository.add_ready(removal);
            if item.state {
                self.states.insert(item.address.clone());
            }
        } else {
            self.ids -= removal.ids.len();
            add(&mut self.removals, &item.address, removal);
        }
        self.schedule(&item.address, now + config.batch);
    }

    /// Takes over what an earlier process has left.
    pub(super) fn restore(&mut self, entries: Entries, now: Instant, config: &HookConfig) {
        for (address, news) in entries {
            self.ids += news.ids.len();
            if news.state {
                self.states.insert(address.clone());
            }
            self.repositories.entry(address.clone()).or_default().ready = News { state: false, ..news };
            self.schedule(&address, now + config.batch);
        }
    }

    /// A delivery that is due and may begin.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Delivery> {
        let (due, _) = self.queue.first()?;
        if *due > now {
            return None;
        }
        let (_, address) = self.queue.pop_first()?;
        let repository = self.repositories.get_mut(&address)?;
        repository.due = None;
        let news = std::mem::take(&mut repository.ready);
        repository.running = Some(news.clone());
        Some(Delivery { repository: address, ids: news.ids, complete: !news.unlisted })
    }

    /// When the next delivery is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// A delivery has been taken, or is not needed.
    pub(super) fn finish(&mut self, address: &Address, now: Instant, config: &HookConfig) {
        let Some(repository) = self.repositories.get_mut(address) else { return };
        repository.failures = 0;
        self.failures = 0;
        if let Some(news) = repository.running.take() {
            self.ids -= news.ids.len();
            add(&mut self.removals, address, news);
        }
        self.schedule(address, now + config.batch);
    }

    /// A delivery has failed, and is to be made again. Gives the wait, and how many have failed since one was taken.
    pub(super) fn fail(&mut self, address: &Address, now: Instant, config: &HookConfig) -> (Duration, u64) {
        self.failures += 1;
        let Some(repository) = self.repositories.get_mut(address) else { return (Duration::ZERO, self.failures) };
        let doubled = 2_u32.saturating_pow(repository.failures.min(31));
        let wait = config.retry_base.saturating_mul(doubled).min(config.retry_max);
        repository.failures = repository.failures.saturating_add(1);
        if let Some(news) = repository.running.take() {
            self.ids -= repository.add_ready(news);
        }
        self.schedule(address, now + wait);
        (wait, self.failures)
    }

    /// A repository with a state that is to be looked up.
    pub(super) fn take_state(&mut self) -> Option<Address> {
        self.states.pop_first()
    }

    /// The state of a repository was looked up, or has to be once more.
    pub(super) fn finish_state(&mut self, address: Address, is_done: bool) {
        if is_done {
            add(&mut self.removals, &address, News { state: true, ..News::default() });
        } else {
            self.states.insert(address);
        }
    }

    /// What is to be removed from the outbox now.
    pub(super) fn take_removals(&mut self) -> Entries {
        let mut removals = std::mem::take(&mut self.removals);
        for (address, removal) in &mut removals {
            if let Some(repository) = self.repositories.get(address) {
                removal.ids.retain(|id| !repository.needs(id));
                removal.unlisted &= !repository.needs_unlisted();
                removal.state &= repository.reserved.states == 0;
            }
            removal.state &= !self.states.contains(address);
        }
        removals.retain(|_, removal| *removal != News::default());
        removals
    }

    pub(super) fn has_removals(&self) -> bool {
        !self.removals.is_empty()
    }

    /// Is there nothing to be delivered?
    pub(super) fn is_empty(&self) -> bool {
        self.repositories.is_empty() && self.states.is_empty()
    }

    /// The counters, with what waits at this moment.
    pub(super) fn counters(&self) -> Counters {
        let running = self.repositories.values().filter(|repository| repository.running.is_some()).count();
        Counters {
            repositories_waiting: self.repositories.len() as u64,
            ids_waiting: self.ids as u64,
            running: running as u64,
            ..self.counters
        }
    }

    /// Queues a repository that has something to deliver, unless it is queued; forgets one about which nothing is left.
    fn schedule(&mut self, address: &Address, due: Instant) {
        let Some(repository) = self.repositories.get_mut(address) else { return };
        let is_idle = repository.running.is_none() && repository.due.is_none();
        if is_idle && !repository.ready.is_empty() {
            repository.due = Some(due);
            self.queue.insert((due, address.clone()));
        } else if is_idle && repository.reserved.is_empty() {
            self.repositories.remove(address);
        }
    }
}

impl Repository {
    fn ids(&self) -> usize {
        let running = self.running.as_ref().map_or(0, |news| news.ids.len());
        self.reserved.ids.len() + self.ready.ids.len() + running
    }

    /// Gives the number of ids that were there already.
    fn add_ready(&mut self, news: News) -> usize {
        let added = self.ready.ids.len() + news.ids.len();
        self.ready.ids.extend(news.ids);
        self.ready.unlisted |= news.unlisted;
        added - self.ready.ids.len()
    }

    fn needs(&self, id: &[u8; 32]) -> bool {
        let is_running = self.running.as_ref().is_some_and(|news| news.ids.contains(id));
        is_running || self.ready.ids.contains(id) || self.reserved.ids.contains_key(id)
    }

    fn needs_unlisted(&self) -> bool {
        let is_running = self.running.as_ref().is_some_and(|news| news.unlisted);
        is_running || self.ready.unlisted || self.reserved.unlisted > 0
    }
}

impl Reserved {
    fn free(&mut self, item: &Item) {
        self.states -= u32::from(item.state);
        self.unlisted -= u32::from(!item.listed);
        if item.listed
            && let Some(count) = self.ids.get_mut(&item.id)
        {
            *count -= 1;
            if *count == 0 {
                self.ids.remove(&item.id);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.ids.is_empty() && (self.unlisted, self.states) == (0, 0)
    }
}

impl News {
    fn is_empty(&self) -> bool {
        self.ids.is_empty() && !self.unlisted
    }
}

/// What is to be written for `items` before their commit.
pub(super) fn entries_of(items: &[Item]) -> Entries {
    let mut entries = Entries::new();
    for item in items {
        let ids = item.listed.then_some(item.id).into_iter().collect();
        add(&mut entries, &item.address, News { ids, unlisted: !item.listed, state: item.state });
    }
    entries
}

fn add(entries: &mut Entries, address: &Address, news: News) {
    let entry = entries.entry(address.clone()).or_default();
    entry.ids.extend(news.ids);
    entry.unlisted |= news.unlisted;
    entry.state |= news.state;
}
