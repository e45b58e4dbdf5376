//! What belongs to repositories, among what is stored: an event may come before what makes it belong to one.

use std::collections::{BTreeSet, VecDeque};

use super::JobError;
use super::courier::{HeldPages, parse};
use super::shared::Shared;
use crate::discover::Discovery;
use crate::protocol::Event;
use crate::runtime::{Clock, Now, Runtime};
use crate::store::{Record, Store};

/// What belongs to repositories, by what is known of them so far. Nothing is lost if waiting for it is given up.
pub(super) struct Related {
    discovery: Discovery,
    /// What is held was read from the store already.
    is_prepared: bool,
    /// Events that refer to something and belong to nothing that is known: it may become known.
    passed_over: BTreeSet<[u8; 32]>,
    /// In the order in which they came, with those that belong to something by now.
    order: VecDeque<[u8; 32]>,
    /// How often more has become known, and how often it had when those were looked at.
    grown: u64,
    looked_at: u64,
    /// Of those, the ones that were found to belong to something, until they are given out.
    found: VecDeque<[u8; 32]>,
}

impl Related {
    /// Nothing is known yet.
    pub(super) fn new(discovery: Discovery) -> Self {
        Self {
            discovery,
            is_prepared: false,
            passed_over: BTreeSet::new(),
            order: VecDeque::new(),
            grown: 0,
            looked_at: 0,
            found: VecDeque::new(),
        }
    }

    /// Learns what has to be known of what is held.
    pub(super) async fn prepare<R: Runtime>(&mut self, shared: &Shared<R>) -> Result<(), JobError> {
        if self.is_prepared {
            return Ok(());
        }
        let mut pages = HeldPages::default();
        while let Some(events) = pages.next(shared).await.map_err(JobError::Store)? {
            let now = shared.runtime.clock().now();
            events.iter().for_each(|event| self.observe(event, now));
        }
        self.is_prepared = true;
        Ok(())
    }

    /// Does this belong to what is known? Up to `passed_over_max` of those that do not are remembered.
    pub(super) fn selects(&mut self, event: &Event, now: Now, passed_over_max: usize) -> bool {
        let is_wanted = self.discovery.consider(event).is_ok();
        self.observe(event, now);
        let id = event.id.to_bytes();
        if is_wanted {
            self.passed_over.remove(&id);
        } else if refers(event) && self.passed_over.insert(id) {
            self.order.push_back(id);
            while self.order.len() > passed_over_max {
                self.order.pop_front().map(|oldest| self.passed_over.remove(&oldest));
            }
        }
        is_wanted
    }

    fn observe(&mut self, event: &Event, now: Now) {
        self.discovery.observe(event, now.instant);
        // Nobody asks of which relays it is to be fetched.
        self.grown += u64::from(self.discovery.flush().iter().any(|change| !change.added.is_empty()));
    }

    /// Looks at what was passed over once more has become known, until nothing more follows from it.
    pub(super) async fn look_again<R: Runtime>(&mut self, shared: &Shared<R>) -> Result<(), JobError> {
        let part = shared.config.add_events_max.max(1);
        while self.looked_at != self.grown && !self.passed_over.is_empty() {
            let grown = self.grown;
            self.order.retain(|id| self.passed_over.contains(id));
            let ids: Vec<[u8; 32]> = self.order.iter().copied().collect();
            for ids in ids.chunks(part) {
                let records = shared.runtime.store().events(ids.to_vec()).await.map_err(JobError::of_store)?;
                let now = shared.runtime.clock().now();
                let events = records.into_iter().flatten().filter_map(parse);
                for event in events.filter(|event| !has_expired(event, now)) {
                    if self.selects(&event, now, usize::MAX) {
                        self.found.push_back(event.id.to_bytes());
                    }
                }
            }
            self.looked_at = grown;
        }
        Ok(())
    }

    /// Gives out up to `most` of those that were found.
    pub(super) async fn take_found<R: Runtime>(
        &mut self,
        shared: &Shared<R>,
        most: usize,
    ) -> Result<Vec<Record>, JobError> {
        let most = most.min(shared.config.arrivals_events_max.max(1)).min(self.found.len());
        if most == 0 {
            return Ok(Vec::new());
        }
        let ids = self.found.iter().take(most).copied().collect();
        let records = shared.runtime.store().events(ids).await.map_err(JobError::of_store)?;
        self.found.drain(..most);
        Ok(records.into_iter().flatten().collect())
    }
}

/// Does it name another event, or an address?
fn refers(event: &Event) -> bool {
    event.tags.iter().any(|tag| matches!(tag.kind(), "a" | "A" | "e" | "E" | "q"))
}

fn has_expired(event: &Event, now: Now) -> bool {
    event.expires_at_secs().is_some_and(|at| at <= now.unix_secs)
}
