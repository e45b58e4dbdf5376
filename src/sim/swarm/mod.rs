//! The swarm: a seed makes a world of engines and relays with a random set of faults, plays it, and checks it.
//!
//! While the faults last, nothing may go wrong for good: see the checks. Then they stop, and everything that is wanted
//! and that honest relays hold must arrive, and silence follow.

mod chaos;
mod dice;
mod discovering;
mod end;
pub mod faults;
mod peers;
mod setup;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::engine::Planted;
use setup::Setup;

/// Which worlds a seed is played in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Worlds {
    /// One of engines that are told what to sync; after it for one seed in three one with a daemon that discovers, and for one
    /// in five one of peers.
    #[default]
    Drawn,
    /// One of engines that are told what to sync.
    Told,
    /// One with a daemon that discovers relays.
    Discovering,
    /// One of engines with configured peers and access rules.
    Peers,
}

/// How a seed is played.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Which worlds it is played in.
    pub worlds: Worlds,
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
pub fn run(seed: u64, options: &Options) -> Result<Summary, Box<Failure>> {
    let worlds = options.worlds;
    let is_told = matches!(worlds, Worlds::Drawn | Worlds::Told);
    let discovers = worlds == Worlds::Discovering || worlds == Worlds::Drawn && discovering::is_drawn(seed);
    let has_peers = worlds == Worlds::Peers || worlds == Worlds::Drawn && peers::is_drawn(seed);
    let told = is_told.then_some(Setup::draw as Draw);
    let discovering = discovers.then_some(discovering::draw as Draw);
    let draws = told.into_iter().chain(discovering).chain(has_peers.then_some(peers::draw as Draw));
    let mut whole: Option<Summary> = None;
    for draw in draws {
        let summary = play_world(draw, seed, options)?;
        match &mut whole {
            Some(whole) => whole.add(summary),
            None => whole = Some(summary),
        }
    }
    Ok(whole.expect("a seed is played in one world at least"))
}

/// Makes a world of a seed.
type Draw = fn(u64, &Options) -> Setup;

fn play_world(draw: Draw, seed: u64, options: &Options) -> Result<Summary, Box<Failure>> {
    let mut setup = None;
    let played = catch_unwind(AssertUnwindSafe(|| play(setup.insert(draw(seed, options)), seed)));
    played.map_err(|panic| {
        let (faults, trace) = setup.map_or_else(Default::default, |setup| (setup.faults, setup.world.trace_lines()));
        Box::new(Failure { seed, why: words_of(panic.as_ref()), faults, trace })
    })
}

impl Summary {
    /// Adds what became of the same seed in another world.
    fn add(&mut self, other: Self) {
        self.trace_hash = self.trace_hash.rotate_left(1) ^ other.trace_hash;
        self.virtual_time += other.virtual_time;
        self.converged_after = self.converged_after.max(other.converged_after);
        self.handles += other.handles;
        self.events += other.events;
        for (kind, times) in other.injected {
            *self.injected.entry(kind).or_default() += times;
        }
    }
}

fn play(setup: &mut Setup, seed: u64) -> Summary {
    let began = setup.world.now().instant;
    std::mem::take(&mut setup.chaos).play(&mut setup.world);
    setup.mend();
    let converged_after = setup.converge();
    setup.expect_silence();
    setup.blip();
    Summary {
        seed,
        trace_hash: setup.world.trace_hash(),
        virtual_time: setup.world.now().instant - began,
        converged_after,
        handles: setup.engines.iter().map(|engine| setup.world.node(*engine).handles).sum(),
        events: setup.events,
        injected: setup.world.injected(),
    }
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    words.unwrap_or("a panic without words").to_owned()
}
