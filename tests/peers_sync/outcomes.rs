//! What a sync comes to when things are not as they should be: the exit status, and one clear line.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::events::{self, Taste, kept_together, sample};
use crate::peers::{NpmRelay, PeerConfig, RustNostrRelay};
use crate::world::{END_MAX, Outcome, World, dump};

const EVENTS: usize = 2_000;

/// An address of this machine where nobody listens.
fn offline_relay() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("ws://{}", listener.local_addr().expect("it is bound"))
}

#[test]
fn others_complete_while_one_is_offline() {
    let world = World::new();
    let all = sample(EVENTS, 4, Taste::Npm);
    let load = Some(events::write(world.path(), "sample.jsonl", &all[EVENTS / 3..]));
    let mut rust_nostr = RustNostrRelay::start(&PeerConfig { load, ..PeerConfig::default() });
    let load = Some(events::write(world.path(), "sample.jsonl", &all[..EVENTS / 2]));
    let mut npm = NpmRelay::start(&PeerConfig { load, ..PeerConfig::default() });
    let offline = offline_relay();

    let call = world.call(&["sync", &rust_nostr.url, &offline, &npm.url, "--store", "store", "--json"]);
    let outcome = Outcome::of(&call, Duration::ZERO);
    assert_eq!(outcome.status, 3, "{call:?}");
    let verdicts = ["0", "1", "2"].map(|number| {
        let relay = &outcome.report["relays"][number.parse::<usize>().expect("a number")];
        (relay["relay"].as_str().expect("a URL").to_owned(), relay["complete"].as_bool(), relay["error"].is_null())
    });
    let expected = [
        (rust_nostr.url.clone(), Some(true), true),
        (offline.clone(), Some(false), false),
        (npm.url.clone(), Some(true), true),
    ];
    assert_eq!(verdicts, expected);
    assert!(outcome.report["relays"][1]["error"].to_string().contains("refused"), "{}", outcome.report);

    world.import("all", &events::write(world.path(), "sample.jsonl", &all));
    let held = world.held("store");
    assert!(held == world.held("all"), "the store lacks events, or has too many");
    assert!(dump(&mut rust_nostr).union(&dump(&mut npm)).count() >= held.len());
}

#[test]
fn an_offline_relay_alone_is_a_failure_that_names_it() {
    let world = World::new();
    let offline = offline_relay();
    let call = world.call(&["sync", &offline, "--store", "store"]);
    assert_eq!(call.status, 1, "{call:?}");
    let naming: Vec<&str> = call.stdout.lines().filter(|line| line.contains("not reachable")).collect();
    assert!(naming.len() == 1 && naming[0].starts_with(&format!("{offline}  failed: ")), "{call:?}");
}

#[test]
fn wrong_calls_are_status_2_and_one_line() {
    let world = World::new();
    for (arguments, word) in [
        (&["sync", "https://relay.example"][..], "the scheme must be ws or wss"),
        (&["sync", "relay.example"], "relay.example"),
        (&["sync", "ws://relay.example", "--filter", "{\"kind\":[1]}"], "unknown field \"kind\""),
        (&["sync", "ws://relay.example", "--key", "no-such-file"], "key file no-such-file"),
    ] {
        world.call(arguments).assert_one_line(2, word);
    }
    assert_eq!(std::fs::read_dir(world.path()).expect("it is there").count(), 0, "no store was made");
}

#[test]
fn a_store_that_cannot_be_written_is_a_failure_in_one_line() {
    let world = World::new();
    std::fs::write(world.path().join("file"), "no folder").expect("a temporary folder can be written");
    let relay = RustNostrRelay::start(&PeerConfig::default());
    for store in ["file", "file/store"] {
        world.call(&["sync", &relay.url, "--store", store]).assert_one_line(1, "file");
    }
}

/// The system takes the connection, and nobody ever says a word.
#[test]
fn the_time_limit_leaves_a_gap() {
    let world = World::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let relay = format!("ws://{}", silent.local_addr().expect("it is bound"));
    let begun = Instant::now();
    let outcome = world.sync(&relay, "store", &["--timeout", "1"]);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(outcome.status, 3, "{}", outcome.report);
    assert_eq!(outcome.report["relays"][0]["gaps"][0]["reason"], "stopped before the end", "{}", outcome.report);
}

#[test]
fn a_dry_run_counts_and_stores_nothing() {
    let world = World::new();
    let all = sample(EVENTS, 5, Taste::RustNostr);
    let half = |rest| all.iter().enumerate().filter(move |(number, _)| number % 2 == rest).map(|(_, event)| event);
    let load = Some(events::write(world.path(), "theirs.jsonl", half(0)));
    world.import("store", &events::write(world.path(), "ours.jsonl", half(1)));
    let mut relay = RustNostrRelay::start(&PeerConfig { load, ..PeerConfig::default() });
    let (ours, theirs) = (world.held("store"), dump(&mut relay));

    for method in ["negentropy", "req"] {
        let dry = world.sync(&relay.url, "store", &["--dry-run", "--direction", "both", "--method", method]);
        assert_eq!(dry.status, 0, "{}", dry.report);
        assert_eq!((dry.number("stored"), dry.number("published")), (0, 0), "{}", dry.report);
        assert_eq!(dry.number("would_store"), theirs.difference(&ours).count() as u64, "{method}: {}", dry.report);
        assert_eq!(dry.number("would_publish"), ours.difference(&theirs).count() as u64, "{method}: {}", dry.report);
        assert!(world.held("store") == ours && dump(&mut relay) == theirs, "{method}: something has changed");
    }
}

/// The events of a progress line: `… · 1,234 events · …`.
fn events_in(line: &str) -> usize {
    let counts = line.split(" · ").filter_map(|part| part.strip_suffix(" events"));
    counts.filter_map(|number| number.replace(',', "").parse::<usize>().ok()).sum()
}

#[test]
fn live_takes_what_is_published_meanwhile() {
    let world = World::new();
    let mut relay = RustNostrRelay::start(&PeerConfig::default());
    let all = kept_together(&world, sample(300, 6, Taste::RustNostr));
    world.import("early", &events::write(world.path(), "early.jsonl", &all[..all.len() / 2]));
    world.import("late", &events::write(world.path(), "late.jsonl", &all[all.len() / 2..]));
    world.sync(&relay.url, "early", &["--direction", "up"]).assert_complete();

    let live = world.start(&["sync", &relay.url, "--store", "store", "--live"]);
    live.wait_for_line(&["  live · "]);
    world.sync(&relay.url, "late", &["--direction", "up"]).assert_complete();
    // Of each event it is told at least once.
    live.wait_for(|line| events_in(line) >= all.len());
    live.signal("INT");
    let call = live.wait(END_MAX);
    assert_eq!(call.status, 0, "{call:?}");
    assert!(call.stdout.contains("1 relay, all complete"), "{call:?}");
    assert!(world.held("store") == dump(&mut relay), "store and relay differ");
}
