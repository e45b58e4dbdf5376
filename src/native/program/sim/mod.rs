//! `relaysync sim`: seeds of the swarm, for long runs and to look at one. Built with feature `testing` only.

mod hashes;
mod progress;
mod totals;
mod trace;

use std::env;
use std::ops::Range;
use std::pin::pin;
use std::time::Duration;

use clap::Args;
use tokio::time::interval;

use self::hashes::Hashes;
use self::progress::SeedProgress;
use self::totals::Totals;
use super::{Exit, Failure, interrupted, lines, numbers};
use crate::engine::Planted;
use crate::native::NativeClock;
use crate::native::swarm::{Outcome, Players};
use crate::runtime::Clock;
use crate::sim::swarm;

/// Failures that are shown with faults and trace, the first ones; of the others the summary has the numbers.
const FAILURES_SHOWN_MAX: usize = 5;
/// How often it is looked whether progress is due to be shown.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Play seeds of the simulation on all cores: engines and relays with a random set of faults for each seed.
///
/// Failing seeds are shown on stderr, with their faults and the last 200 lines of their traces; the exit status is 1
/// then. Ctrl-C ends with the summary so far, and status 3. SEED=n in the environment does the same as
/// `--seeds 1 --from n --trace`.
#[derive(Debug, Clone, Args)]
pub(super) struct SimArguments {
    /// How many seeds to play.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// The first seed.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// Print a line `SEED HASH` for each seed that passes, in order, and nothing else on stdout.
    #[arg(long, conflicts_with_all = ["trace", "json"])]
    hashes: bool,
    /// Print everything that happens; for one seed.
    #[arg(long, conflicts_with = "json")]
    trace: bool,
    /// Print the summary as one JSON object.
    #[arg(long)]
    json: bool,
    /// Put a fault into the engines, to see it caught.
    #[arg(long, value_name = "NAME", value_parser = planted)]
    planted: Option<Planted>,
}

pub(super) async fn run(mut arguments: SimArguments) -> Result<Exit, Failure> {
    arguments.replay(env::var("SEED"))?;
    let seeds = arguments.range()?;
    let tell = arguments.trace.then_some(trace::print as fn(&str));
    let players =
        Players::start(seeds.clone(), swarm::Options { planted: arguments.planted, tell, ..swarm::Options::default() });
    let (totals, ended) = play(players, &arguments, seeds).await?;
    trace::result().map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))?;
    if arguments.json {
        lines::write(totals.to_json().into()).await?;
    } else if arguments.hashes {
        eprint!("{}", totals.to_text());
    } else {
        lines::write(totals.to_text().into()).await?;
    }
    Ok(match ended {
        _ if !totals.failed.is_empty() => Exit::Failed,
        Ended::Whole => Exit::Complete,
        Ended::Early => Exit::Partial,
    })
}

/// How far the seeds were played.
enum Ended {
    Whole,
    Early,
}

/// Plays all seeds, or until the operator ends it.
async fn play(mut players: Players, arguments: &SimArguments, seeds: Range<u64>) -> Result<(Totals, Ended), Failure> {
    let clock = NativeClock::new();
    let (mut totals, mut hashes) = (Totals::default(), Hashes::from(seeds.start));
    // A trace scrolls, and needs no bar.
    let mut progress = SeedProgress::new(seeds.end - seeds.start, arguments.trace);
    let (mut signal, mut ticks) = (pin!(interrupted()), interval(PROGRESS_INTERVAL));
    let ended = loop {
        tokio::select! {
            outcome = players.next() => {
                let Some(outcome) = outcome else { break Ended::Whole };
                tell_failure(&outcome, totals.failed.len(), &progress);
                if arguments.hashes && !lines::write(hashes.next(&outcome).into()).await? {
                    break Ended::Early;
                }
                totals.add(outcome);
            }
            signal = &mut signal => {
                let (signal, under_way) = (signal?, numbers::list(&players.under_way()));
                progress.suspend(|| eprintln!("{signal}; seeds under way: {under_way}"));
                break Ended::Early;
            }
            _ = ticks.tick() => progress.update(&totals, clock.now().instant),
        }
    };
    totals.elapsed = clock.now().instant.since_origin();
    progress.finish();
    Ok((totals, ended))
}

fn tell_failure(outcome: &Outcome, told: usize, progress: &SeedProgress) {
    if let Err(failure) = outcome
        && told < FAILURES_SHOWN_MAX
    {
        progress.suspend(|| eprintln!("{failure}\n"));
    }
}

impl SimArguments {
    /// Takes the seed to be replayed from the environment, if one is there.
    fn replay(&mut self, seed: Result<String, env::VarError>) -> Result<(), Failure> {
        let seed = match seed {
            Ok(seed) => seed,
            Err(env::VarError::NotPresent) => return Ok(()),
            Err(error) => return Err(Failure::usage(format!("SEED in the environment: {error}"))),
        };
        if self.hashes || self.json {
            return Err(Failure::usage(
                "SEED in the environment asks for a trace: that goes with neither --hashes nor --json",
            ));
        }
        self.from = seed.parse().map_err(|error| Failure::usage(format!("SEED={seed} in the environment: {error}")))?;
        (self.seeds, self.trace) = (Some(1), true);
        Ok(())
    }

    fn range(&self) -> Result<Range<u64>, Failure> {
        let seeds = self.seeds.ok_or_else(|| Failure::usage("how many seeds? Write --seeds N"))?;
        if self.trace && seeds != 1 {
            return Err(Failure::usage("--trace is for one seed: write --seeds 1 --from SEED"));
        }
        let end = self.from.checked_add(seeds).ok_or_else(|| Failure::usage("seeds end at 2^64 - 1"))?;
        Ok(self.from..end)
    }
}

fn planted(name: &str) -> Result<Planted, String> {
    let found = Planted::ALL.into_iter().find(|planted| planted.name() == name);
    found.ok_or_else(|| format!("there are: {}", Planted::ALL.map(Planted::name).join(", ")))
}
