//! A store with two writers: its feeds, the judge, and what subscribers of the relay service get of it.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use relaysync::ingest::{Verified, verify};
use relaysync::native::feed::{Fed, FedStore, FeedBounds, FeedReceiver, read_again};
use relaysync::native::serve::{Docket, Matter, RelayService, ServiceConfig, Ties, docket};
use relaysync::peer::View;
use relaysync::protocol::message::client;
use relaysync::protocol::{Event, Filter, ItemSet, RelayMessage, Window};
use relaysync::serve::ServeConfig;
use relaysync::store::{
    Arrivals, Batch, MemoryStore, Outcome, Page, Query, Record, RequestContext, Sequence, Snapshot, Store,
};
use tokio::sync::Notify;

use crate::client::{ANY_PORT, Client, patiently};
use crate::events::{note, notes};
use crate::world::{ids, story};

const ROOMY: FeedBounds = FeedBounds { events_max: 1_000, bytes_max: 1 << 20, missed_ids_max: 1_000 };

fn batch(events: &[Event]) -> Batch {
    Batch { events: events.iter().map(|event| verify(event.clone()).unwrap()).collect(), ..Batch::default() }
}

fn fed(receiver: &mut FeedReceiver) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(news) = receiver.try_recv() {
        match news {
            Fed::Events(events) => told.extend(events.iter().map(|event| event.id.to_hex())),
            other => told.push(format!("{other:?}")),
        }
    }
    told
}

#[tokio::test]
async fn the_feed_tells_what_was_stored_and_nothing_else() {
    let store = Arc::new(MemoryStore::default());
    let (loud, quiet) = (FedStore::new(store.clone(), true), FedStore::new(store, false));
    let (mut hears_loud, mut hears_quiet) = (loud.feed().subscribe(ROOMY), quiet.feed().subscribe(ROOMY));
    let (first, second, passing) = (note(1).sign(), note(2).sign(), note(3).kind(20_001).sign());
    loud.commit(batch(&[first.clone(), first.clone(), passing.clone()])).await.unwrap();
    quiet.commit(batch(&[first.clone(), second.clone(), passing.clone()])).await.unwrap();
    assert_eq!(fed(&mut hears_loud), ids([&first, &passing]), "no duplicate");
    assert_eq!(fed(&mut hears_quiet), ids([&second]), "neither what the other way has stored, nor what is not stored");
    drop(hears_loud);
    loud.commit(batch(&[note(4).sign()])).await.unwrap();
    assert!(hears_quiet.try_recv().is_none());
}

#[tokio::test]
async fn who_lags_is_told_what_to_read_and_hears_on() {
    let store = FedStore::new(Arc::new(MemoryStore::default()), false);
    let bounds = FeedBounds { events_max: 2, missed_ids_max: 3, ..ROOMY };
    let (mut slow, mut quick) = (store.feed().subscribe(bounds), store.feed().subscribe(ROOMY));
    let events = notes(1..=12);
    for event in &events[..5] {
        store.commit(batch(std::slice::from_ref(event))).await.unwrap();
        assert_eq!(fed(&mut quick), ids([event]), "one that lags holds up no other");
    }
    for event in &events[..2] {
        let Some(Fed::Events(told)) = slow.try_recv() else { panic!("what had room comes first") };
        assert_eq!(ids(told.iter().map(|event| &**event)), ids([event]));
    }
    let Some(Fed::Missed(missed)) = slow.try_recv() else { panic!("then what had none") };
    let read = read_again(&store, missed).await.unwrap();
    assert_eq!(ids(read.iter().map(|event| &**event)), ids(&events[2..5]));
    for event in &events[5..11] {
        store.commit(batch(std::slice::from_ref(event))).await.unwrap();
    }
    assert_eq!(fed(&mut slow)[2..], ["Lagged { events: 4 }"], "where even the ids are too many");
    store.commit(batch(&events[11..])).await.unwrap();
    assert_eq!(fed(&mut slow), ids(&events[11..]));
}

#[tokio::test]
async fn a_commit_is_told_even_if_its_caller_has_stopped_waiting() {
    let store = FedStore::new(Arc::new(MemoryStore::default()), false);
    let mut receiver = store.feed().subscribe(ROOMY);
    let event = note(1).sign();
    let mut commit = Box::pin(store.commit(batch(std::slice::from_ref(&event))));
    let poll = std::future::poll_fn(|context| Poll::Ready(commit.as_mut().poll(context)));
    assert!(poll.await.is_pending());
    drop(commit);
    let Fed::Events(told) = patiently(receiver.recv()).await else { panic!("events") };
    assert_eq!(ids(told.iter().map(|event| &**event)), ids([&event]));
}

