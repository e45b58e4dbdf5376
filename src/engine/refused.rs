//! What was not wanted when it came, and may be later: announcements, states of repositories, lists of grasp servers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Config;
use crate::discover::{LayerOne, layer_one_of};
use crate::protocol::Event;

/// What makes an event of the first layer wanted, in eight bytes: two that are the same by chance cost another look.
type Claim = u64;

/// Ids of announcements, states and lists that were judged not to be wanted, so that a comparison of sets does not
/// download them again; and which relays have them, to ask those again once they are wanted. The oldest is forgotten
/// first.
#[derive(Debug, Default)]
pub(super) struct Refused {
    entries: BTreeMap<[u8; 32], Entry>,
    by_claim: BTreeSet<(Claim, [u8; 32])>,
    order: VecDeque<[u8; 32]>,
}

#[derive(Debug)]
struct Entry {
    claim: Claim,
    dated_secs: u64,
    /// The first relays that had it.
    relays: Vec<usize>,
}

/// The dates of what is wanted after all, in seconds since 1970, by the number of the relay that has it.
pub(super) type Released = BTreeMap<usize, Vec<u64>>;

impl Refused {
    /// Remembers an event of this relay.
    pub(super) fn insert(&mut self, event: &Event, relay: usize, config: &Config) {
        let id = event.id.to_bytes();
        let claim = claim(&layer_one_of(event));
        let (dated_secs, relays) = (event.created_at_secs(), Vec::new());
        self.entries.entry(id).or_insert_with(|| {
            self.by_claim.insert((claim, id));
            self.order.push_back(id);
            Entry { claim, dated_secs, relays }
        });
        self.is_known(&id, relay, config);
        while self.entries.len() > config.refused_ids_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.forget(&oldest);
        }
    }

    /// Is this one remembered? From now on it is known that this relay has it, too.
    pub(super) fn is_known(&mut self, id: &[u8; 32], relay: usize, config: &Config) -> bool {
        let Some(entry) = self.entries.get_mut(id) else { return false };
        if entry.relays.len() < config.refused_relays_max && !entry.relays.contains(&relay) {
            entry.relays.push(relay);
        }
        true
    }

    /// Forgets what these make wanted.
    pub(super) fn release(&mut self, wanted: &[LayerOne]) -> Released {
        let mut released = Released::new();
        for claim in wanted.iter().map(claim) {
            let ids: Vec<[u8; 32]> =
                self.by_claim.range((claim, [0; 32])..=(claim, [u8::MAX; 32])).map(|(_, id)| *id).collect();
            for entry in ids.iter().filter_map(|id| self.forget(id)) {
                for relay in entry.relays {
                    released.entry(relay).or_default().push(entry.dated_secs);
                }
            }
        }
        if !released.is_empty() {
            self.order.retain(|id| self.entries.contains_key(id));
        }
        released
    }

    fn forget(&mut self, id: &[u8; 32]) -> Option<Entry> {
        let entry = self.entries.remove(id)?;
        self.by_claim.remove(&(entry.claim, *id));
        Some(entry)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

fn claim(of: &LayerOne) -> Claim {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
