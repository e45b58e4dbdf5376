//! Writes that fail, writers that are deposed, commits that nobody waits for, records that are damaged.

use std::task::Context;

use relaysync::store::packed::backing::Shelf;
use relaysync::store::packed::{Condition, PackedConfig, PackedFault, PackedStore};
use relaysync::store::{Outcome, Store};

use crate::block_on;
use crate::events::*;
use crate::faulty::{Fault, Faulty};
use crate::small;

async fn open(backing: &Faulty) -> PackedStore<Faulty> {
    PackedStore::open(backing.clone(), small()).await.unwrap()
}

async fn fault_of(store: &PackedStore<Faulty>, drafts: &[Draft]) -> PackedFault {
    store.commit(batch(drafts)).await.unwrap_err().fault
}

#[test]
fn a_full_store_holds_what_it_held_and_goes_on_once_there_is_room() {
    block_on(async {
        let backing = Faulty::default();
        let store = open(&backing).await;
        commit(&store, &[draft(1, 10)]).await;
        let before = backing.records.alter(|records| records.clone());
        backing.plan([Fault::Quota]);
        assert!(matches!(fault_of(&store, &[draft(2, 20)]).await, PackedFault::Quota(_)));
        assert!(matches!(store.condition(), Condition::Full(_)));
        assert_eq!(backing.records.alter(|records| records.clone()), before);
        assert_eq!(select(&store, "{}").await, [1]);
        assert_eq!(commit(&store, &[draft(2, 20)]).await, [Outcome::Stored]);
        assert_eq!(store.condition(), Condition::Good);
        assert_eq!(select(&open(&backing).await, "{}").await, [2, 1]);
    });
}

#[test]
fn a_batch_is_repeated_once_when_the_connection_is_lost() {
    for is_written in [false, true] {
        block_on(async {
            let backing = Faulty::default();
            let store = open(&backing).await;
            commit(&store, &[draft(1, 10)]).await;
            backing.plan([Fault::Lost { is_written }]);
            assert_eq!(commit(&store, &[draft(2, 20), draft(1, 10)]).await, [Outcome::Stored, Outcome::Duplicate]);
            assert_eq!(select(&store, "{}").await, [2, 1]);
            backing.plan([Fault::Lost { is_written: false }, Fault::Lost { is_written }]);
            assert!(matches!(fault_of(&store, &[draft(3, 30)]).await, PackedFault::Lost(_)));
            let again = if is_written { Outcome::Duplicate } else { Outcome::Stored };
            assert_eq!(commit(&store, &[draft(3, 30)]).await, [again]);
            assert_eq!(select(&open(&backing).await, "{}").await, [3, 2, 1]);
        });
    }
}

#[test]
fn a_commit_that_nobody_waits_for_is_there_as_a_whole_or_not_at_all() {
    for is_written in [false, true] {
        block_on(async {
            let backing = Faulty::default();
            let store = open(&backing).await;
            commit(&store, &[draft(1, 10)]).await;
            backing.plan([Fault::Hangs { is_written }]);
            let mut dropped = Box::pin(store.commit(batch(&[draft(2, 20), draft(3, 30)])));
            assert!(dropped.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending());
            drop(dropped);
            // The segment that it had is packed anew: what is read is found all the same.
            assert_eq!(select(&open_reader(&store), "{}").await.last(), Some(&1));
            let again = if is_written { Outcome::Duplicate } else { Outcome::Stored };
            assert_eq!(commit(&store, &[draft(2, 20), draft(4, 40)]).await, [again, Outcome::Stored]);
            let held = if is_written { vec![4, 3, 2, 1] } else { vec![4, 2, 1] };
            assert_eq!(select(&store, "{}").await, held);
            assert_eq!(select(&open(&backing).await, "{}").await, held);
        });
    }
}

fn open_reader(store: &PackedStore<Faulty>) -> PackedStore<Faulty> {
    store.clone()
}

