//! Connections that fail, hang, break and come back.

use std::time::Duration;

use relaysync::engine::{Command, Config, GapReason, Notice, Phase};
use relaysync::protocol::Window;
use relaysync::runtime::ConnectError;
use relaysync::sim::{ClosesAfter, Connects, NegentropyRefused, PageCap, Remote, Seen, Turn, World};

use crate::support::{Play, daemon, history, one_shot, play};

/// Reported as nostr-dev-kit/ndk#306: a fetch hung when one of several relays was offline.
#[test]
fn relays_that_hang_or_refuse_are_reported_and_the_others_complete() {
    let events = history(120);
    let mut world = World::new();
    let refused = Connects::Refused(ConnectError::Refused("nobody listens".into()));
    let one = world.add_relay("wss://one.example", Remote::with(&events[..80]));
    let offline = world.add_relay("wss://offline.example", Remote::with(&[]).connecting(refused));
    let hanging = world.add_relay("wss://hanging.example", Remote::with(&[]).connecting(Connects::Hangs));
    let two = world.add_relay("wss://two.example", Remote::with(&events[40..]));
    let engine = world.add_engine(one_shot());
    [&one, &offline, &hanging, &two].into_iter().for_each(|relay| world.sync(engine, relay));
    let began = world.now().instant;
    let reports = world.finish(engine);
    assert!(world.now().instant - began < Duration::from_secs(60));
    assert_eq!(reports.iter().map(|report| report.complete).collect::<Vec<_>>(), [true, false, false, true]);
    for report in &reports[1..3] {
        assert!(
            matches!(report.gaps[..], [ref gap] if matches!(gap.reason, GapReason::Unreachable(_)) && gap.window == Window::ALL)
        );
    }
    assert_eq!(world.held(engine).len(), 120);
    // What is fetched from one relay is not fetched from the other once more.
    assert!(reports[0].counters.stored + reports[3].counters.stored == 120);
}

#[test]
fn a_connection_that_breaks_in_mid_stream_is_taken_up_again() {
    for held in [0, 50] {
        let events = history(300);
        let relay = Remote::with(&events).tamper(PageCap(100)).tamper(ClosesAfter::new(130, 1));
        let played = Play::holding(&events[..held]).with(relay);
        played.is_equal().within(Duration::from_secs(30));
        assert_eq!(played.report.counters.connections, 2);
    }
}

#[test]
fn a_relay_that_always_breaks_before_a_page_ends_is_given_up_in_bounded_time() {
    let relay = Remote::with(&history(300)).tamper(NegentropyRefused::notice("negentropy disabled"));
    let played = play(relay.tamper(ClosesAfter::new(10, usize::MAX)));
    assert!(!played.report.complete);
    assert!(played.report.gaps.iter().all(|gap| matches!(gap.reason, GapReason::ConnectionLost(_))));
    played.within(Duration::from_secs(120));
}

/// Reported as Yonle/bostr#12: a storm of connections.
#[test]
fn attempts_are_spaced_by_the_backoff() {
    let mut world = World::new();
    let refused = Connects::Refused(ConnectError::Refused("nobody listens".into()));
    let relay = world.add_relay("wss://relay.example", Remote::with(&[]).connecting(refused));
    let engine = world.add_engine(daemon());
    world.sync(engine, &relay);
    world.run(Duration::from_secs(3 * 3600));
    let attempts = world.relay(&relay).attempts.clone();
    assert!((6..60).contains(&attempts.len()), "{}", attempts.len());
    assert!(attempts.windows(2).all(|pair| pair[1] - pair[0] >= daemon().backoff_floor));
    // Nor is it given up: once it answers, it is synced.
    world.relay_mut(&relay).mend();
    let done = |world: &World| world.node(engine).reports()[0].complete;
    assert!(world.run_until(Duration::from_secs(2 * 3600), done));
}

/// Reported as nbd-wtf/nostr-tools#538: one failed retry killed all subscriptions.
#[test]
fn a_failed_retry_fails_that_attempt_only() {
    let events = history(60);
    let mut world = World::new();
    let relay = world.add_relay("wss://relay.example", Remote::with(&events[..40]));
    let engine = world.add_engine(daemon());
    world.sync_with(engine, &relay, [relaysync::protocol::Filter::new()], crate::support::LIVE);
    world.run(Duration::from_secs(10));
    world.relay_mut(&relay).connects = Connects::Refused(ConnectError::Io("no route".into()));
    world.cut(&relay, "");
    world.run(Duration::from_secs(40));
    assert!(world.relay(&relay).attempts.len() >= 3);
    world.publish(&relay, &events[40..50]);
    world.relay_mut(&relay).connects = Connects::Always;
    world.run(Duration::from_secs(120));
    world.publish(&relay, &events[50..]);
    world.run(Duration::from_secs(5));
    assert_eq!(world.held(engine).len(), 60, "{}", world.trace());
    let report = &world.node(engine).reports()[0];
    assert!(report.complete && report.phase == Phase::Live, "{report:?}");
}

