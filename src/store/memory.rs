//! The store in memory: for tests, simulations, dry runs and one-shot jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::entry::{Entry, Range, Sequence};
use super::tables::{Body, Changes, Damaged, Tables};
use super::{
    Arrivals, Batch, Coverage, Outcome, Page, Query, Record, RequestContext, Snapshot, Store, StoreConfig, rules,
    select,
};
use crate::peer::View;
use crate::protocol::{Filter, FilterKey, ItemSet, RelayUrl, Window};

/// An estimate counts no further.
const ESTIMATE_MAX: usize = 1000;

/// A store in memory. Its futures are ready at once; clones share one content.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    config: StoreConfig,
    content: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    entries: BTreeSet<Entry>,
    bodies: BTreeMap<Sequence, Body>,
    fates: BTreeMap<Sequence, Outcome>,
    coverage: BTreeMap<(RelayUrl, FilterKey), Coverage>,
    /// By the first number, with the last.
    contexts: BTreeMap<Sequence, (Sequence, RequestContext)>,
    next_sequence: Sequence,
    swept_secs: u64,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(config: StoreConfig) -> Self {
        Self { config, content: Arc::default() }
    }

    // Changes are worked out first and then applied, so a panic elsewhere leaves the content whole.
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    fn apply(&mut self, changes: Changes) -> Vec<Outcome> {
        self.entries.extend(changes.points);
        self.entries.extend(changes.entries);
        for (sequence, event) in changes.held {
            self.bodies.insert(sequence, Body { author: event.pubkey.to_bytes(), json: event.json().clone() });
        }
        for sequence in changes.fates.keys() {
            self.bodies.remove(sequence);
        }
        self.fates.extend(changes.fates);
        for mark in changes.coverage {
            let key = (mark.relay.clone(), mark.filter.clone());
            match mark.windows.is_empty() {
                true => self.coverage.remove(&key),
                false => self.coverage.insert(key, mark),
            };
        }
        self.contexts.extend(changes.contexts.into_iter().map(|(first, last, context)| (first, (last, context))));
        self.next_sequence = changes.next_sequence;
        self.swept_secs = changes.swept_secs;
        changes.outcomes
    }
}

impl Tables for Content {
    type Error = Damaged;

    fn scan(&self, range: &Range, each: &mut dyn FnMut(&Entry) -> ControlFlow<()>) -> Result<(), Damaged> {
        if range.is_empty() {
            return Ok(());
        }
        for entry in self.entries.range(range.first..=range.last) {
            if each(entry).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn estimate(&self, range: &Range) -> Result<usize, Damaged> {
        if range.is_empty() {
            return Ok(0);
        }
        Ok(self.entries.range(range.first..=range.last).take(ESTIMATE_MAX).count())
    }

    fn fate(&self, sequence: Sequence) -> Option<Outcome> {
        self.fates.get(&sequence).copied()
    }

    fn body(&self, sequence: Sequence) -> Result<Option<Body>, Damaged> {
        Ok(self.bodies.get(&sequence).cloned())
    }

    fn context(&self, sequence: Sequence) -> Result<Option<RequestContext>, Damaged> {
        let before = self.contexts.range(..=sequence).next_back();
        Ok(before.filter(|(_, (last, _))| sequence <= *last).map(|(_, (_, context))| context.clone()))
    }

    fn next_sequence(&self) -> Sequence {
        self.next_sequence
    }

    fn swept_secs(&self) -> u64 {
        self.swept_secs
    }
}

impl Store for MemoryStore {
    type Error = Damaged;

    async fn load(&self) -> Result<Snapshot, Damaged> {
        Ok(Snapshot { coverage: self.lock().coverage.values().cloned().collect() })
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, Damaged> {
        let mut content = self.lock();
        let changes = rules::apply(&*content, batch, &self.config)?;
        Ok(content.apply(changes))
    }

    async fn known(&self, ids: Vec<[u8; 32]>, view: &View) -> Result<Vec<bool>, Damaged> {
        select::known(&*self.lock(), &ids, view)
    }

    async fn items(&self, filter: &Filter, window: Window, view: &View) -> Result<Arc<ItemSet>, Damaged> {
        select::items(&*self.lock(), filter, window, view).map(Arc::new)
    }

    async fn held_items(
        &self,
        filter: &Filter,
        window: Window,
        view: &View,
        now_secs: u64,
    ) -> Result<Arc<ItemSet>, Damaged> {
        select::held_items(&*self.lock(), filter, window, view, now_secs).map(Arc::new)
    }

    async fn events(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<Record>>, Damaged> {
        select::events(&*self.lock(), &ids)
    }

    async fn query(&self, query: Query) -> Result<Page, Damaged> {
        select::query(&*self.lock(), &query)
    }

    async fn count(&self, filters: Vec<Filter>, view: &View, now_secs: u64) -> Result<u64, Damaged> {
        select::count(&*self.lock(), &filters, view, now_secs)
    }

    async fn contexts(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<RequestContext>>, Damaged> {
        select::contexts(&*self.lock(), &ids)
    }

    async fn arrivals(&self, after: Sequence, limit: usize, bytes_max: usize) -> Result<Arrivals, Damaged> {
        select::arrivals(&*self.lock(), after, limit, bytes_max)
    }

    async fn last_arrival(&self) -> Result<Sequence, Damaged> {
        Ok(select::last_arrival(&*self.lock()))
    }
}
