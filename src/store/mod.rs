//! What is held: events, the memory of what is gone, and coverage. The trait, and the store in memory.
//!
//! A store is batch-only: [`Store::commit`] is one transaction, durable when it returns, idempotent by event id. A
//! coverage mark rides in the batch of the last events that it covers, never before them.

pub mod entry;
pub(crate) mod fates;
mod memory;
pub mod packed;
mod plan;
pub mod rules;
pub mod select;
pub mod tables;
mod veil;

pub use memory::MemoryStore;

pub use entry::Sequence;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;

use crate::ingest::Verified;
use crate::peer::View;
use crate::protocol::{Event, Filter, FilterKey, Item, ItemSet, RelayUrl, Window};
use crate::runtime::{MaybeSend, MaybeSync};

/// What to commit, as one transaction.
#[derive(Debug, Default)]
pub struct Batch {
    /// Events, in the order in which they are to take effect.
    pub events: Vec<Verified<Event>>,
    /// Who brought events, by their ids. Only of those that are stored by this batch is it kept.
    pub contexts: BTreeMap<[u8; 32], RequestContext>,
    /// Coverage marks; each replaces the one of the same relay and filter. One without windows leaves none.
    pub coverage: Vec<Coverage>,
    /// Wall time, in seconds since 1970, for expiration (NIP-40).
    pub now_secs: u64,
}

/// Who brought an event that is held: kept for audit and statistics, as long as the event is. Nothing else looks at it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RequestContext {
    /// The [name](crate::peer::Terms::id) of the peer.
    pub peer: Arc<str>,
    /// When, in seconds since 1970.
    pub at_secs: u64,
}

/// What became of one event of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is held now, and durable.
    Stored,
    /// It was held already.
    Duplicate,
    /// A newer version of the replaceable or addressable event is held; of equal times the lowest id is kept (NIP-01).
    Superseded,
    /// Its author has deleted it (NIP-09).
    Deleted,
    /// Its author has asked to vanish (NIP-62).
    Vanished,
    /// Its expiration has passed (NIP-40).
    Expired,
    /// Its kind is passed on, but never stored (kinds 20000 to 29999).
    Ephemeral,
    /// It is older than what the store has room for: see [`packed`].
    Pruned,
}

/// What is proven about one filter at one relay: everything in these windows that the relay had is held here.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Coverage {
    /// The relay.
    pub relay: RelayUrl,
    /// The filter.
    pub filter: FilterKey,
    /// The filter itself, where it is one of those that many interests are packed into, and who starts anew is to pack
    /// them in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<Box<Filter>>,
    /// The [rules](crate::discover::Rules) by which was decided what is wanted of what came, those by which it was allowed
    /// ([`AccessRules`](crate::peer::AccessRules)), who the relay was, and for whom it took us, in one number; zero where all
    /// was taken of a relay that was nobody and took us for nobody.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rules: u64,
    /// Proven windows, newest first, disjoint.
    pub windows: Vec<Proof>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so; on 32 bits it is not that small")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One proven window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Proof {
    /// The window.
    pub window: Window,
    /// How it was proven.
    pub method: Method,
    /// The wall time, in seconds since 1970, as of which this is proven: when the relay was asked, or up to when it has
    /// sent all that it got since then, whatever its date, on a live subscription. What it got later is not covered.
    pub asked_at_secs: u64,
    /// The wall time, in seconds since 1970, up to which what is dated newer has been followed without a break, though
    /// what the relay got with an older date may have been missed: the last moment that was proven live. Zero in marks
    /// from before it was recorded.
    #[serde(default)]
    pub followed_until_secs: u64,
}

impl Proof {
    /// What the relay held in `window` when it was asked.
    pub fn new(window: Window, method: Method, asked_at_secs: u64) -> Self {
        Self { window, method, asked_at_secs, followed_until_secs: asked_at_secs }
    }

    /// The moment up to which nothing dated newer was missed.
    pub fn fresh_secs(&self) -> u64 {
        self.asked_at_secs.max(self.followed_until_secs)
    }
}

