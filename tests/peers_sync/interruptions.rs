//! Ctrl-C, SIGTERM, and a store that is in use.

use crate::call::Call;
use crate::events::{self, FUTURE_EVENTS, Taste, sample, spread};
use crate::peers::{NpmRelay, Peer, PeerConfig};
use crate::world::{END_MAX, World, dump};

const EVENTS: usize = 20_000;
/// Makes a sync take its time: a thousand requests, one after the other.
const PAGE_EVENTS: usize = 20;

/// A relay with small pages, and without the second that has more events than fit in one.
fn slow_relay(world: &World) -> Peer {
    let load = events::write(world.path(), "sample.jsonl", &spread(&sample(EVENTS, 3, Taste::Npm)));
    NpmRelay::start(&PeerConfig { load: Some(load), page_cap: Some(PAGE_EVENTS), ..PeerConfig::default() })
}

/// What the report says has been stored.
fn stored(call: &Call) -> usize {
    let counts = call.stdout.lines().find_map(|line| line.split_once(" received, ")).expect("a line of counts").1;
    let number = counts.split(' ').next().expect("a number").replace(',', "");
    number.parse().unwrap_or_else(|error| panic!("{error}: {call:?}"))
}

#[test]
fn signals_end_a_sync_at_once_and_the_next_continues() {
    let world = World::new();
    let mut relay = slow_relay(&world);
    let expected = dump(&mut relay);
    for signal in ["INT", "TERM"] {
        let store = format!("store-{signal}");
        let running = world.start(&["sync", &relay.url, "--store", &store]);
        running.wait_for_line(&["fetching", " pages"]);
        running.signal(signal);
        let call = running.wait(END_MAX);
        assert_eq!(call.status, 3, "{call:?}");
        assert!(
            call.stdout.contains("missing: {}, until ") && call.stdout.contains(": stopped before the end"),
            "{call:?}"
        );
        let kept = world.held(&store);
        assert!(!kept.is_empty() && kept.len() < expected.len(), "SIG{signal}: {} kept", kept.len());
        assert_eq!(stored(&call), kept.len(), "what is reported as stored is held: {call:?}");

        let next = world.sync(&relay.url, &store, &[]);
        next.tell(&format!("after SIG{signal}, with {} kept", kept.len()));
        next.assert_complete();
        assert!(world.held(&store) == expected, "SIG{signal}: store and relay differ");
        // It goes on below what is proven: only dates of the future, and an event at the edge of each page, come twice.
        let twice_max = (FUTURE_EVENTS + PAGE_EVENTS) as u64 + next.number("pages");
        assert!(next.number("duplicate") <= twice_max, "SIG{signal}: {}", next.report);
    }
}

#[test]
fn a_store_takes_one_sync_at_a_time() {
    let world = World::new();
    let relay = NpmRelay::start(&PeerConfig::default());
    let first = world.start(&["sync", &relay.url, "--store", "store", "--live"]);
    first.wait_for_line(&[&relay.url]);
    world.call(&["sync", &relay.url, "--store", "store"]).assert_one_line(1, "another process");
    first.signal("INT");
    let call = first.wait(END_MAX);
    assert_eq!(call.status, 0, "{call:?}");
}
