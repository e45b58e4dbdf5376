//! What is held is found in the order in which it was stored, from any number on.

use relaysync::protocol::hex;
use relaysync::store::{Arrivals, Sequence, Store};

use super::{NONE, create};
use crate::Harness;
use crate::events::*;

/// The numbers in the ids of some arrivals, and up to where was looked.
async fn arrivals(store: &impl Store, after: Sequence, limit: usize, bytes_max: usize) -> (Vec<u32>, Sequence) {
    let Arrivals { records, last } = store.arrivals(after, limit, bytes_max).await.unwrap();
    assert!(records.is_sorted_by_key(|(sequence, _)| *sequence));
    assert!(records.iter().all(|(sequence, _)| after < *sequence && *sequence <= last));
    (records.iter().map(|(_, record)| number(&record.id)).collect(), last)
}

async fn all(store: &impl Store) -> Vec<u32> {
    let (ids, last) = arrivals(store, 0, usize::MAX, usize::MAX).await;
    assert_eq!(last, store.last_arrival().await.unwrap());
    ids
}

pub(crate) async fn arrivals_come_in_the_order_of_storing<H: Harness>() {
    let harness = create::<H>().await;
    assert_eq!((all(harness.store()).await, harness.store().last_arrival().await.unwrap()), (NONE.into(), 0));
    commit(harness.store(), &[draft(5, 20), draft(9, 30), draft(3, 20)]).await;
    commit(harness.store(), &[draft(9, 30), draft(4, 90), draft(20, 1).kind(20_001), draft(1, 10)]).await;
    assert_eq!(all(harness.store()).await, [5, 9, 3, 4, 1]);
    let arrivals = harness.store().arrivals(0, 2, usize::MAX).await.unwrap();
    let (sequence, record) = &arrivals.records[1];
    assert_eq!((*sequence, record.created_at, &record.json[..]), (2, 30, draft(9, 30).json().as_bytes()));
    assert_eq!(harness.store().events(vec![id_of(9)]).await.unwrap()[0].as_ref(), Some(record));
}

pub(crate) async fn arrivals_go_on_behind_a_cursor<H: Harness>() {
    let harness = create::<H>().await;
    let drafts: Vec<Draft> = (0..100).map(|n| draft(n, u64::from(n % 7))).collect();
    commit(harness.store(), &drafts).await;
    let (mut after, mut found) = (0, Vec::new());
    loop {
        let (ids, last) = arrivals(harness.store(), after, 7, usize::MAX).await;
        if ids.is_empty() {
            assert_eq!(last, after, "there is nothing behind it");
            break;
        }
        found.extend(ids);
        after = last;
    }
    assert_eq!(found, (0..100).collect::<Vec<u32>>());
    commit(harness.store(), &[draft(100, 0)]).await;
    assert_eq!(arrivals(harness.store(), after, 7, usize::MAX).await, (vec![100], after + 1));
    assert_eq!(arrivals(harness.store(), 0, 0, usize::MAX).await, (NONE.into(), 0));
    // Behind everything, as a cursor of a store that was deleted since may be.
    assert_eq!(arrivals(harness.store(), 1000, 7, usize::MAX).await, (NONE.into(), 1000));
}

pub(crate) async fn arrivals_end_by_bytes_but_have_one_event<H: Harness>() {
    let harness = create::<H>().await;
    let drafts = [draft(1, 10), draft(2, 20), draft(3, 30)];
    commit(harness.store(), &drafts).await;
    let bytes = drafts[0].json().len();
    assert_eq!(arrivals(harness.store(), 0, 9, 0).await, (vec![1], 1));
    assert_eq!(arrivals(harness.store(), 0, 9, bytes).await, (vec![1], 1));
    assert_eq!(arrivals(harness.store(), 0, 9, bytes + 1).await, (vec![1, 2], 2));
    assert_eq!(arrivals(harness.store(), 1, 9, usize::MAX).await, (vec![2, 3], 3));
}

pub(crate) async fn what_is_gone_is_no_arrival_and_keeps_its_number<H: Harness>() {
    let harness = create::<H>().await;
    let profile = |id, at| draft(id, at).kind(0);
    commit(harness.store(), &[draft(1, 10), profile(2, 20), draft(3, 30)]).await;
    let deletion = draft(5, 50).kind(5).tag("e", &hex::encode(&id_of(3)));
    commit(harness.store(), &[profile(4, 40), deletion, profile(6, 15)]).await;
    assert_eq!(all(harness.store()).await, [1, 4, 5]);
    assert_eq!(harness.store().last_arrival().await.unwrap(), 6, "what was refused is remembered under a number");
    assert_eq!(arrivals(harness.store(), 1, 1, usize::MAX).await, (vec![4], 4));
    assert_eq!(arrivals(harness.store(), 5, 1, usize::MAX).await, (NONE.into(), 6));
}

pub(crate) async fn arrivals_outlive_a_reopen<H: Harness>() {
    let harness = create::<H>().await;
    commit(harness.store(), &[draft(1, 10), draft(2, 20)]).await;
    let harness = harness.reopen().await;
    assert_eq!(all(harness.store()).await, [1, 2]);
    commit(harness.store(), &[draft(3, 5)]).await;
    let harness = harness.reopen().await;
    assert_eq!(all(harness.store()).await, [1, 2, 3]);
    assert_eq!(arrivals(harness.store(), 2, 9, usize::MAX).await, (vec![3], 3));
}
