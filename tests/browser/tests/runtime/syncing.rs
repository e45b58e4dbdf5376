//! Jobs over real sockets.

use std::collections::BTreeSet;

use relaysync::engine::Direction;
use relaysync::job::{JobReport, JobSpec, Jobs, JobsConfig, Moment, What};
use relaysync::protocol::{Filter, RelayUrl};
use relaysync::runtime::Runtime;
use relaysync::store::Method;
use wasm_bindgen_test::wasm_bindgen_test;

use super::events::{Ids, generate, held, ids};
use super::{other_relay, own_relay, runtime};

fn spec(relay: RelayUrl, seed: u64, direction: Direction, method: Option<Method>) -> JobSpec {
    // Each test has authors of its own, so that they may share a relay.
    let authors: BTreeSet<_> = generate(seed, 200, 0).iter().map(|event| event.pubkey).collect();
    let filter = Filter::new().authors(authors);
    JobSpec { what: What::Filters(vec![filter]), relays: vec![relay], direction, method, ..JobSpec::default() }
}

/// Publishes the events of a seed to a relay that does not have them.
async fn publish(relay: RelayUrl, seed: u64, count: usize, burst: usize) -> Ids {
    let events = generate(seed, count, burst);
    let all = ids(&events);
    assert_eq!(all.len(), count);
    let jobs = Jobs::new(runtime(), JobsConfig::default(), seed);
    jobs.add(events).await.expect("it is stored in memory");
    jobs.start("up", spec(relay, seed, Direction::Up, None)).await.expect("it begins");
    let report = jobs.settled("up", Moment::Done).await.expect("it ends");
    assert!(report.complete, "{report:?}");
    assert_eq!(report.counts.published, count as u64, "{report:?}");
    jobs.close().await;
    all
}

/// Fetches them into an empty store.
async fn fetch(relay: RelayUrl, seed: u64, method: Option<Method>) -> (JobReport, Ids) {
    let runtime = runtime();
    let jobs = Jobs::new(runtime.clone(), JobsConfig::default(), seed);
    jobs.start("down", spec(relay, seed, Direction::Down, method)).await.expect("it begins");
    let report = jobs.settled("down", Moment::Done).await.expect("it ends");
    let mut taken = Ids::new();
    while let Some(part) = jobs.take("down", 1_000, 1 << 20).await.expect("it is read from memory") {
        for record in part.records {
            assert!(taken.insert(record.id), "each event once");
        }
    }
    jobs.close().await;
    let held = held(runtime.store()).await;
    assert_eq!(taken, held);
    (report, held)
}

#[wasm_bindgen_test]
async fn twenty_thousand_events_go_up_and_come_down_exactly_by_either_method() {
    let all = publish(own_relay(), 1, 20_000, 1_500).await;
    for method in [Method::Negentropy, Method::Req] {
        let (report, held) = fetch(own_relay(), 1, Some(method)).await;
        assert!(report.complete, "{report:?}");
        assert_eq!(report.methods, [method]);
        assert_eq!(report.counts.stored, 20_000);
        assert!(held == all, "{} of {} events", held.len(), all.len());
    }
}

#[wasm_bindgen_test]
async fn where_reconciliation_is_refused_pages_get_everything() {
    // Within the relay's pages: what overflows them in one second cannot be had from it by anybody.
    let all = publish(other_relay(), 2, 1_500, 60).await;
    let (report, held) = fetch(other_relay(), 2, None).await;
    assert!(report.complete, "{report:?}");
    assert_eq!(report.methods, [Method::Req]);
    assert!(held == all, "{} of {} events", held.len(), all.len());
}

#[wasm_bindgen_test]
async fn a_relay_that_is_not_there_is_a_gap() {
    let jobs = Jobs::new(runtime(), JobsConfig::default(), 3);
    let nobody = RelayUrl::parse("ws://127.0.0.1:9").expect("it is one");
    jobs.start("down", spec(nobody, 3, Direction::Down, None)).await.expect("it begins");
    let report = jobs.settled("down", Moment::CaughtUp).await.expect("it gives up");
    assert!(!report.complete);
    assert_eq!(report.relays[0].gaps[0].kind, "unreachable", "{report:?}");
    jobs.close().await;
}
