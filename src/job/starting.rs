//! How jobs begin and end.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::select;

use super::entry::{Entry, discovery_of};
use super::reading::{Reading, Selection};
use super::related::Related;
use super::runner::{Runner, RunnerId};
use super::shared::{Shared, State};
use super::spec::check_filters;
use super::{JobError, JobSpec, JobsConfig, What};
use crate::discover::Discovery;
use crate::engine::Command;
use crate::protocol::Filter;
use crate::runtime::{Clock, Instant, Runtime};
use crate::store::Sequence;
use crate::store::Store;

impl<R: Runtime> Shared<R> {
    /// See [`Jobs::start`](super::Jobs::start).
    pub(super) async fn start(self: &Arc<Self>, id: &str, spec: JobSpec) -> Result<Sequence, JobError> {
        let spec = JobSpec { relays: without_repetitions(spec.relays), ..spec };
        spec.check(&self.config)?;
        let now = self.runtime.clock().now().instant;
        let selection = match (&spec.what, discovery_of(&spec, &self.config)) {
            (_, Some(discovery)) => Selection::Repos(Box::new(Related::new(Discovery::new(discovery, now)))),
            (What::Filters(filters), None) => Selection::Filters(filters.clone()),
            (What::Repos { .. }, None) => return Err(JobError::NoFilters),
        };
        let reading = self.reading(selection, spec.after).await?;
        let cursor = reading.cursor();
        let deadline = spec.timeout.map(|timeout| now + timeout);
        let begun = {
            let mut state = self.lock();
            state.admit(id, &self.config)?;
            state.jobs.insert(id.to_owned(), Entry::new(Some(spec), reading));
            state.begin(id, &self.config)
        };
        begun.into_iter().for_each(|runner| self.spawn(runner));
        if let Some(at) = deadline {
            self.runtime.spawn(self.clone().watch_time(id.to_owned(), at));
        }
        self.news.ring();
        Ok(cursor)
    }

    /// See [`Jobs::watch`](super::Jobs::watch).
    pub(super) async fn watch(
        &self,
        id: &str,
        filters: Vec<Filter>,
        after: Option<Sequence>,
    ) -> Result<Sequence, JobError> {
        check_filters(&filters, &self.config)?;
        let reading = self.reading(Selection::Filters(filters), after).await?;
        let mut state = self.lock();
        state.admit(id, &self.config)?;
        let cursor = reading.cursor();
        state.jobs.insert(id.to_owned(), Entry::new(None, reading));
        Ok(cursor)
    }

    async fn reading(&self, selection: Selection, after: Option<Sequence>) -> Result<Reading, JobError> {
        Ok(Reading::new(self.cursor(after).await?, selection))
    }

    /// Where to go on. A number that was not given out yet is one of another store, or of one that has lost its end: who waited
    /// for it would miss all until then.
    pub(super) async fn cursor(&self, after: Option<Sequence>) -> Result<Sequence, JobError> {
        let last = self.runtime.store().last_arrival().await.map_err(JobError::of_store)?;
        Ok(after.map_or(last, |after| after.min(last)))
    }

    /// Ends a job or watch.
    pub(super) fn stop(&self, id: &str) -> Result<(), JobError> {
        self.lock().stop(id, &self.config)?;
        // An engine that waits for the store is to end, too.
        self.recovery.ring();
        self.arrivals.ring();
        self.news.ring();
        Ok(())
    }

    /// Waits for the time of a job to be up, unless it is over before.
    async fn watch_time(self: Arc<Self>, id: String, at: Instant) {
        let sleep = pin!(self.runtime.clock().sleep_until(at));
        let over = pin!(self.over(&id));
        select(sleep, over).await;
        let is_live = {
            let mut state = self.lock();
            let Some(job) = state.jobs.get_mut(&id).filter(|job| job.end.is_none()) else { return };
            job.is_overdue = true;
            job.spec.as_ref().is_some_and(|spec| spec.live)
        };
        if is_live {
            self.news.ring();
        } else if let Err(error) = self.stop(&id) {
            tracing::debug!(%error, "a job was over just before its time was up");
        }
    }

