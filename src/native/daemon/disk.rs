//! The store on disk, as the daemon holds it: counted, and opened again after a failure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{RwLock, RwLockReadGuard, watch};

use crate::native::store::{NativeStore, NativeStoreConfig, StoreError, StoreFault};
use crate::peer::View;
use crate::protocol::{Filter, ItemSet, Window};
use crate::store::{Arrivals, Batch, Outcome, Page, Query, Record, RequestContext, Sequence, Snapshot, Store};

/// A store that can be closed and opened again while it is in use.
pub(super) struct Disk {
    path: PathBuf,
    config: NativeStoreConfig,
    /// `None` after it could not be opened again, or was closed for good. Whoever uses it holds this for reading, so that
    /// it is closed when it is to be opened anew, and nobody finds it closed meanwhile.
    open: RwLock<Option<NativeStore>>,
    commits: AtomicU64,
    commits_failed: AtomicU64,
    /// Why a commit to what is open has failed; `None` if none has.
    failure: watch::Sender<Option<String>>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Disk {
    pub(super) async fn open(path: PathBuf, config: NativeStoreConfig) -> Result<Self, StoreError> {
        let open = RwLock::new(Some(open(path.clone(), config.clone()).await?));
        let (commits, commits_failed) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { path, config, open, commits, commits_failed, failure: watch::Sender::default() })
    }

    /// Closes and opens it: after a failed write nothing else helps. What uses it ends first, and what wants to use it
    /// waits.
    pub(super) async fn reopen(&self) -> Result<(), StoreError> {
        let mut store = self.open.write().await;
        *store = None;
        *store = Some(open(self.path.clone(), self.config.clone()).await?);
        self.failure.send_replace(None);
        Ok(())
    }

    /// Closes it for good, once what uses it has ended: another process may have it, or this one may open it anew.
    pub(super) async fn close(&self) {
        *self.open.write().await = None;
    }

    /// The file.
    pub(super) fn file(&self) -> PathBuf {
        NativeStore::file_at(&self.path)
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(super) fn commits_failed(&self) -> u64 {
        self.commits_failed.load(Ordering::Relaxed)
    }

    /// Waits until a commit has failed since the store was opened, whoever makes it, and says why.
    pub(super) async fn failed(&self) -> String {
        let mut failure = self.failure.subscribe();
        // The sender is ours: there will be a failure, or this waits on.
        let failure = failure.wait_for(Option::is_some).await.ok().and_then(|failure| failure.clone());
        failure.unwrap_or_default()
    }

    fn closed(&self) -> StoreError {
        StoreError { path: self.file(), fault: StoreFault::Failed }
    }

    async fn store(&self) -> Result<RwLockReadGuard<'_, NativeStore>, StoreError> {
        RwLockReadGuard::try_map(self.open.read().await, Option::as_ref).map_err(|_| self.closed())
    }
}

async fn open(path: PathBuf, config: NativeStoreConfig) -> Result<NativeStore, StoreError> {
    let named = NativeStore::file_at(&path);
    let opened = tokio::task::spawn_blocking(move || NativeStore::open(path, config)).await;
    opened.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Err(StoreError { path: named, fault: StoreFault::Stopped }),
    })
}

/// Beside a store's file, one of another kind.
pub(super) fn beside(file: &Path, kind: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(kind);
    file.with_file_name(name)
}

impl Store for Disk {
    type Error = StoreError;

    async fn load(&self) -> Result<Snapshot, StoreError> {
        self.store().await?.load().await
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, StoreError> {
        // Held to the end: a failure is never taken for one of the store that is opened after it.
        let open = self.open.read().await;
        let result = match &*open {
            Some(store) => store.commit(batch).await,
            None => Err(self.closed()),
        };
        match &result {
            Ok(_) => drop(self.commits.fetch_add(1, Ordering::Relaxed)),
            Err(error) => {
                self.commits_failed.fetch_add(1, Ordering::Relaxed);
                self.failure.send_replace(Some(error.to_string()));
            }
        }
        result
    }

    async fn known(&self, ids: Vec<[u8; 32]>, view: &View) -> Result<Vec<bool>, StoreError> {
        self.store().await?.known(ids, view).await
    }

    async fn items(&self, filter: &Filter, window: Window, view: &View) -> Result<Arc<ItemSet>, StoreError> {
        self.store().await?.items(filter, window, view).await
    }

    async fn held_items(
        &self,
        filter: &Filter,
        window: Window,
        view: &View,
        now_secs: u64,
    ) -> Result<Arc<ItemSet>, StoreError> {
        self.store().await?.held_items(filter, window, view, now_secs).await
    }

    async fn events(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<Record>>, StoreError> {
        self.store().await?.events(ids).await
    }

    async fn query(&self, query: Query) -> Result<Page, StoreError> {
        self.store().await?.query(query).await
    }

    async fn count(&self, filters: Vec<Filter>, view: &View, now_secs: u64) -> Result<u64, StoreError> {
        self.store().await?.count(filters, view, now_secs).await
    }

    async fn contexts(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<RequestContext>>, StoreError> {
        self.store().await?.contexts(ids).await
    }

    async fn arrivals(&self, after: Sequence, limit: usize, bytes_max: usize) -> Result<Arrivals, StoreError> {
        self.store().await?.arrivals(after, limit, bytes_max).await
    }

    async fn last_arrival(&self) -> Result<Sequence, StoreError> {
        self.store().await?.last_arrival().await
    }
}
