//! What becomes of events: replaced, deleted, vanished, expired, and remembered.

use relaysync::peer::View;
use relaysync::protocol::hex;
use relaysync::store::{Batch, Outcome, Query, Store};

use super::{NONE, create};
use crate::Harness;
use crate::events::*;

pub(crate) async fn the_newest_replaceable_event_stays<H: Harness>() {
    for kind in [0, 3, 10_000, 19_999] {
        let harness = create::<H>().await;
        let versions = [draft(1, 10).kind(kind), draft(2, 30).kind(kind), draft(3, 20).kind(kind)];
        assert_eq!(commit(harness.store(), &versions).await, [Outcome::Stored, Outcome::Stored, Outcome::Superseded]);
        assert_eq!(
            commit(harness.store(), &versions).await,
            [Outcome::Superseded, Outcome::Duplicate, Outcome::Superseded]
        );
        commit(harness.store(), &[draft(4, 5).kind(kind).by(2)]).await;
        assert_eq!(select(harness.store(), "{}").await, [2, 4]);
        assert_eq!(count(harness.store(), &["{}"]).await, 2);
    }
    let harness = create::<H>().await;
    commit(harness.store(), &[draft(1, 10).kind(41), draft(2, 20).kind(41)]).await;
    assert_eq!(select(harness.store(), "{}").await, [2, 1]);
}

pub(crate) async fn of_equal_times_the_lowest_id_stays<H: Harness>() {
    for order in [[1, 2, 3], [3, 2, 1], [2, 1, 3], [2, 3, 1]] {
        let harness = create::<H>().await;
        for id in order {
            commit(harness.store(), &[draft(id, 10).kind(0)]).await;
        }
        assert_eq!(select(harness.store(), "{}").await, [1], "{order:?}");
        let together = create::<H>().await;
        commit(together.store(), &order.map(|id| draft(id, 10).kind(30_000).tag("d", "x"))).await;
        assert_eq!(select(together.store(), "{}").await, [1], "{order:?}");
    }
}

pub(crate) async fn addressable_events_are_told_apart_by_identifier<H: Harness>() {
    let harness = create::<H>().await;
    let version = |id, at, identifier| draft(id, at).kind(30_617).tag("d", identifier);
    let drafts = [
        version(1, 10, "a:b"),
        version(2, 20, "a"),
        version(3, 15, "a:b"),
        draft(4, 30).kind(30_617),
        draft(5, 31).kind(30_617).tag("d", ""),
        version(6, 32, "b").tag("d", "a"),
        version(7, 1, "a").by(2),
    ];
    commit(harness.store(), &drafts).await;
    assert_eq!(select(harness.store(), "{}").await, [6, 5, 2, 3, 7]);
}

