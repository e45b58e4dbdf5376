//! Down, up and both ways, with 20,000 events: afterwards store and relay hold the same, and a second sync has nothing
//! to do.

use std::collections::BTreeSet;
use std::time::SystemTime;

use relaysync::protocol::Event;

use crate::events::{self, BURST_EVENTS, BURST_SECOND, FUTURE_EVENTS, Taste, sample};
use crate::peers::{NpmRelay, Peer, PeerConfig, RustNostrRelay};
use crate::world::{Outcome, World, dump};

const EVENTS: usize = 20_000;

/// A relay that holds the sample.
fn loaded(world: &World, taste: Taste, config: PeerConfig) -> Peer {
    let load = events::write(world.path(), "sample.jsonl", &sample(EVENTS, 1, taste));
    start(taste, PeerConfig { load: Some(load), ..config })
}

fn start(taste: Taste, config: PeerConfig) -> Peer {
    match taste {
        Taste::RustNostr => RustNostrRelay::start(&config),
        Taste::Npm => NpmRelay::start(&config),
    }
}

/// Syncs down into an empty store, and once more.
fn down(world: &World, relay: &mut Peer, what: &str, options: &[&str]) -> [Outcome; 2] {
    let held = dump(relay);
    assert!(held.len() > EVENTS / 2, "{}", held.len());
    let first = world.sync(&relay.url, "store", options);
    first.tell(what);
    first.assert_complete();
    assert_eq!(first.number("stored"), held.len() as u64, "{}", first.report);
    assert!(world.held("store") == held, "{what}: store and relay differ");

    let second = world.sync(&relay.url, "store", options);
    second.tell(&format!("{what}, again"));
    second.assert_complete();
    assert_eq!(second.number("stored"), 0, "{}", second.report);
    [first, second]
}

/// How many events of the store are dated in the future.
fn dated_in_the_future(world: &World) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is later than 1970").as_secs();
    world.count("store", &format!("{{\"since\":{now}}}"))
}

/// Sends a store to an empty relay, and once more.
fn up(taste: Taste, what: &str) {
    let world = World::new();
    world.import("store", &events::write(world.path(), "sample.jsonl", &sample(EVENTS, 1, taste)));
    let held = world.held("store");
    let mut relay = start(taste, PeerConfig::default());
    let first = world.sync(&relay.url, "store", &["--direction", "up"]);
    first.tell(what);
    first.assert_complete();
    assert_eq!((first.number("published"), first.number("refused")), (held.len() as u64, 0), "{}", first.report);
    assert!(dump(&mut relay) == held, "{what}: store and relay differ");
    assert!(world.held("store") == held, "{what}: the store has changed");

    let second = world.sync(&relay.url, "store", &["--direction", "up"]);
    second.tell(&format!("{what}, again"));
    second.assert_complete();
    assert_eq!((second.number("published"), second.number("stored")), (0, 0), "{}", second.report);
}

/// Every second event here, the others there; afterwards both have what a store makes of all of them.
fn both(taste: Taste, what: &str) {
    let world = World::new();
    let all = sample(EVENTS, 1, taste);
    let half = |rest| all.iter().enumerate().filter(move |(number, _)| number % 2 == rest).map(|(_, event)| event);
    let load = events::write(world.path(), "theirs.jsonl", half(0));
    world.import("store", &events::write(world.path(), "ours.jsonl", half(1)));
    world.import("all", &events::write(world.path(), "all.jsonl", &all));
    let mut relay = start(taste, PeerConfig { load: Some(load), ..PeerConfig::default() });

    let first = world.sync(&relay.url, "store", &["--direction", "both"]);
    first.tell(what);
    first.assert_complete();
    let expected = world.held("all");
    assert!(world.held("store") == expected, "{what}: the store lacks events, or has too many");
    assert!(dump(&mut relay) == expected, "{what}: the relay lacks events, or has too many");

    let second = world.sync(&relay.url, "store", &["--direction", "both"]);
    second.tell(&format!("{what}, again"));
    second.assert_complete();
    assert_eq!((second.number("published"), second.number("stored")), (0, 0), "{}", second.report);
}

#[test]
fn down_from_a_relay_that_reconciles() {
    let world = World::new();
    let mut relay = loaded(&world, Taste::RustNostr, PeerConfig::default());
    let [_, second] = down(&world, &mut relay, "rust-nostr down", &[]);
    assert_eq!(second.number("received"), 0, "{}", second.report);
}

#[test]
fn down_by_reconciliation_from_the_start() {
    let world = World::new();
    let mut relay = loaded(&world, Taste::RustNostr, PeerConfig::default());
    let [_, second] = down(&world, &mut relay, "rust-nostr down, negentropy", &["--method", "negentropy"]);
    assert_eq!(second.number("received"), 0, "{}", second.report);
}

