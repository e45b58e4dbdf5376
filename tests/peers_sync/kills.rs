//! `kill -9` at twenty moments spread over a sync: the next one ends with what the relay holds.

use std::time::{Duration, Instant};

use relaysync::protocol::Event;

use crate::events::{self, Ids, Taste, sample, spread};
use crate::peers::{NpmRelay, Peer, PeerConfig, RustNostrRelay};
use crate::world::{World, dump};

const KILLS: u32 = 20;
const EVENTS: usize = 20_000;
/// How long a killed process may take to be gone.
const DEATH_MAX: Duration = Duration::from_secs(10);

/// A sequence of numbers that look like chance (xorshift), the same in every run.
struct Chance(u64);

impl Chance {
    /// At least 0, below 1.
    fn next(&mut self) -> f64 {
        for shift in [13, -7, 17] {
            self.0 ^= if shift > 0 { self.0 << shift } else { self.0 >> -shift };
        }
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Kills a sync into an empty store after each of [`KILLS`] delays, one from every part of the time that a whole one
/// takes, and syncs again. Gives back how many events the killed ones have kept.
fn kill_and_sync(relay: &mut Peer, options: &[&str], seed: u64) -> Vec<usize> {
    let world = World::new();
    let expected = dump(relay);
    let begun = Instant::now();
    world.sync(&relay.url, "whole", options).assert_complete();
    let whole = begun.elapsed();

    let mut chance = Chance(seed);
    let kept = (0..KILLS).map(|number| {
        let store = format!("store-{number}");
        let delay = whole.mul_f64((f64::from(number) + chance.next()) / f64::from(KILLS));
        let running = world.start(&[&["sync", &relay.url, "--store", &store, "--json"], options].concat());
        std::thread::sleep(delay);
        running.signal("KILL");
        running.wait(DEATH_MAX);
        let kept = held_if_any(&world, &store);
        assert!(kept.is_subset(&expected), "kill {number}: the store holds what the relay does not");

        let next = world.sync(&relay.url, &store, options);
        next.assert_complete();
        assert_eq!(next.number("stored") as usize, expected.len() - kept.len(), "kill {number}: {}", next.report);
        assert!(world.held(&store) == expected, "kill {number} after {delay:?}: store and relay differ");
        if next.number("pages") == 0 {
            assert_eq!(next.number("duplicate"), 0, "kill {number}: what was kept came again: {}", next.report);
        }
        kept.len()
    });
    let kept = kept.collect();
    println!("{KILLS} kills within {whole:?} kept {kept:?} of {} events", expected.len());
    kept
}

/// A killed sync may have ended before it made a store.
fn held_if_any(world: &World, store: &str) -> Ids {
    if world.path().join(store).exists() { world.held(store) } else { Ids::new() }
}

fn loaded(events: &[Event]) -> (tempfile::TempDir, PeerConfig) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let load = events::write(folder.path(), "sample.jsonl", events);
    (folder, PeerConfig { load: Some(load), ..PeerConfig::default() })
}

#[test]
fn killed_while_it_reconciles() {
    let (_folder, config) = loaded(&sample(EVENTS, 2, Taste::RustNostr));
    let mut relay = RustNostrRelay::start(&config);
    let kept = kill_and_sync(&mut relay, &["--method", "negentropy"], 0x5eed_0001);
    assert!(kept.iter().any(|events| *events > 0), "some kill comes after a commit");
}

#[test]
fn killed_while_it_pages() {
    let (_folder, config) = loaded(&spread(&sample(EVENTS, 2, Taste::Npm)));
    let mut relay = NpmRelay::start(&PeerConfig { page_cap: Some(100), ..config });
    let kept = kill_and_sync(&mut relay, &[], 0x5eed_0002);
    assert!(kept.iter().any(|events| *events > 0), "some kill comes after a commit");
}
