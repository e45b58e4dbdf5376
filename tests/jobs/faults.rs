//! A store that fails for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use relaysync::job::{JobError, JobState, JobsConfig, Moment};
use relaysync::peer::View;
use relaysync::protocol::{Filter, ItemSet, Window};
use relaysync::store::{
    Arrivals, Batch, MemoryStore, Outcome, Page, Query, Record, RequestContext, Sequence, Snapshot, Store,
};
use std::time::Duration;

use crate::events::notes;
use crate::world::*;

/// A disk that can be full.
#[derive(Clone, Default)]
struct Disk {
    store: MemoryStore,
    is_full: Arc<AtomicBool>,
    refused: Arc<AtomicU64>,
}

#[derive(Debug)]
struct DiskError(String);

impl std::fmt::Display for DiskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DiskError {}

fn fault(error: impl std::fmt::Display) -> DiskError {
    DiskError(error.to_string())
}

impl Store for Disk {
    type Error = DiskError;

    async fn load(&self) -> Result<Snapshot, DiskError> {
        self.store.load().await.map_err(fault)
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, DiskError> {
        if self.is_full.load(Ordering::SeqCst) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(DiskError("no room is left".into()));
        }
        self.store.commit(batch).await.map_err(fault)
    }

    async fn known(&self, ids: Vec<[u8; 32]>, view: &View) -> Result<Vec<bool>, DiskError> {
        self.store.known(ids, view).await.map_err(fault)
    }

    async fn items(&self, filter: &Filter, window: Window, view: &View) -> Result<Arc<ItemSet>, DiskError> {
        self.store.items(filter, window, view).await.map_err(fault)
    }

    async fn events(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<Record>>, DiskError> {
        self.store.events(ids).await.map_err(fault)
    }

    async fn query(&self, query: Query) -> Result<Page, DiskError> {
        self.store.query(query).await.map_err(fault)
    }

    async fn count(&self, filters: Vec<Filter>, view: &View, now_secs: u64) -> Result<u64, DiskError> {
        self.store.count(filters, view, now_secs).await.map_err(fault)
    }

    async fn contexts(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<RequestContext>>, DiskError> {
        self.store.contexts(ids).await.map_err(fault)
    }

    async fn arrivals(&self, after: Sequence, limit: usize, bytes_max: usize) -> Result<Arrivals, DiskError> {
        self.store.arrivals(after, limit, bytes_max).await.map_err(fault)
    }

    async fn last_arrival(&self) -> Result<Sequence, DiskError> {
        self.store.last_arrival().await.map_err(fault)
    }
}

#[tokio::test]
async fn jobs_pause_while_the_store_is_full_and_go_on_when_there_is_room() {
    let events = notes(1..=500);
    let relay = Relay::with(&events).await;
    let disk = Disk::default();
    let jobs = jobs(disk.clone());
    disk.is_full.store(true, Ordering::SeqCst);
    jobs.start("live", live(&[relay.url()])).await.unwrap();
    jobs.start("once", once(&[relay.url()])).await.unwrap();
    until(|| async { disk.refused.load(Ordering::SeqCst) > 4 }).await;
    until(|| async { jobs.store_failure().is_some() }).await;
    assert_eq!(jobs.add(events[..1].to_vec()).await, Err(JobError::Store("no room is left".into())));
    for id in ["live", "once"] {
        until(|| async { jobs.report(id).unwrap().error.is_some() }).await;
        until(|| async {
            let report = jobs.report(id).unwrap();
            report.state == JobState::Syncing && report.relays[0].gaps.iter().any(|gap| gap.kind == "store")
        })
        .await;
        assert!(!jobs.report(id).unwrap().complete);
    }
    disk.is_full.store(false, Ordering::SeqCst);
    jobs.store_changed();
    assert_eq!(take_all(&jobs, "once").await.len(), 500);
    assert_eq!(take(&jobs, "live", 500).await, ids(&events));
    for (id, moment) in [("live", Moment::CaughtUp), ("once", Moment::Done)] {
        let report = patiently(jobs.settled(id, moment)).await.unwrap();
        assert!(report.complete, "{report:?}");
        assert_eq!(report.error, None);
    }
    assert_eq!(jobs.store_failure(), None);
}

#[tokio::test]
async fn a_store_that_is_full_again_and_again_loses_nothing() {
    let events = notes(1..=3_000);
    let relay = Relay::with(&events).await;
    let disk = Disk::default();
    let mut config = quick_config();
    config.once.commit_events_max = 200;
    let jobs = jobs_with(disk.clone(), config);
    jobs.start("once", once(&[relay.url()])).await.unwrap();
    for _ in 0..5 {
        let before = disk.refused.load(Ordering::SeqCst);
        disk.is_full.store(true, Ordering::SeqCst);
        let is_over = || jobs.report("once").unwrap().state == JobState::Done;
        until(|| async { disk.refused.load(Ordering::SeqCst) > before || is_over() }).await;
        disk.is_full.store(false, Ordering::SeqCst);
    }
    let report = patiently(jobs.settled("once", Moment::Done)).await.unwrap();
    assert!(report.complete, "{report:?}");
    assert_eq!(take_all(&jobs, "once").await, ids(&events));
}

#[tokio::test]
async fn a_job_can_be_stopped_while_the_store_is_full() {
    let relay = Relay::with(&notes(1..=5)).await;
    let disk = Disk::default();
    disk.is_full.store(true, Ordering::SeqCst);
    let slow = JobsConfig { store_retry_base: Duration::from_secs(3_600), ..quick_config() };
    let slow = JobsConfig { store_retry_max: slow.store_retry_base, ..slow };
    let jobs = jobs_with(disk.clone(), slow);
    for id in ["wakes", "stops"] {
        jobs.start(id, once(&[relay.url()])).await.unwrap();
    }
    until(|| async { ["wakes", "stops"].iter().all(|id| jobs.report(id).unwrap().error.is_some()) }).await;
    jobs.stop("stops").unwrap();
    let report = patiently(jobs.settled("stops", Moment::Done)).await.unwrap();
    assert!(!report.complete && report.relays[0].gaps.iter().any(|gap| gap.kind == "store"), "{report:?}");
    disk.is_full.store(false, Ordering::SeqCst);
    jobs.wake();
    assert!(patiently(jobs.settled("wakes", Moment::Done)).await.unwrap().complete);
}
