//! rust-nostr's client with our relay: down and up, nothing is lost.

use crate::events::{self, Taste, ids_in, kept_together, sample};
use crate::peers::{Build, RustNostrPool};
use crate::world::{END_MAX, Running, World};

const EVENTS: usize = 5_000;

/// Serves `store`; gives back the relay's URL, too.
fn serve(world: &World, store: &str) -> (Running, String) {
    let relay = world.start(&["serve", "--listen", "127.0.0.1:0", "--store", store]);
    let line = relay.wait_for_line(&["listening on ws://"]);
    let url = line.split(' ').next_back().expect("the line ends with it").to_owned();
    (relay, url)
}

#[test]
fn pool_fetches_all() {
    let world = World::new();
    world.import("store", &events::write(world.path(), "sample.jsonl", &sample(EVENTS, 7, Taste::RustNostr)));
    let expected = world.held("store");
    let (relay, url) = serve(&world, "store");
    let out = world.path().join("out.jsonl");
    let down = ["down".as_ref(), url.as_ref(), "--out".as_ref(), out.as_os_str()];
    let report = RustNostrPool::run(Build::Test, down).expect("the pool syncs");
    println!("pool down: {}", report.json);
    assert_eq!(report.received, expected.len() as u64, "{}", report.json);
    assert!(ids_in(&out) == expected, "pool and store differ");
    relay.signal("INT");
    assert_eq!(relay.wait(END_MAX).status, 0);
}

#[test]
fn pool_sends_all() {
    let world = World::new();
    // What the pool sends has no order, so nothing in it is to delete or supersede anything else.
    let kept = kept_together(&world, sample(EVENTS, 8, Taste::RustNostr));
    let load = events::write(world.path(), "sample.jsonl", &kept);
    let expected = ids_in(&load);
    let (relay, url) = serve(&world, "store");
    let up = ["up".as_ref(), url.as_ref(), "--in".as_ref(), load.as_os_str()];
    let report = RustNostrPool::run(Build::Test, up).expect("the pool syncs");
    println!("pool up: {}", report.json);
    assert_eq!((report.sent, report.send_failures), (expected.len() as u64, 0), "{}", report.json);
    relay.signal("TERM");
    assert_eq!(relay.wait(END_MAX).status, 0);
    assert!(world.held("store") == expected, "pool and store differ");
}