    async fn over(&self, id: &str) {
        loop {
            let seen = self.news.count();
            if self.lock().jobs.get(id).is_none_or(|job| job.end.is_some()) {
                return;
            }
            self.news.past(seen).await;
        }
    }

    /// See [`Jobs::wake`](super::Jobs::wake).
    pub(super) fn wake(&self) {
        for runner in self.lock().runners.values() {
            runner.tell(Command::Wake);
        }
        self.recovery.ring();
    }

    /// See [`Jobs::close`](super::Jobs::close).
    pub(super) async fn close(&self) {
        self.lock().close(&self.config);
        self.recovery.ring();
        let clock = self.runtime.clock();
        let late = pin!(clock.sleep_until(clock.now().instant + self.config.close_timeout));
        let ended = pin!(self.runners_ended());
        select(ended, late).await;
        self.lock().end_all(&self.config);
        self.arrivals.ring();
        self.news.ring();
    }

    async fn runners_ended(&self) {
        loop {
            let seen = self.news.count();
            if self.lock().runners.is_empty() {
                return;
            }
            self.news.past(seen).await;
        }
    }
}

impl State {
    /// Has a job run: by the engine that it shares, by one of its own, or once there is a place for it. Gives the runners to
    /// be spawned.
    fn begin(&mut self, id: &str, config: &JobsConfig) -> Vec<RunnerId> {
        let Some(job) = self.jobs.get(id) else { return Vec::new() };
        let (interests, relays) = (job.interests(), job.relays().to_vec());
        if let Some(way) = job.way() {
            let (runner, is_new) = self.live_runner(way, config);
            if let Some(runner) = self.runners.get_mut(&runner) {
                runner.want(&relays, &interests);
            }
            if let Some(job) = self.jobs.get_mut(id) {
                job.runner = Some(runner);
            }
            return is_new.then_some(runner).into_iter().collect();
        }
        if job.spec.as_ref().is_some_and(|spec| spec.live) {
            let runner = job.runner_of_its_own(id, config);
            return runner.map(|runner| self.own_runner(id, runner)).into_iter().collect();
        }
        self.queue.push_back(id.to_owned());
        self.begin_queued(config)
    }

    /// A job with an engine of its own is over when that is.
    fn stop(&mut self, id: &str, config: &JobsConfig) -> Result<(), JobError> {
        let job = self.job(id)?;
        if job.spec.is_none() {
            self.forget_job(id);
            return Ok(());
        }
        if job.end.is_some() {
            return Ok(());
        }
        let (runner, is_shared) = (job.runner, job.way().is_some());
        let (interests, relays) = (job.interests(), job.relays().to_vec());
        if is_shared || runner.is_none() {
            self.end_job(id, config);
        }
        match runner.and_then(|runner| self.runners.get_mut(&runner)) {
            Some(runner) if is_shared => runner.release(&relays, &interests),
            Some(runner) => runner.stop(),
            None => {}
        }
        Ok(())
    }

    fn close(&mut self, config: &JobsConfig) {
        self.is_closed = true;
        let queued: Vec<String> = self.queue.iter().cloned().collect();
        queued.iter().for_each(|id| self.end_job(id, config));
        self.runners.values_mut().for_each(Runner::stop);
    }

    fn end_all(&mut self, config: &JobsConfig) {
        let ids: Vec<String> = self.jobs.keys().cloned().collect();
        ids.iter().for_each(|id| self.end_job(id, config));
        // An engine that does not end answers nobody.
        self.runners.values_mut().for_each(Runner::end);
    }
}

fn without_repetitions<T: Ord + Clone>(values: Vec<T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    values.into_iter().filter(|value| seen.insert(value.clone())).collect()
}
