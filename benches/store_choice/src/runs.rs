//! The store that relaysync has.

use std::path::Path;

use relaysync::native::store::{NativeStore, NativeStoreConfig};
use relaysync::protocol::{Filter, Window};
use relaysync::store::{Batch, Store};

use crate::Candidate;

pub(crate) struct Runs {
    store: NativeStore,
    runtime: tokio::runtime::Runtime,
}

impl Runs {
    pub(crate) fn open(folder: &Path) -> Self {
        let store = NativeStore::open(folder, NativeStoreConfig::default()).expect("the store opens");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        Self { store, runtime }
    }
}

impl Candidate for Runs {
    fn commit(&mut self, batch: Batch) {
        self.runtime.block_on(self.store.commit(batch)).expect("it commits");
    }

    fn items(&self, filter: &Filter) -> usize {
        self.runtime.block_on(self.store.items(filter, Window::ALL)).expect("it reads").len()
    }
}
