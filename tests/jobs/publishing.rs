//! Publishing: each relay's answer, whatever it is.

use std::time::Duration;

use relaysync::engine::PublishAnswer;
use relaysync::ingest::Invalid;
use relaysync::job::{Added, JobError, Moment};
use relaysync::protocol::{Event, RelayUrl};
use relaysync::serve::ServeConfig;
use relaysync::store::{MemoryStore, Outcome};

use crate::events::{note, notes};
use crate::script::{self, ok};
use crate::world::*;

/// What one relay answers to a note.
async fn answer(relay: &RelayUrl, timeout: Duration) -> PublishAnswer {
    let jobs = jobs(MemoryStore::default());
    let report = patiently(jobs.publish(note(1).sign(), vec![relay.clone()], timeout)).await.unwrap();
    assert_eq!(report.outcome, Added::Committed(Outcome::Stored));
    report.relays.into_iter().next().unwrap().answer
}

#[tokio::test]
async fn each_relay_gives_its_own_answer() {
    let event = note(1).sign();
    let (empty, full) = (Relay::with(&[]).await, Relay::with(std::slice::from_ref(&event)).await);
    let (gone, _) = nowhere();
    let jobs = jobs(MemoryStore::default());
    let relays = vec![empty.url(), full.url(), gone.clone(), empty.url()];
    let report = patiently(jobs.publish(event.clone(), relays, PATIENCE)).await.unwrap();
    let answers: Vec<(&RelayUrl, &str)> =
        report.relays.iter().map(|relay| (&relay.relay, relay.answer.code())).collect();
    assert_eq!(answers, [(&empty.url(), "accepted"), (&full.url(), "duplicate"), (&gone, "unreachable")]);
    assert_eq!(empty.ids().await, ids([&event]));
    let again = patiently(jobs.publish(event, vec![empty.url()], PATIENCE)).await.unwrap();
    assert_eq!(again.outcome, Added::Committed(Outcome::Duplicate));
    assert!(again.relays[0].answer.is_duplicate());
    let json = serde_json::to_value(&again.relays[0]).unwrap();
    assert_eq!(
        (&json["accepted"], &json["duplicate"], &json["code"]),
        (&true.into(), &true.into(), &"duplicate".into())
    );
}

#[tokio::test]
async fn what_relays_refuse_they_refuse_in_their_words() {
    for (words, code) in [
        ("blocked: you are not welcome", "refused"),
        ("rate-limited: slow down", "rate_limited"),
        ("duplicate: have it", "duplicate"),
    ] {
        let relay = script::relay(move |id| vec![ok(id, false, words)]).await;
        let answer = answer(&relay, PATIENCE).await;
        assert_eq!((answer.code(), answer.reason()), (code, words));
    }
}

#[tokio::test]
async fn a_relay_that_wants_authentication_that_it_cannot_have_says_so() {
    let challenge = serde_json::json!(["AUTH", "a challenge"]).to_string();
    let refuse = |id: &str| vec![ok(id, false, "auth-required: who are you?")];
    let relay = script::relay_that_says(vec![challenge], refuse).await;
    let answer = answer(&relay, PATIENCE).await;
    assert_eq!(answer.code(), "auth_required");
    assert!(answer.reason().starts_with("auth-required: who are you?"), "{answer:?}");
}

#[tokio::test]
async fn a_relay_that_knows_us_takes_what_it_takes_from_those_it_knows() {
    let config = ServeConfig { auth_required: true, ..ServeConfig::default() };
    let relay = Relay::at("127.0.0.1:0".parse().unwrap(), config, &[]).await;
    let keys = nostr::key::Keys::parse(&"11".repeat(32)).unwrap();
    let runtime = relaysync::native::NativeRuntime::new(
        MemoryStore::default(),
        relaysync::native::SocketConfig::default(),
        Some(keys),
    );
    let jobs = relaysync::job::Jobs::new(std::sync::Arc::new(runtime.unwrap()), quick_config(), 7);
    let report = patiently(jobs.publish(note(1).sign(), vec![relay.url()], PATIENCE)).await.unwrap();
    assert_eq!(report.relays[0].answer.code(), "accepted", "{report:?}");
}

