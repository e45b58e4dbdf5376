//! The feed: what was stored just now, told to whoever wants to know.
//!
//! A [`FedStore`] is a store that tells its [`Feed`] of each event that a commit has stored, before that commit returns.
//! Subscribers have queues of their own, bounded in events and bytes. One that falls behind gets the ids of what it
//! missed, to [`read_again`] from the store; it holds up neither a commit nor another subscriber.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use crate::ingest::Verified;
use crate::peer::View;
use crate::protocol::{Event, Filter, ItemSet, Window};
use crate::store::{Arrivals, Batch, Outcome, Page, Query, Record, RequestContext, Sequence, Snapshot, Store};

/// How much may wait for one subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedBounds {
    /// Events.
    pub events_max: usize,
    /// Bytes of their JSON; in memory an event takes about three times as much.
    pub bytes_max: usize,
    /// Ids of events that found no room, 32 bytes each.
    pub missed_ids_max: usize,
}

impl Default for FeedBounds {
    fn default() -> Self {
        Self { events_max: 50_000, bytes_max: 32 * 1024 * 1024, missed_ids_max: 1_000_000 }
    }
}

/// What a subscriber is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fed {
    /// These events were stored, or, if they are ephemeral, accepted, in this order.
    Events(Arc<[Verified<Event>]>),
    /// The queue was full. Behind what came before, events with these ids were stored: [`read_again`].
    Missed(Vec<[u8; 32]>),
    /// Even their ids found no room: whoever must know all that is held has to read the store anew.
    Lagged {
        /// How many.
        events: u64,
    },
}

/// Tells subscribers of events. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Feed {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    subscribers: Mutex<Vec<Weak<Queue>>>,
    /// Commits that were begun so far.
    begun: AtomicU64,
    /// Those of which the subscribers were told. One is under way at a time.
    told: AtomicU64,
    /// Events told so far.
    events: AtomicU64,
    /// Times that a subscriber fell behind.
    lags: AtomicU64,
}

/// What a feed has done so far, and what waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FeedCounters {
    /// Events told, each once, however many subscribers there are.
    pub events: u64,
    /// Events that wait for subscribers now, those included that wait as an id.
    pub queued: u64,
    /// Times that a subscriber fell behind, so that what followed has to be read from the store.
    pub lags: u64,
}

impl Feed {
    /// From now on, everything that is stored. Dropping the receiver ends it.
    pub fn subscribe(&self, bounds: FeedBounds) -> FeedReceiver {
        let mut subscribers = lock(&self.shared.subscribers);
        // Under the lock: what is told from now on is told to this one, too.
        let told = self.shared.told.load(Ordering::SeqCst);
        let waiting = Waiting { told, taken: told, ..Waiting::default() };
        let queue = Arc::new(Queue { bounds, waiting: Mutex::new(waiting), news: Notify::new() });
        subscribers.push(Arc::downgrade(&queue));
        FeedReceiver { feed: self.clone(), queue }
    }

    /// What happened so far, in numbers.
    pub fn counters(&self) -> FeedCounters {
        let subscribers: Vec<_> = lock(&self.shared.subscribers).iter().filter_map(Weak::upgrade).collect();
        FeedCounters {
            events: self.shared.events.load(Ordering::Relaxed),
            queued: subscribers.iter().map(|queue| lock(&queue.waiting).queued()).sum(),
            lags: self.shared.lags.load(Ordering::Relaxed),
        }
    }

