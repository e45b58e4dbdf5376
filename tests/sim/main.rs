//! The swarm: many seeds of the simulation, each a world of engines and relays with a random set of faults.
//!
//! `SEED=n cargo test --test sim` replays just that seed, with its trace on stdout.
#![cfg(feature = "native")]
#![expect(clippy::disallowed_methods, reason = "how long things really take is told here")]

mod environment;
mod kept;
mod planted;
mod rounds;

use std::io::{self, Write};
use std::ops::Range;

use relaysync::native::swarm::play;
use relaysync::sim::swarm::Options;

use environment::{commit_seed, replayed_seed};
use rounds::pass;

/// Seeds that every run of the tests plays.
const FIXED_SEEDS: Range<u64> = 0..2_000;
/// Of those, one in so many is played twice.
const TWICE_EVERY: usize = 125;

/// Writes past the test harness, which keeps what a test prints until it fails.
fn tell(output: &mut impl Write, line: &str) {
    writeln!(output, "{line}").expect("somebody reads what the tests say");
}

#[test]
fn fixed_seeds_pass() {
    if replayed_seed().is_none() {
        pass("fixed seeds", FIXED_SEEDS);
    }
}

#[test]
fn kept_seeds_pass() {
    if replayed_seed().is_none() {
        pass("kept seeds", kept::seeds());
    }
}

/// So that runs of the tests on different commits look at different worlds.
#[test]
fn the_seed_of_the_commit_passes() {
    match (replayed_seed(), commit_seed()) {
        (Some(_), _) => {}
        (None, Some(seed)) => pass("the seed of the commit", [seed]),
        (None, None) => tell(&mut io::stderr(), "COMMIT_SEED is not set: no seed of the commit is played"),
    }
}

#[test]
fn a_seed_decides_everything() {
    if replayed_seed().is_some() {
        return;
    }
    for seed in FIXED_SEEDS.step_by(TWICE_EVERY) {
        let [first, second] = [(); 2].map(|()| play(seed, &Options::default()));
        assert_eq!(first, second, "seed {seed} went two ways");
    }
}

#[test]
fn the_seed_of_the_environment_is_replayed() {
    let Some(seed) = replayed_seed() else { return };
    let print = |line: &str| tell(&mut io::stdout(), line);
    match play(seed, &Options { tell: Some(print), ..Options::default() }) {
        Ok(summary) => tell(&mut io::stdout(), &format!("trace hash {:016x}, {summary:#?}", summary.trace_hash)),
        Err(failure) => panic!("{failure}"),
    }
}
