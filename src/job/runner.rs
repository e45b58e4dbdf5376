//! One engine, begun anew over the same store for as long as that fails: what is wanted of it, and what it has said last.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use futures_channel::{mpsc, oneshot};
use futures_util::future::{Either, select};

use super::courier::Courier;
use super::shared::Shared;
use crate::drive::drive;
use crate::engine::{Command, Config, Direction, Notice, PublishAnswer, RelayOptions, Standing};
use crate::plan::Interest;
use crate::protocol::RelayUrl;
use crate::runtime::{Clock, Runtime};
use crate::store::{Coverage, Method, Store};

/// One of the runners of a [`Jobs`](super::Jobs).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunnerId(pub(super) u64);

/// How the jobs that share an engine are synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Way {
    pub(super) direction: Direction,
    pub(super) method: Option<Method>,
}

impl Way {
    pub(super) fn options(self, live: bool) -> RelayOptions {
        RelayOptions { direction: self.direction, method: self.method, live, trusted: false }
    }
}

/// Whose engine it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Of all jobs that stay and are synced this way.
    Live(Way),
    /// Of the job of this id.
    Job(String),
}

/// Somebody who waits for an engine's answer.
#[derive(Debug)]
pub(super) enum Asker {
    Publish(oneshot::Sender<PublishAnswer>),
    Prove(oneshot::Sender<Vec<Coverage>>),
}

/// One engine. See the module.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) purpose: Purpose,
    pub(super) config: Config,
    pub(super) options: RelayOptions,
    /// What is wanted of each relay, and by how many jobs.
    wanted: BTreeMap<RelayUrl, BTreeMap<Interest, usize>>,
    /// How each relay stood last.
    pub(super) standings: BTreeMap<RelayUrl, Standing>,
    /// The words in which the store failed, until the engine is begun anew.
    pub(super) failure: Option<String>,
    /// Failures of the store since something was stored.
    failures: u32,
    /// It is to end, and not to be begun anew.
    is_stopping: bool,
    /// The relays that it was connected to when it was told to end, and leaves by itself.
    left: BTreeSet<RelayUrl>,
    /// To the engine that runs, if one does. Each clone has a place of its own in the queue, so nothing waits for room: of
    /// commands there are as many as calls that caused them.
    commands: Option<mpsc::Sender<Command>>,
    askers: BTreeMap<u64, Asker>,
    /// What is to be asked of the first engine, until it has begun.
    backlog: Option<Vec<Command>>,
}

impl Runner {
    pub(super) fn new(purpose: Purpose, config: Config, options: RelayOptions) -> Self {
        Self {
            purpose,
            config,
            options,
            wanted: BTreeMap::new(),
            standings: BTreeMap::new(),
            failure: None,
            failures: 0,
            is_stopping: false,
            left: BTreeSet::new(),
            commands: None,
            askers: BTreeMap::new(),
            backlog: Some(Vec::new()),
        }
    }

    /// Another job wants this of these relays.
    pub(super) fn want(&mut self, relays: &[RelayUrl], interests: &[Interest]) {
        for relay in relays {
            let wanted = self.wanted.entry(relay.clone()).or_default();
            for interest in interests {
                *wanted.entry(interest.clone()).or_default() += 1;
                if let (1, Some(standing)) = (wanted[interest], self.standings.get_mut(relay)) {
                    // What was said of it was said of another time.
                    let packs = interest.packs();
                    standing.filters.retain(|filter| packs.iter().all(|pack| *pack.key() != filter.filter));
                }
            }
            self.tell_interests(relay);
        }
    }

    /// A job wants this no more.
    pub(super) fn release(&mut self, relays: &[RelayUrl], interests: &[Interest]) {
        for relay in relays {
            let Some(wanted) = self.wanted.get_mut(relay) else { continue };
            for interest in interests {
                if let Some(jobs) = wanted.get_mut(interest) {
                    *jobs -= 1;
                }
            }
            wanted.retain(|_, jobs| *jobs > 0);
            self.tell_interests(relay);
            self.wanted.retain(|_, wanted| !wanted.is_empty());
        }
    }

