//! Stores that fail, coverage across restarts.

use std::time::Duration;

use relaysync::engine::{Config, GapReason, Notice, RelayOptions};
use relaysync::protocol::Filter;
use relaysync::sim::{NegentropyRefused, PageCap, Remote, StoreFaults, World};

use crate::support::{daemon, history, one_shot};

#[test]
fn a_store_that_fails_is_a_gap_and_no_panic() {
    let faults = [
        StoreFaults { commits: Some(0), ..StoreFaults::default() },
        StoreFaults { commits: Some(2), ..StoreFaults::default() },
        StoreFaults { reads: Some(0), ..StoreFaults::default() },
        StoreFaults { reads: Some(3), ..StoreFaults::default() },
        StoreFaults { items: Some(0), ..StoreFaults::default() },
    ];
    for fault in faults {
        for held in [0, 100] {
            let events = history(900);
            let mut world = World::new();
            let relay = world.add_relay("wss://relay.example", Remote::with(&events).tamper(PageCap(100)));
            let engine = world.add_engine(one_shot());
            world.give(engine, &events[..held]);
            world.node_mut(engine).faults = fault.clone();
            world.sync(engine, &relay);
            let began = world.now().instant;
            let reports = world.finish(engine);
            assert!(world.now().instant - began < Duration::from_secs(60), "{fault:?}");
            let failed =
                world.node(engine).notices.iter().filter(|notice| matches!(notice, Notice::StoreFailed(_))).count();
            if failed == 0 {
                // The fault lay beyond what this run needed.
                assert!(reports[0].complete, "{fault:?}, {held} held");
                continue;
            }
            assert_eq!(failed, 1);
            assert!(!reports[0].complete, "{fault:?}, {held} held");
            assert!(
                reports[0].gaps.iter().any(|gap| matches!(gap.reason, GapReason::Store(_))),
                "{:?}",
                reports[0].gaps
            );
        }
    }
}

/// What was ready for a commit that will never be is due no more: a daemon rests.
#[test]
fn a_daemon_whose_store_failed_rests() {
    for commits in [0, 1, 2] {
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", Remote::with(&history(900)).tamper(PageCap(100)));
        let engine = world.add_engine(Config { commit_events_min: 50, commit_events_max: 50, ..daemon() });
        world.node_mut(engine).faults.commits = Some(commits);
        world.sync(engine, &relay);
        world.run(Duration::from_secs(600));
        let reports = world.node(engine).reports();
        assert!(reports[0].gaps.iter().any(|gap| matches!(gap.reason, GapReason::Store(_))), "{reports:#?}");
    }
}

/// A restart within a quarter of an hour asks for little; after it, for everything.
#[test]
fn coverage_survives_restarts_for_a_quarter_of_an_hour() {
    for (away_secs, full) in [(600, false), (1_200, true)] {
        let events = history(1_000);
        let mut world = World::new();
        let remote =
            Remote::with(&events[..900]).tamper(PageCap(100)).tamper(NegentropyRefused::notice("negentropy disabled"));
        let relay = world.add_relay("wss://relay.example", remote);
        let engine = world.add_engine(one_shot());
        world.sync(engine, &relay);
        assert!(world.finish(engine)[0].complete);
        let asked = world.relay(&relay).heard_of("REQ").len();
        world.restart(engine);
        world.run(Duration::from_secs(away_secs));
        world.publish(&relay, &events[990..]);
        world.sync(engine, &relay);
        let reports = world.finish(engine);
        assert!(reports[0].complete);
        assert_eq!(world.held(engine).len(), 910);
        let again = world.relay(&relay).heard_of("REQ").len() - asked;
        assert_eq!(again > 5, full, "{again} requests after {away_secs} s");
    }
}

#[test]
fn a_wall_clock_that_steps_does_not_lose_events() {
    for step in [-100_000, 100_000] {
        let events = history(100);
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", Remote::with(&events[..50]));
        let engine = world.add_engine(daemon());
        world.sync_with(engine, &relay, [Filter::new()], RelayOptions { live: true, ..RelayOptions::default() });
        world.run(Duration::from_secs(20));
        world.step_wall(step);
        world.cut(&relay, "");
        world.publish(&relay, &events[50..]);
        world.run(Duration::from_secs(60));
        world.restart(engine);
        world.step_wall(-step);
        world.run(Duration::from_secs(2_000));
        world.sync_with(engine, &relay, [Filter::new()], RelayOptions::default());
        world.run(Duration::from_secs(60));
        assert_eq!(world.held(engine).len(), 100);
    }
}

/// A pass that relies on an earlier one says so: what the relay got since then with an older date is not known.
#[test]
fn what_an_earlier_pass_has_proven_is_named() {
    let mut world = World::new();
    let refuses = NegentropyRefused::notice("negentropy disabled");
    let relay = world.add_relay("wss://relay.example", Remote::with(&history(60)).tamper(refuses));
    let engine = world.add_engine(one_shot());
    world.sync(engine, &relay);
    let first = world.now().unix_secs;
    assert_eq!(world.finish(engine)[0].relied_on_secs, None);
    world.restart(engine);
    world.sync(engine, &relay);
    let report = world.finish(engine).remove(0);
    assert!(report.complete);
    assert_eq!(report.relied_on_secs, Some(first));
}
