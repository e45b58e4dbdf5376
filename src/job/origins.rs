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

/// The origins of the last events. Who brings an event first counts, until it is forgotten.
#[derive(Debug)]
pub(super) struct Origins {
    most: usize,
    by_id: BTreeMap<[u8; 32], OriginOf>,
    order: VecDeque<[u8; 32]>,
}

impl Origins {
    /// Remembers `most` events.
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), by_id: BTreeMap::new(), order: VecDeque::new() }
    }

    pub(super) fn insert(&mut self, brought: &Brought, runner: RunnerId) {
        if self.by_id.contains_key(&brought.id) {
            return;
        }
        if self.order.len() >= self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
        self.order.push_back(brought.id);
        self.by_id.insert(brought.id, OriginOf { relay: brought.relay.clone(), live: brought.live, runner });
    }

    pub(super) fn of(&self, id: &[u8; 32]) -> Option<&OriginOf> {
        self.by_id.get(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_counts_and_the_oldest_is_forgotten() {
        let brought = |number, relay: &str| Brought {
            id: [number; 32],
            relay: RelayUrl::parse(relay).unwrap(),
            live: number == 2,
        };
        let mut origins = Origins::new(2);
        origins.insert(&brought(1, "wss://a.example"), RunnerId(1));
        origins.insert(&brought(1, "wss://b.example"), RunnerId(2));
        origins.insert(&brought(2, "wss://b.example"), RunnerId(2));
        assert_eq!(origins.of(&[1; 32]).unwrap().relay, brought(1, "wss://a.example").relay);
        assert!(origins.of(&[2; 32]).unwrap().live);
        origins.insert(&brought(3, "wss://a.example"), RunnerId(1));
        assert_eq!(origins.of(&[1; 32]), None);
        assert!(origins.of(&[2; 32]).is_some() && origins.of(&[3; 32]).is_some());
    }
}
