//! Every behaviour of [`relaysync::store::Store`], against every store.

#[macro_use]
mod behaviours;
mod events;
mod files;
mod kill;
mod model;
mod pool;
mod random;

use relaysync::native::store::{NativeStore, NativeStoreConfig};
use relaysync::store::packed::{MemoryBacking, PackedConfig, PackedStore};
use relaysync::store::{MemoryStore, Store, StoreConfig};

/// A store under test, and how to close and open it again.
trait Harness: Sized {
    type Store: Store;

    async fn create(config: StoreConfig) -> Self;
    fn store(&self) -> &Self::Store;
    async fn reopen(self) -> Self;
}

struct Memory(MemoryStore);

impl Harness for Memory {
    type Store = MemoryStore;

    async fn create(config: StoreConfig) -> Self {
        Self(MemoryStore::new(config))
    }

    fn store(&self) -> &MemoryStore {
        &self.0
    }

    async fn reopen(self) -> Self {
        self
    }
}

struct Native {
    store: NativeStore,
    config: StoreConfig,
    folder: tempfile::TempDir,
}

impl Native {
    fn open(config: StoreConfig, folder: tempfile::TempDir) -> Self {
        let native = NativeStoreConfig { store: config.clone(), ..NativeStoreConfig::default() };
        let store = NativeStore::open(folder.path(), native).expect("the store opens");
        Self { store, config, folder }
    }
}

impl Harness for Native {
    type Store = NativeStore;

    async fn create(config: StoreConfig) -> Self {
        Self::open(config, tempfile::tempdir().expect("a folder"))
    }

    fn store(&self) -> &NativeStore {
        &self.store
    }

    async fn reopen(self) -> Self {
        let Self { store, config, folder } = self;
        drop(store);
        Self::open(config, folder)
    }
}

struct Packed {
    store: PackedStore<MemoryBacking>,
    config: PackedConfig,
}

impl Packed {
    async fn open(backing: MemoryBacking, config: PackedConfig) -> Self {
        let store = PackedStore::open(backing, config.clone()).await.expect("the store opens");
        Self { store, config }
    }
}

impl Harness for Packed {
    type Store = PackedStore<MemoryBacking>;

    async fn create(config: StoreConfig) -> Self {
        // Small: every way to pack, and to read again what was let go, is gone.
        let small = PackedConfig { segment_bytes_max: 2_000, tail_bytes_max: 1_000, ..PackedConfig::default() };
        let config = PackedConfig { store: config, cache_bytes_max: 5_000, read_bytes_max: 3_000, ..small };
        Self::open(MemoryBacking::default(), config).await
    }

    fn store(&self) -> &PackedStore<MemoryBacking> {
        &self.store
    }

    async fn reopen(self) -> Self {
        Self::open(self.store.backing().clone(), self.config).await
    }
}

/// Runs every behaviour against one store.
macro_rules! conformance {
    ($module:ident, $harness:ty, [$($behaviour:ident),* $(,)?]) => {
        mod $module {
            use super::*;

            $(
                #[test]
                fn $behaviour() {
                    crate::block_on(crate::behaviours::$behaviour::<$harness>());
                }
            )*
        }
    };
}

conformance_of! { memory: Memory, native: Native, packed: Packed }

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts").block_on(future)
}
