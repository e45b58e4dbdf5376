//! A store with a size cap: the oldest go first, and nobody is told that the copy is complete.

use relaysync::protocol::{FilterKey, RelayUrl, Window};
use relaysync::store::packed::backing::Shelf;
use relaysync::store::packed::{PackedConfig, PackedStore};
use relaysync::store::{Batch, Coverage, Method, Outcome, Proof, Store};

use crate::events::*;
use crate::faulty::Faulty;
use crate::{block_on, small};

#[test]
fn the_oldest_go_first_and_marks_are_cut() {
    block_on(async {
        let config = PackedConfig { bytes_max: Some(100_000), ..small() };
        let backing = Faulty::default();
        let store = PackedStore::open(backing.clone(), config.clone()).await.unwrap();
        let mark = |until| Coverage {
            relay: RelayUrl::parse("wss://a.example").unwrap(),
            filter: FilterKey::of(&filter("{}")),
            packed: None,
            rules: 0,
            windows: vec![Proof::new(Window { since: 0, until }, Method::Req, 5_000)],
        };
        let request = draft(5_000, 1).kind(5);
        store.commit(Batch { coverage: vec![mark(5_000)], ..batch(&[request]) }).await.unwrap();
        for round in 0..40 {
            let drafts: Vec<Draft> =
                (0..10).map(|n| draft(round * 10 + n, u64::from(round * 10 + n) + 1_000)).collect();
            commit(&store, &drafts).await;
        }
        let usage = store.usage();
        assert!(usage.bytes < 150_000, "{usage:?}");
        let floor = usage.floor_secs.expect("some were pruned");
        let kept = select(&store, r#"{"kinds":[1]}"#).await;
        let expected: Vec<u32> = (0..400).rev().filter(|n| u64::from(*n) + 1_000 > floor).collect();
        assert_eq!(kept, expected, "the newest, and all of them");
        assert!(kept.len() > 20 && kept.len() < 300, "{}", kept.len());
        assert_eq!(select(&store, r#"{"kinds":[5]}"#).await, [5_000], "a request stays");
        assert_eq!(known(&store, &[399, 0]).await, [true, true], "what is gone is not fetched again");
        assert_eq!(commit(&store, &[draft(0, 1_000), draft(6_000, 1_001)]).await, [Outcome::Pruned; 2]);
        // Neither an old mark nor a new one claims what is gone.
        store.commit(Batch { coverage: vec![mark(6_000)], ..Batch::default() }).await.unwrap();
        let floor = store.usage().floor_secs.expect("each commit may prune");
        let kept = select(&store, r#"{"kinds":[1]}"#).await;
        for store in [store, PackedStore::open(backing, config).await.unwrap()] {
            let coverage = store.load().await.unwrap().coverage;
            assert_eq!(coverage[0].windows[0].window, Window { since: floor + 1, until: 6_000 });
            assert_eq!(select(&store, r#"{"kinds":[1]}"#).await, kept);
        }
    });
}

/// Commits of ten events whose dates have nothing to do with the order in which they come.
async fn fill_mixed(store: &PackedStore<Faulty>, events: u32) {
    for first in (0..events).step_by(10) {
        let drafts: Vec<Draft> =
            (first..first + 10).map(|n| draft(n, 1_000_000 + u64::from(n) * 7919 % u64::from(events))).collect();
        commit(store, &drafts).await;
    }
}

#[test]
fn pruning_takes_no_more_than_there_is_too_much_of() {
    block_on(async {
        let config = PackedConfig { bytes_max: Some(200_000), ..small() };
        let store = PackedStore::open(Faulty::default(), config).await.unwrap();
        let mut after_first = None;
        for first in (0..1_000).step_by(10) {
            let drafts: Vec<Draft> =
                (first..first + 10).map(|n| draft(n, 1_000_000 + u64::from(n) * 7919 % 1_000)).collect();
            let before = store.usage();
            commit(&store, &drafts).await;
            let usage = store.usage();
            if usage.floor_secs.is_some() {
                after_first.get_or_insert(before.events);
                let lost = (before.events + 10).saturating_sub(usage.events);
                assert!(lost <= 40, "{lost} went for ten that came: {usage:?}");
            }
        }
        let (held, full) = (store.usage().events, after_first.expect("there was too much"));
        assert!(held * 2 > full, "{held} are held, of {full} for which there was room");
        assert!(store.usage().bytes < 260_000, "{:?}", store.usage());
    });
}

#[test]
fn memory_of_what_is_gone_does_not_drive_out_what_is_held() {
    block_on(async {
        let config = PackedConfig { bytes_max: Some(60_000), ..small() };
        let store = PackedStore::open(Faulty::default(), config).await.unwrap();
        fill_mixed(&store, 4_000).await;
        let usage = store.usage();
        assert!(usage.events > 50, "{usage:?}");
        assert!(usage.bytes < 80_000, "{usage:?}");
    });
}

#[test]
fn one_commit_packs_no_more_anew_than_it_may() {
    block_on(async {
        let backing = Faulty::default();
        let config = PackedConfig { repack_bytes_max: 6_000, ..small() };
        let store = PackedStore::open(backing.clone(), config.clone()).await.unwrap();
        for first in (0..400).step_by(4) {
            let drafts: Vec<Draft> =
                (first..first + 4).map(|n| draft(n, 10).by(if n % 4 == 0 { 2 } else { 1 })).collect();
            commit(&store, &drafts).await;
        }
        backing.largest_write();
        let segments = store.usage().segments;
        commit(&store, &[draft(1_000, 100).by(2).kind(62).tag("relay", "ALL_RELAYS")]).await;
        assert_eq!(count(&store, &[r#"{"kinds":[1]}"#]).await, 300, "nobody finds them");
        let mut store = store;
        for round in 0..segments {
            if bodies_of(&backing, 2) == 1 {
                break;
            }
            if round % 5 == 4 {
                store = PackedStore::open(backing.clone(), config.clone()).await.unwrap();
            }
            commit(&store, &[]).await;
            assert_eq!(count(&store, &[r#"{"kinds":[1]}"#]).await, 300);
        }
        assert_eq!(bodies_of(&backing, 2), 1, "the request alone is left of its author");
        // The run of the vanish request and merged runs are written, too.
        let index = usize::try_from(store.usage().index_bytes).unwrap();
        let written = backing.largest_write();
        assert!(written < index + 20_000, "{written} bytes in one commit, of them index up to {index}");
        assert_eq!(select(&store, r#"{"kinds":[1],"limit":1000}"#).await.len(), 300);
    });
}

/// How many bodies of events of an author are in the segments.
fn bodies_of(backing: &Faulty, author: u8) -> usize {
    let key = format!(r#""pubkey":"{}""#, relaysync::protocol::hex::encode(&author_of(author)));
    backing.records.alter(|records| {
        let segments = records.iter().filter(|(name, _)| name.shelf == Shelf::Segments);
        segments.map(|(_, bytes)| String::from_utf8_lossy(bytes).matches(&key).count()).sum()
    })
}
