//! The packed store over IndexedDB: every behaviour of stores, and what other connections do to a database.

#![cfg(target_family = "wasm")]

#[path = "../../../store_conformance/behaviours/mod.rs"]
#[macro_use]
mod behaviours;
mod connections;
#[path = "../../../store_conformance/events.rs"]
mod events;
mod size;

use std::cell::Cell;

use relaysync::browser::idb::IndexedDb;
use relaysync::store::packed::{PackedConfig, PackedStore};
use relaysync::store::{Store, StoreConfig};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

/// A store under test, and how to close and open it again.
trait Harness: Sized {
    type Store: Store;

    async fn create(config: StoreConfig) -> Self;
    fn store(&self) -> &Self::Store;
    async fn reopen(self) -> Self;
}

struct Browser {
    store: PackedStore<IndexedDb>,
    name: String,
    config: PackedConfig,
}

impl Browser {
    async fn open(name: String, config: PackedConfig) -> Self {
        let database = IndexedDb::open(&name).await.expect("the database opens");
        let store = PackedStore::open(database, config.clone()).await.expect("the store opens");
        Self { store, name, config }
    }
}

impl Harness for Browser {
    type Store = PackedStore<IndexedDb>;

    async fn create(config: StoreConfig) -> Self {
        Self::open(fresh_name(), PackedConfig { store: config, ..small() }).await
    }

    fn store(&self) -> &PackedStore<IndexedDb> {
        &self.store
    }

    async fn reopen(self) -> Self {
        self.store.backing().close();
        Self::open(self.name, self.config).await
    }
}

/// The name of a database that no other test has.
fn fresh_name() -> String {
    thread_local!(static NAMES: Cell<u32> = const { Cell::new(0) });
    let number = NAMES.with(|names| names.replace(names.get() + 1));
    format!("test {} {number}", js_sys::Date::now())
}

/// So small that every way to pack, and to read again what was let go, is gone.
fn small() -> PackedConfig {
    PackedConfig {
        segment_bytes_max: 2_000,
        tail_bytes_max: 1_000,
        cache_bytes_max: 5_000,
        read_bytes_max: 3_000,
        ..PackedConfig::default()
    }
}

macro_rules! conformance {
    ($module:ident, $harness:ty, [$($behaviour:ident),* $(,)?]) => {
        mod $module {
            use super::*;

            $(
                #[wasm_bindgen_test]
                async fn $behaviour() {
                    crate::behaviours::$behaviour::<$harness>().await;
                }
            )*
        }
    };
}

conformance_of! { indexed_db: Browser }
