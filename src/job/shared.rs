//! What all clones of a [`Jobs`](super::Jobs) share: its jobs and runners, and who waits for what.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bell::Bell;
use super::entry::{Entry, Standpoint};
use super::origins::Origins;
use super::runner::{Purpose, Runner, RunnerId, Way, run};
use super::{JobError, JobReport, JobsConfig};
use crate::engine::{Notice, RelayReport, Rng};
use crate::protocol::RelayUrl;
use crate::runtime::Runtime;
use crate::store::Store;

/// See the module.
pub(super) struct Shared<R: Runtime> {
    pub(super) runtime: Arc<R>,
    pub(super) config: JobsConfig,
    state: Mutex<State>,
    /// Something was stored, or a job is over.
    pub(super) arrivals: Bell,
    /// Things stand otherwise somewhere.
    pub(super) news: Bell,
    /// The store may work again.
    pub(super) recovery: Bell,
}

/// What changes.
pub(super) struct State {
    pub(super) jobs: BTreeMap<String, Entry>,
    /// Jobs that are over, in the order in which they ended.
    ended: VecDeque<String>,
    /// Jobs that end and wait for their turn.
    pub(super) queue: VecDeque<String>,
    pub(super) runners: BTreeMap<RunnerId, Runner>,
    live: BTreeMap<Way, RunnerId>,
    pub(super) origins: Origins,
    /// How each relay stood last.
    known: BTreeMap<RelayUrl, RelayReport>,
    pub(super) rng: Rng,
    last_number: u64,
    pub(super) is_closed: bool,
    /// What the store said when this was last locked.
    floor_secs: Option<u64>,
}

impl<R: Runtime> Shared<R> {
    pub(super) fn new(runtime: Arc<R>, config: JobsConfig, seed: u64) -> Self {
        let state = State {
            jobs: BTreeMap::new(),
            ended: VecDeque::new(),
            queue: VecDeque::new(),
            runners: BTreeMap::new(),
            live: BTreeMap::new(),
            origins: Origins::new(config.origins_max),
            known: BTreeMap::new(),
            rng: Rng::new(seed),
            last_number: 0,
            is_closed: false,
            floor_secs: None,
        };
        let (arrivals, news, recovery) = (Bell::default(), Bell::default(), Bell::default());
        Self { runtime, config, state: Mutex::new(state), arrivals, news, recovery }
    }

    /// Never held while something is awaited. A panic elsewhere is a bug that ends the program, or leaves counts that are
    /// right by themselves.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.floor_secs = self.runtime.store().floor_secs();
        state
    }

    /// Lets a runner run.
    pub(super) fn spawn(self: &Arc<Self>, runner: RunnerId) {
        self.runtime.spawn(run(self.clone(), runner));
    }

    /// What an engine has to say.
    pub(super) fn hear(&self, id: RunnerId, notice: &Notice) {
        self.lock().hear(id, notice, self.config.live.relays_kept_max);
        match notice {
            Notice::Stored(stored) if !stored.is_empty() => self.arrivals.ring(),
            Notice::Standing(_) | Notice::StoreFailed(_) | Notice::Finished(_) | Notice::Stopped(_) => {
                self.news.ring();
            }
            _ => {}
        }
    }

    /// The store fails this runner.
    pub(super) fn fail_runner(&self, id: RunnerId, words: &str) {
        if let Some(runner) = self.lock().runners.get_mut(&id) {
            runner.fail(words);
        }
        self.news.ring();
    }

    /// A runner is through. What waited for its place begins.
    pub(super) fn end_runner(self: &Arc<Self>, id: RunnerId) {
        let begun = {
            let mut state = self.lock();
            state.end_runner(id, &self.config);
            state.begin_queued(&self.config)
        };
        begun.into_iter().for_each(|runner| self.spawn(runner));
        self.arrivals.ring();
        self.news.ring();
    }

    /// Everything that was for this job was given out.
    pub(super) fn note_drained(&self, id: &str) {
        if let Some(job) = self.lock().jobs.get_mut(id) {
            job.is_drained = true;
        }
    }

    /// How a job stands.
    pub(super) fn report(&self, id: &str) -> Result<JobReport, JobError> {
        self.lock().report(id, &self.config)
    }
}

impl State {
    /// A number that was not given out before.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// May there be one more job, of this id?
    pub(super) fn admit(&self, id: &str, config: &JobsConfig) -> Result<(), JobError> {
        if self.is_closed {
            return Err(JobError::Closed);
        }
        match self.jobs.get(id) {
            Some(_) => Err(JobError::IdInUse(id.to_owned())),
            None if self.jobs.len() - self.ended.len() >= config.jobs_max => {
                Err(JobError::TooMany("jobs", config.jobs_max))
            }
            None => Ok(()),
        }
    }

    /// The job of this id.
    pub(super) fn job(&self, id: &str) -> Result<&Entry, JobError> {
        self.jobs.get(id).ok_or_else(|| JobError::Unknown(id.to_owned()))
    }

    /// How a job stands.
    pub(super) fn report(&self, id: &str, config: &JobsConfig) -> Result<JobReport, JobError> {
        let job = self.job(id)?;
        Ok(job.report(self.standpoint(job, config)))
    }

