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
    reading: Option<JoinHandle<Result<Vec<Verified<Event>>, WorkFault>>>,
    over: u64,
    /// What the server was told last of commits begun and over.
    told: (u64, u64),
}

/// Missed events read from the store at a time.
const EVENTS_AT_ONCE_MAX: usize = 500;

impl<S: Store> Elsewhere<S> {
    /// Without a feed, nobody else writes.
    pub(super) fn new(feed: Option<FeedReceiver>, store: Arc<S>) -> Self {
        Self { feed, store, reading: None, over: 0, told: (0, 0) }
    }

    /// Waits until there are news: events for the server, or (`None`) only [commits](Self::commits) that are over.
    /// Nothing is lost if this is dropped before it ends.
    pub(super) async fn next(&mut self) -> Option<ServeInput> {
        let Some(feed) = &mut self.feed else { return std::future::pending().await };
        loop {
            if let Some(reading) = &mut self.reading {
                let read = reading.await;
                self.reading = None;
                return Some(match read {
                    Ok(Ok(events)) => ServeInput::Accepted { events: events.into() },
                    Ok(Err(fault)) => missed(&fault),
                    Err(error) => missed(&error),
                });
            }
            match feed.try_recv() {
                Some(Fed::Events(events)) => return Some(ServeInput::Accepted { events }),
                Some(Fed::Missed(ids)) => self.reading = Some(tokio::spawn(read_in_parts(self.store.clone(), ids))),
                Some(Fed::Lagged { events }) => return Some(missed(&format_args!("{events} are too many to read"))),
                None if feed.commits_taken() != self.over => return None,
                None => feed.commit_over().await,
            }
        }
    }

    /// How far the other writer's commits have come, if that is news to the server.
    pub(super) fn commits(&mut self) -> Option<ServeInput> {
        let feed = self.feed.as_ref()?;
        if self.reading.is_none() {
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

async fn read_in_parts<S: Store>(store: Arc<S>, ids: Vec<[u8; 32]>) -> Result<Vec<Verified<Event>>, WorkFault> {
    let mut events = Vec::new();
    for part in ids.chunks(EVENTS_AT_ONCE_MAX) {
        let read = read_again(&*store, part.to_vec()).await;
        events.extend(read.map_err(|error| WorkFault(error.to_string()))?);
    }
    Ok(events)
}
