//! Chance: how often a fault takes effect, and what is drawn for it.

use crate::engine::Rng;

/// How often a fault takes effect, and its own random numbers. The same seed gives the same faults everywhere.
#[derive(Debug, Clone)]
pub struct Chance {
    per_mille: u64,
    rng: Rng,
}

impl Chance {
    /// Takes effect `per_mille` times in a thousand, as `seed` determines.
    pub fn new(per_mille: u64, seed: u64) -> Self {
        Self { per_mille, rng: Rng::new(seed) }
    }

    /// Takes effect always; `seed` determines what else is drawn.
    pub fn always(seed: u64) -> Self {
        Self::new(1_000, seed)
    }

    /// Does it take effect now?
    pub fn hits(&mut self) -> bool {
        self.below(1_000) < self.per_mille
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        self.rng.bits() % end.max(1)
    }

    /// A number from `first` to `last`, both included.
    pub fn within(&mut self, first: u64, last: u64) -> u64 {
        first + self.below((last - first).saturating_add(1))
    }

    /// One of these; `None` if there are none.
    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        let index = usize::try_from(self.below(of.len() as u64)).ok()?;
        of.get(index)
    }

    /// A text of these.
    pub(in crate::sim) fn words(&mut self, of: &[&'static str]) -> &'static str {
        self.pick(of).copied().unwrap_or("")
    }

    /// Does it take effect for this id? The same id always gets the same answer, for one salt.
    pub(super) fn hits_id(&self, id: &[u8; 32], salt: u64) -> bool {
        let mut head = [0; 8];
        head.copy_from_slice(&id[..8]);
        Rng::new(u64::from_le_bytes(head) ^ salt).bits() % 1_000 < self.per_mille
    }
}