    fn standpoint<'s>(&'s self, job: &Entry, config: &JobsConfig) -> Standpoint<'s> {
        let runner = job.runner.and_then(|runner| self.runners.get(&runner));
        Standpoint { runner, failures_max: config.failures_max, is_over: false, floor_secs: self.floor_secs }
    }

    /// A job is over; this is its last report.
    pub(super) fn end_job(&mut self, id: &str, config: &JobsConfig) {
        let Some(job) = self.jobs.get(id).filter(|job| job.end.is_none()) else { return };
        let report = job.report(Standpoint { is_over: true, ..self.standpoint(job, config) });
        let is_closed = self.is_closed;
        if let Some(job) = self.jobs.get_mut(id) {
            (job.end, job.is_cut) = (Some(report), is_closed);
        }
        self.queue.retain(|queued| queued != id);
        self.ended.push_back(id.to_owned());
        while self.ended.len() > config.ended_jobs_max {
            let drained = self.ended.iter().position(|ended| self.jobs.get(ended).is_none_or(|job| job.is_drained));
            self.ended.remove(drained.unwrap_or_default()).and_then(|oldest| self.jobs.remove(&oldest));
        }
    }

    /// A job is over and not even its report matters any more.
    pub(super) fn forget_job(&mut self, id: &str) {
        self.jobs.remove(id);
        self.ended.retain(|ended| ended != id);
    }

    /// The runner of all jobs that stay and are synced in this way, and whether it is new and to be spawned.
    pub(super) fn live_runner(&mut self, way: Way, config: &JobsConfig) -> (RunnerId, bool) {
        if let Some(runner) = self.live.get(&way) {
            return (*runner, false);
        }
        let runner = Runner::new(Purpose::Live(way), config.live.clone(), way.options(true));
        let id = self.add_runner(runner);
        self.live.insert(way, id);
        (id, true)
    }

    fn add_runner(&mut self, mut runner: Runner) -> RunnerId {
        runner.config.tells_standings = true;
        let id = RunnerId(self.next_number());
        self.runners.insert(id, runner);
        id
    }

    /// A runner for one job.
    pub(super) fn own_runner(&mut self, job: &str, runner: Runner) -> RunnerId {
        let id = self.add_runner(runner);
        if let Some(job) = self.jobs.get_mut(job) {
            job.runner = Some(id);
        }
        id
    }

    /// Begins jobs that end, as many as may run. Gives the runners to be spawned.
    pub(super) fn begin_queued(&mut self, config: &JobsConfig) -> Vec<RunnerId> {
        let mut begun = Vec::new();
        while self.once_running() < config.once_at_a_time_max.max(1) {
            let Some(id) = self.queue.pop_front() else { break };
            let runner = self.jobs.get(&id).and_then(|job| job.runner_of_its_own(&id, config));
            begun.extend(runner.map(|runner| self.own_runner(&id, runner)));
        }
        begun
    }

    fn once_running(&self) -> usize {
        let is_once = |runner: &&Runner| matches!(runner.purpose, Purpose::Job(_)) && runner.config.one_shot;
        self.runners.values().filter(is_once).count()
    }

    fn hear(&mut self, id: RunnerId, notice: &Notice, relays_max: usize) {
        match notice {
            Notice::Storing(brought) => self.origins.expect(id, brought),
            Notice::Stored(brought) => self.origins.settle(id, brought),
            Notice::StoreFailed(_) => self.origins.settle(id, &[]),
            Notice::Standing(standing) => {
                let relay = &standing.report.relay;
                self.known.insert(relay.clone(), standing.report.clone());
                if self.known.len() > relays_max {
                    let is_over = |(_, report): &(&RelayUrl, &RelayReport)| !report.connected;
                    let over = self.known.iter().find(is_over).map(|(relay, _)| relay.clone());
                    over.and_then(|relay| self.known.remove(&relay));
                }
            }
            _ => {}
        }
        if let Some(runner) = self.runners.get_mut(&id) {
            runner.hear(notice);
        }
    }

    fn end_runner(&mut self, id: RunnerId, config: &JobsConfig) {
        match self.runners.get(&id).map(|runner| runner.purpose.clone()) {
            Some(Purpose::Job(job)) => self.end_job(&job, config),
            Some(Purpose::Live(way)) => {
                self.live.remove(&way);
                let is_of_it = |(_, job): &(&String, &Entry)| job.runner == Some(id);
                let jobs: Vec<String> = self.jobs.iter().filter(is_of_it).map(|(job, _)| job.clone()).collect();
                jobs.iter().for_each(|job| self.end_job(job, config));
            }
            None => {}
        }
        self.origins.settle(id, &[]);
        self.runners.remove(&id);
    }

    /// The runner that is connected to a relay, of those that stay.
    pub(super) fn connected_to(&self, relay: &RelayUrl) -> Option<RunnerId> {
        let is_connected = |id: &&RunnerId| {
            let standing = self.runners.get(id).and_then(|runner| runner.standings.get(relay));
            standing.is_some_and(|standing| standing.report.connected)
        };
        self.live.values().find(is_connected).copied()
    }

    /// One report a relay: of an engine that is connected to it, if one is.
    pub(super) fn relays(&self) -> Vec<RelayReport> {
        let mut reports = self.known.clone();
        let standings = self.runners.values().flat_map(|runner| runner.standings.values());
        for report in standings.map(|standing| &standing.report).filter(|report| report.connected) {
            reports.insert(report.relay.clone(), report.clone());
        }
        reports.into_values().collect()
    }

    /// The words in which the store fails some runner.
    pub(super) fn store_failure(&self) -> Option<String> {
        self.runners.values().find_map(|runner| runner.failure.clone())
    }
}