    /// Does some job want this of some relay?
    pub(super) fn wants(&self, interest: &Interest) -> bool {
        self.wanted.values().any(|wanted| wanted.contains_key(interest))
    }

    #[cfg(test)]
    pub(super) fn all_wanted(&self) -> BTreeMap<RelayUrl, BTreeSet<Interest>> {
        self.wanted.iter().map(|(relay, wanted)| (relay.clone(), wanted.keys().cloned().collect())).collect()
    }

    fn set_interests(&self, relay: &RelayUrl) -> Command {
        let interests = self.wanted.get(relay).into_iter().flat_map(BTreeMap::keys).cloned().collect();
        Command::SetInterests { relay: relay.clone(), interests, options: self.options }
    }

    fn tell_interests(&self, relay: &RelayUrl) {
        // Without an engine, the next is told of all that is wanted by then.
        self.tell(self.set_interests(relay));
    }

    /// Gives the engine a command. Is there one?
    pub(super) fn tell(&self, command: Command) -> bool {
        self.commands.as_ref().is_some_and(|commands| commands.clone().try_send(command).is_ok())
    }

    /// Asks the engine something. If there is none, the asker is dropped, and knows by that.
    pub(super) fn ask(&mut self, ticket: u64, command: Command, asker: Asker) {
        let is_told = match &mut self.backlog {
            Some(backlog) => {
                backlog.push(command);
                true
            }
            None => self.tell(command),
        };
        if is_told {
            self.askers.insert(ticket, asker);
        }
    }

    /// Ends it, with what has arrived stored.
    pub(super) fn stop(&mut self) {
        if !std::mem::replace(&mut self.is_stopping, true) {
            let connected = self.standings.values().filter(|standing| standing.report.connected);
            self.left = connected.map(|standing| standing.report.relay.clone()).collect();
        }
        self.tell(Command::Stop);
    }

    /// Has it been connected to this relay until it was told to end?
    pub(super) fn has_left(&self, relay: &RelayUrl) -> bool {
        self.left.contains(relay)
    }

    /// The commands of a new engine, the first of them at hand.
    fn begin(&mut self) -> (mpsc::Sender<Command>, mpsc::Receiver<Command>) {
        let (sender, receiver) = mpsc::channel(0);
        self.commands = Some(sender.clone());
        self.failure = None;
        let relays: Vec<RelayUrl> = self.wanted.keys().cloned().collect();
        relays.iter().for_each(|relay| self.tell_interests(relay));
        for command in self.backlog.take().into_iter().flatten() {
            self.tell(command);
        }
        // What was said of filters was said by another engine.
        for standing in self.standings.values_mut() {
            (standing.settled, standing.filters) = (false, Vec::new());
        }
        (sender, receiver)
    }

    /// The engine has ended, or is not waited for any longer.
    pub(super) fn end(&mut self) {
        self.commands = None;
        // Whoever asked learns it by this, and nothing is done later that nobody waits for.
        self.backlog = None;
        self.askers.clear();
    }

    /// The store has failed: the engine is of no more use.
    pub(super) fn fail(&mut self, words: &str) {
        self.failures = self.failures.saturating_add(1);
        self.failure = Some(words.to_owned());
        self.tell(Command::Stop);
    }

    /// Jobs come and go, and events are published to ever other relays: of one that nothing is wanted of any more, nobody
    /// asks how it stands. What discovery finds, is wanted.
    fn forget_a_relay(&mut self) {
        if self.standings.len() <= self.config.relays_kept_max || !matches!(self.purpose, Purpose::Live(_)) {
            return;
        }
        let is_over = |(relay, standing): &(&RelayUrl, &Standing)| {
            !self.wanted.contains_key(*relay) && !standing.report.connected
        };
        if let Some(relay) = self.standings.iter().find(is_over).map(|(relay, _)| relay.clone()) {
            self.standings.remove(&relay);
        }
    }

