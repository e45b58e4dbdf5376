//! What jobs fetch, and what they say of it.

use std::time::Duration;

use relaysync::job::{JobSpec, JobState, Moment};
use relaysync::protocol::Filter;
use relaysync::store::{MemoryStore, Method};

use crate::events::{note, notes};
use crate::world::*;

#[tokio::test]
async fn a_job_that_ends_fetches_all_gives_it_out_and_is_complete() {
    let events = notes(1..=300);
    let (left, right) = (Relay::with(&events[..200]).await, Relay::with(&events[100..]).await);
    let jobs = jobs(MemoryStore::default());
    jobs.start("job", once(&[left.url(), right.url()])).await.unwrap();
    assert_eq!(take_all(&jobs, "job").await, ids(&events));
    let report = patiently(jobs.settled("job", Moment::Done)).await.unwrap();
    assert_eq!((report.state, report.complete, report.error), (JobState::Done, true, None));
    assert_eq!(report.counts.stored, 300);
    assert_eq!(report.relays.len(), 2);
    assert!(report.relays.iter().all(|relay| relay.settled && relay.complete && relay.gaps.is_empty()));
    assert_eq!(jobs.take("job", 1, 1).await, Ok(None), "and it stays so");
}

#[tokio::test]
async fn who_brought_an_event_and_how_is_said() {
    let (old, new) = (note(1).sign(), note(2).sign());
    let relay = Relay::with(std::slice::from_ref(&old)).await;
    let jobs = jobs(MemoryStore::default());
    jobs.start("job", live(&[relay.url()])).await.unwrap();
    let first = patiently(jobs.take("job", 10, 1 << 20)).await.unwrap().unwrap();
    assert_eq!((first.from, first.live), (vec![Some(relay.url())], vec![false]));
    let report = patiently(jobs.settled("job", Moment::CaughtUp)).await.unwrap();
    assert_eq!((report.state, report.complete), (JobState::CaughtUp, true));
    relay.publish(std::slice::from_ref(&new)).await;
    let second = patiently(jobs.take("job", 10, 1 << 20)).await.unwrap().unwrap();
    assert_eq!(&second.records[0].json, new.json());
    assert_eq!((second.from, second.live), (vec![Some(relay.url())], vec![true]));
    assert!(second.cursor > first.cursor);
    let added = note(3).sign();
    jobs.add(vec![added.clone()]).await.unwrap();
    let third = patiently(jobs.take("job", 10, 1 << 20)).await.unwrap().unwrap();
    assert_eq!((third.from, third.live), (vec![None], vec![false]), "nobody but us");
}

#[tokio::test]
async fn a_relay_that_cannot_be_reached_is_a_gap_and_the_job_ends_without_it() {
    let events = notes(1..=5);
    let (relay, (gone, _)) = (Relay::with(&events).await, nowhere());
    let jobs = jobs(MemoryStore::default());
    jobs.start("job", once(&[relay.url(), gone.clone()])).await.unwrap();
    assert_eq!(take_all(&jobs, "job").await, ids(&events));
    let report = patiently(jobs.settled("job", Moment::Done)).await.unwrap();
    assert!(!report.complete);
    let [lacking] = &report.relays.iter().filter(|relay| !relay.complete).collect::<Vec<_>>()[..] else {
        panic!("{report:?}")
    };
    assert_eq!((&lacking.url, lacking.settled), (&gone, true));
    assert_eq!((lacking.gaps.len(), lacking.gaps[0].kind), (1, "unreachable"));
    assert_eq!(lacking.gaps[0].filter.as_deref(), Some(&all_notes()));
    assert_eq!((lacking.gaps[0].since, lacking.gaps[0].until), (None, None));
}

#[tokio::test]
async fn a_job_that_stays_is_caught_up_without_a_relay_that_is_down_and_complete_once_it_is_back() {
    let events = notes(1..=5);
    let (gone, address) = nowhere();
    let jobs = jobs(MemoryStore::default());
    jobs.start("job", live(std::slice::from_ref(&gone))).await.unwrap();
    let report = patiently(jobs.settled("job", Moment::CaughtUp)).await.unwrap();
    assert_eq!((report.complete, report.relays[0].gaps[0].kind), (false, "unreachable"));
    let relay = Relay::at(address, Default::default(), &events).await;
    jobs.wake();
    assert_eq!(take(&jobs, "job", 5).await, ids(&events));
    until(|| async { jobs.report("job").unwrap().complete }).await;
    relay.publish(&[note(9).sign()]).await;
    take(&jobs, "job", 1).await;
}

#[tokio::test]
async fn the_method_is_the_one_that_was_asked_for() {
    let relay = Relay::with(&notes(1..=20)).await;
    let jobs = jobs(MemoryStore::default());
    for method in [Method::Req, Method::Negentropy] {
        let id = method.to_string();
        jobs.start(&id, JobSpec { method: Some(method), ..once(&[relay.url()]) }).await.unwrap();
        let report = patiently(jobs.settled(&id, Moment::Done)).await.unwrap();
        assert!(report.complete);
        assert_eq!(report.methods, [method]);
    }
}

