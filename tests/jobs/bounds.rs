//! What is refused, and how everything ends.

use relaysync::job::{JobError, JobSpec, JobState, JobsConfig, Moment, What};
use relaysync::protocol::Filter;
use relaysync::store::MemoryStore;

use crate::events::{note, notes};
use crate::world::*;

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_a_reason() {
    let relay = Relay::with(&[]).await;
    let config = JobsConfig { jobs_max: 2, filters_per_job_max: 2, relays_per_job_max: 1, ..quick_config() };
    let jobs = jobs_with(MemoryStore::default(), config);
    let spec = live(&[relay.url()]);
    let with = |filters: Vec<Filter>| JobSpec { what: What::Filters(filters), ..spec.clone() };
    let refused = [
        (JobSpec { relays: vec![], ..spec.clone() }, "no-relays"),
        (JobSpec { relays: vec![relay.url(), nowhere().0], ..spec.clone() }, "too-many"),
        (with(vec![]), "no-filters"),
        (with(vec![all_notes().limit(5)]), "invalid-filter"),
        (with(vec![all_notes().search("x")]), "invalid-filter"),
        (with((1..=3).map(|kind| Filter::new().kind(kind.into())).collect()), "too-many"),
        (
            JobSpec {
                what: What::Repos { addresses: Default::default(), authors: Default::default() },
                ..spec.clone()
            },
            "no-filters",
        ),
    ];
    for (spec, code) in refused {
        assert_eq!(jobs.start("job", spec).await.unwrap_err().code(), code);
    }
    jobs.start("job", spec.clone()).await.unwrap();
    assert_eq!(jobs.start("job", spec.clone()).await, Err(JobError::IdInUse("job".into())));
    jobs.watch("watch", vec![all_notes()], None).await.unwrap();
    assert_eq!(jobs.start("third", spec).await.unwrap_err(), JobError::TooMany("jobs", 2));
    for result in [jobs.stop("other"), jobs.report("other").map(drop), jobs.unwatch("job")] {
        assert_eq!(result.unwrap_err().code(), "unknown-job");
    }
    assert_eq!(jobs.take("other", 1, 1).await.unwrap_err().code(), "unknown-job");
}

#[tokio::test]
async fn jobs_that_are_over_are_forgotten_in_the_end() {
    let relay = Relay::with(&[]).await;
    let jobs = jobs_with(MemoryStore::default(), JobsConfig { ended_jobs_max: 1, jobs_max: 1, ..quick_config() });
    for id in ["first", "second"] {
        jobs.start(id, once(&[relay.url()])).await.unwrap();
        patiently(jobs.settled(id, Moment::Done)).await.unwrap();
    }
    assert_eq!(jobs.report("first").unwrap_err(), JobError::Unknown("first".into()));
    assert!(jobs.report("second").unwrap().complete);
}

#[tokio::test]
async fn of_jobs_that_are_over_those_that_were_read_to_the_end_are_forgotten_first() {
    let relay = Relay::with(&notes(1..=3)).await;
    let jobs = jobs_with(MemoryStore::default(), JobsConfig { ended_jobs_max: 2, ..quick_config() });
    for id in ["unread", "read", "third"] {
        jobs.start(id, once(&[relay.url()])).await.unwrap();
        patiently(jobs.settled(id, Moment::Done)).await.unwrap();
        if id == "read" {
            take_all(&jobs, id).await;
        }
    }
    assert_eq!(jobs.report("read").unwrap_err(), JobError::Unknown("read".into()));
    assert_eq!(take_all(&jobs, "unread").await.len(), 3);
}

#[tokio::test]
async fn closing_in_the_middle_answers_all_who_wait_and_keeps_what_has_come() {
    let slow = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let slow = format!("ws://{}", slow.local_addr().unwrap()).parse().unwrap();
    let relay = Relay::with(&notes(1..=2_000)).await;
    let store = MemoryStore::default();
    let jobs = jobs(store.clone());
    jobs.start("live", live(&[relay.url(), slow])).await.unwrap();
    jobs.watch("watch", vec![Filter::new().kind(9.into())], None).await.unwrap();
    let first = patiently(jobs.take("live", 1, 1)).await.unwrap().unwrap();
    let (watch, settled, ()) = tokio::join!(
        patiently(jobs.take("watch", 1, 1)),
        patiently(jobs.settled("live", Moment::CaughtUp)),
        patiently(jobs.close()),
    );
    assert_eq!((watch, settled.unwrap_err()), (Err(JobError::Closed), JobError::Closed));
    let report = jobs.report("live").unwrap();
    assert_eq!((report.state, report.complete), (JobState::Done, false));
    assert!(report.relays.iter().flat_map(|relay| &relay.gaps).any(|gap| gap.kind == "stopped"), "{report:?}");
    let stored = held(&store).await.len();
    let mut taken = first.records.len();
    while let Ok(Some(more)) = patiently(jobs.take("live", 100, 1 << 20)).await {
        taken += more.records.len();
    }
    assert_eq!(taken, stored, "what is stored can still be taken");
    assert_eq!(jobs.start("late", live(&[relay.url()])).await, Err(JobError::Closed));
    assert_eq!(jobs.add(vec![note(1).sign()]).await, Err(JobError::Closed));
    until(|| async { relay.connections().await == 0 }).await;
}
