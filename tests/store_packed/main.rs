//! The packed store by itself: every behaviour of stores, and what becomes of faults, damage and want of space.

#[path = "../store_conformance/behaviours/mod.rs"]
#[macro_use]
mod behaviours;
#[path = "../store_conformance/events.rs"]
mod events;
mod faults;
mod faulty;
#[path = "../store_conformance/model.rs"]
mod model;
#[path = "../store_conformance/pool.rs"]
mod pool;
mod random;
mod space;

use std::pin::pin;
use std::task::{Context, Poll};

use relaysync::store::packed::{PackedConfig, PackedStore};
use relaysync::store::{Store, StoreConfig};

use self::faulty::Faulty;

/// A store under test, and how to close and open it again.
trait Harness: Sized {
    type Store: Store;

    async fn create(config: StoreConfig) -> Self;
    fn store(&self) -> &Self::Store;
    async fn reopen(self) -> Self;
}

struct Packed {
    store: PackedStore<Faulty>,
    config: PackedConfig,
}

impl Packed {
    async fn open(backing: Faulty, config: PackedConfig) -> Self {
        let store = PackedStore::open(backing, config.clone()).await.expect("the store opens");
        Self { store, config }
    }
}

impl Harness for Packed {
    type Store = PackedStore<Faulty>;

    async fn create(config: StoreConfig) -> Self {
        Self::open(Faulty::default(), PackedConfig { store: config, ..small() }).await
    }

    fn store(&self) -> &PackedStore<Faulty> {
        &self.store
    }

    async fn reopen(self) -> Self {
        Self::open(self.store.backing().clone(), self.config).await
    }
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
                #[test]
                fn $behaviour() {
                    crate::block_on(crate::behaviours::$behaviour::<$harness>());
                }
            )*
        }
    };
}

conformance_of! { packed: Packed }

/// Memory answers at once.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits for something"),
    }
}
