//! The store with the hook in its way, which can be put in, taken out and replaced while commits go on.

use std::sync::Arc;

use tokio::sync::RwLock;

use super::disk::{Disk, beside};
use crate::native::SocketConfig;
use crate::native::hook::{self, Hook, HookConfig, HookError};
use crate::native::store::StoreError;
use crate::protocol::{Filter, ItemSet, Window};
use crate::store::{Batch, Outcome, Page, Query, Record, Snapshot, Store};

/// What the outbox is called, behind the name of the store's file.
const OUTBOX: &str = "outbox";

/// The store on disk, and who is told of what it stores.
pub(super) struct Hooked {
    disk: Arc<Disk>,
    /// Held for reading during each commit, so that a hook that is replaced has heard of all of them.
    hook: RwLock<Option<Hook<Disk>>>,
}

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooked").field("disk", &self.disk).finish_non_exhaustive()
    }
}

impl Hooked {
    /// Nobody is told.
    pub(super) fn new(disk: Arc<Disk>) -> Self {
        Self { disk, hook: RwLock::new(None) }
    }

    /// From now on this hook, or none. Commits wait until the old one has ended.
    pub(super) async fn set(&self, config: Option<HookConfig>, sockets: SocketConfig) -> Result<(), HookError> {
        let mut hook = self.hook.write().await;
        if let Some(old) = hook.take() {
            old.shutdown().await;
        }
        if let Some(config) = config {
            let outbox = beside(&self.disk.file(), OUTBOX);
            *hook = Some(Hook::open(outbox, config, sockets, self.disk.clone()).await?);
        }
        Ok(())
    }

    /// What the hook has done so far, if there is one.
    pub(super) async fn counters(&self) -> Option<hook::Counters> {
        self.hook.read().await.as_ref().map(Hook::counters)
    }

    /// Ends the hook.
    pub(super) async fn close(&self) {
        if let Some(hook) = self.hook.write().await.take() {
            hook.shutdown().await;
        }
    }
}

impl Store for Hooked {
    type Error = StoreError;

    async fn load(&self) -> Result<Snapshot, StoreError> {
        self.disk.load().await
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, StoreError> {
        match &*self.hook.read().await {
            Some(hook) => hook.store().commit(batch).await,
            None => self.disk.commit(batch).await,
        }
    }

    async fn known(&self, ids: Vec<[u8; 32]>) -> Result<Vec<bool>, StoreError> {
        self.disk.known(ids).await
    }

    async fn items(&self, filter: &Filter, window: Window) -> Result<Arc<ItemSet>, StoreError> {
        self.disk.items(filter, window).await
    }

    async fn held_items(&self, filter: &Filter, window: Window, now_secs: u64) -> Result<Arc<ItemSet>, StoreError> {
        self.disk.held_items(filter, window, now_secs).await
    }

    async fn events(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<Record>>, StoreError> {
        self.disk.events(ids).await
    }

    async fn query(&self, query: Query) -> Result<Page, StoreError> {
        self.disk.query(query).await
    }

    async fn count(&self, filters: Vec<Filter>, now_secs: u64) -> Result<u64, StoreError> {
        self.disk.count(filters, now_secs).await
    }
}
