//! Jobs beside each other: what they share, and what they must not.

use std::time::Duration;

use relaysync::engine::Direction;
use relaysync::job::{JobSpec, JobState, Moment, What};
use relaysync::protocol::Filter;
use relaysync::store::MemoryStore;

use crate::events::{note, notes};
use crate::world::*;

#[tokio::test]
async fn jobs_that_follow_the_same_share_a_connection_and_each_gets_every_event_once() {
    let relay = Relay::with(&[]).await;
    let jobs = jobs(MemoryStore::default());
    for id in ["a", "b"] {
        jobs.start(id, live(&[relay.url()])).await.unwrap();
    }
    let narrow =
        JobSpec { what: What::Filters(vec![Filter::new().kind(1.into()).since(50.into())]), ..live(&[relay.url()]) };
    jobs.start("narrow", narrow).await.unwrap();
    for id in ["a", "b", "narrow"] {
        patiently(jobs.settled(id, Moment::CaughtUp)).await.unwrap();
    }
    assert_eq!(relay.connections().await, 1);
    let events = notes(1..=100);
    relay.publish(&events).await;
    assert_eq!(take(&jobs, "a", 100).await, ids(&events));
    assert_eq!(take(&jobs, "b", 100).await, ids(&events));
    assert_eq!(take(&jobs, "narrow", 51).await, ids(&events[49..]));
    for id in ["a", "b", "narrow"] {
        assert!(has_nothing(&jobs, id).await);
    }
    jobs.stop("a").unwrap();
    assert_eq!(take_all(&jobs, "a").await.len(), 0);
    assert_eq!(jobs.report("a").unwrap().state, JobState::Done);
    let last = note(200).sign();
    relay.publish(std::slice::from_ref(&last)).await;
    assert_eq!(take(&jobs, "b", 1).await, ids([&last]));
    jobs.stop("b").unwrap();
    jobs.stop("narrow").unwrap();
    until(|| async { relay.connections().await == 0 }).await;
}

#[tokio::test]
async fn what_one_job_fetches_is_not_published_for_another_but_where_that_says_so() {
    let events = notes(1..=10);
    let (source, target) = (Relay::with(&events).await, Relay::with(&[]).await);
    let jobs = jobs(MemoryStore::default());
    // The same filter, down from both, and up to one.
    jobs.start("down", live(&[source.url()])).await.unwrap();
    jobs.start("idle", live(&[target.url()])).await.unwrap();
    patiently(jobs.settled("down", Moment::CaughtUp)).await.unwrap();
    patiently(jobs.settled("idle", Moment::CaughtUp)).await.unwrap();
    assert!(target.ids().await.is_empty(), "nobody has asked for that");
    jobs.start("up", live_up(&[target.url()])).await.unwrap();
    let report = patiently(jobs.settled("up", Moment::CaughtUp)).await.unwrap();
    assert!(report.complete, "{report:?}");
    assert_eq!(target.ids().await, ids(&events));
    // What comes from now on is passed on, whoever brings it, but the source gets nothing that it does not have.
    let (brought, added) = (note(20).sign(), note(21).sign());
    source.publish(std::slice::from_ref(&brought)).await;
    jobs.add(vec![added.clone()]).await.unwrap();
    until(|| async { target.ids().await.len() == 12 }).await;
    assert!(!source.ids().await.contains(&added.id.to_hex()));
}

#[tokio::test]
async fn a_job_of_both_directions_makes_both_sides_hold_the_same() {
    let events = notes(1..=40);
    let relay = Relay::with(&events[..30]).await;
    let store = MemoryStore::default();
    put(&store, &events[20..]).await;
    let jobs = jobs(store.clone());
    jobs.start("job", JobSpec { direction: Direction::Both, ..once(&[relay.url()]) }).await.unwrap();
    let report = patiently(jobs.settled("job", Moment::Done)).await.unwrap();
    assert!(report.complete, "{report:?}");
    assert_eq!((report.counts.stored, report.counts.published), (20, 10));
    assert_eq!((held(&store).await, relay.ids().await), (ids(&events), ids(&events)));
}

#[tokio::test]
async fn another_process_goes_on_where_the_last_one_was_and_nothing_is_lost_or_repeated() {
    let events = notes(1..=60);
    let relay = Relay::with(&events[..30]).await;
    let store = MemoryStore::default();
    let first = jobs(store.clone());
    let begun_at = first.start("job", live(&[relay.url()])).await.unwrap();
    let mut seen = Vec::new();
    let mut cursor = begun_at;
    while seen.len() < 12 {
        let taken = patiently(first.take("job", 6, 1 << 20)).await.unwrap().unwrap();
        seen.extend(taken.records.iter().map(|record| record.id));
        cursor = taken.cursor;
    }
    // The leader dies: what it had stored, and not given out, is in the store.
    until(|| async { held(&store).await.len() == 30 }).await;
    first.close().await;
    relay.publish(&events[30..]).await;
    let second = jobs(store);
    second.start("job", JobSpec { after: Some(cursor), ..live(&[relay.url()]) }).await.unwrap();
    while seen.len() < 60 {
        let taken = patiently(second.take("job", 7, 1 << 20)).await.unwrap().unwrap();
        seen.extend(taken.records.iter().map(|record| record.id));
    }
    let unique: std::collections::BTreeSet<String> =
        seen.iter().map(|id| relaysync::protocol::hex::encode(id)).collect();
    assert_eq!((seen.len(), unique), (60, ids(&events)));
    assert!(has_nothing(&second, "job").await);
}

#[tokio::test]
async fn jobs_that_end_wait_for_their_turn() {
    let slow = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let slow = format!("ws://{}", slow.local_addr().unwrap()).parse().unwrap();
    let relay = Relay::with(&notes(1..=3)).await;
    let config = relaysync::job::JobsConfig { once_at_a_time_max: 1, ..quick_config() };
    let jobs = jobs_with(MemoryStore::default(), config);
    jobs.start("first", JobSpec { timeout: Some(Duration::from_millis(200)), ..once(&[slow]) }).await.unwrap();
    jobs.start("second", once(&[relay.url()])).await.unwrap();
    jobs.start("third", once(&[relay.url()])).await.unwrap();
    jobs.stop("third").unwrap();
    assert_eq!(jobs.report("third").unwrap().relays[0].gaps[0].kind, "stopped", "it had no turn");
    let second = patiently(jobs.settled("second", Moment::Done)).await.unwrap();
    assert!(second.complete);
    assert_eq!(jobs.report("first").unwrap().state, JobState::Done, "it was first");
}

#[tokio::test]
async fn what_a_relay_brings_to_one_job_another_does_not_send_back_to_it() {
    let (source, target) = (Relay::with(&[]).await, Relay::with(&[]).await);
    let jobs = jobs(MemoryStore::default());
    jobs.start("down", live(&[source.url()])).await.unwrap();
    jobs.start("up", live_up(&[source.url(), target.url()])).await.unwrap();
    for id in ["down", "up"] {
        patiently(jobs.settled(id, Moment::CaughtUp)).await.unwrap();
    }
    for number in 1..=20 {
        source.publish(&[note(number).sign()]).await;
        until(|| async { target.ids().await.len() as u64 == number }).await;
    }
    let report = jobs.report("up").unwrap();
    let counts_of = |url| report.relays.iter().find(|relay| relay.url == url).unwrap().counts;
    assert_eq!(counts_of(source.url()).published, 0, "{report:?}");
}
