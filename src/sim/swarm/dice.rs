//! Drawing.

use std::time::Duration;

use crate::engine::Rng;

/// What a seed draws with.
#[derive(Debug)]
pub(super) struct Dice(pub Rng);

impl Dice {
    /// From 0 up to, but not including, `most`; 0 if there is nothing between.
    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.0.bits() % most.max(1)
    }

    /// From `least` to `most`, both included.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True `part` times of `whole`.
    pub(super) fn chance(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }

    pub(super) fn secs(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_secs(self.between(least, most))
    }

    pub(super) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }

    /// A number for another source of chance.
    pub(super) fn seed(&mut self) -> u64 {
        self.0.bits()
    }
}
