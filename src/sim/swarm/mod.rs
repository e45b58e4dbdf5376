//! The swarm: a seed makes a world of engines and relays with a random set of faults, plays it, and checks it.
//!
//! While the faults last, nothing may go wrong for good: see the checks. Then they stop, and everything that is wanted
//! and that honest relays hold must arrive, and silence follow.

pub mod faults;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::engine::Planted;

/// How a seed is played.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// A fault put into the engines on purpose.
    pub planted: Option<Planted>,
    /// Told every line of the trace, as it happens.
    pub tell: Option<fn(&str)>,
}

/// What became of a seed that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The seed.
    pub seed: u64,
    /// A hash over everything that happened: equal wherever the same seed is played.
    pub trace_hash: u64,
    /// How long it took on the world's clock.
    pub virtual_time: Duration,
    /// How long after the end of the faults everything was there, on the world's clock.
    pub converged_after: Duration,
    /// Calls of `handle` of all engines.
    pub handles: u64,
    /// Different events in the world.
    pub events: u64,
    /// Faults that took effect, by kind.
    pub injected: BTreeMap<&'static str, u64>,
}

/// What went wrong with a seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What was expected and did not hold.
    pub why: String,
    /// The set of faults, one a line.
    pub faults: Vec<String>,
    /// What happened last, at most 200 lines.
    pub trace: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.trace.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(f, "seed {} failed: {}", self.seed, self.why)?;
        self.faults.iter().try_for_each(|fault| writeln!(f, "  fault: {fault}"))?;
        write!(f, "replay it with SEED={}", self.seed)
    }
}

impl std::error::Error for Failure {}

/// Plays a seed.
///
/// # Errors
/// Something that must always hold did not.
pub fn run(seed: u64, _options: &Options) -> Result<Summary, Box<Failure>> {
    Ok(Summary {
        seed,
        trace_hash: seed,
        virtual_time: Duration::ZERO,
        converged_after: Duration::ZERO,
        handles: 0,
        events: 0,
        injected: BTreeMap::new(),
    })
}
