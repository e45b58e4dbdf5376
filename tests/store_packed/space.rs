//! A store with a size cap: the oldest go first, and nobody is told that the copy is complete.

use relaysync::protocol::{FilterKey, RelayUrl, Window};
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