/// How a history was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Set reconciliation (NIP-77).
    Negentropy,
    /// Pages by `until` (NIP-01).
    Req,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Negentropy => "negentropy",
            Self::Req => "req",
        })
    }
}

/// What the engine knows when it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// All coverage marks.
    pub coverage: Vec<Coverage>,
}

/// A question for events: newest first, of equal times the lowest id first (NIP-01). Expired events are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Which events. Its own `limit` counts too.
    pub filter: Filter,
    /// Begin behind this one, as the last page ended.
    pub after: Option<Cursor>,
    /// At most so many events.
    pub limit: usize,
    /// End the page once its events have so many bytes (it has at least one event).
    pub bytes_max: usize,
    /// Wall time, in seconds since 1970, for expiration (NIP-40).
    pub now_secs: u64,
    /// What may be seen.
    pub view: View,
}

/// A place in the order of a [`Query`]: the last event that was given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Seconds since 1970.
    pub created_at: u64,
    /// The event's id.
    pub id: [u8; 32],
}

/// An event that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The event's id.
    pub id: [u8; 32],
    /// Seconds since 1970.
    pub created_at: u64,
    /// The event's JSON, byte for byte as it came.
    pub json: Bytes,
}

/// One answer to a [`Query`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Events in order.
    pub records: Vec<Record>,
    /// Where to go on; `None` if there is no more.
    pub next: Option<Cursor>,
}

/// Events in the order in which they were stored: see [`Store::arrivals`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Events that are held, each with its number, ascending.
    pub records: Vec<(Sequence, Record)>,
    /// Everything up to this number was looked at: where to go on.
    pub last: Sequence,
}

/// What a store is told of the world when it is opened.
#[derive(Debug, Clone, Default)]
pub struct StoreConfig {
    /// The URLs of our own relay service: a vanish request (NIP-62) that names one of them, or `ALL_RELAYS`, counts.
    pub own_urls: Vec<RelayUrl>,
}

