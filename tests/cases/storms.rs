//! How often and how much a relay is bothered.

use std::collections::BTreeSet;
use std::time::Duration;

use relaysync::engine::Phase;
use relaysync::protocol::{ClientMessage, Filter, RelayUrl};
use relaysync::relay::HealthState;
use relaysync::runtime::{ConnectError, Instant};
use relaysync::serve::ServeConfig;
use relaysync::sim::{Connects, Direction, NOW_SECS, Remote, Seen, Turn, World, note, plain_relay};

use crate::support::{Daemon, LIVE, daemon, filters_asked, history};

/// Reported as nostr-protocol/nips#1876: `wss://x` and `wss://x/` became two connections.
#[test]
fn spellings_of_one_relay_are_one_relay_and_one_connection() {
    let mut world = World::new();
    let relay = world.add_relay("wss://x.example", Remote::with(&history(20)));
    let engine = world.add_engine(daemon());
    for spelling in [
        "wss://x.example",
        "wss://x.example/",
        "WSS://X.Example",
        "wss://x.example:443/",
        "wss://x.example.",
        "wss://x.example/?utm_source=someone&ref=note#top",
    ] {
        let spelt = RelayUrl::parse(spelling).expect("a relay URL");
        world.sync_with(engine, &spelt, [Filter::new()], LIVE);
        world.run(Duration::from_secs(5));
        assert_eq!(world.node(engine).reports().len(), 1, "{spelling}");
    }
    assert_eq!(world.relay(&relay).attempts.len(), 1);
    let live = filters_asked(&world, &relay).iter().filter(|filter| filter.limit == Some(0)).count();
    assert_eq!(live, 1, "one subscription");
    assert_eq!(world.held(engine).len(), 20);
}

fn refused() -> Connects {
    Connects::Refused(ConnectError::Refused("nobody listens".into()))
}

/// Reported as Yonle/bostr#12: 27 connections a second from one address.
#[test]
fn connection_attempts_are_spaced_over_all_relays_together() {
    let mut world = World::new();
    let engine = world.add_engine(daemon());
    let relays: Vec<RelayUrl> = (0..200)
        .map(|n| world.add_relay(&format!("wss://relay{n}.example"), Remote::with(&[]).connecting(refused())))
        .collect();
    relays.iter().for_each(|relay| world.sync_with(engine, relay, [Filter::new()], LIVE));
    world.run(Duration::from_secs(1_800));
    // Then all of them are there, and all are lost at one moment, as when the network goes.
    relays.iter().for_each(|relay| world.relay_mut(relay).mend());
    world.run(Duration::from_secs(4_000));
    assert!(world.node(engine).reports().iter().all(|report| report.phase == Phase::Live));
    relays.iter().for_each(|relay| world.cut(relay, ""));
    world.run(Duration::from_secs(60));
    assert!(world.node(engine).reports().iter().all(|report| report.phase == Phase::Live), "{}", world.trace());

    let attempts = |relay: &RelayUrl| world.relay(relay).attempts.clone();
    let mut all: Vec<Instant> = relays.iter().flat_map(attempts).collect();
    all.sort_unstable();
    assert!(all.windows(27).all(|some| some[26] - some[0] > Duration::from_secs(1)));
    let floor = daemon().backoff_floor;
    let mut waits = BTreeSet::new();
    for attempts in relays.iter().map(attempts) {
        assert!((5..40).contains(&attempts.len()), "{}", attempts.len());
        assert!(attempts.windows(2).all(|pair| pair[1] - pair[0] >= floor));
        waits.extend(attempts.windows(2).map(|pair| pair[1] - pair[0]));
    }
    assert!(waits.len() > 1_000, "{} different waits: they are not jittered", waits.len());
}

/// A relay that accepts every connection and closes it before it has answered anything is backed off from, too.
#[test]
fn a_relay_that_closes_what_it_accepts_is_backed_off_from() {
    let mut world = World::new();
    let slams = Seen(|direction, frame: String, turn: &mut Turn| {
        if direction == Direction::Up {
            turn.close("go away");
            return None;
        }
        Some(frame)
    });
    let relay = world.add_relay("wss://relay.example", Remote::with(&history(5)).tamper(slams));
    let engine = world.add_engine(daemon());
    world.sync_with(engine, &relay, [Filter::new()], LIVE);
    world.run(Duration::from_secs(3 * 3600));
    let attempts = world.relay(&relay).attempts.len();
    assert!((6..60).contains(&attempts), "{attempts}");
    assert_eq!(world.node(engine).reports()[0].health, HealthState::Degraded);
}

