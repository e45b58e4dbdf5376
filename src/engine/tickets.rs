//! Numbers for work that is handed out, and chance that repeats.

use super::{ConnId, Ticket};

/// Gives out numbers; none twice.
#[derive(Debug, Default)]
pub struct Tickets {
    last: u64,
}

impl Tickets {
    /// A number for a piece of work.
    #[expect(clippy::should_implement_trait, reason = "it never ends, and is no iterator to anybody")]
    pub fn next(&mut self) -> Ticket {
        self.last += 1;
        Ticket(self.last)
    }

    /// A number for a connection attempt.
    pub fn next_conn(&mut self) -> ConnId {
        ConnId(self.next().0)
    }

    /// A number for a history.
    pub fn next_history(&mut self) -> HistoryId {
        HistoryId(self.next().0)
    }
}

/// One history: the fetching of one interest from one relay, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryId(pub u64);

/// Pseudo-random numbers (SplitMix64): the engine's only source of chance, from the seed that it is given.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A sequence that `seed` determines.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, but not including, 1.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
