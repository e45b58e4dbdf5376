//! What runs beside the hub: store work, judgements, reconciliations, and signature checks on all cores.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::ServiceConfig;
use super::judge::Judge;
use crate::ingest::{Verdict, Verified, verify};
use crate::protocol::Event;
use crate::serve::{ServeEffect, ServeInput, WorkFault, reconcile};
use crate::store::Store;

/// Runs the effects that carry tickets. Each reports back exactly once, even if it panics.
#[derive(Debug)]
pub(super) struct Work<S> {
    store: Arc<S>,
    /// Permits to read from the store or to reconcile.
    reads: Arc<Semaphore>,
    judge: Option<Judge>,
    judge_max: Duration,
    reports: mpsc::UnboundedSender<ServeInput>,
}

/// Fewer events than this are not worth another thread.
const EVENTS_PER_THREAD_MIN: usize = 8;

impl<S: Store> Work<S> {
    pub(super) fn new(
        store: Arc<S>,
        judge: Option<Judge>,
        config: &ServiceConfig,
        reports: mpsc::UnboundedSender<ServeInput>,
    ) -> Self {
        let reads = Arc::new(Semaphore::new(config.store_reads_max.max(1)));
        Self { store, reads, judge, judge_max: config.judge_max, reports }
    }

    /// Starts the work of `effect`; gives it back if it is none.
    pub(super) fn start(&self, effect: ServeEffect) -> Option<ServeEffect> {
        let store = self.store.clone();
        match effect {
            ServeEffect::Query { ticket, query } => {
                let work = async move { store.query(query).await.map_err(fault) };
                self.run(self.in_turn(work), move |page| ServeInput::Queried { ticket, page });
            }
            ServeEffect::Count { ticket, filters, view, now_secs } => {
                let work = async move { store.count(filters, &view, now_secs).await.map_err(fault) };
                self.run(self.in_turn(work), move |count| ServeInput::Counted { ticket, count });
            }
            ServeEffect::Items { ticket, filter, window, view, now_secs } => {
                let work = async move { store.held_items(&filter, window, &view, now_secs).await.map_err(fault) };
                self.run(self.in_turn(work), move |items| ServeInput::Items { ticket, items });
            }
            ServeEffect::Reconcile { ticket, view, message, frame_bytes_max } => {
                let work = on_thread(move || reconcile(view, &message, frame_bytes_max));
                let work = self.in_turn(async { work.await? });
                self.run(work, move |answer| ServeInput::Reconciled { ticket, answer });
            }
            ServeEffect::Verify { ticket, events } => {
                self.run(verify_all(events), move |verdicts| ServeInput::Verified { ticket, verdicts });
            }
            ServeEffect::Judge { ticket, events } => {
                let work = judge(self.judge.clone(), events, self.judge_max);
                self.run(work, move |objections| ServeInput::Judged { ticket, objections });
            }
            ServeEffect::Commit { ticket, batch } => {
                let work = async move { store.commit(batch).await.map_err(fault) };
                self.run(work, move |outcomes| ServeInput::Committed { ticket, outcomes });
            }
            other => return Some(other),
        }
        None
    }

    /// `work`, once there is a permit for it.
    fn in_turn<T, F>(&self, work: F) -> impl Future<Output = Result<T, WorkFault>> + use<T, F, S>
    where
        F: Future<Output = Result<T, WorkFault>>,
    {
        let reads = self.reads.clone();
        async move {
            let _permit = reads.acquire_owned().await.map_err(fault)?;
            work.await
        }
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, WorkFault>> + Send + 'static,
        report: impl FnOnce(Result<T, WorkFault>) -> ServeInput + Send + 'static,
    ) {
        let reports = self.reports.clone();
        tokio::spawn(async move {
            let result = AssertUnwindSafe(work).catch_unwind().await;
            let result = result.unwrap_or_else(|_| Err(WorkFault("it panicked".into())));
            if reports.send(report(result)).is_err() {
                tracing::debug!("the relay service ended before the work for it");
            }
        });
    }
}

fn fault(error: impl std::fmt::Display) -> WorkFault {
    WorkFault(error.to_string())
}

async fn judge(
    judge: Option<Judge>,
    events: Vec<Verified<Event>>,
    judge_max: Duration,
) -> Result<Vec<Option<String>>, WorkFault> {
    let judge = judge.ok_or_else(|| WorkFault("there is no judge".into()))?;
    let late = |_| WorkFault(format!("no judgement within {} ms", judge_max.as_millis()));
    timeout(judge_max, judge.objections(events)).await.map_err(late)?
}

async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, WorkFault> {
    tokio::task::spawn_blocking(work).await.map_err(fault)
}

async fn verify_all(mut events: Vec<Event>) -> Result<Vec<Verdict>, WorkFault> {
    let threads = available_parallelism().map_or(1, usize::from);
    let share = events.len().div_ceil(threads).max(EVENTS_PER_THREAD_MIN);
    let mut shares = Vec::with_capacity(threads);
    while !events.is_empty() {
        let rest = events.split_off(share.min(events.len()));
        shares.push(tokio::task::spawn_blocking(move || events.into_iter().map(verdict).collect::<Vec<_>>()));
        events = rest;
    }
    let mut verdicts = Vec::new();
    for share in shares {
        verdicts.extend(share.await.map_err(fault)?);
    }
    Ok(verdicts)
}

fn verdict(event: Event) -> Verdict {
    verify(event).map_or_else(Verdict::Invalid, Verdict::Valid)
}