/// Where events are held. Several tasks, and with some stores several processes, use one store at a time.
pub trait Store: MaybeSend + MaybeSync + 'static {
    /// What can go wrong; its text names the store and says what to do.
    type Error: std::error::Error + MaybeSend + MaybeSync + 'static;

    /// Everything that the engine needs to know at its start.
    ///
    /// # Errors
    /// The store cannot be read.
    fn load(&self) -> impl Future<Output = Result<Snapshot, Self::Error>> + MaybeSend;

    /// Commits `batch` as a whole or not at all; it is durable when this returns. One outcome an event, in order.
    ///
    /// An event that is superseded, deleted, vanished or expired is remembered with its time, kind and author, so
    /// that [`Store::known`] and [`Store::items`] count it: relays that still offer it are not asked for it again.
    ///
    /// # Errors
    /// Nothing was written.
    fn commit(&self, batch: Batch) -> impl Future<Output = Result<Vec<Outcome>, Self::Error>> + MaybeSend;

    /// For each id: is the event held, or remembered as gone? What `view` does not show is not known, nor is what is gone
    /// and may have been of that kind: whoever is asked for what is not known can tell nothing of it.
    ///
    /// # Errors
    /// The store cannot be read.
    fn known(
        &self,
        ids: Vec<[u8; 32]>,
        view: &View,
    ) -> impl Future<Output = Result<Vec<bool>, Self::Error>> + MaybeSend;

    /// The items of all events in `window` that `filter` selects (its `limit` does not count). Those remembered as
    /// gone are among them where `filter` has no tag conditions, since tags of what is gone are not kept. What `view` does
    /// not show is left out, and so is what is gone and may have been of that kind.
    ///
    /// # Errors
    /// The store cannot be read.
    fn items(
        &self,
        filter: &Filter,
        window: Window,
        view: &View,
    ) -> impl Future<Output = Result<Arc<ItemSet>, Self::Error>> + MaybeSend;

    /// The items of the events that are held and that `view` shows, those remembered as gone or expired not among them: what the relay
    /// service offers, since it can hand out nothing else. A store that can list them without reading the events
    /// should; this walks through all pages.
    ///
    /// # Errors
    /// The store cannot be read.
    fn held_items(
        &self,
        filter: &Filter,
        window: Window,
        view: &View,
        now_secs: u64,
    ) -> impl Future<Output = Result<Arc<ItemSet>, Self::Error>> + MaybeSend {
        let (filter, view) = (window.apply(filter), view.clone());
        async move {
            let (mut items, mut after) = (Vec::new(), None);
            loop {
                let (filter, view) = (filter.clone(), view.clone());
                let query = Query { filter, after, limit: usize::MAX, bytes_max: 1 << 20, now_secs, view };
                let page = self.query(query).await?;
                items.extend(page.records.iter().map(|record| Item { created_at: record.created_at, id: record.id }));
                after = page.next;
                if after.is_none() {
                    return Ok(Arc::new(ItemSet::new(items)));
                }
            }
        }
    }

    /// The held events with these ids, in the order of the ids, `None` for those not held.
    ///
    /// # Errors
    /// The store cannot be read.
    fn events(&self, ids: Vec<[u8; 32]>) -> impl Future<Output = Result<Vec<Option<Record>>, Self::Error>> + MaybeSend;

    /// One page of the events that a query selects.
    ///
    /// # Errors
    /// The store cannot be read.
    fn query(&self, query: Query) -> impl Future<Output = Result<Page, Self::Error>> + MaybeSend;

    /// How many events that `view` shows the filters select together; one that several filters select counts once. Their
    /// limits do not count.
    ///
    /// # Errors
    /// The store cannot be read.
    fn count(
        &self,
        filters: Vec<Filter>,
        view: &View,
        now_secs: u64,
    ) -> impl Future<Output = Result<u64, Self::Error>> + MaybeSend;

    /// Who brought these events, in the order of the ids; `None` for those not held, and those that no peer has brought.
    ///
    /// # Errors
    /// The store cannot be read.
    fn contexts(
        &self,
        ids: Vec<[u8; 32]>,
    ) -> impl Future<Output = Result<Vec<Option<RequestContext>>, Self::Error>> + MaybeSend;

    /// The events that are held, in the order in which they were stored, from the first behind number `after` on. Events
    /// are numbered from 1, so 0 asks for all; numbers only grow, and are not given out twice while the store exists. At
    /// most `limit` events, and none more once they have `bytes_max` bytes (there is at least one, unless `limit` is
    /// zero). What is gone is left out; what has expired is still there until a commit notes it. Who goes on behind
    /// [`Arrivals::last`] misses nothing and meets nothing twice.
    ///
    /// # Errors
    /// The store cannot be read.
    fn arrivals(
        &self,
        after: Sequence,
        limit: usize,
        bytes_max: usize,
    ) -> impl Future<Output = Result<Arrivals, Self::Error>> + MaybeSend;

    /// The number of the latest arrival, whether it is held or gone; zero if there was none.
    ///
    /// # Errors
    /// The store cannot be read.
    fn last_arrival(&self) -> impl Future<Output = Result<Sequence, Self::Error>> + MaybeSend;

    /// What is dated no later than this, in seconds since 1970, may be missing for want of room ([`Outcome::Pruned`]),
    /// though relays were asked for it: no copy is complete below it. `None` where all that is committed stays.
    fn floor_secs(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mark as stores hold it that were written before live links were recorded in it.
    #[test]
    fn a_mark_without_what_was_followed_is_read_and_holds_as_of_when_it_was_asked() {
        let text = r#"{"relay":"wss://relay.example/","filter":"00112233445566778899aabbccddeeff","windows":[
            {"window":{"since":0,"until":18446744073709551615},"method":"req","asked_at_secs":1700000000}]}"#;
        let mark: Coverage = serde_json::from_str(text).unwrap();
        assert_eq!(mark.windows.len(), 1);
        let proof = mark.windows[0];
        assert_eq!((proof.window, proof.method, proof.asked_at_secs), (Window::ALL, Method::Req, 1_700_000_000));
        assert_eq!((proof.followed_until_secs, proof.fresh_secs()), (0, 1_700_000_000));
        let again: Coverage = serde_json::from_slice(&serde_json::to_vec(&mark).unwrap()).unwrap();
        assert_eq!(again, mark);
    }
}
