//! Random batches and questions: the stores and a naive model must agree on everything.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use relaysync::peer::View;
use relaysync::protocol::{Event, EventId, Filter, PublicKey, Window};
use relaysync::store::{Batch, Query, Store, StoreConfig};

use crate::events::*;
use crate::model::Model;
use crate::pool::{POOL, SECS, pooled};
use crate::{Harness, Memory, Native, Packed, block_on};

#[derive(Debug, Clone)]
enum Step {
    Commit { events: Vec<u32>, now_secs: u64 },
    Ask { filter: Box<Filter>, view: View, window: Window, limit: usize, now_secs: u64 },
    Reopen,
}

fn a_filter() -> impl Strategy<Value = Filter> {
    let kinds = btree_set(prop::sample::select(vec![0_u16, 1, 3, 5, 7, 30_023]), 1..3);
    let secs = || prop::option::weighted(0.3, 0..u64::from(SECS));
    let tag = prop::sample::select(vec!['t', 'T', 'd']);
    (
        prop::option::weighted(0.15, btree_set(0..POOL, 0..6)),
        prop::option::weighted(0.4, btree_set(1..4_u8, 1..3)),
        prop::option::weighted(0.4, kinds),
        prop::option::weighted(0.3, (tag, btree_set("[xyab]", 1..3))),
        prop::option::weighted(0.1, btree_set("[xy]", 1..3)),
        (secs(), secs()),
    )
        .prop_map(|(ids, authors, kinds, tag, topics, (since, until))| {
            let mut filter = Filter::new();
            filter.ids = ids.map(|ids| ids.into_iter().map(|n| EventId::from_byte_array(id_of(n))).collect());
            filter.authors =
                authors.map(|all| all.into_iter().map(|n| PublicKey::from_byte_array(author_of(n))).collect());
            filter.kinds = kinds.map(|kinds| kinds.into_iter().map(Into::into).collect());
            let topics = topics.map(|values| ('t', values));
            for (name, values) in tag.into_iter().chain(topics) {
                filter.generic_tags.insert(name.try_into().expect("a letter"), values);
            }
            filter.since = since.map(Into::into);
            filter.until = until.map(Into::into);
            filter
        })
}

fn a_view() -> impl Strategy<Value = View> {
    let filters = |at_most| vec(a_filter(), 0..=at_most);
    let some = (filters(3), filters(2)).prop_map(|(hidden, shown)| View::new(hidden.into(), shown.into()));
    prop_oneof![1 => Just(View::all()), 2 => some]
}

fn a_step() -> impl Strategy<Value = Step> {
    let secs = || 0..2 * u64::from(SECS);
    let events = vec(0..POOL, 0..40);
    prop_oneof![
        4 => (events, secs()).prop_map(|(events, now_secs)| Step::Commit { events, now_secs }),
        4 => (a_filter(), a_view(), (secs(), secs()), 1..9_usize, secs())
            .prop_map(|(filter, view, (since, until), limit, now_secs)| {
                Step::Ask { filter: Box::new(filter), view, window: Window { since, until }, limit, now_secs }
            }),
        1 => Just(Step::Reopen),
    ]
}

async fn check<H: Harness>(steps: Vec<Step>) {
    let mut harness = H::create(StoreConfig::default()).await;
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Commit { events, now_secs } => {
                let drafts: Vec<Draft> = events.into_iter().map(pooled).collect();
                let batch = Batch { now_secs, ..batch(&drafts) };
                assert_eq!(harness.store().commit(batch).await.unwrap(), model.commit(&drafts, now_secs));
            }
            Step::Ask { filter, view, window, limit, now_secs } => {
                let store = harness.store();
                let found = model.query(&filter, &view, now_secs);
                assert_eq!(pages(store, &filter, &view, limit, now_secs).await, found);
                let held = store.held_items(&filter, Window::ALL, &view, now_secs).await.unwrap();
                assert_eq!(held.len(), found.len(), "held items, {filter:?} through {view:?}");
                let other: Filter = Filter::new().kind(7_u16.into());
                let filters = vec![Filter::clone(&filter), other];
                let count = model.count(&filters, &view, now_secs);
                assert_eq!(store.count(filters, &view, now_secs).await.unwrap(), count);
                let set = store.items(&filter, window, &view).await.unwrap();
                let ids: Vec<u32> = set.items().iter().map(|item| number(&item.id)).collect();
                assert_eq!(ids, model.items(&filter, window, &view));
            }
            Step::Reopen => harness = harness.reopen().await,
        }
    }
    let ids: Vec<[u8; 32]> = (0..POOL).map(id_of).collect();
    let expected: Vec<bool> = ids.iter().map(|id| model.is_known(id)).collect();
    assert_eq!(harness.store().known(ids, &View::all()).await.unwrap(), expected);
}

/// Everything that a filter selects, page by page.
async fn pages(store: &impl Store, filter: &Filter, view: &View, limit: usize, now_secs: u64) -> Vec<String> {
    let mut query =
        Query { filter: filter.clone(), after: None, limit, bytes_max: usize::MAX, now_secs, view: view.clone() };
    let mut found = Vec::new();
    loop {
        let page = store.query(query.clone()).await.unwrap();
        found.extend(page.records.into_iter().map(|record| {
            Event::parse(record.json.clone()).expect("it is an event");
            String::from_utf8(record.json.to_vec()).expect("it is text")
        }));
        query.after = page.next;
        if page.next.is_none() {
            return found;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_memory_store_agrees_with_the_model(steps in vec(a_step(), 1..60)) {
        block_on(check::<Memory>(steps));
    }

    #[test]
    fn the_packed_store_agrees_with_the_model(steps in vec(a_step(), 1..60)) {
        block_on(check::<Packed>(steps));
    }
}

proptest! {
    // Real files and real syncs to disk: fewer of them.
    #![proptest_config(ProptestConfig { cases: 25, ..ProptestConfig::default() })]

    #[test]
    fn the_native_store_agrees_with_the_model(steps in vec(a_step(), 1..60)) {
        block_on(check::<Native>(steps));
    }
}
