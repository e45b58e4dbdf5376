//! What another writer puts into the store that the relay service serves from.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::ingest::Verified;
use crate::native::feed::{Fed, FeedReceiver, read_again};
use crate::protocol::Event;
use crate::serve::{ServeInput, WorkFault};
use crate::store::Store;

/// Follows the other writer's feed; what was missed there is read from the store.
#[derive(Debug)]
pub(super) struct Elsewhere<S> {
    feed: Option<FeedReceiver>,
    store: Arc<S>,
    /// A part of what was missed, on its way from the store.
    reading: Option<JoinHandle<Result<Vec<Verified<Event>>, WorkFault>>>,
    /// What else was missed, still to be read.
    missed: std::vec::IntoIter<[u8; 32]>,
    over: u64,
    /// What the server was told last of commits begun and over.
    told: (u64, u64),
}

/// Missed events read from the store at a time.
const EVENTS_AT_ONCE_MAX: usize = 500;

impl<S: Store> Elsewhere<S> {
    /// Without a feed, nobody else writes.
    pub(super) fn new(feed: Option<FeedReceiver>, store: Arc<S>) -> Self {
        Self { feed, store, reading: None, missed: Vec::new().into_iter(), over: 0, told: (0, 0) }
    }

    /// Waits until there are news: events for the server, or (`None`) only [commits](Self::commits) that are over.
    /// Nothing is lost if this is dropped before it ends.
    pub(super) async fn next(&mut self) -> Option<ServeInput> {
        let Some(feed) = &mut self.feed else { return std::future::pending().await };
        loop {
            if let Some(reading) = &mut self.reading {
                let read = reading.await;
                self.reading = None;
                let fault = match read {
                    Ok(Ok(events)) => return Some(ServeInput::Accepted { events: events.into() }),
                    Ok(Err(fault)) => fault.to_string(),
                    Err(error) => error.to_string(),
                };
                // The subscriptions that waited for the rest are closed.
                self.missed = Vec::new().into_iter();
                return Some(missed(&fault));
            }
            if self.missed.len() > 0 {
                let part = self.missed.by_ref().take(EVENTS_AT_ONCE_MAX).collect();
                self.reading = Some(tokio::spawn(read_part(self.store.clone(), part)));
                continue;
            }
            match feed.try_recv() {
                Some(Fed::Events(events)) => return Some(ServeInput::Accepted { events }),
                Some(Fed::Missed(ids)) => self.missed = ids.into_iter(),
                Some(Fed::Lagged { events }) => return Some(missed(&format_args!("{events} are too many to read"))),
                None if feed.commits_taken() != self.over => return None,
                None => feed.commit_over().await,
            }
        }
    }

    /// How far the other writer's commits have come, if that is news to the server.
    pub(super) fn commits(&mut self) -> Option<ServeInput> {
        let feed = self.feed.as_ref()?;
        if self.reading.is_none() && self.missed.len() == 0 {
            self.over = feed.commits_taken();
        }
        let commits = (feed.commits_begun(), self.over);
        let (begun, over) = commits;
        (std::mem::replace(&mut self.told, commits) != commits).then_some(ServeInput::Elsewhere { begun, over })
    }
}

fn missed(why: &dyn std::fmt::Display) -> ServeInput {
    tracing::error!("subscriptions are closed, as events were missed: {why}");
    ServeInput::Missed
}

async fn read_part<S: Store>(store: Arc<S>, ids: Vec<[u8; 32]>) -> Result<Vec<Verified<Event>>, WorkFault> {
    read_again(&*store, ids).await.map_err(|error| WorkFault(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::feed::{FedStore, FeedBounds};
    use crate::store::{Batch, MemoryStore};

    fn note(number: usize) -> Verified<Event> {
        let json = format!(
            r#"{{"id":"{number:064x}","pubkey":"{0}","created_at":1,"kind":1,"tags":[],"content":"","sig":"{0}{0}"}}"#,
            "01".repeat(32)
        );
        Verified::trust(Event::parse(json.into()).unwrap())
    }

    #[tokio::test]
    async fn what_was_missed_is_handed_over_part_by_part() {
        const EVENTS: usize = 2 * EVENTS_AT_ONCE_MAX + 1;
        let store = Arc::new(MemoryStore::default());
        let theirs = FedStore::new(store.clone(), false);
        let bounds = FeedBounds { events_max: 0, ..FeedBounds::default() };
        let mut elsewhere = Elsewhere::new(Some(theirs.feed().subscribe(bounds)), store);
        theirs.commit(Batch { events: (0..EVENTS).map(note).collect(), ..Batch::default() }).await.unwrap();
        let mut parts = Vec::new();
        while parts.iter().sum::<usize>() < EVENTS {
            match elsewhere.next().await {
                Some(ServeInput::Accepted { events }) => parts.push(events.len()),
                other => panic!("{other:?}"),
            }
            let is_over = parts.len() == 3;
            let told = elsewhere.commits();
            let over = matches!(told, Some(ServeInput::Elsewhere { begun: 1, over: 1 }));
            assert_eq!(over, is_over, "after {parts:?}: {told:?}");
        }
        assert_eq!(parts, [EVENTS_AT_ONCE_MAX, EVENTS_AT_ONCE_MAX, 1]);
    }
}
