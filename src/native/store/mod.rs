//! The store on disk: one file, written by one process at a time, read by any number of tasks.
//!
//! An embedded database (redb) serves as a transactional map of blobs; what is in the blobs is ours. A commit writes
//! the bodies of its events, packed into blobs of 16 KiB, and *one* sorted run of all its index entries. Runs of like
//! size are merged, a little with each commit, so that reading has few to look at and no commit waits for long. One
//! key a row and index, as databases want it, costs an event eight descents and eight rewritten pages; packed runs
//! cost it a sort in memory and some sequential bytes, and leave memory use to a cache of fixed size
//! (`benches/store_choice` compares them).
//!
//! What is gone is a byte in a table of fates, beside entries that stay; its body is cut out at once.

mod bodies;
mod contexts;
mod create;
mod error;
mod key_filter;
mod layout;
mod merge;
mod run;
mod view;
mod writer;

pub(super) use create::create;
pub use error::{StoreError, StoreFault};

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use self::view::View;
use self::writer::Writer;
use crate::peer;
use crate::protocol::{Filter, ItemSet, Window};
use crate::store::{
    Arrivals, Batch, Outcome, Page, Query, Record, RequestContext, Sequence, Snapshot, Store, StoreConfig, select,
};

/// The name of the file in a directory that is given as the store's path.
const FILE_NAME: &str = "events.relaysync";

/// How a [`NativeStore`] is to be opened.
#[derive(Debug, Clone)]
pub struct NativeStoreConfig {
    /// What every store is told.
    pub store: StoreConfig,
    /// So much of the file is cached in memory, in bytes.
    pub cache_bytes_max: usize,
}

impl Default for NativeStoreConfig {
    fn default() -> Self {
        Self { store: StoreConfig::default(), cache_bytes_max: 32 << 20 }
    }
}

/// A store in a file. Clones share it; it is closed when the last of them, and what they are doing, has ended.
#[derive(Clone)]
pub struct NativeStore {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    view: RwLock<Arc<View>>,
    writer: Mutex<Writer>,
}

impl NativeStore {
    /// Opens the store at `path`, which names a file, or a directory to have it in; creates what is missing. Blocks.
    ///
    /// # Errors
    /// The file cannot be read and written, is used by another process, is damaged or has a newer format.
    pub fn open(path: impl AsRef<Path>, config: NativeStoreConfig) -> Result<Self, StoreError> {
        let file = Self::file_at(path.as_ref());
        let opened = Writer::open(&file, config);
        let (writer, view) = opened.map_err(|fault| StoreError { path: file.clone(), fault })?;
        let inner = Inner { path: file, view: RwLock::new(Arc::new(view)), writer: Mutex::new(writer) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The file that a store at `path`, a file or a directory, has or would have.
    pub fn file_at(path: &Path) -> PathBuf {
        if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    async fn read<R: Send + 'static>(
        &self,
        read: impl FnOnce(&View) -> Result<R, StoreFault> + Send + 'static,
    ) -> Result<R, StoreError> {
        self.blocking(move |inner| read(&inner.view())).await
    }

    async fn blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<R, StoreFault> + Send + 'static,
    ) -> Result<R, StoreError> {
        let inner = self.inner.clone();
        let result = match tokio::task::spawn_blocking(move || work(&inner)).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(StoreFault::Stopped),
            },
        };
        result.map_err(|fault| StoreError { path: self.inner.path.clone(), fault })
    }
}

impl Inner {
    // Views are replaced as a whole, and the writer drops what it began when it fails: a panic leaves both usable.
    fn view(&self) -> Arc<View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, StoreFault> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (outcomes, view) = writer.commit(&self.view(), batch)?;
        if let Some(view) = view {
            *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
        }
        Ok(outcomes)
    }
}

impl Store for NativeStore {
    type Error = StoreError;

    async fn load(&self) -> Result<Snapshot, StoreError> {
        self.read(View::load).await
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, StoreError> {
        self.blocking(move |inner| inner.commit(batch)).await
    }

    async fn known(&self, ids: Vec<[u8; 32]>, view: &peer::View) -> Result<Vec<bool>, StoreError> {
        let seen = view.clone();
        self.read(move |tables| select::known(tables, &ids, &seen)).await
    }

    async fn items(&self, filter: &Filter, window: Window, view: &peer::View) -> Result<Arc<ItemSet>, StoreError> {
        let (filter, seen) = (filter.clone(), view.clone());
        self.read(move |tables| select::items(tables, &filter, window, &seen).map(Arc::new)).await
    }

    async fn held_items(
        &self,
        filter: &Filter,
        window: Window,
        view: &peer::View,
        now_secs: u64,
    ) -> Result<Arc<ItemSet>, StoreError> {
        let (filter, seen) = (filter.clone(), view.clone());
        self.read(move |tables| select::held_items(tables, &filter, window, &seen, now_secs).map(Arc::new)).await
    }

    async fn events(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<Record>>, StoreError> {
        self.read(move |view| select::events(view, &ids)).await
    }

    async fn query(&self, query: Query) -> Result<Page, StoreError> {
        self.read(move |view| select::query(view, &query)).await
    }

    async fn count(&self, filters: Vec<Filter>, view: &peer::View, now_secs: u64) -> Result<u64, StoreError> {
        let seen = view.clone();
        self.read(move |tables| select::count(tables, &filters, &seen, now_secs)).await
    }

    async fn contexts(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<RequestContext>>, StoreError> {
        self.read(move |tables| select::contexts(tables, &ids)).await
    }

    async fn arrivals(&self, after: Sequence, limit: usize, bytes_max: usize) -> Result<Arrivals, StoreError> {
        self.read(move |view| select::arrivals(view, after, limit, bytes_max)).await
    }

    async fn last_arrival(&self) -> Result<Sequence, StoreError> {
        Ok(select::last_arrival(&*self.inner.view()))
    }
}
