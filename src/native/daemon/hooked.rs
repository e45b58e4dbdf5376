//! The store with the hook in its way, which can be put in, taken out and replaced while commits go on.

use std::sync::Arc;

use tokio::sync::RwLock;

use super::disk::{Disk, beside};
use crate::native::SocketConfig;
use crate::native::hook::{self, Hook, HookConfig, HookError};
use crate::native::store::StoreError;
use crate::peer::View;
use crate::protocol::{Filter, ItemSet, Window};
use crate::store::{Arrivals, Batch, Outcome, Page, Query, Record, RequestContext, Sequence, Snapshot, Store};

/// What the outbox is called, behind the name of the store's file.
const OUTBOX: &str = "outbox";

/// The store on disk, and who is told of what it stores.
pub(super) struct Hooked {
    disk: Arc<Disk>,
    /// Held for reading during each commit, so that a hook that is replaced has heard of all of them.
    running: RwLock<Option<Running>>,
}

/// A hook, and what it was made from.
struct Running {
    hook: Hook<Disk>,
    config: HookConfig,
    sockets: SocketConfig,
}

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooked").field("disk", &self.disk).finish_non_exhaustive()
    }
}

impl Hooked {
    /// Nobody is told.
    pub(super) fn new(disk: Arc<Disk>) -> Self {
        Self { disk, running: RwLock::new(None) }
    }

    /// From now on this hook, or none. Commits wait until the old one has ended.
    ///
    /// # Errors
    /// The hook cannot begin; then the old one goes on, if that can.
    pub(super) async fn set(&self, config: Option<HookConfig>, sockets: SocketConfig) -> Result<(), HookError> {
        let mut running = self.running.write().await;
        // Both use the same outbox: the old one ends first.
        let mut former = None;
        if let Some(Running { hook, config, sockets }) = running.take() {
            hook.shutdown().await;
            former = Some((config, sockets));
        }
        let Some(config) = config else { return Ok(()) };
        let begun = self.begin(config, sockets).await;
        if begun.is_err()
            && let Some((config, sockets)) = former
        {
            let again = self.begin(config, sockets).await;
            *running = again.inspect_err(|error| tracing::error!("the former hook does not go on: {error}")).ok();
        }
        *running = Some(begun?);
        Ok(())
    }

    async fn begin(&self, config: HookConfig, sockets: SocketConfig) -> Result<Running, HookError> {
        let outbox = beside(&self.disk.file(), OUTBOX);
        let hook = Hook::open(outbox, config.clone(), sockets.clone(), self.disk.clone()).await?;
        Ok(Running { hook, config, sockets })
    }

    /// Is there no hook, by whatever reason?
    pub(super) async fn is_off(&self) -> bool {
        self.running.read().await.is_none()
    }

    /// What the hook has done so far, if there is one.
    pub(super) async fn counters(&self) -> Option<hook::Counters> {
        self.running.read().await.as_ref().map(|running| running.hook.counters())
    }

    /// Ends the hook.
    pub(super) async fn close(&self) {
        if let Some(running) = self.running.write().await.take() {
            running.hook.shutdown().await;
        }
    }
}

impl Store for Hooked {
    type Error = StoreError;

    async fn load(&self) -> Result<Snapshot, StoreError> {
        self.disk.load().await
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, StoreError> {
        match &*self.running.read().await {
            Some(running) => running.hook.store().commit(batch).await,
            None => self.disk.commit(batch).await,
        }
    }

    async fn known(&self, ids: Vec<[u8; 32]>, view: &View) -> Result<Vec<bool>, StoreError> {
        self.disk.known(ids, view).await
    }

    async fn items(&self, filter: &Filter, window: Window, view: &View) -> Result<Arc<ItemSet>, StoreError> {
        self.disk.items(filter, window, view).await
    }

    async fn held_items(
        &self,
        filter: &Filter,
        window: Window,
        view: &View,
        now_secs: u64,
    ) -> Result<Arc<ItemSet>, StoreError> {
        self.disk.held_items(filter, window, view, now_secs).await
    }

    async fn events(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<Record>>, StoreError> {
        self.disk.events(ids).await
    }

    async fn query(&self, query: Query) -> Result<Page, StoreError> {
        self.disk.query(query).await
    }

    async fn count(&self, filters: Vec<Filter>, view: &View, now_secs: u64) -> Result<u64, StoreError> {
        self.disk.count(filters, view, now_secs).await
    }

    async fn contexts(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<RequestContext>>, StoreError> {
        self.disk.contexts(ids).await
    }

    async fn arrivals(&self, after: Sequence, limit: usize, bytes_max: usize) -> Result<Arrivals, StoreError> {
        self.disk.arrivals(after, limit, bytes_max).await
    }

    async fn last_arrival(&self) -> Result<Sequence, StoreError> {
        self.disk.last_arrival().await
    }
}