    /// Takes in what its engine has said.
    pub(super) fn hear(&mut self, notice: &Notice) {
        match notice {
            Notice::Standing(standing) => {
                self.standings.insert(standing.report.relay.clone(), (**standing).clone());
                self.forget_a_relay();
            }
            Notice::Stored(stored) if !stored.is_empty() => self.failures = 0,
            Notice::StoreFailed(words) => self.fail(words),
            Notice::Published { ticket, answer, .. } => {
                if let Some(Asker::Publish(asker)) = self.askers.remove(ticket) {
                    // Whoever asked may have gone.
                    let _ = asker.send(answer.clone());
                }
            }
            Notice::Proven { ticket, marks } => {
                if let Some(Asker::Prove(asker)) = self.askers.remove(ticket) {
                    // As above.
                    let _ = asker.send(marks.clone());
                }
            }
            Notice::Finished(reports) | Notice::Stopped(reports) => {
                for report in reports {
                    if let Some(standing) = self.standings.get_mut(&report.relay) {
                        standing.report = report.clone();
                    }
                }
            }
            Notice::Progress(_)
            | Notice::Holdings(_)
            | Notice::Judged { .. }
            | Notice::Storing(_)
            | Notice::Stored(_) => {}
        }
    }
}

/// What is to be done when an engine has ended.
enum Next {
    Over,
    /// Begin anew, after so many failures of the store.
    Again(u32),
}

/// Runs engines for a runner, one after the other, until one ends without a failure of the store.
pub(super) async fn run<R: Runtime>(shared: Arc<Shared<R>>, id: RunnerId) {
    loop {
        let failed = run_once(&shared, id).await.err();
        match after_run(&shared, id, failed) {
            Next::Over => break,
            Next::Again(failures) => rest(&shared, failures).await,
        }
    }
    shared.end_runner(id);
}

/// Runs one engine to its end.
///
/// # Errors
/// The store could not be read at the beginning.
async fn run_once<R: Runtime>(shared: &Arc<Shared<R>>, id: RunnerId) -> Result<(), String> {
    let after = shared.runtime.store().last_arrival().await.map_err(|error| error.to_string())?;
    let begun = {
        let mut state = shared.lock();
        let seed = state.rng.bits();
        let Some(runner) = state.runners.get_mut(&id).filter(|runner| !runner.is_stopping) else { return Ok(()) };
        let (sender, receiver) = runner.begin();
        (sender, receiver, runner.config.clone(), runner.options.direction, seed)
    };
    let (sender, receiver, config, direction, seed) = begun;
    let courier = Courier { shared, runner: id, direction, discovers: config.discovery.is_some(), after };
    let hearing = shared.clone();
    let engine = drive(shared.runtime.clone(), config, seed, receiver, move |notice| hearing.hear(id, notice));
    let (engine, courier) = (pin!(engine), pin!(courier.run(sender)));
    match select(engine, courier).await {
        Either::Left((Ok(_), _)) => Ok(()),
        Either::Left((Err(error), _)) => Err(error.to_string()),
        Either::Right((never, _)) => match never {},
    }
}

fn after_run<R: Runtime>(shared: &Arc<Shared<R>>, id: RunnerId, failed: Option<String>) -> Next {
    let next = {
        let mut state = shared.lock();
        let is_closed = state.is_closed;
        let Some(runner) = state.runners.get_mut(&id) else { return Next::Over };
        if let Some(words) = failed {
            runner.fail(&words);
        }
        runner.end();
        match runner.failure.is_some() && !runner.is_stopping && !is_closed {
            true => Next::Again(runner.failures),
            false => Next::Over,
        }
    };
    shared.news.ring();
    next
}

/// Waits until the store may have recovered.
async fn rest<R: Runtime>(shared: &Arc<Shared<R>>, failures: u32) {
    let (clock, config) = (shared.runtime.clock(), &shared.config);
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
    let wait = config.store_retry_base.saturating_mul(doubled).min(config.store_retry_max);
    let seen = shared.recovery.count();
    let at = clock.now().instant + wait;
    let (sleep, recovery) = (pin!(clock.sleep_until(at)), pin!(shared.recovery.past(seen)));
    select(sleep, recovery).await;
}
