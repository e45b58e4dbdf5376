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
//! - **Gone.** Nobody finds what is gone from the commit on that says so. Its bytes are cut out of the segments after that,
//!   a bounded part with every commit, also an empty one: what its author took back first, then segments of which a quarter
//!   is superseded, expired or pruned (an eighth where there is a size cap: so much more than the cap may be taken).
//! - **Damage.** Every record has a checksum. A damaged run is made again from the segments; a damaged mark is dropped,
//!   so that what it proved is proven again; anything else is an error that names the record.

pub mod backing;
mod build;
mod cache;
mod content;
mod error;
mod layout;
mod prune;
mod ragged;
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
///
/// The size of a segment matters little. Measured over IndexedDB in Chromium 156 on two cores, as WebAssembly, with 100,000
/// events of 441 bytes without regard to signatures, in commits of 500 (index: 7 MB of 55.6 MB):
///
/// | segment | segments | commits together | slowest commit | opened again | first query of 50 |
/// |---|---|---|---|---|---|
/// | 60 kB | 840 | 2.5 s | 90 ms | 102 ms | 3 ms |
/// | 200 kB | 400 | 2.5 s | 73 ms | 54 ms | 4 ms |
/// | 1 MB | 200 | 2.3 s | 74 ms | 30 ms | 3 ms |
///
/// A commit of 500 makes no segment larger than 240 kB. Larger ones open a little faster, but to read one event of the many
/// in a segment, or to cut one out, costs the whole of it.
#[derive(Debug, Clone)]
pub struct PackedConfig {
    /// What every store is told.
    pub store: StoreConfig,
    /// How sure events are when a commit returns. Coverage marks are always [`Durability::Strict`], and events never
    /// after the marks that cover them.
    pub durability: Durability,
    /// Segments and index together should take no more than so many bytes; `None` for no bound. Half of it is for events
    /// even where the memory of what is gone takes more than the other half.
    pub bytes_max: Option<u64>,
    /// A segment is up to so many bytes, or one event.
    pub segment_bytes_max: usize,
    /// A segment of fewer bytes is packed anew with what comes next.
    pub tail_bytes_max: usize,
    /// So many bytes of segments are kept in memory.
    pub cache_bytes_max: usize,
    /// One commit packs segments of about so many bytes anew, or one, to cut out what is gone; what is left to do is for
    /// those that follow. In memory it takes about three times as much.
    pub repack_bytes_max: usize,
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
            repack_bytes_max: 4 << 20,
            prune_bytes_max: 8 << 20,
            read_bytes_max: 8 << 20,
        }
    }
}
