//! A Bloom filter over the keys that are looked up while events are written.

use crate::store::entry::Key;

const WORDS_PER_BLOCK: usize = 8;
const BITS_PER_KEY: usize = 14;
const PROBES: u32 = 6;

/// Says of a key that it is surely not in a run, or may be. Blocked: a key has all its bits in one cache line. About
/// one of 300 answers is a needless "may be".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyFilter {
    words: Vec<u64>,
}

impl KeyFilter {
    /// An empty filter for so many keys.
    pub(super) fn new(keys_max: usize) -> Self {
        let blocks = (keys_max * BITS_PER_KEY).div_ceil(WORDS_PER_BLOCK * 64);
        Self { words: vec![0; blocks * WORDS_PER_BLOCK] }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let whole = rest.is_empty() && words.len() % WORDS_PER_BLOCK == 0;
        whole.then(|| Self { words: words.iter().map(|word| u64::from_le_bytes(*word)).collect() })
    }

    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes())
    }

    pub(super) fn insert(&mut self, key: &Key) {
        let (block, mut bits) = self.place(key);
        for _ in 0..PROBES {
            self.words[block + (bits & 7) as usize] |= 1 << ((bits >> 3) & 63);
            bits >>= 9;
        }
    }

    pub(super) fn may_contain(&self, key: &Key) -> bool {
        if self.words.is_empty() {
            return false;
        }
        let (block, mut bits) = self.place(key);
        (0..PROBES).all(|_| {
            let set = self.words[block + (bits & 7) as usize] >> ((bits >> 3) & 63) & 1 == 1;
            bits >>= 9;
            set
        })
    }

    /// The first word of the key's block, and the bits from which its places in it are taken. Keys are hashes, ids
    /// and public keys: their bits are random already, but ids and hashes of different indexes must not meet.
    fn place(&self, key: &Key) -> (usize, u64) {
        let bytes = key.as_bytes();
        let half = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let mixed = (half(1) ^ u64::from(bytes[0])).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let blocks = self.words.len() / WORDS_PER_BLOCK;
        let block = ((u128::from(mixed) * blocks as u128) >> 64) as usize;
        (block * WORDS_PER_BLOCK, half(9) ^ mixed.rotate_left(32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_others_rarely() {
        let key = |n: u64| Key::deleted_id(&[1; 32], &[n.to_le_bytes(); 4].concat().try_into().unwrap());
        let mut filter = KeyFilter::new(10_000);
        (0..10_000).for_each(|n| filter.insert(&key(n)));
        let filter = KeyFilter::from_bytes(&filter.bytes().collect::<Vec<u8>>()).unwrap();
        assert!((0..10_000).all(|n| filter.may_contain(&key(n))));
        let false_alarms = (10_000..110_000).filter(|n| filter.may_contain(&key(*n))).count();
        assert!(false_alarms < 1000, "{false_alarms} of 100,000");
        assert!(!KeyFilter::new(0).may_contain(&key(1)));
    }
}