#[test]
fn who_was_deposed_writes_nothing_more() {
    block_on(async {
        let backing = Faulty::default();
        let first = open(&backing).await;
        commit(&first, &[draft(1, 10)]).await;
        let second = open(&backing).await;
        commit(&second, &[draft(2, 20)]).await;
        let before = backing.records.alter(|records| records.clone());
        for _ in 0..2 {
            assert_eq!(fault_of(&first, &[draft(3, 30)]).await, PackedFault::Deposed);
        }
        assert_eq!(first.condition(), Condition::Deposed);
        assert_eq!(backing.records.alter(|records| records.clone()), before);
        assert_eq!(commit(&second, &[draft(3, 30)]).await, [Outcome::Stored]);
    });
}

#[test]
fn who_was_deposed_is_told_so_when_reading_too() {
    block_on(async {
        let backing = Faulty::default();
        let fill = open(&backing).await;
        for number in 0..40 {
            commit(&fill, &[draft(number, 10 + u64::from(number))]).await;
        }
        let first = PackedStore::open(backing.clone(), PackedConfig { cache_bytes_max: 0, ..small() }).await.unwrap();
        let second = open(&backing).await;
        // What the first has known the last segment by is packed anew, and so is the one of which an event is deleted.
        let deletion = draft(100, 100).kind(5).tag("e", &relaysync::protocol::hex::encode(&id_of(0)));
        commit(&second, &[deletion]).await;
        for _ in 0..2 {
            let error = first.query(question("{}")).await.unwrap_err();
            assert_eq!(error.fault, PackedFault::Deposed);
            assert_eq!(first.condition(), Condition::Deposed);
        }
        let deletion = draft(101, 101).kind(5).tag("e", &relaysync::protocol::hex::encode(&id_of(0)));
        assert_eq!(fault_of(&first, &[deletion]).await, PackedFault::Deposed);
    });
}

#[test]
fn a_committer_that_was_deposed_is_not_told_of_damage() {
    block_on(async {
        let backing = Faulty::default();
        commit(&open(&backing).await, &[draft(1, 10)]).await;
        let first = PackedStore::open(backing.clone(), PackedConfig { cache_bytes_max: 0, ..small() }).await.unwrap();
        commit(&open(&backing).await, &[draft(2, 20)]).await;
        assert_eq!(fault_of(&first, &[draft(3, 30)]).await, PackedFault::Deposed);
    });
}

#[test]
fn a_segment_that_is_missing_is_damage_where_nobody_else_has_opened_the_store() {
    block_on(async {
        let backing = Faulty::default();
        commit(&open(&backing).await, &[draft(1, 10)]).await;
        let store = open(&backing).await;
        backing.records.alter(|records| records.retain(|name, _| name.shelf != Shelf::Segments));
        let error = store.query(question("{}")).await.unwrap_err();
        assert!(matches!(error.fault, PackedFault::Damaged(_)), "{error}");
    });
}

#[test]
fn a_damaged_byte_is_an_error_or_mended_but_never_a_wrong_answer() {
    block_on(async {
        let backing = Faulty::default();
        let store = open(&backing).await;
        commit(&store, &[draft(1, 10), draft(2, 20).kind(0), draft(3, 30).kind(0).tag("t", "x")]).await;
        commit(&store, &[draft(4, 40).tag("t", "y")]).await;
        let whole = backing.records.alter(|records| records.clone());
        let held = select(&store, "{}").await;
        let mut mended = 0;
        for (name, bytes) in &whole {
            for at in 0..bytes.len() {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= 1 << (at % 8);
                let damaged_too = Faulty::default();
                damaged_too.records.alter(|records| {
                    records.clone_from(&whole);
                    records.insert(name.clone(), damaged.into());
                });
                let Ok(store) = PackedStore::open(damaged_too, small()).await else { continue };
                let Ok(page) = store.query(question("{}")).await else { continue };
                let found: Vec<u32> = page.records.iter().map(|record| number(&record.id)).collect();
                assert_eq!(found, held, "byte {at} of {name:?}");
                mended += usize::from(name.name.starts_with("run/"));
            }
        }
        assert!(mended > 0, "a run is made again from the segments");
    });
}
