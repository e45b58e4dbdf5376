//! The test peers themselves: they start, load, serve and dump, and agree on what is kept of a sample.

#[path = "support/peers.rs"]
mod peers;

use std::collections::BTreeSet;
use std::path::PathBuf;

use peers::{Build, NpmRelay, PeerConfig, RustNostrPool, RustNostrRelay, read_lines};
use relaysync::protocol::Event;
use relaysync::sample::{Burst, SampleConfig, SampleKinds, cached_jsonl};

const DELETION: u16 = 5;

fn sample(folder: &tempfile::TempDir, kinds: SampleKinds) -> PathBuf {
    let burst = Some(Burst { second: 1_710_000_000, events: 150 });
    let config = SampleConfig { events: 1_200, burst, kinds, ..SampleConfig::default() };
    cached_jsonl(&config, folder.path()).expect("a temporary folder can be written")
}

fn parse(lines: &[String]) -> Vec<Event> {
    lines.iter().map(|line| Event::parse(line.clone().into()).expect("peers write events")).collect()
}

/// Ids, but for deletions and for versions of one date: the npm relay keeps no deletions, and rust-nostr's keeps the
/// last of equally old versions instead of the one with the lowest id.
fn comparable(lines: &[String]) -> BTreeSet<String> {
    let regular = |event: &&Event| event.kind.is_regular() && event.kind_number() != DELETION;
    parse(lines).iter().filter(regular).map(|event| event.id.to_hex()).collect()
}

#[test]
fn relays_load_and_dump_every_event() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let load = sample(&folder, SampleKinds::Regular);
    let expected: BTreeSet<String> = parse(&read_lines(&load)).iter().map(|event| event.id.to_hex()).collect();
    let config = PeerConfig { load: Some(load), ..PeerConfig::default() };
    for mut relay in [RustNostrRelay::start(&config), NpmRelay::start(&config)] {
        assert!(relay.url.starts_with("ws://127.0.0.1:"), "{}", relay.url);
        let held = parse(&relay.dump());
        assert!(held.iter().all(|event| event.verify().is_ok()));
        assert_eq!(held.iter().map(|event| event.id.to_hex()).collect::<BTreeSet<_>>(), expected);
    }
}

#[test]
fn relays_agree_on_what_deletions_leave() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let load = sample(&folder, SampleKinds::Mixed);
    let mut relays = [RustNostrRelay::start(&PeerConfig::default()), NpmRelay::start(&PeerConfig::default())];
    for relay in &mut relays {
        relay.load(&load);
    }
    let [rust_nostr, npm] = relays.map(|mut relay| comparable(&relay.dump()));
    assert_eq!(rust_nostr, npm);
    assert!(rust_nostr.len() < comparable(&read_lines(&load)).len(), "the sample deletes some");
}

/// The pool asks for 100 events at a time. Of more it loses half to its own relay, which closes a request for ids after
/// its EOSE: the pool takes that for the end of its next request.
#[test]
fn pool_fetches_one_request_from_its_own_relay() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = SampleConfig { events: 100, kinds: SampleKinds::Regular, ..SampleConfig::default() };
    let load = cached_jsonl(&config, folder.path()).expect("a temporary folder can be written");
    let relay = RustNostrRelay::start(&PeerConfig { load: Some(load.clone()), ..PeerConfig::default() });
    let out = folder.path().join("out.jsonl");
    let down = ["down".as_ref(), relay.url.as_ref(), "--out".as_ref(), out.as_os_str()];
    let report = RustNostrPool::run(Build::Test, down).expect("the pool syncs");
    assert_eq!((report.received, report.held), (100, 100), "{}", report.json);
    assert_eq!(comparable(&read_lines(&out)), comparable(&read_lines(&load)));
}

#[test]
fn pool_sends_all() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let load = sample(&folder, SampleKinds::Regular);
    let mut relay = RustNostrRelay::start(&PeerConfig::default());
    let lmdb = folder.path().join("lmdb");
    let up =
        ["up".as_ref(), relay.url.as_ref(), "--in".as_ref(), load.as_os_str(), "--lmdb".as_ref(), lmdb.as_os_str()];
    let report = RustNostrPool::run(Build::Test, up).expect("the pool syncs");
    assert_eq!((report.sent, report.send_failures), (1_200, 0), "{}", report.json);
    assert_eq!(comparable(&relay.dump()), comparable(&read_lines(&load)));
}

#[test]
fn relay_process_ends_with_its_value() {
    let relay = NpmRelay::start(&PeerConfig::default());
    let process = PathBuf::from(format!("/proc/{}", relay.pid));
    assert!(process.exists());
    drop(relay);
    assert!(!process.exists());
}
