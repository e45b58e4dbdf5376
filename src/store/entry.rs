//! Index entries. Every index of a store is a range of one sorted set of entries of 64 bytes.
//!
//! An entry starts with its [`Key`] (which index, and what of it), then come the time, newest first, and the id: a
//! range of one key therefore reads in the order in which NIP-01 wants events. The rest says which event it is.

use std::cmp::Ordering;

use bitcoin_hashes::sha256;

use crate::protocol::{Item, Window};
use crate::store::Cursor;

/// The size of an [`Entry`], in bytes.
pub const ENTRY_BYTES: usize = 64;
pub(super) const KEY_BYTES: usize = 17;
pub(super) const RANK_BYTES: usize = ENTRY_BYTES - KEY_BYTES;
const SEQUENCE_BITS: u32 = 40;

/// The number of an event in its store, in the order of arrival. It fits 40 bits.
pub type Sequence = u64;

/// The largest [`Sequence`] that an entry can hold.
pub const SEQUENCE_MAX: Sequence = (1 << SEQUENCE_BITS) - 1;

/// The indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Index {
    /// By id.
    Id = 1,
    /// Replaceable and addressable events by kind, author and `d` tag.
    Address = 2,
    /// Deletion requests (NIP-09) by the id and author that they delete.
    DeletedId = 3,
    /// Deletion requests by the address that they delete.
    DeletedAddress = 4,
    /// Vanish requests (NIP-62) by author.
    Vanished = 5,
    /// Events that expire (NIP-40) by that moment.
    Expiry = 6,
    /// All events.
    Time = 7,
    /// By kind.
    Kind = 8,
    /// By author.
    Author = 9,
    /// By author and kind.
    AuthorKind = 10,
    /// By single-letter tag and value.
    Tag = 11,
}

impl Index {
    const ALL: [Self; 11] = [
        Self::Id,
        Self::Address,
        Self::DeletedId,
        Self::DeletedAddress,
        Self::Vanished,
        Self::Expiry,
        Self::Time,
        Self::Kind,
        Self::Author,
        Self::AuthorKind,
        Self::Tag,
    ];

    /// Is the index asked for single keys while events are written? Such keys are worth a filter.
    pub fn is_point(self) -> bool {
        self <= Self::Vanished
    }

    /// Does an entry outlive its event, as the memory of what is gone?
    pub fn remembers_gone(self) -> bool {
        matches!(self, Self::Id | Self::Time | Self::Kind | Self::Author | Self::AuthorKind)
    }
}

/// One key of one index: the number of the index and 16 bytes. Where a hash stands for the key, it is the first half
/// of SHA-256, so that nobody can make two that are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key([u8; KEY_BYTES]);

impl Key {
    fn new(index: Index, key: &[u8]) -> Self {
        let mut bytes = [0; KEY_BYTES];
        bytes[0] = index as u8;
        bytes[1..=key.len()].copy_from_slice(key);
        Self(bytes)
    }

    fn hashed(index: Index, parts: &[&[u8]]) -> Self {
        let hash = sha256::Hash::hash_byte_chunks(parts).to_byte_array();
        Self::new(index, &hash[..16])
    }

    /// All events.
    pub fn time() -> Self {
        Self::new(Index::Time, &[])
    }

    /// The event with this id. Only half of the id is in the key: compare the rest.
    pub fn id(id: &[u8; 32]) -> Self {
        Self::new(Index::Id, &id[..16])
    }

    /// Versions of a replaceable or addressable event.
    pub fn address(author: &[u8; 32], kind: u16, identifier: &str) -> Self {
        Self::hashed(Index::Address, &[author, &kind.to_be_bytes(), identifier.as_bytes()])
    }

    /// Deletion requests of `author` that name this id.
    pub fn deleted_id(author: &[u8; 32], id: &[u8; 32]) -> Self {
        Self::hashed(Index::DeletedId, &[author, id])
    }

    /// Deletion requests of `author` that name this address.
    pub fn deleted_address(author: &[u8; 32], kind: u16, identifier: &str) -> Self {
        Self::hashed(Index::DeletedAddress, &[author, &kind.to_be_bytes(), identifier.as_bytes()])
    }

