//! A bounded memory that forgets the oldest first.

use std::collections::{BTreeMap, VecDeque};

/// A map that holds as much as it was told to; one entry more, and the oldest is forgotten.
#[derive(Debug, Clone)]
pub(super) struct Recent<K, V = ()> {
    entries: BTreeMap<K, V>,
    /// In the order in which they came; some may have been removed since.
    order: VecDeque<K>,
}

impl<K: Ord + Clone, V> Recent<K, V> {
    pub(super) fn new() -> Self {
        Self { entries: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Adds an entry or replaces its value, without making it younger. Gives back how many were forgotten for it.
    pub(super) fn insert(&mut self, key: K, value: V, entries_max: usize) -> u64 {
        if self.entries.insert(key.clone(), value).is_some() {
            return 0;
        }
        self.order.push_back(key);
        let mut forgotten = 0;
        while self.order.len() > entries_max {
            // An entry that was removed and came back is forgotten by its first turn: early, never late.
            let oldest = self.order.pop_front();
            forgotten += u64::from(oldest.is_some_and(|oldest| self.entries.remove(&oldest).is_some()));
        }
        forgotten
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.entries.remove(key);
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut recent = Recent::new();
        assert_eq!((0..3).map(|key| recent.insert(key, key * 10, 3)).sum::<u64>(), 0);
        recent.insert(0, 7, 3);
        assert_eq!(recent.get(&0), Some(&7));
        assert_eq!(recent.insert(3, 30, 3), 1);
        assert!(!recent.contains(&0) && recent.contains(&1));
        recent.remove(&1);
        assert_eq!((recent.len(), recent.insert(4, 40, 3)), (2, 0));
        assert_eq!(recent.insert(5, 50, 0), 4);
        assert_eq!(recent.len(), 0);
    }
}
