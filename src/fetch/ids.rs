//! Downloads by id: several requests in flight, what does not come is asked for once more, then reported.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Arrival;
use crate::relay::Budget;

/// Ids that are wanted, on their way, and missing.
#[derive(Debug)]
pub struct IdFetch {
    attempts_max: u8,
    queue: VecDeque<([u8; 32], u8)>,
    /// Ids in the queue or on their way.
    wanted: usize,
    in_flight: BTreeMap<u64, Chunk>,
    /// Ids that did not come, though asked for twice.
    missing: BTreeSet<[u8; 32]>,
}

#[derive(Debug)]
struct Chunk {
    asked: usize,
    attempt: u8,
    left: BTreeSet<[u8; 32]>,
    came: BTreeSet<[u8; 32]>,
}

impl IdFetch {
    /// Nothing is wanted yet. An id is asked for `attempts_max` times.
    pub fn new(attempts_max: u8) -> Self {
        Self { attempts_max, queue: VecDeque::new(), wanted: 0, in_flight: BTreeMap::new(), missing: BTreeSet::new() }
    }

    /// Wants an id. Who finds differences sees to it that few are wanted twice. Nothing happens if it is known to be
    /// missing.
    pub fn want(&mut self, id: [u8; 32]) {
        if !self.missing.contains(&id) {
            self.wanted += 1;
            self.queue.push_back((id, 1));
        }
    }

    /// What came under this id is not genuine: it is asked for again, as often as any other that does not come.
    pub fn want_again(&mut self, id: [u8; 32], attempt: u8) {
        if attempt > self.attempts_max {
            self.missing.insert(id);
        } else if !self.missing.contains(&id) {
            self.wanted += 1;
            self.queue.push_back((id, attempt));
        }
    }

    /// The ids of the next request, which will be `subscription`, if there is one to make.
    pub fn poll_ask(&mut self, subscription: u64, budget: &Budget, in_flight_max: usize) -> Option<Vec<[u8; 32]>> {
        if self.in_flight.len() >= in_flight_max.max(1) {
            return None;
        }
        let attempt = self.queue.front()?.1;
        let mut ids = Vec::with_capacity(self.queue.len().min(budget.ids_per_request()));
        let mut left = BTreeSet::new();
        while ids.len() < budget.ids_per_request() {
            // First and second attempts do not mix: a chunk is one or the other.
            match self.queue.pop_front_if(|(_, next)| *next == attempt) {
                Some((id, _)) if left.insert(id) => ids.push(id),
                // A window that was begun anew has found it again.
                Some(_) => self.wanted -= 1,
                None => break,
            }
        }
        let chunk = Chunk { asked: ids.len(), attempt, left, came: BTreeSet::new() };
        self.in_flight.insert(subscription, chunk);
        Some(ids)
    }

    /// An event came on `subscription`.
    pub fn handle_event(&mut self, subscription: u64, id: &[u8; 32]) -> Arrival {
        let Some(chunk) = self.in_flight.get_mut(&subscription) else { return Arrival::Unasked };
        if !chunk.left.remove(id) {
            return if chunk.came.contains(id) { Arrival::Copy } else { Arrival::Unasked };
        }
        chunk.came.insert(*id);
        self.wanted -= 1;
        // What has to be asked for again may have been forged: then other copies may follow.
        if chunk.left.is_empty() && chunk.attempt == 1 {
            self.in_flight.remove(&subscription);
            return Arrival::Last;
        }
        Arrival::New
    }

    /// The relay has ended the request (or refused it, or fallen silent: `answered` unset).
    pub fn handle_end(&mut self, subscription: u64, answered: bool, budget: &mut Budget) {
        let Some(chunk) = self.in_flight.remove(&subscription) else { return };
        let received = chunk.asked - chunk.left.len();
        if answered {
            budget.learn_ids(chunk.asked, received);
        } else if received == 0 {
            budget.learn_ids_silence(chunk.asked);
        }
        // What a cap, or the silence of a relay that was asked for too many ids, has cut off was no attempt.
        let cut = chunk.asked > budget.ids_per_request() && (received > 0 || !answered)
            || answered && received > 0 && chunk.left.len() >= received;
        for id in chunk.left {
            match chunk.attempt + u8::from(!cut) {
                next if next <= self.attempts_max => self.queue.push_back((id, next)),
                _ => {
                    self.wanted -= 1;
                    self.missing.insert(id);
                }
            }
        }
    }

    /// The request is to be made again, for no fault of its own.
    pub fn handle_lost(&mut self, subscription: u64) {
        if let Some(chunk) = self.in_flight.remove(&subscription) {
            self.queue.extend(chunk.left.into_iter().map(|id| (id, chunk.attempt)));
        }
    }

    /// Ids that wait to be asked for.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Ids that are remembered: wanted, on their way, or missing.
    pub fn ids(&self) -> usize {
        self.wanted + self.missing.len()
    }

    /// The requests in flight were lost with the connection: they are to be made again.
    pub fn reset(&mut self) {
        for chunk in std::mem::take(&mut self.in_flight).into_values() {
            self.queue.extend(chunk.left.into_iter().map(|id| (id, chunk.attempt)));
        }
    }

    /// Is nothing wanted any more?
    pub fn is_idle(&self) -> bool {
        self.wanted == 0
    }

    /// Nothing more is asked for. Gives back how many ids are left.
    pub fn give_up(&mut self) -> usize {
        self.queue.clear();
        self.in_flight.clear();
        std::mem::take(&mut self.wanted)
    }

    /// Ids that the relay offered and did not deliver.
    pub fn missing(&self) -> &BTreeSet<[u8; 32]> {
        &self.missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Config;

    fn id(n: u16) -> [u8; 32] {
        let mut id = [0; 32];
        id[..2].copy_from_slice(&n.to_be_bytes());
        id
    }

    #[test]
    fn what_never_comes_is_asked_for_twice_and_reported() {
        let mut budget = Budget::new(&Config::default());
        let mut ids = IdFetch::new(2);
        (0..10).chain(0..10).for_each(|n| ids.want(id(n)));
        assert_eq!(ids.poll_ask(1, &budget, 4).unwrap().len(), 10, "each id once");
        (0..9).for_each(|n| assert_eq!(ids.handle_event(1, &id(n)), Arrival::New));
        assert_eq!(ids.handle_event(1, &id(77)), Arrival::Unasked);
        ids.handle_end(1, true, &mut budget);
        assert_eq!(ids.poll_ask(2, &budget, 4), Some(vec![id(9)]));
        ids.handle_end(2, true, &mut budget);
        assert!(ids.is_idle());
        ids.want(id(9));
        assert_eq!(ids.poll_ask(3, &budget, 4), None);
        assert_eq!(ids.missing().len(), 1);
    }

    #[test]
    fn a_cap_on_ids_is_learned_and_nothing_is_lost() {
        let mut budget = Budget::new(&Config::default());
        let mut ids = IdFetch::new(2);
        (0..1000).for_each(|n| ids.want(id(n)));
        let (mut got, mut subscription) = (BTreeSet::new(), 0);
        while !ids.is_idle() {
            subscription += 1;
            let asked = ids.poll_ask(subscription, &budget, 1).unwrap();
            for id in asked.iter().take(100) {
                ids.handle_event(subscription, id);
                got.insert(*id);
            }
            ids.handle_end(subscription, true, &mut budget);
            assert!(subscription < 30);
        }
        assert_eq!(got.len(), 1000);
        assert!(ids.missing().is_empty());
    }
}