    /// Begins a commit; gives its number.
    fn begin(&self) -> u64 {
        self.shared.begun.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The commit of this number is over and has stored `events`.
    fn end(&self, commit: u64, events: Vec<Verified<Event>>) {
        let events: Arc<[_]> = events.into();
        let mut subscribers = lock(&self.shared.subscribers);
        self.shared.told.store(commit, Ordering::SeqCst);
        self.shared.events.fetch_add(events.len() as u64, Ordering::Relaxed);
        subscribers.retain(|subscriber| match subscriber.upgrade() {
            Some(queue) => {
                let falls_behind = queue.push(commit, &events);
                self.shared.lags.fetch_add(u64::from(falls_behind), Ordering::Relaxed);
                true
            }
            None => false,
        });
    }
}

/// What waits for one subscriber.
#[derive(Debug)]
struct Queue {
    bounds: FeedBounds,
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Each with the number of its commit.
    batches: VecDeque<(u64, Arc<[Verified<Event>]>)>,
    events: usize,
    bytes: usize,
    /// Ids of events that found no room behind `batches`.
    missed_ids: Vec<[u8; 32]>,
    /// Events whose ids found no room behind those.
    lost_events: u64,
    /// The last commit that was told.
    told: u64,
    /// The last commit of which all was taken that was told.
    taken: u64,
}

impl Queue {
    /// Does the subscriber fall behind with these?
    fn push(&self, commit: u64, events: &Arc<[Verified<Event>]>) -> bool {
        let bytes = bytes_of(events);
        let mut waiting = lock(&self.waiting);
        let was_behind = waiting.is_behind();
        waiting.told = commit;
        let fits =
            waiting.events + events.len() <= self.bounds.events_max && waiting.bytes + bytes <= self.bounds.bytes_max;
        // Once something was missed, what follows waits for it: order is kept.
        if !was_behind && fits && !events.is_empty() {
            waiting.events += events.len();
            waiting.bytes += bytes;
            waiting.batches.push_back((commit, Arc::clone(events)));
        } else if waiting.missed_ids.len() + events.len() <= self.bounds.missed_ids_max && waiting.lost_events == 0 {
            waiting.missed_ids.extend(events.iter().map(|event| event.id.to_bytes()));
        } else {
            waiting.lost_events += events.len() as u64;
        }
        let falls_behind = !was_behind && waiting.is_behind();
        drop(waiting);
        self.news.notify_one();
        falls_behind
    }
}

impl Waiting {
    fn is_behind(&self) -> bool {
        !self.missed_ids.is_empty() || self.lost_events > 0
    }

    fn queued(&self) -> u64 {
        (self.events + self.missed_ids.len()) as u64 + self.lost_events
    }

    fn is_empty(&self) -> bool {
        self.batches.is_empty() && !self.is_behind()
    }

    fn take(&mut self) -> Option<Fed> {
        if let Some((commit, events)) = self.batches.pop_front() {
            self.events -= events.len();
            self.bytes -= bytes_of(&events);
            self.taken = commit;
            return Some(Fed::Events(events));
        }
        self.taken = self.told;
        let missed_ids = std::mem::take(&mut self.missed_ids);
        match std::mem::take(&mut self.lost_events) {
            0 if missed_ids.is_empty() => None,
            0 => Some(Fed::Missed(missed_ids)),
            lost => Some(Fed::Lagged { events: lost + missed_ids.len() as u64 }),
        }
    }
}

fn bytes_of(events: &[Verified<Event>]) -> usize {
    events.iter().map(|event| event.json().len()).sum()
}

/// One subscriber's end of a [`Feed`].
#[derive(Debug)]
pub struct FeedReceiver {
    feed: Feed,
    queue: Arc<Queue>,
}

impl FeedReceiver {
    /// The next news. Nothing is lost if this is dropped before it ends.
    pub async fn recv(&mut self) -> Fed {
        loop {
            if let Some(fed) = self.try_recv() {
                return fed;
            }
            self.queue.news.notified().await;
        }
    }

    /// The next news, if there are any.
    pub fn try_recv(&mut self) -> Option<Fed> {
        lock(&self.queue.waiting).take()
    }

    /// Waits for a commit to be over, with news or without.
    pub(super) async fn commit_over(&mut self) {
        self.queue.news.notified().await;
    }

    /// How many commits were begun so far.
    pub(super) fn commits_begun(&self) -> u64 {
        self.feed.shared.begun.load(Ordering::SeqCst)
    }

