//! Playing many seeds on all cores, told as it goes on.

use std::io;
use std::time::{Duration, Instant};

use relaysync::native::swarm::{Outcome, Players};
use relaysync::sim::swarm::Options;
use tokio::time::timeout;

use crate::tell;

/// A seed that takes longer than this does not end.
const SEED_PATIENCE: Duration = Duration::from_secs(120);
/// Time between two lines about how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// Failures that are shown with faults and trace, the first ones.
const FAILURES_SHOWN_MAX: usize = 5;

/// Plays `seeds`; gives outcomes to `each`, as they come, until it wants no more.
///
/// # Panics
/// A seed does not end.
pub(crate) fn play_all(
    name: &str,
    seeds: impl IntoIterator<Item = u64, IntoIter: Send + 'static>,
    options: Options,
    mut each: impl FnMut(Outcome) -> Wanted,
) {
    let mut players = Players::start(seeds.into_iter(), options);
    let (started, mut told, mut played) = (Instant::now(), Instant::now(), 0_u64);
    runtime().block_on(async {
        while let Some(outcome) = next(&mut players, name).await {
            played += 1;
            if matches!(each(outcome), Wanted::Enough) {
                return;
            }
            if told.elapsed() >= PROGRESS_INTERVAL {
                told = Instant::now();
                let per_sec = played as f64 / started.elapsed().as_secs_f64();
                tell(&mut io::stderr(), &format!("{name}: {played} seeds so far, {per_sec:.1}/s"));
            }
        }
    });
}

/// Whether more outcomes are wanted.
pub(crate) enum Wanted {
    More,
    Enough,
}

/// Plays `seeds`, all of which must pass.
#[track_caller]
pub(crate) fn pass(name: &str, seeds: impl IntoIterator<Item = u64, IntoIter: Send + 'static>) {
    let mut failures = Vec::new();
    play_all(name, seeds, Options::default(), |outcome| {
        if let Err(failure) = outcome {
            let text = failure.to_string();
            let shown = if failures.len() < FAILURES_SHOWN_MAX { &text } else { &failure.why };
            tell(&mut io::stderr(), &format!("{name}, seed {}: {shown}\n", failure.seed));
            failures.push(failure.seed);
        }
        Wanted::More
    });
    assert!(failures.is_empty(), "{name}: these failed, see above: {failures:?}");
}

async fn next(players: &mut Players, name: &str) -> Option<Outcome> {
    match timeout(SEED_PATIENCE, players.next()).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{name}: nothing for {SEED_PATIENCE:?}; seeds under way: {:?}", players.under_way()),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime without sockets")
}
