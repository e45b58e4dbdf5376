//! A store that notes in the outbox what it is about to hold.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use super::board::{Item, entries_of};
use super::relevance::Relevance;
use super::{Shared, joined};
use crate::ingest::Verified;
use crate::peer::View;
use crate::protocol::{Event, Filter, ItemSet, Window};
use crate::store::{Arrivals, Batch, Outcome, Page, Query, Record, RequestContext, Sequence, Snapshot, Store};

/// A store whose new events are handed on by a [`Hook`](super::Hook). Clones share it.
pub struct HookStore<S> {
    shared: Arc<Shared<S>>,
}

impl<S> HookStore<S> {
    pub(super) fn new(shared: Arc<Shared<S>>) -> Self {
        Self { shared }
    }
}

impl<S> Clone for HookStore<S> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<S> fmt::Debug for HookStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookStore").finish_non_exhaustive()
    }
}

impl<S: Store> Shared<S> {
    /// Reserves room for what is relevant of `events`.
    fn admit(&self, events: &[Verified<Event>]) -> Vec<Item> {
        let mut items = Vec::new();
        for (index, event) in events.iter().enumerate() {
            let relevance = Relevance::of(event, &self.config);
            if relevance == Relevance::default() {
                continue;
            }
            let mut board = self.board();
            board.counters.addresses_skipped += relevance.skipped;
            for address in relevance.repositories {
                let state = relevance.state.as_ref() == Some(&address);
                items.extend(board.admit(index, address, event.id.to_bytes(), state, &self.config));
            }
        }
        items
    }

    /// The commit of `items` is over; which of them are news, `is_news` says by their place in the batch.
    pub(super) fn settle(&self, items: &[Item], is_news: impl Fn(usize) -> bool) {
        let now = Instant::now();
        let mut board = self.board();
        for item in items {
            board.settle(item, is_news(item.index), now, &self.config);
        }
        drop(board);
        self.notify();
    }

    async fn commit(self: Arc<Self>, batch: Batch) -> Result<Vec<Outcome>, S::Error> {
        let items = self.admit(&batch.events);
        if !items.is_empty() {
            self.write(entries_of(&items)).await;
        }
        let result = self.store.commit(batch).await;
        match &result {
            Ok(outcomes) => self.settle(&items, |index| outcomes.get(index) == Some(&Outcome::Stored)),
            // Whether it is held will be seen when it is to be delivered.
            Err(_) => self.settle(&items, |_| true),
        }
        result
    }
}

impl<S: Store> Store for HookStore<S> {
    type Error = S::Error;

    async fn load(&self) -> Result<Snapshot, S::Error> {
        self.shared.store.load().await
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, S::Error> {
        if batch.events.iter().all(|event| !self.shared.config.kinds.contains(&event.kind_number())) {
            return self.shared.store.commit(batch).await;
        }
        // A task of its own: a caller that stops waiting stops neither the commit nor the delivery of what it stored.
        joined(tokio::spawn(self.shared.clone().commit(batch))).await
    }

    async fn known(&self, ids: Vec<[u8; 32]>, view: &View) -> Result<Vec<bool>, S::Error> {
        self.shared.store.known(ids, view).await
    }

    async fn items(&self, filter: &Filter, window: Window, view: &View) -> Result<Arc<ItemSet>, S::Error> {
        self.shared.store.items(filter, window, view).await
    }

    async fn held_items(
        &self,
        filter: &Filter,
        window: Window,
        view: &View,
        now_secs: u64,
    ) -> Result<Arc<ItemSet>, S::Error> {
        self.shared.store.held_items(filter, window, view, now_secs).await
    }

    async fn events(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<Record>>, S::Error> {
        self.shared.store.events(ids).await
    }

    async fn query(&self, query: Query) -> Result<Page, S::Error> {
        self.shared.store.query(query).await
    }

    async fn count(&self, filters: Vec<Filter>, view: &View, now_secs: u64) -> Result<u64, S::Error> {
        self.shared.store.count(filters, view, now_secs).await
    }

    async fn contexts(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<RequestContext>>, S::Error> {
        self.shared.store.contexts(ids).await
    }

    async fn arrivals(&self, after: Sequence, limit: usize, bytes_max: usize) -> Result<Arrivals, S::Error> {
        self.shared.store.arrivals(after, limit, bytes_max).await
    }

    async fn last_arrival(&self) -> Result<Sequence, S::Error> {
        self.shared.store.last_arrival().await
    }

    fn floor_secs(&self) -> Option<u64> {
        self.shared.store.floor_secs()
    }
}