    /// How many commits are over with all that they stored taken from here.
    pub(super) fn commits_taken(&self) -> u64 {
        let waiting = lock(&self.queue.waiting);
        if waiting.is_empty() { waiting.told } else { waiting.taken }
    }
}

/// Events that a subscriber has missed ([`Fed::Missed`]), in the order of their ids. Those that were deleted, replaced
/// or never stored are not among them.
///
/// # Errors
/// The store cannot be read.
pub async fn read_again<S: Store>(store: &S, ids: Vec<[u8; 32]>) -> Result<Vec<Verified<Event>>, S::Error> {
    let records = store.events(ids).await?;
    let parse = |record: Record| match Event::parse(record.json) {
        // It was verified before it was stored.
        Ok(event) => Some(Verified::trust(event)),
        Err(error) => {
            tracing::error!("the store holds something that is no event: {error}");
            None
        }
    };
    Ok(records.into_iter().flatten().filter_map(parse).collect())
}

/// A store whose commits are told to a [`Feed`]. Whoever writes to the same store by another way has a feed of its own,
/// or none.
#[derive(Debug)]
pub struct FedStore<S> {
    store: Arc<S>,
    feed: Feed,
    tells_ephemeral: bool,
    /// One commit after the other, so that events are told in the order in which they took effect.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl<S> FedStore<S> {
    /// `store`, with a feed of what is committed by this way. With `tells_ephemeral`, also of events that are passed on
    /// and never stored, each time that they are committed.
    pub fn new(store: Arc<S>, tells_ephemeral: bool) -> Self {
        Self { store, feed: Feed::default(), tells_ephemeral, turn: Arc::default() }
    }

    /// The feed.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }
}

impl<S: Store> Store for FedStore<S> {
    type Error = S::Error;

    async fn load(&self) -> Result<Snapshot, S::Error> {
        self.store.load().await
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, S::Error> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let (store, feed, tells_ephemeral) = (Arc::clone(&self.store), self.feed.clone(), self.tells_ephemeral);
        // A task of its own: a caller that stops waiting stops neither the commit nor the news of it.
        let committing = tokio::spawn(async move {
            let _turn = turn;
            let commit = feed.begin();
            let events = batch.events.clone();
            let result = store.commit(batch).await;
            let is_news = |outcome: &Outcome| match outcome {
                Outcome::Stored => true,
                Outcome::Ephemeral => tells_ephemeral,
                _ => false,
            };
            let outcomes = result.as_deref().unwrap_or_default();
            let news = events.into_iter().zip(outcomes).filter(|(_, outcome)| is_news(outcome));
            feed.end(commit, news.map(|(event, _)| event).collect());
            result
        });
        match committing.await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime shuts down, and drops this task as well.
                Err(_) => std::future::pending().await,
            },
        }
    }

    async fn known(&self, ids: Vec<[u8; 32]>, view: &View) -> Result<Vec<bool>, S::Error> {
        self.store.known(ids, view).await
    }

    async fn items(&self, filter: &Filter, window: Window, view: &View) -> Result<Arc<ItemSet>, S::Error> {
        self.store.items(filter, window, view).await
    }

    async fn held_items(
        &self,
        filter: &Filter,
        window: Window,
        view: &View,
        now_secs: u64,
    ) -> Result<Arc<ItemSet>, S::Error> {
        self.store.held_items(filter, window, view, now_secs).await
    }

    async fn events(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<Record>>, S::Error> {
        self.store.events(ids).await
    }

    async fn query(&self, query: Query) -> Result<Page, S::Error> {
        self.store.query(query).await
    }

    async fn count(&self, filters: Vec<Filter>, view: &View, now_secs: u64) -> Result<u64, S::Error> {
        self.store.count(filters, view, now_secs).await
    }

    async fn contexts(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<RequestContext>>, S::Error> {
        self.store.contexts(ids).await
    }

    async fn arrivals(&self, after: Sequence, limit: usize, bytes_max: usize) -> Result<Arrivals, S::Error> {
        self.store.arrivals(after, limit, bytes_max).await
    }

    async fn last_arrival(&self) -> Result<Sequence, S::Error> {
        self.store.last_arrival().await
    }

    fn floor_secs(&self) -> Option<u64> {
        self.store.floor_secs()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds a lock in a half-changed state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