    /// Vanish requests of `author`.
    pub fn vanished(author: &[u8; 32]) -> Self {
        Self::new(Index::Vanished, &author[..16])
    }

    /// What expires at `secs`, in seconds since 1970.
    pub fn expiry(secs: u64) -> Self {
        Self::new(Index::Expiry, &secs.to_be_bytes())
    }

    /// Events of this kind.
    pub fn kind(kind: u16) -> Self {
        Self::new(Index::Kind, &kind.to_be_bytes())
    }

    /// Events of this author.
    pub fn author(author: &[u8; 32]) -> Self {
        Self::new(Index::Author, &author[..16])
    }

    /// Events of this author and kind.
    pub fn author_kind(author: &[u8; 32], kind: u16) -> Self {
        let mut bytes = Self::new(Index::AuthorKind, &author[..16]);
        bytes.0[15..].copy_from_slice(&kind.to_be_bytes());
        bytes
    }

    /// Events with a tag of this single-letter name and value.
    pub fn tag(letter: u8, value: &str) -> Self {
        Self::hashed(Index::Tag, &[&[letter], value.as_bytes()])
    }

    /// A key that was written before; `None` if these bytes are none.
    pub(super) fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Option<Self> {
        (1..=Index::ALL.len()).contains(&usize::from(bytes[0])).then_some(Self(*bytes))
    }

    /// The index of the key.
    pub fn index(&self) -> Index {
        index_of(self.0[0])
    }

    /// The bytes, the number of the index first.
    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

fn index_of(number: u8) -> Index {
    // Keys and entries are made here or were checked when they were read.
    Index::ALL[usize::from(number) - 1]
}

/// Where an event stands among others: newest first, of equal times the lowest id first (NIP-01).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank([u8; RANK_BYTES]);

impl Rank {
    /// The rank of an event.
    pub fn new(created_at: u64, id: &[u8; 32], sequence: Sequence, kind: u16) -> Self {
        let mut bytes = [0; RANK_BYTES];
        bytes[..8].copy_from_slice(&(!created_at).to_be_bytes());
        bytes[8..40].copy_from_slice(id);
        bytes[40..45].copy_from_slice(&sequence.to_be_bytes()[3..]);
        bytes[45..].copy_from_slice(&kind.to_be_bytes());
        Self(bytes)
    }

    /// Seconds since 1970.
    pub fn created_at(&self) -> u64 {
        !u64::from_be_bytes(self.0[..8].try_into().expect("eight bytes"))
    }

    /// The event's id.
    pub fn id(&self) -> [u8; 32] {
        self.0[8..40].try_into().expect("32 bytes")
    }

    /// The event's number.
    pub fn sequence(&self) -> Sequence {
        self.0[40..45].iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }

    /// The event's kind.
    pub fn kind(&self) -> u16 {
        u16::from_be_bytes([self.0[45], self.0[46]])
    }

    /// A rank that was written before.
    pub(super) fn from_bytes(bytes: &[u8; RANK_BYTES]) -> Self {
        Self(*bytes)
    }

    /// The bytes: they compare as ranks do.
    pub(super) fn as_bytes(&self) -> &[u8; RANK_BYTES] {
        &self.0
    }

    /// Time and id.
    pub fn item(&self) -> Item {
        Item { created_at: self.created_at(), id: self.id() }
    }

