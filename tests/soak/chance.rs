//! Numbers that look like chance (xorshift), the same in every run.

pub(crate) struct Chance(u64);

impl Chance {
    /// `seed` is not 0.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    pub(crate) fn within(&mut self, [first, last]: [u64; 2]) -> u64 {
        first + self.below((last - first + 1) as usize) as u64
    }
}
