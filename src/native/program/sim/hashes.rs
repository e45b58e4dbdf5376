//! Trace hashes in the order of seeds, though these end in another.

use std::collections::BTreeMap;

use crate::native::swarm::Outcome;

/// Holds hashes back until those of all earlier seeds are there.
pub(super) struct Hashes {
    next: u64,
    /// `None` for a seed that failed: it has no hash.
    held: BTreeMap<u64, Option<u64>>,
}

impl Hashes {
    /// `from` is the first seed.
    pub(super) fn from(from: u64) -> Self {
        Self { next: from, held: BTreeMap::new() }
    }

    /// Takes the outcome of a seed; gives the lines that are due, each with a line end.
    pub(super) fn next(&mut self, outcome: &Outcome) -> String {
        let (seed, hash) = match outcome {
            Ok(summary) => (summary.seed, Some(summary.trace_hash)),
            Err(failure) => (failure.seed, None),
        };
        self.held.insert(seed, hash);
        let mut text = String::new();
        while let Some(hash) = self.held.remove(&self.next) {
            if let Some(hash) = hash {
                text += &format!("{} {hash:016x}\n", self.next);
            }
            self.next += 1;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Hashes;
    use crate::native::swarm::tests::fake;
    use crate::sim::swarm::Options;

    #[test]
    fn hashes_come_in_order_and_failures_hold_up_none() {
        let mut hashes = Hashes::from(8);
        let mut next = |seed| hashes.next(&fake(seed, &Options::default()));
        assert_eq!(next(10), "");
        assert_eq!(next(9), "");
        assert_eq!(next(8), "8 0000000000000088\n10 00000000000000aa\n");
        assert_eq!(next(12), "");
    }
}
