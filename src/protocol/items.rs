//! Sets of `(created_at, id)`: what two sides compare to find out what each of them lacks (NIP-77).
//!
//! An [`ItemSet`] is sorted once, sealed, and then shared: every relay that reconciles the same filter, and the relay
//! service, read the same one. A reconciliation reads it through an [`ItemView`], a range of it; nothing is copied.

use std::sync::Arc;

use negentropy::{Bound, Error, Id, NegentropyStorageBase};

use super::Window;

/// One event as reconciliation knows it. Orders by time, then id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item {
    /// Seconds since 1970.
    pub created_at: u64,
    /// The event's id.
    pub id: [u8; 32],
}

impl Item {
    /// The item of an event.
    pub fn of(event: &nostr::event::Event) -> Self {
        Self { created_at: event.created_at.as_secs(), id: event.id.to_bytes() }
    }
}

/// A sorted set of items, sealed when built.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ItemSet {
    items: Vec<Item>,
}

impl ItemSet {
    /// Sorts `items`, drops repetitions and seals.
    pub fn new(mut items: Vec<Item>) -> Self {
        // Stores hand over items in order; then the check is all that it costs.
        if !items.is_sorted() {
            items.sort_unstable();
        }
        items.dedup();
        Self { items }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Is the set empty?
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items, oldest first.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Is this very item in the set?
    pub fn contains(&self, item: &Item) -> bool {
        self.items.binary_search(item).is_ok()
    }

    /// The positions of the items inside `window`.
    pub fn range(&self, window: Window) -> std::ops::Range<usize> {
        let begin = self.items.partition_point(|item| item.created_at < window.since);
        let end = self.items.partition_point(|item| item.created_at <= window.until);
        begin..end.max(begin)
    }

    /// This set and `more`, as a new set.
    pub fn union(&self, more: impl IntoIterator<Item = Item>) -> Self {
        let mut items = self.items.clone();
        items.extend(more);
        Self::new(items)
    }
}

impl FromIterator<Item> for ItemSet {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Self {
        Self::new(items.into_iter().collect())
    }
}

/// A range of an [`ItemSet`], as the storage of one reconciliation.
#[derive(Debug, Clone)]
pub struct ItemView {
    set: Arc<ItemSet>,
    begin: usize,
    end: usize,
}

impl ItemView {
    /// The items of `set` inside `window`.
    pub fn new(set: Arc<ItemSet>, window: Window) -> Self {
        let range = set.range(window);
        Self { set, begin: range.start, end: range.end }
    }

    /// How many items the view has.
    pub fn len(&self) -> usize {
        self.end - self.begin
    }

    /// Has the view no items?
    pub fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// The items, oldest first.
    pub fn items(&self) -> &[Item] {
        &self.set.items[self.begin..self.end]
    }
}

fn to_negentropy(item: &Item) -> negentropy::Item {
    negentropy::Item::with_timestamp_and_id(item.created_at, Id::from_byte_array(item.id))
}

impl NegentropyStorageBase for ItemView {
    fn size(&self) -> Result<usize, Error> {
        Ok(self.len())
    }

    fn get_item(&self, index: usize) -> Result<Option<negentropy::Item>, Error> {
        Ok(self.items().get(index).map(to_negentropy))
    }

    fn iterate(
        &self,
        begin: usize,
        end: usize,
        each: &mut dyn FnMut(negentropy::Item, usize) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let items = self.items().get(begin..end).ok_or(Error::BadRange)?;
        for (offset, item) in items.iter().enumerate() {
            if !each(to_negentropy(item), begin + offset)? {
                break;
            }
        }
        Ok(())
    }

    fn find_lower_bound(&self, first: usize, last: usize, value: &Bound) -> usize {
        let items = &self.items()[first..last];
        first + items.partition_point(|item| to_negentropy(item) < value.item)
    }
}
