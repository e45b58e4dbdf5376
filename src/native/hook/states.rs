//! For which repositories a state is news, besides its author's own.

use std::sync::Arc;

use super::Shared;
use super::board::entries_of;
use super::relevance::{STATE, names_maintainer};
use crate::native::clock::unix_secs;
use crate::peer::View;
use crate::protocol::{Address, Event, Filter, PublicKey};
use crate::store::{Query, Record, Store};

/// Bytes of announcements that are looked through at a time.
const PAGE_BYTES_MAX: usize = 1 << 20;

impl<S: Store> Shared<S> {
    /// Hands the held state of `own` on to repositories of the same name that list its author as a maintainer.
    ///
    /// # Errors
    /// The store cannot be read, in its words.
    pub(super) async fn resolve_state(self: &Arc<Self>, own: &Address) -> Result<(), String> {
        let Ok(author) = PublicKey::from_slice(&own.author) else { return Ok(()) };
        let states = Filter::new().kind(STATE.into()).author(author).identifier(&*own.identifier);
        let Some(state) = self.find(states, 1).await?.pop() else { return Ok(()) };
        let announcements = Filter::new().kind(Address::REPOSITORY.into()).identifier(&*own.identifier);
        let mut items = Vec::new();
        for record in self.find(announcements, self.config.announcements_max).await? {
            let announcement = match Event::parse(record.json) {
                Ok(announcement) => announcement,
                Err(error) => {
                    tracing::error!("the store holds something that is no event: {error}");
                    continue;
                }
            };
            let other = Address::repository(announcement.pubkey.to_bytes(), &own.identifier);
            if other != *own && names_maintainer(&announcement, &own.author) {
                items.extend(self.board().admit(0, other, state.id, false, &self.config));
            }
        }
        if !items.is_empty() {
            self.write(entries_of(&items)).await;
            self.board().counters.states_resolved += 1;
            self.settle(&items, |_| true);
        }
        Ok(())
    }

    /// The newest events that `filter` selects, so many at most.
    async fn find(&self, filter: Filter, events_max: usize) -> Result<Vec<Record>, String> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let limit = events_max - found.len();
            let query = Query {
                filter: filter.clone(),
                after,
                limit,
                bytes_max: PAGE_BYTES_MAX,
                now_secs: unix_secs(),
                view: View::all(),
            };
            let page = self.store.query(query).await.map_err(|error| error.to_string())?;
            found.extend(page.records);
            after = page.next;
            if after.is_none() || found.len() >= events_max {
                return Ok(found);
            }
        }
    }
}
