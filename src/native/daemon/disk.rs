//! The store on disk, as the daemon holds it: counted, and opened again after a failure.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::native::store::{NativeStore, NativeStoreConfig, StoreError, StoreFault};
use crate::protocol::{Filter, ItemSet, Window};
use crate::store::{Batch, Outcome, Page, Query, Record, Snapshot, Store};

/// A store that can be closed and opened again while it is in use.
pub(super) struct Disk {
    path: PathBuf,
    config: NativeStoreConfig,
    /// `None` after it could not be opened again.
    open: RwLock<Option<NativeStore>>,
    commits: AtomicU64,
    commits_failed: AtomicU64,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Disk {
    pub(super) async fn open(path: PathBuf, config: NativeStoreConfig) -> Result<Self, StoreError> {
        let store = open(path.clone(), config.clone()).await?;
        let open = RwLock::new(Some(store));
        Ok(Self { path, config, open, commits: AtomicU64::new(0), commits_failed: AtomicU64::new(0) })
    }

    /// Closes and opens it: after a failed write nothing else helps. Fails while reads of the old one are under way.
    pub(super) async fn reopen(&self) -> Result<(), StoreError> {
        self.put(None);
        self.put(Some(open(self.path.clone(), self.config.clone()).await?));
        Ok(())
    }

    fn put(&self, store: Option<NativeStore>) {
        let old = std::mem::replace(&mut *self.open.write().unwrap_or_else(PoisonError::into_inner), store);
        drop(old);
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

    fn store(&self) -> Result<NativeStore, StoreError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| StoreError { path: self.file(), fault: StoreFault::Failed })
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
        self.store()?.load().await
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, StoreError> {
        let result = match self.store() {
            Ok(store) => store.commit(batch).await,
            Err(error) => Err(error),
        };
        let counter = if result.is_ok() { &self.commits } else { &self.commits_failed };
        counter.fetch_add(1, Ordering::Relaxed);
        result
    }

    async fn known(&self, ids: Vec<[u8; 32]>) -> Result<Vec<bool>, StoreError> {
        self.store()?.known(ids).await
    }

    async fn items(&self, filter: &Filter, window: Window) -> Result<Arc<ItemSet>, StoreError> {
        self.store()?.items(filter, window).await
    }

    async fn held_items(&self, filter: &Filter, window: Window, now_secs: u64) -> Result<Arc<ItemSet>, StoreError> {
        self.store()?.held_items(filter, window, now_secs).await
    }

    async fn events(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<Record>>, StoreError> {
        self.store()?.events(ids).await
    }

    async fn query(&self, query: Query) -> Result<Page, StoreError> {
        self.store()?.query(query).await
    }

    async fn count(&self, filters: Vec<Filter>, now_secs: u64) -> Result<u64, StoreError> {
        self.store()?.count(filters, now_secs).await
    }
}
