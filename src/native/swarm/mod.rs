//! Plays seeds of the swarm (see [`sim::swarm`](crate::sim::swarm)) on all cores.
//!
//! A seed is pure, so it does not matter which thread plays it and when; a panic in one is a failure of that seed alone.

mod guard;

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::mpsc;

use crate::sim::swarm::{self, Failure, Options, Summary};

/// Results that wait to be taken, at most; then the threads wait.
const RESULTS_MAX: usize = 1_024;

/// What became of a seed.
pub type Outcome = Result<Summary, Box<Failure>>;

/// Plays one seed: [`swarm::run`] in the program, something simpler in tests of this module.
pub(crate) type Play = fn(u64, &Options) -> Outcome;

/// Plays a seed here and now.
///
/// # Errors
/// Something that must always hold did not, or a panic came.
pub fn play(seed: u64, options: &Options) -> Outcome {
    guard::play(swarm::run, seed, options)
}

/// Threads that play seeds, one on each core. Dropped, they take no new seed.
pub struct Players {
    results: mpsc::Receiver<Outcome>,
    work: Arc<Mutex<Work>>,
}

/// What the threads share.
struct Work {
    /// Seeds that no thread has taken yet.
    waiting: Box<dyn Iterator<Item = u64> + Send>,
    under_way: BTreeSet<u64>,
}

impl Players {
    /// Starts to play `seeds`.
    pub fn start(seeds: impl Iterator<Item = u64> + Send + 'static, options: Options) -> Self {
        Self::start_with(swarm::run, seeds, options)
    }

    pub(crate) fn start_with(play: Play, seeds: impl Iterator<Item = u64> + Send + 'static, options: Options) -> Self {
        let (result_in, results) = mpsc::channel(RESULTS_MAX);
        let work = Arc::new(Mutex::new(Work { waiting: Box::new(seeds), under_way: BTreeSet::new() }));
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            let (work, result_in) = (Arc::clone(&work), result_in.clone());
            // Not scoped: a seed that never ends must not hold up the end of the process.
            thread::spawn(move || play_all(play, &work, &options, &result_in));
        }
        Self { results, work }
    }

    /// The next result, in the order in which seeds come to their ends; `None` once all have. Safe to cancel.
    pub async fn next(&mut self) -> Option<Outcome> {
        self.results.recv().await
    }

    /// Seeds that are being played: where to look when no result comes.
    pub fn under_way(&self) -> Vec<u64> {
        lock(&self.work).under_way.iter().copied().collect()
    }
}

impl Drop for Players {
    fn drop(&mut self) {
        lock(&self.work).waiting = Box::new(std::iter::empty());
    }
}

fn play_all(play: Play, work: &Mutex<Work>, options: &Options, results: &mpsc::Sender<Outcome>) {
    while let Some(seed) = take(work) {
        let outcome = guard::play(play, seed, options);
        lock(work).under_way.remove(&seed);
        // At the end nobody wants to know any more.
        if results.blocking_send(outcome).is_err() {
            return;
        }
    }
}

fn take(work: &Mutex<Work>) -> Option<u64> {
    let mut work = lock(work);
    let seed = work.waiting.next()?;
    work.under_way.insert(seed);
    Some(seed)
}

/// Nothing under the lock is ever left half done.
fn lock(work: &Mutex<Work>) -> MutexGuard<'_, Work> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use super::{Failure, Options, Outcome, Players, Summary};

    /// Passes even seeds; fails 1, 5, 9, …; panics at 3, 7, 11, ….
    pub(crate) fn fake(seed: u64, _: &Options) -> Outcome {
        match seed % 4 {
            1 => {
                let (faults, trace) = (vec!["tarpit".to_owned()], vec!["connect".to_owned()]);
                Err(Box::new(Failure { seed, why: "silence did not follow".to_owned(), faults, trace }))
            }
            3 => panic!("seed {seed} is not to my liking"),
            _ => Ok(summary(seed)),
        }
    }

    pub(crate) fn summary(seed: u64) -> Summary {
        Summary {
            seed,
            trace_hash: seed * 17,
            virtual_time: Duration::from_secs(3_600),
            converged_after: Duration::from_secs(seed),
            handles: 100,
            events: 10,
            injected: BTreeMap::from([("tarpit", 2), ("closed", seed)]),
        }
    }

    #[tokio::test]
    async fn every_seed_has_one_result_whatever_becomes_of_it() {
        let mut players = Players::start_with(fake, 0..100, Options::default());
        let (mut passed, mut failed) = (BTreeSet::new(), BTreeSet::new());
        while let Some(outcome) = players.next().await {
            let new = match outcome {
                Ok(summary) => passed.insert(summary.seed),
                Err(failure) => failed.insert(failure.seed),
            };
            assert!(new);
        }
        assert!(players.under_way().is_empty());
        assert!(passed.into_iter().eq((0..100).step_by(2)));
        assert!(failed.into_iter().eq((1..100).step_by(2)));
    }

    #[tokio::test]
    async fn dropped_it_takes_no_new_seed() {
        let mut players = Players::start_with(fake, 0.., Options::default());
        assert!(players.next().await.is_some());
        let work = std::sync::Arc::clone(&players.work);
        drop(players);
        assert_eq!(super::take(&work), None);
    }
}
