//! Publishing what a relay lacks: EVENT by EVENT, each answered by an OK (NIP-01).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::protocol::hex;
use crate::runtime::Instant;
use crate::store::Record;

/// What a relay lacks, what is on its way to it, and what it said.
#[derive(Debug, Default)]
pub struct Publish {
    attempts_max: u8,
    load_events: usize,
    /// Ids to be loaded and sent. Ordered, so that repeated offers are one.
    queue: VecDeque<[u8; 32]>,
    queued: BTreeSet<[u8; 32]>,
    loading: bool,
    loaded: VecDeque<(Record, u8)>,
    in_flight: BTreeMap<[u8; 32], (Record, Instant, u8)>,
    /// When the last OK came.
    answered_at: Option<Instant>,
    /// Events refused, and the first refusal's words.
    pub refused: Option<(usize, String)>,
    /// Events without an answer.
    pub unacknowledged: usize,
}

impl Publish {
    /// Nothing is offered yet. An event is sent `attempts_max` times, and `load_events` are loaded in one go.
    pub fn new(attempts_max: u8, load_events: usize) -> Self {
        Self { attempts_max, load_events: load_events.max(1), ..Self::default() }
    }

    /// Offers an event. Once offered, it is not offered again.
    pub fn offer(&mut self, id: [u8; 32]) {
        if self.queued.insert(id) {
            self.queue.push_back(id);
        }
    }

    /// Ids to load from the store, if more are needed now.
    pub fn poll_load(&mut self, in_flight_max: usize) -> Option<Vec<[u8; 32]>> {
        if self.loading || self.queue.is_empty() || self.loaded.len() >= in_flight_max {
            return None;
        }
        self.loading = true;
        let count = self.queue.len().min(self.load_events);
        Some(self.queue.drain(..count).collect())
    }

    /// Takes loaded events in. Those that are not held any more are nothing to publish.
    pub fn handle_loaded(&mut self, records: Vec<Option<Record>>) {
        self.loading = false;
        self.loaded.extend(records.into_iter().flatten().map(|record| (record, 1)));
    }

    /// The next event to send, if there is one and room for it. Those that the relay may not have are dropped here: what
    /// was offered, loaded or sent before may not be for it any more.
    pub fn poll_send(
        &mut self,
        now: Instant,
        in_flight_max: usize,
        may_have: impl Fn(&Record) -> bool,
    ) -> Option<Record> {
        if self.in_flight.len() >= in_flight_max.max(1) {
            return None;
        }
        while let Some((record, _)) = self.loaded.pop_front_if(|(record, _)| !may_have(record)) {
            self.queued.remove(&record.id);
        }
        let (record, attempt) = self.loaded.pop_front()?;
        self.in_flight.insert(record.id, (record.clone(), now, attempt));
        Some(record)
    }

    /// An OK came. `None` if it is for no event of ours.
    pub fn handle_ok(&mut self, id: &str, now: Instant) -> Option<Record> {
        let id: [u8; 32] = hex::decode(id)?.try_into().ok()?;
        let (record, ..) = self.in_flight.remove(&id)?;
        self.answered_at = Some(now);
        Some(record)
    }

    /// The relay does not want this event.
    pub fn refuse(&mut self, words: &str) {
        let (events, _) = self.refused.get_or_insert_with(|| (0, words.to_owned()));
        *events += 1;
    }

    /// To be sent again, once the relay can take it.
    pub fn retry(&mut self, record: Record) {
        self.loaded.push_front((record, 1));
    }

    /// The same with nothing to send, and nothing remembered.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self::new(self.attempts_max, self.load_events)
    }

    /// This one is through, and may be offered again.
    pub fn forget(&mut self, id: &[u8; 32]) {
        self.queued.remove(id);
    }

    /// How many events are to be sent or answered.
    pub fn left(&self) -> usize {
        self.queue.len() + self.loaded.len() + self.in_flight.len()
    }

    /// Since when the relay owes an OK: a relay that answers one event after the other is not overdue with the last.
    pub fn waiting_since(&self) -> Option<Instant> {
        let oldest = self.in_flight.values().map(|(_, sent_at, _)| *sent_at).min()?;
        Some(self.answered_at.map_or(oldest, |at| at.max(oldest)))
    }

    /// Ids that are remembered: an event once offered is not offered again.
    pub fn ids(&self) -> usize {
        self.queued.len()
    }

    /// Nothing could be heard for a while: what the relay owes is awaited from now on.
    pub fn excuse_silence(&mut self, now: Instant) {
        self.answered_at = Some(now);
    }

    /// Everything on its way is overdue, or was lost with the connection: sent once more, or given up.
    pub fn handle_lost(&mut self) {
        for (_, (record, _, attempt)) in std::mem::take(&mut self.in_flight) {
            if attempt < self.attempts_max {
                self.loaded.push_back((record, attempt + 1));
            } else {
                self.queued.remove(&record.id);
                self.unacknowledged += 1;
            }
        }
    }

    /// Is nothing left to send or to be answered?
    pub fn is_idle(&self) -> bool {
        !self.loading && self.queue.is_empty() && self.loaded.is_empty() && self.in_flight.is_empty()
    }

    /// Nothing more is sent. Gives back how many events are left; those that are being loaded count as one.
    pub fn give_up(&mut self) -> usize {
        let loading = usize::from(std::mem::take(&mut self.loading));
        let left = loading + self.queue.len() + self.loaded.len() + self.in_flight.len();
        self.queue.clear();
        self.loaded.clear();
        self.in_flight.clear();
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_loaded_is_left_as_well() {
        let mut publish = Publish::new(2, 64);
        publish.offer([1; 32]);
        assert_eq!(publish.poll_load(64), Some(vec![[1; 32]]));
        assert_eq!(publish.give_up(), 1);
    }
}
