//! What other connections to a database do to a store, and what becomes of commits that nobody waits for.

use std::pin::pin;

use futures_util::poll;
use gloo_timers::future::TimeoutFuture;
use indexed_db_futures::database::Database;
use relaysync::browser::idb::IndexedDb;
use relaysync::store::packed::{Condition, PackedFault, PackedStore};
use relaysync::store::{Outcome, Store};
use wasm_bindgen_test::wasm_bindgen_test;

use crate::events::*;
use crate::{fresh_name, small};

async fn open(name: &str) -> PackedStore<IndexedDb> {
    PackedStore::open(IndexedDb::open(name).await.unwrap(), small()).await.unwrap()
}

async fn fault_of(store: &PackedStore<IndexedDb>, drafts: &[Draft]) -> PackedFault {
    store.commit(batch(drafts)).await.unwrap_err().fault
}

/// In the middle of a commit that takes as many turns of the page's event loop, and before and after it.
const TURNS: u32 = 12;

#[wasm_bindgen_test]
async fn a_commit_that_is_dropped_is_there_as_a_whole_or_not_at_all() {
    let mut seen = Vec::new();
    for turns in 0..TURNS {
        let name = fresh_name();
        let store = open(&name).await;
        commit(&store, &[draft(1, 10)]).await;
        {
            let mut dropped = pin!(store.commit(batch(&[draft(2, 20), draft(3, 30)])));
            for _ in 0..turns {
                if poll!(&mut dropped).is_ready() {
                    break;
                }
                TimeoutFuture::new(0).await;
            }
        }
        let again = commit(&store, &[draft(2, 20), draft(4, 40)]).await[0];
        let held = if again == Outcome::Duplicate { vec![4, 3, 2, 1] } else { vec![4, 2, 1] };
        seen.push(again);
        assert_eq!(select(&store, "{}").await, held, "after {turns} turns");
        store.backing().close();
        assert_eq!(select(&open(&name).await, "{}").await, held, "opened again, after {turns} turns");
    }
    assert!(seen.contains(&Outcome::Duplicate) && seen.contains(&Outcome::Stored), "{seen:?}");
}

#[wasm_bindgen_test]
async fn who_was_deposed_writes_nothing_more() {
    let name = fresh_name();
    let first = open(&name).await;
    commit(&first, &[draft(1, 10)]).await;
    let second = open(&name).await;
    commit(&second, &[draft(2, 20)]).await;
    for _ in 0..2 {
        assert_eq!(fault_of(&first, &[draft(3, 30)]).await, PackedFault::Deposed);
    }
    assert_eq!(first.condition(), Condition::Deposed);
    assert_eq!(commit(&second, &[draft(4, 40)]).await, [Outcome::Stored]);
    second.backing().close();
    assert_eq!(select(&open(&name).await, "{}").await, [4, 2, 1]);
}

#[wasm_bindgen_test]
async fn what_was_begun_comes_to_its_end_when_the_connection_is_closed() {
    let name = fresh_name();
    let store = open(&name).await;
    {
        let mut begun = pin!(store.commit(batch(&[draft(1, 10)])));
        assert!(poll!(&mut begun).is_pending());
        store.backing().close();
        assert_eq!(begun.await.unwrap(), [Outcome::Stored]);
    }
    assert_eq!(commit(&store, &[draft(2, 20)]).await, [Outcome::Stored], "it is opened again");
    assert_eq!(select(&open(&name).await, "{}").await, [2, 1]);
}

#[wasm_bindgen_test]
async fn a_database_that_is_deleted_is_let_go_and_its_store_deposed() {
    let name = fresh_name();
    let store = open(&name).await;
    let mut begun = pin!(store.commit(batch(&[draft(1, 10)])));
    assert!(poll!(&mut begun).is_pending());
    let deleting = IndexedDb::delete(&name);
    assert_eq!(begun.await.unwrap(), [Outcome::Stored]);
    deleting.await.unwrap();
    assert_eq!(fault_of(&store, &[draft(2, 20)]).await, PackedFault::Deposed);
    let anew = open(&name).await;
    assert_eq!(select(&anew, "{}").await, [0_u32; 0]);
    assert_eq!(commit(&anew, &[draft(1, 10)]).await, [Outcome::Stored]);
}

#[wasm_bindgen_test]
async fn a_later_version_gets_the_database_and_the_store_says_so() {
    let name = fresh_name();
    let store = open(&name).await;
    let mut begun = pin!(store.commit(batch(&[draft(1, 10)])));
    assert!(poll!(&mut begun).is_pending());
    let later = Database::open(name.clone()).with_version(200_u8);
    let later = later.with_on_upgrade_needed(|_, _| Ok(()));
    assert_eq!(begun.await.unwrap(), [Outcome::Stored]);
    let later = later.await.unwrap();
    assert!(matches!(fault_of(&store, &[draft(2, 20)]).await, PackedFault::NewerFormat { .. }));
    later.close();
    assert!(IndexedDb::open(&name).await.is_err());
}

#[wasm_bindgen_test]
async fn stores_of_other_names_do_not_meet() {
    let (one, other) = (open(&fresh_name()).await, open(&fresh_name()).await);
    commit(&one, &[draft(1, 10)]).await;
    commit(&other, &[draft(2, 20)]).await;
    assert_eq!(select(&one, "{}").await, [1]);
    assert_eq!(select(&other, "{}").await, [2]);
}
