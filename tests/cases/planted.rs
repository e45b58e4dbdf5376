//! Faults put into the engine on purpose: each must show, or the checks of the simulation are worth nothing.

use std::time::Duration;

use relaysync::engine::{Config, Planted};
use relaysync::protocol::Event;
use relaysync::sim::{Altered, NOW_SECS, NegentropyRefused, PageCap, Remote, World, note, notes};

use crate::support::{Daemon, Play, Played, daemon, history, ids, one_shot};

fn planting(fault: Planted) -> Config {
    Config { planted: Some(fault), ..one_shot() }
}

fn paged(events: &[Event], cap: usize) -> Remote {
    Remote::with(events).tamper(PageCap(cap)).tamper(NegentropyRefused::notice("negentropy disabled"))
}

/// The engine says that it holds all, and does not.
#[track_caller]
fn is_deceived(played: &Played) {
    let (here, there) = (played.world.held(played.engine).len(), played.world.held_by(&played.relay).len());
    assert!(played.report.complete && here < there, "{here} of {there} held: {:#?}", played.report);
}

#[test]
fn a_constant_page_threshold_loses_what_smaller_pages_leave() {
    let play = |config| Play::default().config(config).with(paged(&history(300), 50).unchecked());
    play(one_shot()).is_equal();
    is_deceived(&play(planting(Planted::PageThreshold)));
}

#[test]
fn one_second_too_low_loses_the_rest_of_a_second() {
    let events: Vec<Event> = (0..600).map(|n| note(1_699_000_000 + n / 7).content(n.to_string()).sign()).collect();
    let play = |config| Play::default().config(config).with(paged(&events, 100).unchecked());
    play(one_shot()).is_equal();
    is_deceived(&play(planting(Planted::OldestMinusOne)));
}

#[test]
fn ids_that_are_seen_before_the_commit_let_a_liar_suppress_events() {
    let events = history(60);
    let play = |config: Config| {
        let mut world = World::new();
        let forging = Altered::signatures(ids(&events));
        let liar = world.add_relay("wss://liar.example", Remote::with(&events).tamper(forging).unchecked());
        let honest = world.add_relay("wss://honest.example", Remote::with(&events).unchecked());
        let engine = world.add_engine(config);
        [&liar, &honest].into_iter().for_each(|relay| world.sync(engine, relay));
        let complete = world.finish(engine).iter().any(|report| report.relay == honest && report.complete);
        (complete, world.held(engine).len())
    };
    assert_eq!(play(one_shot()), (true, 60));
    let (complete, held) = play(planting(Planted::SeenBeforeCommit));
    assert!(complete && held < 60, "{held}");
}

#[test]
#[should_panic(expected = "without having")]
fn coverage_that_comes_first_claims_what_is_not_held() {
    Play::default().config(planting(Planted::CoverageFirst)).with(paged(&notes(NOW_SECS - 300..NOW_SECS), 100));
}

/// A link that was up for hours and blips for a moment is fetched from all over again.
#[test]
fn an_absence_that_is_counted_from_the_connect_fetches_everything_again() {
    let received = |planted| {
        let mut daemon = Daemon::configured(Config { planted, ..daemon() }, paged(&history(400), 500));
        daemon.secs(4_000);
        daemon.world.cut(&daemon.relay, "");
        daemon.world.run(Duration::from_secs(60));
        daemon.is_equal();
        daemon.report().counters.received
    };
    let (whole, planted) = (received(None), received(Some(Planted::QuickFromConnect)));
    assert!(whole < 450 && planted >= 800, "{whole} and {planted} events came");
}