#[tokio::test]
async fn a_job_whose_time_is_up_ends_with_what_it_has_and_says_so() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", silent.local_addr().unwrap()).parse().unwrap();
    let jobs = jobs(MemoryStore::default());
    let timeout = Some(Duration::from_millis(100));
    jobs.start("ends", JobSpec { timeout, ..once(std::slice::from_ref(&url)) }).await.unwrap();
    jobs.start("stays", JobSpec { timeout, ..live(&[url]) }).await.unwrap();
    let report = patiently(jobs.settled("ends", Moment::Done)).await.unwrap();
    assert_eq!((report.complete, report.relays[0].gaps[0].kind), (false, "stopped"));
    let report = patiently(jobs.settled("stays", Moment::CaughtUp)).await.unwrap();
    assert_eq!((report.state, report.relays[0].gaps[0].kind), (JobState::CaughtUp, "stopped"));
    jobs.stop("stays").unwrap();
    assert_eq!(patiently(jobs.settled("stays", Moment::Done)).await.unwrap().state, JobState::Done);
}

#[tokio::test]
async fn what_is_proven_of_a_filter_is_told_while_it_is_followed_and_after() {
    let relay = Relay::with(&notes(1..=20)).await;
    let jobs = jobs(MemoryStore::default());
    assert_eq!(jobs.coverage(&all_notes()).await.unwrap(), []);
    jobs.start("job", live(&[relay.url()])).await.unwrap();
    patiently(jobs.settled("job", Moment::CaughtUp)).await.unwrap();
    let [coverage] = &jobs.coverage(&all_notes()).await.unwrap()[..] else { panic!("one relay") };
    assert_eq!((&coverage.relay, coverage.complete), (&relay.url(), true));
    assert!(coverage.gaps.is_empty() && coverage.windows.iter().all(|window| window.asked_at > 0));
    assert_eq!(jobs.coverage(&Filter::new().kind(2.into())).await.unwrap(), [], "of another filter");
    jobs.stop("job").unwrap();
    assert!(jobs.coverage(&all_notes()).await.unwrap()[0].complete);
}

#[tokio::test]
async fn a_job_that_stays_says_since_when_its_relay_is_away_and_is_complete_once_that_is_made_up_for() {
    let (url, address) = nowhere();
    let relay = Relay::at(address, Default::default(), &notes(1..=5)).await;
    let jobs = jobs(MemoryStore::default());
    jobs.start("job", live(std::slice::from_ref(&url))).await.unwrap();
    assert!(patiently(jobs.settled("job", Moment::CaughtUp)).await.unwrap().complete);
    relay.service.shutdown().await;
    until(|| async { !jobs.report("job").unwrap().relays[0].connected }).await;
    let report = jobs.report("job").unwrap();
    assert_eq!((report.state, report.complete, report.relays[0].complete), (JobState::CaughtUp, false, false));
    let [gap] = &report.relays[0].gaps[..] else { panic!("{report:?}") };
    assert_eq!((gap.kind, gap.until), ("disconnected", None));
    assert!(gap.since.is_some(), "everything before is proven");
    let missed = note(9).sign();
    let relay = Relay::at(address, Default::default(), std::slice::from_ref(&missed)).await;
    jobs.wake();
    until(|| async { jobs.report("job").unwrap().complete }).await;
    jobs.stop("job").unwrap();
    assert!(patiently(jobs.settled("job", Moment::Done)).await.unwrap().complete, "it was followed to its end");
    drop(relay);
}

#[tokio::test]
async fn a_job_that_is_stopped_while_its_relay_is_away_does_not_end_as_complete() {
    let relay = Relay::with(&notes(1..=5)).await;
    let jobs = jobs(MemoryStore::default());
    jobs.start("job", live(&[relay.url()])).await.unwrap();
    patiently(jobs.settled("job", Moment::CaughtUp)).await.unwrap();
    relay.service.shutdown().await;
    until(|| async { !jobs.report("job").unwrap().relays[0].connected }).await;
    jobs.stop("job").unwrap();
    let report = patiently(jobs.settled("job", Moment::Done)).await.unwrap();
    assert_eq!((report.complete, report.relays[0].gaps[0].kind), (false, "disconnected"));
}

#[tokio::test]
async fn a_cursor_of_another_store_misses_nothing_that_is_stored_from_now_on() {
    let jobs = jobs(MemoryStore::default());
    jobs.add(notes(1..=3)).await.unwrap();
    assert_eq!(jobs.watch("watch", vec![all_notes()], Some(5_000)).await, Ok(3));
    jobs.add(vec![note(4).sign()]).await.unwrap();
    assert_eq!(take(&jobs, "watch", 1).await, ids(&[note(4).sign()]));
    assert_eq!(jobs.export(Some(5_000), 1 << 20).await.unwrap().next, None);
}
