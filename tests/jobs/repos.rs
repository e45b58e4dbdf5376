//! Following repositories from relay to relay.

use std::collections::BTreeSet;

use relaysync::job::{JobSpec, JobState, Moment, What};
use relaysync::protocol::{Address, Event};
use relaysync::store::MemoryStore;

use crate::events::note;
use crate::world::*;

const ISSUE: u16 = 1621;

/// A repository of author 1 that names this relay.
fn announcement(at: u64, relay: &Relay) -> Event {
    note(at).kind(30_617).tag("d", "project").tag("relays", relay.url().as_str()).sign()
}

fn address(announcement: &Event) -> Address {
    Address::repository(announcement.pubkey.to_bytes(), "project")
}

fn of(address: &Address, relay: &Relay) -> JobSpec {
    let what = What::Repos { addresses: BTreeSet::from([address.clone()]), authors: BTreeSet::new() };
    JobSpec { what, relays: vec![relay.url()], ..JobSpec::default() }
}

#[tokio::test]
async fn from_one_relay_the_others_are_found_and_everything_of_the_repository() {
    let (bootstrap, home) = (Relay::with(&[]).await, Relay::with(&[]).await);
    let announcement = announcement(10, &home);
    let address = address(&announcement);
    let issue = note(20).kind(ISSUE).tag("a", &address.to_string()).sign();
    let comment = note(30).kind(1111).tag("E", &issue.id.to_hex()).sign();
    let stranger = note(40).sign();
    put(&bootstrap.store, std::slice::from_ref(&announcement)).await;
    put(&home.store, &[issue.clone(), comment.clone(), stranger]).await;
    let wanted = ids([&announcement, &issue, &comment]);

    let jobs = jobs(MemoryStore::default());
    jobs.start("once", of(&address, &bootstrap)).await.unwrap();
    assert_eq!(take_all(&jobs, "once").await, wanted);
    let report = patiently(jobs.settled("once", Moment::Done)).await.unwrap();
    assert!(report.complete, "{report:?}");
    let urls: BTreeSet<String> = report.relays.iter().map(|relay| relay.url.to_string()).collect();
    assert_eq!(urls, [bootstrap.url(), home.url()].iter().map(ToString::to_string).collect());

    // What is held is known, and is not given out again; what is new comes.
    jobs.start("live", JobSpec { live: true, ..of(&address, &bootstrap) }).await.unwrap();
    let report = patiently(jobs.settled("live", Moment::CaughtUp)).await.unwrap();
    assert_eq!((report.state, report.complete), (JobState::CaughtUp, true), "{report:?}");
    assert!(report.relays.len() == 2, "{report:?}");
    assert!(has_nothing(&jobs, "live").await);
    let reply = note(50).kind(1111).tag("E", &issue.id.to_hex()).content("a reply").sign();
    home.publish(&[reply.clone(), note(51).content("of something else").sign()]).await;
    assert_eq!(take(&jobs, "live", 1).await, ids([&reply]));
    assert!(has_nothing(&jobs, "live").await);
    jobs.stop("live").unwrap();
    assert_eq!(patiently(jobs.settled("live", Moment::Done)).await.unwrap().state, JobState::Done);
}

#[tokio::test]
async fn a_repository_that_is_announced_later_by_the_program_itself_is_followed() {
    let (bootstrap, home) = (Relay::with(&[]).await, Relay::with(&[]).await);
    let announcement = announcement(10, &home);
    let address = address(&announcement);
    let issue = note(20).kind(ISSUE).tag("a", &address.to_string()).sign();
    put(&home.store, std::slice::from_ref(&issue)).await;
    let jobs = jobs(MemoryStore::default());
    jobs.start("live", JobSpec { live: true, ..of(&address, &bootstrap) }).await.unwrap();
    patiently(jobs.settled("live", Moment::CaughtUp)).await.unwrap();
    jobs.add(vec![announcement.clone()]).await.unwrap();
    assert_eq!(take(&jobs, "live", 2).await, ids([&announcement, &issue]));
}

#[tokio::test]
async fn what_is_stored_before_what_it_belongs_to_is_given_out_once_that_is_known() {
    let bootstrap = Relay::with(&[]).await;
    let announcement = announcement(10, &bootstrap);
    let address = address(&announcement);
    let issue = note(20).kind(ISSUE).tag("a", &address.to_string()).sign();
    let comment = note(30).kind(1111).tag("E", &issue.id.to_hex()).sign();
    let jobs = jobs(MemoryStore::default());
    jobs.start("live", JobSpec { live: true, ..of(&address, &bootstrap) }).await.unwrap();
    for event in [&comment, &issue, &note(40).sign()] {
        jobs.add(vec![event.clone()]).await.unwrap();
        assert!(has_nothing(&jobs, "live").await, "nothing is known of it");
    }
    jobs.add(vec![announcement.clone()]).await.unwrap();
    assert_eq!(take(&jobs, "live", 3).await, ids([&announcement, &issue, &comment]));
    assert!(has_nothing(&jobs, "live").await);
}
