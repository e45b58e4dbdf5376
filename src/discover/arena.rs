//! Things by number. What is related is related by numbers of four bytes, not by names.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Index, IndexMut, RangeFrom};

/// A number of one sort of things.
pub(super) trait Number: Copy + Ord {
    const FIRST: Self;
    fn of(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) struct $name(u32);

        impl Number for $name {
            const FIRST: Self = Self(0);

            fn of(index: usize) -> Self {
                Self(u32::try_from(index).expect("bounds keep fewer than 2^32 of anything"))
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

numbers! {
    /// A relay.
    RelayNumber
    /// A repository: an address, announced or not.
    RepoNumber
    /// An issue, patch or pull request.
    RootNumber
    /// A public key.
    AuthorNumber
}

/// Slots, each with a number. A number is used again once its slot is empty.
#[derive(Debug)]
pub(super) struct Slots<N, V> {
    slots: Vec<Option<V>>,
    free: Vec<N>,
}

impl<N: Number, V> Slots<N, V> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: V) -> N {
        if let Some(number) = self.free.pop() {
            self.slots[number.index()] = Some(value);
            return number;
        }
        self.slots.push(Some(value));
        N::of(self.slots.len() - 1)
    }

    pub(super) fn get(&self, number: N) -> Option<&V> {
        self.slots.get(number.index())?.as_ref()
    }

    pub(super) fn remove(&mut self, number: N) -> Option<V> {
        let value = self.slots.get_mut(number.index())?.take()?;
        self.free.push(number);
        Some(value)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (N, &V)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| Some((N::of(index), slot.as_ref()?)))
    }
}

impl<N: Number, V> Index<N> for Slots<N, V> {
    type Output = V;

    fn index(&self, number: N) -> &V {
        self.slots[number.index()].as_ref().expect("a number leads to a slot that is taken")
    }
}

impl<N: Number, V> IndexMut<N> for Slots<N, V> {
    fn index_mut(&mut self, number: N) -> &mut V {
        self.slots[number.index()].as_mut().expect("a number leads to a slot that is taken")
    }
}

/// Named things, by name and by number.
#[derive(Debug)]
pub(super) struct Arena<N, K, V> {
    numbers: BTreeMap<K, N>,
    slots: Slots<N, (K, V)>,
}

impl<N: Number, K: Ord + Clone, V> Arena<N, K, V> {
    pub(super) const fn new() -> Self {
        Self { numbers: BTreeMap::new(), slots: Slots::new() }
    }

    pub(super) fn find(&self, key: &K) -> Option<N> {
        self.numbers.get(key).copied()
    }

    /// The number of `key`, which is new with the value of `make` unless it is there.
    pub(super) fn find_or_insert(&mut self, key: &K, make: impl FnOnce() -> V) -> N {
        if let Some(number) = self.find(key) {
            return number;
        }
        let number = self.slots.insert((key.clone(), make()));
        self.numbers.insert(key.clone(), number);
        number
    }

    pub(super) fn remove(&mut self, number: N) {
        if let Some((key, _)) = self.slots.remove(number) {
            self.numbers.remove(&key);
        }
    }

    /// Is this number in use?
    pub(super) fn has(&self, number: N) -> bool {
        self.slots.get(number).is_some()
    }

    pub(super) fn key(&self, number: N) -> &K {
        &self.slots[number].0
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// In the order of the numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (N, &K, &V)> {
        self.slots.iter().map(|(number, (key, value))| (number, key, value))
    }

    /// In the order of the names, from this one on.
    pub(super) fn from(&self, first: RangeFrom<K>) -> impl Iterator<Item = (&K, N)> {
        self.numbers.range(first).map(|(key, number)| (key, *number))
    }
}

impl<N: Number, K: Ord + Clone, V> Index<N> for Arena<N, K, V> {
    type Output = V;

    fn index(&self, number: N) -> &V {
        &self.slots[number].1
    }
}

impl<N: Number, K: Ord + Clone, V> IndexMut<N> for Arena<N, K, V> {
    fn index_mut(&mut self, number: N) -> &mut V {
        &mut self.slots[number].1
    }
}

/// Finds a number by an id of 32 bytes, which is kept beside the thing and not here: a quarter of it is enough to find
/// it among very few.
#[derive(Debug)]
pub(super) struct IdIndex<N>(BTreeSet<([u8; 8], N)>);

impl<N: Number> IdIndex<N> {
    pub(super) const fn new() -> Self {
        Self(BTreeSet::new())
    }

    fn prefix(id: &[u8; 32]) -> [u8; 8] {
        *id.first_chunk().expect("8 of 32 bytes")
    }

    /// The number of `id`; `is` tells whether a number is its.
    pub(super) fn find(&self, id: &[u8; 32], is: impl Fn(N) -> bool) -> Option<N> {
        let prefix = Self::prefix(id);
        let begun = self.0.range((prefix, N::FIRST)..).take_while(|(other, _)| *other == prefix);
        begun.map(|(_, number)| *number).find(|number| is(*number))
    }

    pub(super) fn insert(&mut self, id: &[u8; 32], number: N) {
        self.0.insert((Self::prefix(id), number));
    }

    pub(super) fn remove(&mut self, id: &[u8; 32], number: N) {
        self.0.remove(&(Self::prefix(id), number));
    }
}

/// A relation of two sorts of things: for each of the first, any number of the second.
#[derive(Debug)]
pub(super) struct Relation<A, B>(BTreeSet<(A, B)>);

impl<A: Number, B: Number> Relation<A, B> {
    pub(super) const fn new() -> Self {
        Self(BTreeSet::new())
    }

    pub(super) fn insert(&mut self, one: A, other: B) -> bool {
        self.0.insert((one, other))
    }

    pub(super) fn remove(&mut self, one: A, other: B) -> bool {
        self.0.remove(&(one, other))
    }

    pub(super) fn has(&self, one: A, other: B) -> bool {
        self.0.contains(&(one, other))
    }

    pub(super) fn of(&self, one: A) -> impl Iterator<Item = B> {
        self.0.range((one, B::FIRST)..).take_while(move |(first, _)| *first == one).map(|(_, second)| *second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_used_again_once_its_slot_is_empty() {
        let mut arena: Arena<RelayNumber, &str, u8> = Arena::new();
        let one = arena.find_or_insert(&"one", || 1);
        let two = arena.find_or_insert(&"two", || 2);
        assert_eq!((arena.find_or_insert(&"one", || 9), arena[one], *arena.key(two)), (one, 1, "two"));
        arena.remove(one);
        arena.remove(one);
        assert_eq!((arena.find(&"one"), arena.has(one), arena.len()), (None, false, 1));
        assert_eq!(arena.find_or_insert(&"three", || 3), one);
        assert_eq!(arena.from("three"..).map(|(key, _)| *key).collect::<Vec<_>>(), ["three", "two"]);
    }

    #[test]
    fn ids_that_begin_alike_are_told_apart() {
        let ids = [[7; 32], std::array::from_fn(|at| if at < 8 { 7 } else { 8 })];
        let mut index: IdIndex<RootNumber> = IdIndex::new();
        for (at, id) in ids.iter().enumerate() {
            index.insert(id, RootNumber::of(at));
        }
        let find = |index: &IdIndex<RootNumber>, id| index.find(id, |number| ids[number.index()] == *id);
        assert_eq!(find(&index, &ids[1]), Some(RootNumber::of(1)));
        index.remove(&ids[0], RootNumber::of(0));
        assert_eq!(find(&index, &ids[0]), None);
    }
}
