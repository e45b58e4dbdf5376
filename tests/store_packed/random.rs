//! Random batches whose writes fail, are lost or never answer: the store and a naive model must agree all the same.

use std::task::{Context, Poll, Waker};

use proptest::collection::vec;
use proptest::prelude::*;
use relaysync::peer::View;
use relaysync::protocol::{Filter, Window};
use relaysync::store::packed::{PackedConfig, PackedStore};
use relaysync::store::{Batch, Outcome, Query, Store};

use crate::events::*;
use crate::faulty::{Fault, Faulty};
use crate::model::Model;
use crate::pool::{POOL, SECS, pooled};
use crate::{block_on, small};

#[derive(Debug, Clone)]
struct Round {
    events: Vec<u32>,
    now_secs: u64,
    /// What happens to the first writes.
    faults: Vec<Fault>,
    /// Whether the store is opened again after each commit that failed.
    is_reopened: bool,
}

fn a_round() -> impl Strategy<Value = Round> {
    let fault = prop_oneof![
        Just(Fault::Quota),
        any::<bool>().prop_map(|is_written| Fault::Lost { is_written }),
        any::<bool>().prop_map(|is_written| Fault::Hangs { is_written }),
    ];
    (vec(0..POOL, 0..20), 0..2 * u64::from(SECS), vec(fault, 0..4), any::<bool>())
        .prop_map(|(events, now_secs, faults, is_reopened)| Round { events, now_secs, faults, is_reopened })
}

fn config() -> PackedConfig {
    PackedConfig { repack_bytes_max: 3_000, ..small() }
}

async fn open(backing: &Faulty) -> PackedStore<Faulty> {
    PackedStore::open(backing.clone(), config()).await.expect("the store opens")
}

/// One try; `None` if it failed, or came to no end.
fn attempt(store: &PackedStore<Faulty>, batch: Batch) -> Option<Vec<Outcome>> {
    let mut commit = Box::pin(store.commit(batch));
    match commit.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result.ok(),
        Poll::Pending => None,
    }
}

async fn check(rounds: Vec<Round>) {
    let backing = Faulty::default();
    let mut store = open(&backing).await;
    let mut model = Model::default();
    for Round { events, now_secs, faults, is_reopened } in rounds {
        let drafts: Vec<Draft> = events.into_iter().map(pooled).collect();
        let tries_max = faults.len() + 1;
        backing.plan(faults.clone());
        let mut outcomes = None;
        for _ in 0..tries_max {
            outcomes = attempt(&store, Batch { now_secs, ..batch(&drafts) });
            if outcomes.is_some() {
                break;
            }
            if is_reopened {
                backing.forgive();
                store = open(&backing).await;
            }
        }
        backing.forgive();
        let outcomes = outcomes.expect("each fault spoils one try at most");
        let (first, again) = (model.commit(&drafts, now_secs), model.commit(&drafts, now_secs));
        assert!(outcomes == first || (!faults.is_empty() && outcomes == again), "{outcomes:?}, not {first:?}");
        agree(&store, &model, now_secs).await;
        if is_reopened {
            store = open(&backing).await;
            agree(&store, &model, now_secs).await;
        }
    }
}

async fn agree(store: &PackedStore<Faulty>, model: &Model, now_secs: u64) {
    let page = store.query(Query { now_secs, ..question("{}") }).await.unwrap();
    let found: Vec<String> =
        page.records.iter().map(|record| String::from_utf8(record.json.to_vec()).unwrap()).collect();
    assert_eq!(found, model.query(&Filter::new(), &View::all(), now_secs), "at {now_secs} s");
    let counted = model.count(&[Filter::new()], &View::all(), now_secs);
    assert_eq!(store.count(vec![Filter::new()], &View::all(), now_secs).await.unwrap(), counted);
    let known = model.items(&Filter::new(), Window::ALL, &View::all());
    assert_eq!(items(store, "{}", Window::ALL.since, Window::ALL.until).await, known);
    let ids: Vec<[u8; 32]> = (0..POOL).map(id_of).collect();
    let expected: Vec<bool> = ids.iter().map(|id| model.is_known(id)).collect();
    assert_eq!(store.known(ids, &View::all()).await.unwrap(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn the_store_agrees_with_the_model_whatever_fails(rounds in vec(a_round(), 1..20)) {
        block_on(check(rounds));
    }
}
