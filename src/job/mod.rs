//! Jobs: what is to be held, of which relays, with answers that a program can wait for. For whoever embeds this crate, and
//! what JavaScript sees is made of it.
//!
//! A [`Jobs`] runs over one [`Runtime`] and its store. A [`JobSpec`] that stays ([`JobSpec::live`]) shares an engine with
//! all others of its direction and method, so that they share connections; one that ends has an engine of its own, and so
//! has each that follows repositories. What a job `down` wants is never published because of a job `up`.
//!
//! **What is stored** is given out by [`Jobs::take`]: everything newly held that a job's filters select, whoever has
//! brought it, each event once, in the order in which it was stored. It is read from the store itself
//! ([`Store::arrivals`](crate::store::Store::arrivals)), behind a cursor that the caller can keep: nothing waits in memory, and a job
//! that is begun anew, here or in another process over the same store, goes on where the last one was. Ephemeral events are
//! stored by nobody, and therefore not among them.
//!
//! **How things stand** is said by [`Jobs::report`], and [`Jobs::settled`] waits for a [`Moment`]. A report is complete
//! only if everything is proven at every relay; what is not is a gap with its reason.
//!
//! **A store that fails**, as when a browser's quota is used up, ends no job: engines end, reports say so with gaps of kind
//! `store`, and engines are begun anew over the same store once it may have recovered: after a while, on [`Jobs::wake`] and
//! on [`Jobs::store_changed`].

mod adding;
mod answers;
mod bell;
mod config;
mod courier;
mod entry;
mod origins;
mod proving;
mod publishing;
mod reading;
mod related;
mod report;
mod runner;
mod shared;
mod spec;
mod starting;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use answers::{
    Added, Exported, Imported, OpenWindow, ProvenWindow, PublishReport, RelayAnswer, RelayCoverage, Taken,
};
pub use config::JobsConfig;
pub use report::{Counts, JobGap, JobReport, JobState, Moment, RelayStanding};
pub use spec::{JobError, JobSpec, What};

use crate::engine::RelayReport;
use crate::protocol::{Event, Filter, RelayUrl};
use crate::runtime::Runtime;
use crate::store::Sequence;
use shared::Shared;

/// Runs jobs. Clones share them. Dropping it ends nothing: see [`Jobs::close`]. See the module.
pub struct Jobs<R: Runtime> {
    shared: Arc<Shared<R>>,
}

impl<R: Runtime> Clone for Jobs<R> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<R: Runtime> std::fmt::Debug for Jobs<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("jobs", &self.shared.lock().jobs.keys()).finish_non_exhaustive()
    }
}

impl<R: Runtime> Jobs<R> {
    /// No job yet. `seed` determines every chance that is taken.
    pub fn new(runtime: Arc<R>, config: JobsConfig, seed: u64) -> Self {
        Self { shared: Arc::new(Shared::new(runtime, config, seed)) }
    }

    /// Begins a job under an id of the caller's. Gives the number behind which its events are given out, for
    /// [`JobSpec::after`] of another that is to go on there before this one has given out any.
    ///
    /// # Errors
    /// The id is in use, something is missing from the specification or too much, the store cannot be read, or everything was
    /// closed.
    pub async fn start(&self, id: &str, spec: JobSpec) -> Result<Sequence, JobError> {
        self.shared.start(id, spec).await
    }

    /// Ends a job. What it has stored can still be taken, and its last report read, until it is one of more than
    /// [`JobsConfig::ended_jobs_max`] that are over; those from which all was taken are forgotten first. One that has an engine of its own is
    /// over once that has stored what has arrived: see [`Jobs::settled`].
    ///
    /// # Errors
    /// There is no such job.
    pub fn stop(&self, id: &str) -> Result<(), JobError> {
        self.shared.stop(id)
    }

    /// How a job stands.
    ///
    /// # Errors
    /// There is no such job.
    pub fn report(&self, id: &str) -> Result<JobReport, JobError> {
        self.shared.report(id)
    }

    /// Waits until this moment has come for a job, and gives its report.
    ///
    /// # Errors
    /// There is no such job (any more), or everything was closed before.
    pub async fn settled(&self, id: &str, moment: Moment) -> Result<JobReport, JobError> {
        loop {
            let seen = self.shared.news.count();
            let report = self.shared.report(id)?;
            if self.shared.lock().job(id)?.is_cut {
                return Err(JobError::Closed);
            }
            if report.has_come(moment) {
                return Ok(report);
            }
            self.shared.news.past(seen).await;
        }
    }