#[test]
fn stop_ends_at_once_and_loses_nothing_that_came() {
    for after_ms in [0, 3, 8, 20, 40, 60, 100, 200] {
        let events = history(900);
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", Remote::with(&events).tamper(PageCap(50)));
        let hanging = world.add_relay("wss://hanging.example", Remote::with(&[]).connecting(Connects::Hangs));
        let engine = world.add_engine(one_shot());
        world.sync(engine, &relay);
        world.sync(engine, &hanging);
        world.run(Duration::from_millis(after_ms));
        let received = world.node(engine).reports()[0].counters.received;
        world.command(engine, Command::Stop);
        let stopped = |world: &World| world.node(engine).ended.is_some();
        assert!(world.run_until(Duration::from_secs(2), stopped), "after {after_ms} ms\n{}", world.trace());
        assert!(matches!(world.node(engine).notices.last(), Some(Notice::Stopped(_))));
        let held = world.held(engine).len() as u64;
        let reports = world.node(engine).reports();
        assert_eq!(held, received - reports[0].counters.duplicate, "after {after_ms} ms");
        assert!(!reports[1].complete);
        // A second run continues, and ends equal.
        world.restart(engine);
        world.sync(engine, &relay);
        let report = world.finish(engine).remove(0);
        assert!(report.complete, "after {after_ms} ms: {report:?}\n{}", world.trace());
        assert_eq!(world.held(engine), world.held_by(&relay));
    }
}

#[test]
fn a_crash_at_any_moment_is_continued() {
    for after_ms in (0..160).step_by(7) {
        let events = history(600);
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", Remote::with(&events).tamper(PageCap(40)));
        let engine = world.add_engine(one_shot());
        world.sync(engine, &relay);
        world.run(Duration::from_millis(after_ms));
        world.restart(engine);
        world.run(Duration::from_secs(if after_ms % 2 == 0 { 30 } else { 3_000 }));
        world.sync(engine, &relay);
        assert!(world.finish(engine)[0].complete);
        assert_eq!(world.held(engine), world.held_by(&relay));
    }
}

/// A cursor that jumps to the newest event in the middle of a catch-up loses the older tail after a drop.
#[test]
fn what_is_proven_is_continued_below_and_not_begun_again() {
    let events = history(3_000);
    let mut world = World::new();
    let remote = Remote::with(&events).tamper(PageCap(100)).tamper(NegentropyRefused::notice("negentropy disabled"));
    let relay = world.add_relay("wss://relay.example", remote);
    let engine = world.add_engine(one_shot());
    world.sync(engine, &relay);
    let half = |world: &World| world.held(engine).len() >= 1_000;
    assert!(world.run_until(Duration::from_secs(10), half));
    world.command(engine, Command::Stop);
    world.run(Duration::from_secs(2));
    let before = world.held(engine).len();
    assert!(before < 3_000);
    let coverage = world.node(engine).coverage();
    assert!(coverage[0].windows.iter().all(|proof| proof.window.since > 0), "{coverage:?}");
    world.restart(engine);
    world.sync(engine, &relay);
    let reports = world.finish(engine);
    assert!(reports[0].complete);
    assert_eq!(world.held(engine).len(), 3_000);
    let again = reports[0].counters.received as usize - (3_000 - before);
    assert!(again <= 250, "{again} events came again");
}

#[test]
fn a_silent_connection_is_cut_and_tried_again() {
    let mut silent = true;
    let mut sent = 0;
    let mute = Seen(move |_, frame: String, _: &mut Turn| {
        sent += 1;
        silent &= sent < 3;
        Some(frame).filter(|_| !silent)
    });
    let played = play(Remote::with(&history(20)).tamper(mute));
    played.is_equal();
    assert!(played.report.counters.connections >= 2);
}

#[test]
fn a_forged_copy_does_not_suppress_the_honest_one() {
    let events = history(60);
    for contents in [false, true] {
        for honest_first in [false, true] {
            let ids = crate::support::ids(&events);
            let tamper = if contents {
                relaysync::sim::Altered::contents(ids)
            } else {
                relaysync::sim::Altered::signatures(ids)
            };
            let mut world = World::new();
            let liar = world.add_relay("wss://liar.example", Remote::with(&events).tamper(tamper).unchecked());
            let honest = world.add_relay("wss://honest.example", Remote::with(&events));
            let engine = world.add_engine(Config { verify_events_max: 7, ..one_shot() });
            let order = if honest_first { [&honest, &liar] } else { [&liar, &honest] };
            order.into_iter().for_each(|relay| world.sync(engine, relay));
            let reports = world.finish(engine);
            assert_eq!(world.held(engine), world.held_by(&honest));
            assert!(world.node(engine).events(world.now().unix_secs).iter().all(|event| event.verify().is_ok()));
            assert!(reports.iter().any(|report| report.relay == honest && report.complete));
        }
    }
}
