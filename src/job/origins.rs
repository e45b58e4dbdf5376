//! Which relay brought what was stored lately.

use std::collections::{BTreeMap, VecDeque};

use super::runner::RunnerId;
use crate::engine::Brought;
use crate::protocol::RelayUrl;

/// Who brought an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OriginOf {
    pub(super) relay: RelayUrl,
    /// It came by a live subscription.
    pub(super) live: bool,
    /// Whose engine stored it.
    pub(super) runner: RunnerId,
}

/// The origins of the last events. Who stores an event counts; what is on its way into the store counts for the time being.
#[derive(Debug)]
pub(super) struct Origins {
    most: usize,
    by_id: BTreeMap<[u8; 32], OriginOf>,
    order: VecDeque<[u8; 32]>,
    /// What engines are about to store, if nobody else does before.
    expected: BTreeMap<RunnerId, BTreeMap<[u8; 32], OriginOf>>,
}

impl Origins {
    /// Remembers `most` events.
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), by_id: BTreeMap::new(), order: VecDeque::new(), expected: BTreeMap::new() }
    }

    /// An engine is about to store these.
    pub(super) fn expect(&mut self, runner: RunnerId, brought: &[Brought]) {
        let origins = brought.iter().map(|brought| (brought.id, origin_of(brought, runner)));
        self.expected.insert(runner, origins.collect());
    }

    /// Of what it was about to store, an engine has stored these, and nothing else.
    pub(super) fn settle(&mut self, runner: RunnerId, stored: &[Brought]) {
        self.expected.remove(&runner);
        for brought in stored {
            if self.by_id.insert(brought.id, origin_of(brought, runner)).is_none() {
                self.order.push_back(brought.id);
            }
        }
        while self.order.len() > self.most {
            self.order.pop_front().and_then(|oldest| self.by_id.remove(&oldest));
        }
    }

    /// Who brought this. It may be in the store before that was told.
    pub(super) fn of(&self, id: &[u8; 32]) -> Option<&OriginOf> {
        self.by_id.get(id).or_else(|| self.expected.values().find_map(|expected| expected.get(id)))
    }

    /// Is it known that this engine has stored this?
    pub(super) fn has_stored(&self, runner: RunnerId, id: &[u8; 32]) -> bool {
        self.by_id.get(id).is_some_and(|origin| origin.runner == runner)
    }
}

fn origin_of(brought: &Brought, runner: RunnerId) -> OriginOf {
    OriginOf { relay: brought.relay.clone(), live: brought.live, runner }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RunnerId = RunnerId(1);
    const B: RunnerId = RunnerId(2);

    fn brought(number: u8, relay: &str) -> Brought {
        Brought { id: [number; 32], relay: RelayUrl::parse(relay).unwrap(), live: number == 2 }
    }

    #[test]
    fn who_has_stored_it_counts_and_the_oldest_is_forgotten() {
        let mut origins = Origins::new(2);
        let (first, second) = (brought(1, "wss://a.example"), brought(1, "wss://b.example"));
        origins.expect(A, std::slice::from_ref(&first));
        origins.expect(B, std::slice::from_ref(&second));
        origins.settle(B, &[second.clone(), brought(2, "wss://b.example")]);
        origins.settle(A, &[]);
        assert_eq!(origins.of(&[1; 32]).unwrap().relay, second.relay);
        assert!(origins.has_stored(B, &[1; 32]) && !origins.has_stored(A, &[1; 32]));
        assert!(origins.of(&[2; 32]).unwrap().live);
        origins.settle(A, &[brought(3, "wss://a.example")]);
        assert_eq!(origins.of(&[1; 32]), None);
        assert!(origins.of(&[2; 32]).is_some() && origins.of(&[3; 32]).is_some());
    }

    #[test]
    fn what_was_on_its_way_and_did_not_get_there_is_of_nobody() {
        let mut origins = Origins::new(2);
        let event = brought(1, "wss://a.example");
        origins.expect(A, std::slice::from_ref(&event));
        assert_eq!(origins.of(&[1; 32]).unwrap().relay, event.relay, "it may be held already");
        assert!(!origins.has_stored(A, &[1; 32]), "or have been stored by somebody else");
        origins.settle(A, &[]);
        assert_eq!(origins.of(&[1; 32]), None);
    }
}