    /// Waits for events of a job or watch, and gives out those that are there: at most `events_max`, and no more once they
    /// have `bytes_max` bytes of JSON. `None` when the job is over and everything was given out. Nothing is lost if this is
    /// dropped before it ends. Of several calls for one job at a time, one waits for the other.
    ///
    /// # Errors
    /// There is no such job, the store cannot be read (the next call tries again), or everything was closed before the job
    /// was over, and what there is was given out.
    pub async fn take(&self, id: &str, events_max: usize, bytes_max: usize) -> Result<Option<Taken>, JobError> {
        let reading = self.shared.lock().job(id)?.reading.clone();
        let mut reading = reading.lock().await;
        loop {
            let seen = self.shared.arrivals.count();
            // Looked at first: what was stored before the end is read after it.
            let (is_over, is_cut) = match self.shared.lock().jobs.get(id) {
                Some(job) => (job.end.is_some(), job.is_cut),
                None => (true, false),
            };
            if let Some(taken) = reading.read(&self.shared, events_max, bytes_max).await? {
                return Ok(Some(taken));
            }
            if is_cut {
                return Err(JobError::Closed);
            }
            if is_over {
                self.shared.note_drained(id);
                return Ok(None);
            }
            self.shared.arrivals.past(seen).await;
        }
    }

    /// Gives out what satisfies one of `filters` and is stored after number `after`, or from now on, by whatever way, through
    /// [`Jobs::take`]. Limits of the filters do not count. Gives the number as [`Jobs::start`] does.
    ///
    /// # Errors
    /// As [`Jobs::start`].
    pub async fn watch(&self, id: &str, filters: Vec<Filter>, after: Option<Sequence>) -> Result<Sequence, JobError> {
        self.shared.watch(id, filters, after).await
    }

    /// Ends a watch, and forgets it: whoever waits for it is told that it is over.
    ///
    /// # Errors
    /// There is no such watch.
    pub fn unwatch(&self, id: &str) -> Result<(), JobError> {
        let is_watch = self.shared.lock().job(id)?.spec.is_none();
        if !is_watch {
            return Err(JobError::Unknown(id.to_owned()));
        }
        self.shared.stop(id)
    }

    /// Stores an event and sends it to `relays`; waits for their answers, at most for `timeout`.
    ///
    /// # Errors
    /// No relay is named, or too many, the store failed (then nothing was sent), or everything was closed.
    pub async fn publish(
        &self,
        event: Event,
        relays: Vec<RelayUrl>,
        timeout: Duration,
    ) -> Result<PublishReport, JobError> {
        self.shared.publish(event, relays, timeout).await
    }

    /// Checks events and stores those that are genuine. One outcome an event, in order. Jobs that publish send them on.
    ///
    /// # Errors
    /// The store failed: some may be held, and adding them again is harmless.
    pub async fn add(&self, events: Vec<Event>) -> Result<Vec<Added>, JobError> {
        self.shared.add(events).await
    }

    /// Adds the events of `text`, which has one a line. Lines that are no genuine event are counted and left out.
    ///
    /// # Errors
    /// As [`Jobs::add`].
    pub async fn import(&self, text: &str) -> Result<Imported, JobError> {
        self.shared.import(text).await
    }

    /// Events that are held, one a line, in the order in which they were stored, behind number `after`: at least one, and no
    /// more once they have `bytes_max` bytes.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn export(&self, after: Option<Sequence>, bytes_max: usize) -> Result<Exported, JobError> {
        self.shared.export(after.unwrap_or_default(), bytes_max).await
    }

    /// What is proven of this filter at each relay that was ever asked for it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn coverage(&self, filter: &Filter) -> Result<Vec<RelayCoverage>, JobError> {
        self.shared.coverage(filter).await
    }

    /// How things are at every relay that something is, or was, wanted of: one report a relay, that of the engine that is
    /// connected to it, if one is.
    pub fn relays(&self) -> Vec<RelayReport> {
        self.shared.lock().relays()
    }

    /// Waits until how things are at relays, or whether the store fails, may be other than when this gave `seen`; begin with
    /// 0.
    pub async fn changed(&self, seen: u64) -> u64 {
        self.shared.news.past(seen).await
    }

    /// The words in which the store fails at the moment, if it does: nothing is fetched until it works again.
    pub fn store_failure(&self) -> Option<String> {
        self.shared.lock().store_failure()
    }

    /// The machine slept, the network came back, or somebody looks: connections are probed, relays that are down are tried
    /// at once, and so is a store that fails.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// Somebody else has stored something, or there is room again: waiting takes look for it, and a store that fails is tried
    /// again.
    pub fn store_changed(&self) {
        self.shared.arrivals.ring();
        self.shared.recovery.ring();
    }

    /// Ends everything: what has arrived is stored, connections are closed, and whoever waits is told [`JobError::Closed`].
    pub async fn close(&self) {
        self.shared.close().await;
    }
}