/// The relay service over a store to which somebody else writes, too.
async fn shared(bounds: FeedBounds) -> (RelayService, Arc<FedStore<MemoryStore>>) {
    let store = Arc::new(MemoryStore::default());
    let other = Arc::new(FedStore::new(store.clone(), false));
    let ties = Ties { feed: Some(other.feed().subscribe(bounds)), ..Ties::default() };
    (RelayService::bind_with(ANY_PORT, ServeConfig::default(), store, ties).await.unwrap(), other)
}

/// A store that does not say that it has committed before it is told to.
#[derive(Debug, Default)]
struct Tacit {
    store: MemoryStore,
    may_say: Notify,
}

impl Store for Tacit {
    type Error = <MemoryStore as Store>::Error;

    async fn load(&self) -> Result<Snapshot, Self::Error> {
        self.store.load().await
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, Self::Error> {
        let outcomes = self.store.commit(batch).await;
        self.may_say.notified().await;
        outcomes
    }

    async fn known(&self, ids: Vec<[u8; 32]>, view: &View) -> Result<Vec<bool>, Self::Error> {
        self.store.known(ids, view).await
    }

    async fn items(&self, filter: &Filter, window: Window, view: &View) -> Result<Arc<ItemSet>, Self::Error> {
        self.store.items(filter, window, view).await
    }

    async fn events(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<Record>>, Self::Error> {
        self.store.events(ids).await
    }

    async fn query(&self, query: Query) -> Result<Page, Self::Error> {
        self.store.query(query).await
    }

    async fn count(&self, filters: Vec<Filter>, view: &View, now_secs: u64) -> Result<u64, Self::Error> {
        self.store.count(filters, view, now_secs).await
    }

    async fn contexts(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<RequestContext>>, Self::Error> {
        self.store.contexts(ids).await
    }

    async fn arrivals(&self, after: Sequence, limit: usize, bytes_max: usize) -> Result<Arrivals, Self::Error> {
        self.store.arrivals(after, limit, bytes_max).await
    }

    async fn last_arrival(&self) -> Result<Sequence, Self::Error> {
        self.store.last_arrival().await
    }
}

#[tokio::test]
async fn what_is_read_before_it_is_told_comes_once() {
    let store = Arc::new(Tacit::default());
    let other = Arc::new(FedStore::new(store.clone(), false));
    let ties = Ties { feed: Some(other.feed().subscribe(ROOMY)), ..Ties::default() };
    let service = RelayService::bind_with(ANY_PORT, ServeConfig::default(), store.clone(), ties).await.unwrap();
    let mut alice = Client::connect(&service).await;
    for number in 1..=3 {
        let event = note(number).sign();
        let committing = tokio::spawn({
            let (other, batch) = (other.clone(), batch(std::slice::from_ref(&event)));
            async move { other.commit(batch).await }
        });
        let count = format!(r#"["COUNT","c",{{"count":{number}}}]"#);
        patiently(async {
            while {
                alice.say(r#"["COUNT","c",{}]"#).await;
                alice.hear().await
            } != count
            {}
        })
        .await;
        alice.say(format!(r#"["REQ","{number}",{{"since":{number}}}]"#)).await;
        assert_eq!(story(&alice.hear_until("[\"EOSE\"").await)[0], event.id.to_hex());
        store.may_say.notify_one();
        patiently(committing).await.unwrap().unwrap();
        // Subscriptions of earlier rounds get it live, the one that has it does not.
        for _ in 1..number {
            assert_eq!(story(&[alice.hear().await]), ids([&event]));
        }
        alice.say(r#"["COUNT","c",{}]"#).await;
        assert_eq!(alice.hear().await, count);
    }
    service.shutdown().await;
}

/// Subscribes again and again while another writer stores, and counts how often each event came.
async fn each_comes_once(bounds: FeedBounds) {
    let (service, other) = shared(bounds).await;
    let events = notes(1..=1_500);
    let writing = tokio::spawn({
        let events = events.clone();
        async move {
            for part in events.chunks(7) {
                other.commit(batch(part)).await.unwrap();
            }
        }
    });
    let mut clients = Vec::new();
    for number in 0..20 {
        let mut client = Client::connect(&service).await;
        client.say(r#"["REQ","a",{"limit":5000}]"#).await;
        clients.push(client);
        // They come one by one all through the writing.
        patiently(async {
            while !writing.is_finished() && service.counters().await.requests <= number {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    patiently(writing).await.unwrap();
    for mut client in clients {
        let mut got = BTreeSet::new();
        while got.len() < events.len() {
            let frame = client.hear().await;
            if let RelayMessage::Event { json, .. } = RelayMessage::parse(&frame).unwrap() {
                let event = Event::parse(json.to_owned().into()).unwrap();
                assert!(got.insert(event.id), "a second time: {frame}");
            }
        }
        // Nothing is behind the last of them.
        client.say(r#"["COUNT","c",{}]"#).await;
        assert_eq!(client.hear().await, r#"["COUNT","c",{"count":1500}]"#);
    }
    assert_eq!(service.counters().await.subscriptions_missed, 0);
    service.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_writer_stores_reaches_each_subscriber_once() {
    each_comes_once(FeedBounds::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_lags_reads_again_and_loses_nothing() {
    each_comes_once(FeedBounds { events_max: 8, missed_ids_max: 100_000, ..FeedBounds::default() }).await;
}

#[tokio::test]
async fn a_service_that_lags_beyond_all_bounds_says_so() {
    let bounds = FeedBounds { events_max: 1, missed_ids_max: 1, ..ROOMY };
    let (service, other) = shared(bounds).await;
    let mut alice = Client::connect(&service).await;
    alice.say(r#"["REQ","a",{"limit":0}]"#).await;
    alice.hear().await;
    let events = notes(1..=10);
    other.commit(batch(&events)).await.unwrap();
    assert_eq!(alice.hear().await, r#"["CLOSED","a","error: events were missed, subscribe again"]"#);
    alice.say(r#"["REQ","a",{}]"#).await;
    assert_eq!(alice.hear_until("[\"EOSE\"").await.len(), 11);
    other.commit(batch(&[note(20).sign()])).await.unwrap();
    assert_eq!(story(&[alice.hear().await]), ids([&note(20).sign()]), "and hears on");
    service.shutdown().await;
}

/// The relay service with a judge.
async fn judged(config: impl Into<ServiceConfig>) -> (RelayService, Docket) {
    let store = Arc::new(FedStore::new(Arc::new(MemoryStore::default()), true));
    let (judge, docket) = docket(store.feed().subscribe(ROOMY));
    let ties = Ties { judge: Some(judge), ..Ties::default() };
    (RelayService::bind_with(ANY_PORT, config, store, ties).await.unwrap(), docket)
}

/// Wants roots, and replies to what it has learned of.
async fn judge_by_what_is_known(mut docket: Docket) {
    let mut known = BTreeSet::new();
    let objection = |known: &BTreeSet<String>, event: &Verified<Event>| {
        let mut parents = event.tags.iter().filter(|tag| tag.kind() == "e").filter_map(|tag| tag.content());
        (!parents.all(|parent| known.contains(parent))).then(|| "blocked: nothing known is replied to".to_owned())
    };
    while let Some(matter) = docket.next().await {
        match matter {
            Matter::Fed(Fed::Events(events)) => known.extend(events.iter().map(|event| event.id.to_hex())),
            Matter::Fed(other) => panic!("{other:?}"),
            Matter::Case(case) => {
                let objections = case.events.iter().map(|event| objection(&known, event)).collect();
                case.answer(objections);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_got_its_ok_is_known_when_what_follows_is_judged() {
    let (service, docket) = judged(ServeConfig::default()).await;
    let judging = tokio::spawn(judge_by_what_is_known(docket));
    let mut alice = Client::connect(&service).await;
    let mut parent = note(0).sign();
    alice.say(client::event(parent.json_str())).await;
    assert!(alice.hear().await.contains(",true,"));
    for at in 1..=300 {
        let reply = note(at).tag("e", &parent.id.to_hex()).sign();
        alice.say(client::event(reply.json_str())).await;
        assert_eq!(alice.hear().await, format!(r#"["OK","{}",true,""]"#, reply.id.to_hex()), "reply {at}");
        parent = reply;
    }
    let stray = note(1).tag("e", &"0".repeat(64)).sign();
    alice.say(client::event(stray.json_str())).await;
    let refused = format!(r#"["OK","{}",false,"blocked: nothing known is replied to"]"#, stray.id.to_hex());
    assert_eq!(alice.hear().await, refused);
    let counters = service.counters().await;
    assert_eq!((counters.events_stored, counters.events_unwanted), (301, 1));
    service.shutdown().await;
    patiently(judging).await.unwrap();
}

#[tokio::test]
async fn a_judge_that_does_not_answer_refuses_within_its_bound() {
    let config = ServiceConfig { judge_max: Duration::from_millis(50), ..ServiceConfig::default() };
    let (service, mut docket) = judged(config).await;
    let mut alice = Client::connect(&service).await;
    let events = notes(1..=2);
    alice.say(client::event(events[0].json_str())).await;
    let case = patiently(docket.next()).await;
    let mut bob = Client::connect(&service).await;
    bob.say(r#"["COUNT","c",{}]"#).await;
    assert_eq!(bob.hear().await, r#"["COUNT","c",{"count":0}]"#, "nobody else waits for it");
    let refused = r#"false,"error: whether the event is accepted here cannot be said at the moment""#;
    assert!(alice.hear().await.contains(refused));
    // Late: nobody waits for it.
    let Some(Matter::Case(case)) = case else { panic!("{case:?}") };
    case.answer(vec![None]);
    drop(docket);
    alice.say(client::event(events[1].json_str())).await;
    assert!(alice.hear().await.contains(refused), "nor by one that is gone");
    let counters = service.counters().await;
    assert_eq!((counters.events_unjudged, counters.events_stored, counters.faults), (2, 0, 2));
    service.shutdown().await;
}