pub(crate) async fn a_deletion_removes_events_of_its_author_only<H: Harness>() {
    let harness = create::<H>().await;
    commit(harness.store(), &[draft(1, 10).tag("t", "x"), draft(2, 20).by(2), draft(3, 99)]).await;
    let mut deletion = draft(4, 30).kind(5);
    for id in [1, 2, 3, 77] {
        deletion = deletion.tag("e", &hex::encode(&id_of(id)));
    }
    deletion = deletion.tag("e", "no id").tag("a", "no address").tag("e", "");
    assert_eq!(commit(harness.store(), &[deletion]).await, [Outcome::Stored]);
    assert_eq!(select(harness.store(), "{}").await, [4, 2]);
    assert_eq!(select(harness.store(), r##"{"#t":["x"]}"##).await, NONE);
    assert_eq!(items(harness.store(), r##"{"#t":["x"]}"##, 0, u64::MAX).await, NONE);
    assert_eq!(
        commit(harness.store(), &[draft(1, 10), draft(77, 10).by(2)]).await,
        [Outcome::Deleted, Outcome::Stored]
    );
    assert_eq!(harness.store().events(vec![id_of(1)]).await.unwrap(), [None]);
}

pub(crate) async fn a_deletion_may_arrive_first<H: Harness>() {
    let harness = create::<H>().await;
    let deletion = draft(4, 30).kind(5).tag("e", &hex::encode(&id_of(1))).tag("e", &hex::encode(&id_of(2)));
    assert_eq!(commit(harness.store(), &[deletion, draft(1, 10)]).await, [Outcome::Stored, Outcome::Deleted]);
    assert_eq!(commit(harness.store(), &[draft(2, 50), draft(1, 10)]).await, [Outcome::Deleted; 2]);
    assert_eq!(select(harness.store(), "{}").await, [4]);
    assert_eq!(known(harness.store(), &[1, 2, 3]).await, [true, true, false]);
}

pub(crate) async fn a_deletion_of_an_address_spares_later_versions<H: Harness>() {
    let harness = create::<H>().await;
    let address = |kind: u16, identifier: &str| format!("{kind}:{}:{identifier}", hex::encode(&author_of(1)));
    let version = |id, at| draft(id, at).kind(30_617).tag("d", "a:b");
    commit(harness.store(), &[version(1, 10), draft(2, 10).kind(10_002), version(3, 10).by(2)]).await;
    let deletion = draft(4, 20).kind(5).tag("a", &address(30_617, "a:b")).tag("a", &address(10_002, ""));
    commit(harness.store(), &[deletion]).await;
    assert_eq!(select(harness.store(), "{}").await, [4, 3]);
    assert_eq!(commit(harness.store(), &[version(5, 20), version(6, 21)]).await, [Outcome::Deleted, Outcome::Stored]);
    let earlier = draft(7, 20).kind(5).tag("a", &address(30_617, "a:b"));
    commit(harness.store(), &[earlier]).await;
    assert_eq!(select(harness.store(), "{}").await, [6, 4, 7, 3]);
}

pub(crate) async fn requests_cannot_be_deleted<H: Harness>() {
    let harness = create::<H>().await;
    let vanish = draft(2, 20).kind(62).tag("relay", "wss://other.example");
    commit(harness.store(), &[draft(1, 10).kind(5), vanish]).await;
    let deletion = draft(3, 30).kind(5).tag("e", &hex::encode(&id_of(1))).tag("e", &hex::encode(&id_of(2)));
    commit(harness.store(), &[deletion.tag("e", &hex::encode(&id_of(4)))]).await;
    assert_eq!(commit(harness.store(), &[draft(4, 40).kind(5)]).await, [Outcome::Stored]);
    assert_eq!(select(harness.store(), "{}").await, [4, 3, 2, 1]);
}

pub(crate) async fn a_vanish_request_removes_and_refuses<H: Harness>() {
    for relay in ["ALL_RELAYS", "wss://OWN.example/"] {
        let harness = create::<H>().await;
        commit(harness.store(), &[draft(1, 10), draft(2, 20).kind(0), draft(3, 31), draft(4, 5).by(2)]).await;
        let request = draft(5, 30).kind(62).tag("relay", "wss://other.example").tag("relay", relay);
        assert_eq!(commit(harness.store(), &[draft(6, 30), request]).await, [Outcome::Stored; 2]);
        assert_eq!(select(harness.store(), "{}").await, [3, 5, 4]);
        assert_eq!(
            commit(harness.store(), &[draft(1, 10), draft(7, 30), draft(8, 31), draft(9, 1).by(2)]).await,
            [Outcome::Vanished, Outcome::Vanished, Outcome::Stored, Outcome::Stored]
        );
        assert_eq!(known(harness.store(), &[1, 2, 6, 7]).await, [true; 4]);
        assert_eq!(items(harness.store(), "{}", 30, 30).await, [5, 6, 7]);
    }
}

pub(crate) async fn gift_wraps_vanish_with_their_recipient<H: Harness>() {
    let harness = create::<H>().await;
    let recipient = hex::encode(&author_of(1));
    let wrap = |number, at| draft(number, at).by(2).kind(1_059).tag("p", &recipient);
    commit(harness.store(), &[wrap(1, 10), draft(2, 10).by(2).tag("p", &recipient), wrap(3, 31)]).await;
    let request = draft(5, 30).kind(62).tag("relay", "ALL_RELAYS");
    commit(harness.store(), &[wrap(4, 20), request]).await;
    assert_eq!(select(harness.store(), "{}").await, [3, 5, 2], "mentions stay, and what came later");
    assert_eq!(
        commit(harness.store(), &[wrap(1, 10), wrap(6, 30), wrap(7, 31)]).await,
        [Outcome::Vanished, Outcome::Vanished, Outcome::Stored]
    );
}

pub(crate) async fn a_vanish_request_to_others_has_no_effect<H: Harness>() {
    let harness = create::<H>().await;
    let request = draft(2, 20).kind(62).tag("relay", "wss://own.example.org").tag("relay", "no url");
    commit(harness.store(), &[draft(1, 10), request]).await;
    assert_eq!(select(harness.store(), "{}").await, [2, 1]);
    assert_eq!(commit(harness.store(), &[draft(3, 5)]).await, [Outcome::Stored]);
}

pub(crate) async fn expired_events_are_refused_hidden_and_swept<H: Harness>() {
    let harness = create::<H>().await;
    let store = harness.store();
    let expiring = |id: u32, secs: u64| draft(id, u64::from(id)).tag("expiration", &secs.to_string());
    let drafts = [expiring(1, NOW_SECS), expiring(2, NOW_SECS + 1), expiring(3, NOW_SECS + 10), draft(4, 4)];
    assert_eq!(commit(store, &drafts).await, [Outcome::Expired, Outcome::Stored, Outcome::Stored, Outcome::Stored]);
    assert_eq!(select(store, "{}").await, [4, 3, 2]);
    let later = Query { now_secs: NOW_SECS + 1, ..question("{}") };
    let ids = |page: relaysync::store::Page| page.records.iter().map(|r| number(&r.id)).collect::<Vec<_>>();
    assert_eq!(ids(store.query(later.clone()).await.unwrap()), [4, 3]);
    assert_eq!(store.count(vec![filter("{}")], &View::all(), NOW_SECS + 1).await.unwrap(), 2);
    store.commit(Batch { now_secs: NOW_SECS + 5, ..Batch::default() }).await.unwrap();
    // Gone for good, whatever the clock says now.
    assert_eq!(select(store, "{}").await, [4, 3]);
    assert_eq!(store.events(vec![id_of(2)]).await.unwrap(), [None]);
    assert_eq!(commit(store, &drafts[..2]).await, [Outcome::Expired; 2]);
    // The clock steps back and on again: what came meanwhile expires all the same.
    assert_eq!(commit(store, &[expiring(5, NOW_SECS + 2)]).await, [Outcome::Stored]);
    assert_eq!(ids(store.query(later).await.unwrap()), [5, 4, 3]);
    store.commit(Batch { now_secs: NOW_SECS + 20, ..Batch::default() }).await.unwrap();
    assert_eq!(select(store, "{}").await, [4]);
    assert_eq!(items(store, "{}", 0, u64::MAX).await, [1, 2, 3, 4, 5]);
}

pub(crate) async fn ephemeral_events_are_passed_on_only<H: Harness>() {
    let harness = create::<H>().await;
    let drafts = [draft(1, 10).kind(20_000), draft(2, 10).kind(29_999), draft(3, 10).kind(30_000)];
    let expected = [Outcome::Ephemeral, Outcome::Ephemeral, Outcome::Stored];
    assert_eq!(commit(harness.store(), &drafts).await, expected);
    assert_eq!(select(harness.store(), "{}").await, [3]);
    assert_eq!(known(harness.store(), &[1, 2]).await, [false; 2]);
    assert_eq!(items(harness.store(), "{}", 0, u64::MAX).await, [3]);
}

pub(crate) async fn what_is_gone_is_known_and_among_the_items<H: Harness>() {
    let harness = create::<H>().await;
    let store = harness.store();
    let deletion = draft(5, 50).kind(5).tag("e", &hex::encode(&id_of(3)));
    commit(store, &[draft(1, 10).kind(0), draft(2, 20).kind(0), draft(3, 30), deletion, draft(4, 5).kind(0)]).await;
    assert_eq!(known(store, &[1, 2, 3, 4, 5, 6]).await, [true, true, true, true, true, false]);
    assert_eq!(items(store, "{}", 0, u64::MAX).await, [4, 1, 2, 3, 5]);
    assert_eq!(items(store, r#"{"kinds":[0]}"#, 0, u64::MAX).await, [4, 1, 2]);
    let author = hex::encode(&author_of(1));
    assert_eq!(items(store, &format!(r#"{{"authors":["{author}"]}}"#), 0, u64::MAX).await, [4, 1, 2, 3, 5]);
    assert_eq!(items(store, &format!(r#"{{"authors":["{author}"],"kinds":[1]}}"#), 0, u64::MAX).await, [3]);
    assert_eq!(items(store, &format!(r#"{{"ids":["{}"]}}"#, hex::encode(&id_of(3))), 0, u64::MAX).await, [3]);
    assert_eq!(select(store, "{}").await, [5, 2]);
}

pub(crate) async fn items_are_cut_to_window_and_filter<H: Harness>() {
    let harness = create::<H>().await;
    let drafts: Vec<Draft> = (0..300).map(|n| draft(n, u64::from(n)).kind((n % 3) as u16 + 1)).collect();
    for part in drafts.chunks(41) {
        commit(harness.store(), part).await;
    }
    assert_eq!(items(harness.store(), "{}", 100, 199).await, (100..200).collect::<Vec<u32>>());
    let second: Vec<u32> = (100..200).filter(|n| n % 3 != 0).collect();
    assert_eq!(items(harness.store(), r#"{"kinds":[2,3]}"#, 100, 199).await, second);
    assert_eq!(items(harness.store(), "{}", 7, 6).await, NONE);
}

pub(crate) async fn a_batch_takes_effect_in_order<H: Harness>() {
    let harness = create::<H>().await;
    let drafts = [
        draft(1, 10).kind(0),
        draft(2, 20).kind(0),
        draft(3, 30).kind(5).tag("e", &hex::encode(&id_of(2))),
        draft(4, 15).kind(0),
        draft(5, 40).kind(62).tag("relay", "ALL_RELAYS"),
        draft(6, 40),
        draft(7, 41),
    ];
    assert_eq!(
        commit(harness.store(), &drafts).await,
        [
            Outcome::Stored,
            Outcome::Stored,
            Outcome::Stored,
            Outcome::Stored,
            Outcome::Stored,
            Outcome::Vanished,
            Outcome::Stored,
        ]
    );
    assert_eq!(select(harness.store(), "{}").await, [7, 5, 3]);
    assert_eq!(
        commit(harness.store(), &drafts).await,
        [
            Outcome::Superseded,
            Outcome::Deleted,
            Outcome::Duplicate,
            Outcome::Vanished,
            Outcome::Duplicate,
            Outcome::Vanished,
            Outcome::Duplicate,
        ]
    );
}