    /// The place in the order.
    pub fn cursor(&self) -> Cursor {
        Cursor { created_at: self.created_at(), id: self.id() }
    }
}

/// One index entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry([u8; ENTRY_BYTES]);

impl Ord for Entry {
    /// As bytes compare, but by words: sorting and merging spend their time here.
    fn cmp(&self, other: &Self) -> Ordering {
        let (words, others) = (self.0.as_chunks::<8>().0, other.0.as_chunks::<8>().0);
        for (word, other) in words.iter().zip(others) {
            if word != other {
                return u64::from_be_bytes(*word).cmp(&u64::from_be_bytes(*other));
            }
        }
        Ordering::Equal
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Entry {
    /// The entry of the event at `rank` under `key`.
    pub fn new(key: &Key, rank: &Rank) -> Self {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..KEY_BYTES].copy_from_slice(&key.0);
        bytes[KEY_BYTES..].copy_from_slice(&rank.0);
        Self(bytes)
    }

    /// An entry that was written before; `None` if these bytes are none.
    pub fn from_bytes(bytes: &[u8; ENTRY_BYTES]) -> Option<Self> {
        let number = usize::from(bytes[0]);
        (1..=Index::ALL.len()).contains(&number).then_some(Self(*bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; ENTRY_BYTES] {
        &self.0
    }

    /// The key.
    pub fn key(&self) -> Key {
        Key(self.0[..KEY_BYTES].try_into().expect("17 bytes"))
    }

    /// The index.
    pub fn index(&self) -> Index {
        index_of(self.0[0])
    }

    /// The event and its place.
    pub fn rank(&self) -> Rank {
        Rank(self.0[KEY_BYTES..].try_into().expect("47 bytes"))
    }
}

/// A closed range of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first entry that may be in it.
    pub first: Entry,
    /// The last.
    pub last: Entry,
}

impl Range {
    /// The entries of `key` with times in `window`.
    pub fn of(key: &Key, window: Window) -> Self {
        let first = Rank::new(window.until, &[0; 32], 0, 0);
        let last = Rank::new(window.since, &[u8::MAX; 32], SEQUENCE_MAX, u16::MAX);
        Self { first: Entry::new(key, &first), last: Entry::new(key, &last) }
    }

    /// All entries of `key`.
    pub fn all(key: &Key) -> Self {
        Self::of(key, Window::ALL)
    }

    /// What the range has behind `cursor`.
    pub fn after(self, cursor: &Cursor) -> Self {
        let behind = Rank::new(cursor.created_at, &cursor.id, SEQUENCE_MAX, u16::MAX);
        Self { first: self.first.max(Entry::new(&self.first.key(), &behind)), last: self.last }
    }

    /// Everything that expires later than `after_secs` and no later than `until_secs`.
    pub fn expired(after_secs: u64, until_secs: u64) -> Self {
        let first = Range::all(&Key::expiry(after_secs.saturating_add(1))).first;
        Self { first, last: Range::all(&Key::expiry(until_secs)).last }
    }

    /// The key, if the range is of one.
    pub fn key(&self) -> Option<Key> {
        (self.first.key() == self.last.key()).then(|| self.first.key())
    }

    /// Can nothing be in it?
    pub fn is_empty(&self) -> bool {
        self.first > self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_gives_back_what_it_was_made_of() {
        for (created_at, sequence, kind) in [(0, 0, 0), (u64::MAX, SEQUENCE_MAX, u16::MAX), (1_700_000_000, 77, 30_617)]
        {
            let rank = Rank::new(created_at, &[9; 32], sequence, kind);
            assert_eq!(
                (rank.created_at(), rank.id(), rank.sequence(), rank.kind()),
                (created_at, [9; 32], sequence, kind)
            );
        }
    }

    #[test]
    fn the_entries_of_a_key_read_newest_first_and_lowest_id_first() {
        let key = Key::kind(1);
        let entry = |at, id| Entry::new(&key, &Rank::new(at, &[id; 32], 5, 1));
        let mut entries = [entry(1, 1), entry(2, 3), entry(3, 9), entry(2, 2), entry(u64::MAX, 4), entry(0, 0)];
        entries.sort_unstable();
        let order: Vec<(u64, u8)> = entries.iter().map(|e| (e.rank().created_at(), e.rank().id()[0])).collect();
        assert_eq!(order, [(u64::MAX, 4), (3, 9), (2, 2), (2, 3), (1, 1), (0, 0)]);
    }

    #[test]
    fn a_range_ends_where_its_window_and_cursor_say() {
        let key = Key::time();
        let range = Range::of(&key, Window { since: 5, until: 7 });
        let within = |at, id: u8| {
            let entry = Entry::new(&key, &Rank::new(at, &[id; 32], 1, 1));
            range.first <= entry && entry <= range.last
        };
        assert!(within(5, 0) && within(7, 255) && !within(4, 0) && !within(8, 0));
        let rest = range.after(&Cursor { created_at: 6, id: [3; 32] });
        let entry = |id| Entry::new(&key, &Rank::new(6, &[id; 32], 1, 1));
        assert!(entry(3) < rest.first && rest.first < entry(4));
    }
}