#[tokio::test]
async fn a_relay_that_says_nothing_is_given_up_in_time() {
    let silent = script::relay(|_| Vec::new()).await;
    assert_eq!(answer(&silent, Duration::from_millis(200)).await, PublishAnswer::TimedOut);
    let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let deaf = format!("ws://{}", deaf.local_addr().unwrap()).parse().unwrap();
    assert_eq!(answer(&deaf, Duration::from_millis(200)).await, PublishAnswer::TimedOut);
}

#[tokio::test]
async fn what_is_lost_with_a_connection_is_sent_again() {
    let event = note(1).sign();
    let (url, address) = nowhere();
    let jobs = jobs(MemoryStore::default());
    let relay = Relay::at(address, ServeConfig::default(), &[]).await;
    jobs.start("job", live(std::slice::from_ref(&url))).await.unwrap();
    patiently(jobs.settled("job", Moment::CaughtUp)).await.unwrap();
    relay.service.shutdown().await;
    let back = async {
        until(|| async { !jobs.relays()[0].connected }).await;
        let relay = Relay::at(address, ServeConfig::default(), &[]).await;
        until(|| async { !relay.ids().await.is_empty() }).await;
        relay
    };
    let publish = jobs.publish(event.clone(), vec![url.clone()], PATIENCE);
    let (report, relay) = tokio::join!(publish, back);
    // One that nobody listens at is given up at once; one that has just gone may be back.
    let answer = &report.unwrap().relays[0].answer;
    assert!(matches!(answer.code(), "accepted" | "unreachable" | "duplicate"), "{answer:?}");
    drop(relay);
}

#[tokio::test]
async fn an_event_that_is_forged_is_sent_to_nobody() {
    let relay = Relay::with(&[]).await;
    let jobs = jobs(MemoryStore::default());
    let json = note(1).sign().json_str().replace("\"created_at\":1", "\"created_at\":2");
    let forged = Event::parse(json.into()).unwrap();
    let report = patiently(jobs.publish(forged, vec![relay.url()], PATIENCE)).await.unwrap();
    assert_eq!((report.outcome, report.relays.len()), (Added::Invalid(Invalid::Id), 0));
    assert_eq!(jobs.publish(note(1).sign(), vec![], PATIENCE).await, Err(JobError::NoRelays));
}

#[tokio::test]
async fn what_is_ephemeral_is_published_and_not_stored() {
    let relay = Relay::with(&[]).await;
    let store = MemoryStore::default();
    let jobs = jobs(store.clone());
    let event = note(1).kind(20_001).sign();
    let report = patiently(jobs.publish(event, vec![relay.url()], PATIENCE)).await.unwrap();
    assert_eq!(report.outcome, Added::Committed(Outcome::Ephemeral));
    assert!(report.relays[0].answer.is_accepted(), "{report:?}");
    assert!(held(&store).await.is_empty());
}

#[tokio::test]
async fn many_events_at_a_time_each_have_an_answer() {
    let relay = Relay::with(&[]).await;
    let jobs = jobs(MemoryStore::default());
    let events = notes(1..=200);
    let publish = |event: &Event| jobs.publish(event.clone(), vec![relay.url()], PATIENCE);
    let reports = futures_util::future::join_all(events.iter().map(publish)).await;
    assert!(reports.into_iter().all(|report| report.unwrap().relays[0].answer.is_accepted()));
    assert_eq!(relay.ids().await, ids(&events));
}

#[tokio::test]
async fn what_its_author_took_back_or_has_expired_is_sent_to_nobody() {
    let relay = Relay::with(&[]).await;
    let jobs = jobs(MemoryStore::default());
    let event = note(10).sign();
    let deletion = note(11).kind(5).tag("e", &event.id.to_hex()).sign();
    jobs.add(vec![event.clone(), deletion]).await.unwrap();
    let expired = note(12).tag("expiration", "13").sign();
    for (event, outcome) in [(event, Outcome::Deleted), (expired, Outcome::Expired)] {
        let report = patiently(jobs.publish(event, vec![relay.url()], PATIENCE)).await.unwrap();
        assert_eq!((report.outcome, report.relays.len()), (Added::Committed(outcome), 0));
    }
    assert!(relay.ids().await.is_empty());
}
