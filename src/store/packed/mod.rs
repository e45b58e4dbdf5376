//! A store of few, large records, over anything that keeps named bytes: IndexedDB in a browser, memory in Node.
//!
//! Databases that charge by the record, as IndexedDB does, make one record an event with its indexes ten times as slow as
//! the same bytes in bulk. So a commit writes its events' JSON packed into one **segment** and everything that is known of
//! them as one **run** of the index, in one transaction. The runs are in memory, in the bytes that are written: opening a
//! store reads a few large records and decodes nothing. Runs of like size are merged, as are segments of very small
//! commits. Bodies are read when they are asked for, and a bounded part of them is kept.
//!
//! - **One writer.** Whoever opens a store raises its epoch, and every write checks it in its own transaction: a store that
//!   was opened elsewhere since fails with [`PackedFault::Deposed`], and writes nothing more.
//! - **All or nothing.** A commit that fails leaves the store as it was, in memory too. After one that was interrupted, so
//!   that nobody knows what became of it, the store looks before it goes on.
//! - **Full.** [`PackedFault::Quota`] means that nothing was written; the batch may be committed again.
//! - **Size cap.** With [`PackedConfig::bytes_max`] the oldest events go first, by the second. They are remembered as gone,
//!   so that relays that still have them are not asked for them again, and everything dated no later than the newest of
//!   them is refused from then on ([`Outcome::Pruned`](super::Outcome::Pruned)). Where this memory itself takes too much room, it is given up, and
//!   the date alone refuses. Coverage marks lose the windows that the copy no longer has, in the same transaction, and new
//!   ones never get them: a pruned copy does not count as complete. Deletion and vanish requests are not pruned.
//! - **Gone.** What its author took back is cut out of its segment at once; what is superseded, has expired or was pruned,
//!   once a quarter of a segment is.
//! - **Damage.** Every record has a checksum. A damaged run is made again from the segments; a damaged mark is dropped,
//!   so that what it proved is proven again; anything else is an error that names the record.

pub mod backing;
mod build;
mod cache;
mod content;
mod error;
mod fates;
mod layout;
mod prune;
mod record;
mod restore;
mod run;
mod segment;
mod step;
mod store;

pub use backing::{Backing, BackingError, Durability, MemoryBacking};
pub use error::{PackedError, PackedFault};
pub(crate) use prune::is_spared;
pub use store::{Condition, PackedStore, Usage};

use super::StoreConfig;

/// How a [`PackedStore`] is to be opened.
#[derive(Debug, Clone)]
pub struct PackedConfig {
    /// What every store is told.
    pub store: StoreConfig,
    /// How sure events are when a commit returns. Coverage marks are always [`Durability::Strict`], and events never
    /// after the marks that cover them.
    pub durability: Durability,
    /// Segments and index together should take no more than so many bytes; `None` for no bound.
    pub bytes_max: Option<u64>,
    /// A segment is up to so many bytes, or one event.
    pub segment_bytes_max: usize,
    /// A segment of fewer bytes is packed anew with what comes next.
    pub tail_bytes_max: usize,
    /// So many bytes of segments are kept in memory.
    pub cache_bytes_max: usize,
    /// One commit prunes about so many bytes at most, so that it does not take for ever where the cap was lowered.
    pub prune_bytes_max: u64,
    /// So many bytes of segments are read at once.
    pub read_bytes_max: usize,
}

impl Default for PackedConfig {
    fn default() -> Self {
        Self {
            store: StoreConfig::default(),
            durability: Durability::Relaxed,
            bytes_max: None,
            segment_bytes_max: 200_000,
            tail_bytes_max: 16_000,
            cache_bytes_max: 16 << 20,
            prune_bytes_max: 8 << 20,
            read_bytes_max: 8 << 20,
        }
    }
}
