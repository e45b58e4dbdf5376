//! A backing in memory that fails as it is told to.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use relaysync::store::packed::backing::{Contents, Write};
use relaysync::store::packed::{Backing, BackingError, MemoryBacking};

/// What happens to one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Quota,
    /// The connection is lost: before the write took place, or after it.
    Lost {
        is_written: bool,
    },
    /// It never answers: before the write took place, or after it.
    Hangs {
        is_written: bool,
    },
}

/// Clones share records and faults.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faulty {
    pub(crate) records: MemoryBacking,
    faults: Arc<Mutex<VecDeque<Fault>>>,
    /// The bytes of the largest write.
    largest_write: Arc<AtomicUsize>,
}

impl Faulty {
    /// No more of the faults that were planned.
    pub(crate) fn forgive(&self) {
        self.faults.lock().unwrap().clear();
    }

    /// The bytes of the largest write since this was asked last.
    pub(crate) fn largest_write(&self) -> usize {
        self.largest_write.swap(0, Ordering::Relaxed)
    }

    /// What happens to the next writes.
    pub(crate) fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock().unwrap().extend(faults);
    }
}

impl Backing for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    async fn load(&self) -> Result<Contents, BackingError> {
        self.records.load().await
    }

    async fn read(&self, names: Vec<String>) -> Result<Vec<Option<Bytes>>, BackingError> {
        self.records.read(names).await
    }

    async fn write(&self, write: Write) -> Result<(), BackingError> {
        let bytes = write.puts.iter().map(|(_, bytes)| bytes.len()).sum();
        self.largest_write.fetch_max(bytes, Ordering::Relaxed);
        let fault = self.faults.lock().unwrap().pop_front();
        match fault {
            None | Some(Fault::Lost { is_written: true } | Fault::Hangs { is_written: true }) => {
                self.records.write(write).await?;
            }
            Some(_) => {}
        }
        match fault {
            None => Ok(()),
            Some(Fault::Quota) => Err(BackingError::Quota("as planned".into())),
            Some(Fault::Lost { .. }) => Err(BackingError::Lost("as planned".into())),
            Some(Fault::Hangs { .. }) => std::future::pending().await,
        }
    }
}