/// Pages of 60, one of which cannot hold the second of 700 events: that second is reconciled.
#[test]
fn down_from_a_relay_whose_page_is_smaller_than_a_second() {
    let world = World::new();
    let mut relay = loaded(&world, Taste::RustNostr, PeerConfig { page_cap: Some(60), ..PeerConfig::default() });
    let [_, second] = down(&world, &mut relay, "rust-nostr down, pages of 60", &[]);
    assert_eq!(second.number("received"), 0, "{}", second.report);
}

#[test]
fn down_from_a_relay_that_wants_authentication() {
    let world = World::new();
    let mut relay = loaded(&world, Taste::RustNostr, PeerConfig { auth: true, ..PeerConfig::default() });
    std::fs::write(world.path().join("key"), "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa")
        .expect("a temporary folder can be written");
    let refused = world.sync(&relay.url, "refused", &[]);
    assert_eq!((refused.status, refused.number("received")), (3, 0), "{}", refused.report);
    assert!(refused.report.to_string().contains("wants authentication"), "{}", refused.report);
    let [_, second] = down(&world, &mut relay, "rust-nostr down, NIP-42", &["--key", "key"]);
    assert_eq!(second.number("received"), 0, "{}", second.report);
}

/// Without NIP-77 a second sync within a quarter of an hour asks only for what the first has not proven: dates from
/// five minutes before it on, of which the sample has those in the future, and again what stands at the edge of a page.
#[test]
fn down_from_a_relay_that_only_pages() {
    let world = World::new();
    let mut relay = loaded(&world, Taste::Npm, PeerConfig::default());
    let [_, second] = down(&world, &mut relay, "npm down", &[]);
    assert_eq!(second.number("received"), second.number("duplicate"), "{}", second.report);
    let future = dated_in_the_future(&world);
    assert!(future > FUTURE_EVENTS as u64 / 2);
    let edges = second.number("received") - future;
    assert!(edges < second.number("pages"), "{edges} at edges, {future} in the future: {}", second.report);
}

/// Pages of 100 at most, and 700 events in one second. What cannot be asked for in any way is a gap, of this second and
/// no other; a filter that lists kinds and authors can be asked for in parts, which brings everything.
#[test]
fn down_from_a_relay_with_small_pages_and_a_full_second() {
    let world = World::new();
    let mut relay = loaded(&world, Taste::Npm, PeerConfig { page_cap: Some(100), ..PeerConfig::default() });
    let (held, second) = (dump(&mut relay), BURST_SECOND);
    let partial = world.sync(&relay.url, "partial", &[]);
    partial.tell("npm down, pages of 100, any event");
    assert_eq!(partial.status, 3, "{}", partial.report);
    let gaps = partial.report["relays"][0]["gaps"].as_array().expect("a list");
    let windows: Vec<_> = gaps.iter().map(|gap| (gap["since"].as_u64(), gap["until"].as_u64())).collect();
    assert_eq!(windows, [(Some(second), Some(second))], "{}", partial.report);
    let got = world.held("partial");
    let lacking = held.difference(&got).count();
    assert!(got.is_subset(&held) && lacking > 0 && lacking < BURST_EVENTS, "{lacking} lacking");
    let in_second = format!("{{\"since\":{second},\"until\":{second}}}");
    assert_eq!(world.count("partial", &in_second) as usize, BURST_EVENTS - lacking, "all others are held");

    let everything = filter_that_lists_all(&sample(EVENTS, 1, Taste::Npm));
    let [_, second] = down(&world, &mut relay, "npm down, pages of 100, in parts", &["--filter", &everything]);
    assert_eq!(second.number("received"), second.number("duplicate"), "{}", second.report);
}

/// A filter that selects all of `events`, by naming each of their kinds and authors.
fn filter_that_lists_all(events: &[Event]) -> String {
    let kinds: BTreeSet<u16> = events.iter().map(|event| event.kind_number()).collect();
    let authors: BTreeSet<String> = events.iter().map(|event| event.pubkey.to_hex()).collect();
    serde_json::json!({ "kinds": kinds, "authors": authors }).to_string()
}

#[test]
fn up_to_a_relay_that_reconciles() {
    up(Taste::RustNostr, "rust-nostr up");
}

#[test]
fn up_to_a_relay_that_only_pages() {
    up(Taste::Npm, "npm up");
}

#[test]
fn both_ways_with_a_relay_that_reconciles() {
    both(Taste::RustNostr, "rust-nostr both");
}

#[test]
fn both_ways_with_a_relay_that_only_pages() {
    both(Taste::Npm, "npm both");
}
