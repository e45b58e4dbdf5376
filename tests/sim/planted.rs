//! A simulation that passes proves little unless it fails where it must: faults put into the engine are caught.

use std::io;

use relaysync::engine::Planted;
use relaysync::native::swarm::play;
use relaysync::sim::swarm::Options;

use crate::environment::replayed_seed;
use crate::rounds::{Wanted, play_all};
use crate::{FIXED_SEEDS, tell};

/// Plays the fixed seeds with a fault put in, until one of them fails that passes without it.
#[track_caller]
fn is_caught(planted: Planted) {
    if replayed_seed().is_some() {
        return;
    }
    let (mut played, mut caught) = (0, None);
    let options = Options { planted: Some(planted), ..Options::default() };
    play_all(&format!("planted {}", planted.name()), FIXED_SEEDS, options, |outcome| {
        played += 1;
        caught = outcome.err().filter(|failure| play(failure.seed, &Options::default()).is_ok());
        if caught.is_some() { Wanted::Enough } else { Wanted::More }
    });
    let Some(failure) = caught else { panic!("{} was not caught by any of the fixed seeds", planted.name()) };
    let (name, seed, why) = (planted.name(), failure.seed, failure.why);
    tell(&mut io::stderr(), &format!("planted {name}: caught by seed {seed} as number {played}: {why}"));
}

#[test]
fn a_constant_page_threshold_is_caught() {
    is_caught(Planted::PageThreshold);
}

#[test]
fn pages_that_begin_below_the_oldest_second_are_caught() {
    is_caught(Planted::OldestMinusOne);
}

#[test]
fn ids_seen_before_the_commit_are_caught() {
    is_caught(Planted::SeenBeforeCommit);
}

#[test]
fn coverage_written_before_the_events_is_caught() {
    is_caught(Planted::CoverageFirst);
}

#[test]
fn a_quick_reconnect_counted_from_the_connect_is_caught() {
    is_caught(Planted::QuickFromConnect);
}

/// Whoever adds a fault adds its test above.
#[test]
fn there_are_five_faults() {
    assert_eq!(Planted::ALL.len(), 5);
}