/// Reported as Yonle/bostr#17: "too many concurrent REQs". Here the relay states its limit (NIP-11).
#[test]
fn a_stated_limit_on_subscriptions_is_kept_and_the_rest_waits() {
    let events: Vec<_> =
        (0..60_u16).map(|n| note(NOW_SECS - u64::from(n)).kind(1_000 + n % 20).content(n.to_string()).sign()).collect();
    let filters = (0..20_u16).map(|kind| Filter::new().kind((1_000 + kind).into()));
    for most in [1, 3] {
        let config = ServeConfig { subscriptions_max: most, ..plain_relay() };
        let remote = Remote::configured(config, &events).with_info();
        let mut daemon = Daemon::wanting(filters.clone(), remote, None);
        daemon.secs(300);
        // On the first connection the document comes when the first requests are on their way already.
        let before = daemon.world.relay(&daemon.relay).heard.len();
        daemon.world.cut(&daemon.relay, "");
        daemon.secs(300);
        let mut open = BTreeSet::new();
        for (_, frame) in &daemon.world.relay(&daemon.relay).heard[before..] {
            match ClientMessage::parse(frame) {
                Ok(ClientMessage::Req { subscription, .. }) => drop(open.insert(subscription.into_owned())),
                Ok(ClientMessage::Close { subscription }) => drop(open.remove(&*subscription)),
                _ => {}
            }
            assert!(open.len() <= most, "{} open of {most}", open.len());
        }
        assert_eq!(daemon.world.held(daemon.engine).len(), 60);
        let report = daemon.report();
        assert!(report.complete, "{report:?}");
        assert_eq!(report.phase, Phase::Polling, "it is seen that not everything is live");
    }
}

/// A relay with nothing confirmed yet used to be cut after 2 s, while its first history was on its way.
#[test]
fn a_slow_first_history_is_waited_for() {
    for live in [false, true] {
        let slow = Seen(|direction, frame: String, turn: &mut Turn| {
            if direction == Direction::Up {
                return Some(frame);
            }
            turn.say_later(frame, Duration::from_secs(10));
            None
        });
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", Remote::with(&history(60)).tamper(slow));
        let engine = world.add_engine(daemon());
        let options = if live { LIVE } else { relaysync::engine::RelayOptions::default() };
        world.sync_with(engine, &relay, [Filter::new()], options);
        world.run(Duration::from_secs(9));
        assert_eq!(world.node(engine).reports()[0].phase, Phase::Syncing);
        assert!(world.node(engine).closed.is_empty());
        world.run(Duration::from_secs(60));
        let report = world.node(engine).reports().remove(0);
        assert!(report.complete, "{report:?}");
        assert_eq!((report.counters.connections, world.held(engine).len()), (1, 60));
    }
}

/// A relay that failed its first connect used to be never tried again.
#[test]
fn a_relay_that_fails_its_first_connect_is_tried_for_days() {
    for fault in [refused(), Connects::Hangs] {
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", Remote::with(&history(20)).connecting(fault.clone()));
        let engine = world.add_engine(daemon());
        world.sync_with(engine, &relay, [Filter::new()], LIVE);
        let mut tried = 0;
        for (day, health) in [HealthState::Degraded, HealthState::Dead, HealthState::Dead].into_iter().enumerate() {
            world.run(Duration::from_secs(if day == 0 { 23 * 3600 } else { 25 * 3600 }));
            let attempts = world.relay(&relay).attempts.len();
            assert!(attempts > tried, "{fault:?}: no attempt on day {day}");
            tried = attempts;
            assert_eq!(world.node(engine).reports()[0].health, health, "{fault:?}, day {day}");
        }
        assert!(tried < 150, "{fault:?}: {tried} attempts");
        world.relay_mut(&relay).mend();
        world.run(Duration::from_secs(25 * 3600));
        world.publish(&relay, &[note(NOW_SECS + 5 * 86_400).sign()]);
        world.run(Duration::from_secs(1));
        let report = world.node(engine).reports().remove(0);
        assert!(report.complete && report.phase == Phase::Live, "{fault:?}: {report:?}");
        assert_eq!((report.health, world.held(engine).len()), (HealthState::Healthy, 21));
    }
}
