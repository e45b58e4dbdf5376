//! Live subscriptions, short and long absences, changes of what is wanted.

use std::collections::BTreeSet;
use std::time::Duration;

use relaysync::engine::{Command, Phase, RelayOptions};
use relaysync::protocol::{Event, Filter, RelayUrl};
use relaysync::serve::ServeConfig;
use relaysync::sim::{
    Connects, Eose, EoseFault, LimitZero, NOW_SECS, NegentropyRefused, NetFaults, PageCap, RateLimit, RateLimitBy,
    Remote, Seen, SubscriptionCap, Turn, World, note, plain_relay,
};

use crate::support::{Daemon, LIVE, daemon, filters_asked, history};

#[test]
fn what_is_new_arrives_and_nothing_falls_between_history_and_live() {
    let mut daemon = Daemon::new(Remote::with(&history(50)));
    daemon.is_equal();
    for _ in 0..5 {
        daemon.publish_now();
        daemon.secs(1);
        daemon.is_equal();
    }
    let asked = filters_asked(&daemon.world, &daemon.relay);
    assert_eq!(asked[0].limit, Some(0), "live comes before history");
}

/// Reported as nostr-dev-kit/ndk#83: a reconnected relay served its subscriptions no more.
#[test]
fn a_quick_reconnect_fetches_exactly_what_was_missed_and_is_live_again() {
    let events = history(900);
    let mut daemon = Daemon::new(Remote::with(&events[..800]));
    daemon.is_equal();
    // Long after the history was asked for: what counts is the disconnect.
    daemon.secs(4_000);
    daemon.publish_now();
    daemon.secs(100);
    for _ in 0..3 {
        let asked = filters_asked(&daemon.world, &daemon.relay).len();
        let received = daemon.world.node(daemon.engine).reports()[0].counters.received;
        daemon.world.cut(&daemon.relay, "");
        daemon.publish_now();
        daemon.secs(60);
        daemon.is_equal();
        let filters = filters_asked(&daemon.world, &daemon.relay);
        assert!(
            filters[asked..].iter().all(|filter| filter.limit == Some(0) || filter.since.is_some()),
            "{:?}",
            &filters[asked..]
        );
        let again = daemon.world.node(daemon.engine).reports()[0].counters.received - received;
        assert!(again <= 8, "{again} events came again");
        daemon.publish_now();
        daemon.secs(1);
        daemon.is_equal();
        daemon.secs(500);
    }
}

#[test]
fn a_long_absence_is_followed_by_a_full_pass() {
    let events = history(100);
    let mut daemon = Daemon::new(Remote::with(&events[..80]));
    daemon.world.relay_mut(&daemon.relay).connects = Connects::Hangs;
    daemon.world.cut(&daemon.relay, "");
    daemon.secs(2_000);
    // With dates from before the absence: only a full pass finds them.
    daemon.world.publish(&daemon.relay, &events[80..]);
    daemon.world.relay_mut(&daemon.relay).connects = Connects::Always;
    daemon.secs(3_700);
    daemon.is_equal();
}

#[test]
fn a_break_during_the_history_loses_nothing_of_the_time_between() {
    let events = history(900);
    let mut world = World::new();
    let remote = Remote::with(&events).tamper(PageCap(30)).tamper(NegentropyRefused::notice("negentropy disabled"));
    let relay = world.add_relay("wss://relay.example", remote);
    let engine = world.add_engine(daemon());
    world.sync_with(engine, &relay, [Filter::new()], LIVE);
    world.run(Duration::from_millis(150));
    assert!(world.held(engine).len() < 900);
    world.relay_mut(&relay).connects = Connects::Hangs;
    world.cut(&relay, "");
    world.run(Duration::from_secs(20));
    let missed = note(world.now().unix_secs).content("missed").sign();
    world.publish(&relay, &[missed]);
    world.relay_mut(&relay).connects = Connects::Always;
    world.run(Duration::from_secs(300));
    assert_eq!(world.held(engine).len(), 901, "{}", world.trace());
    assert!(world.node(engine).reports()[0].complete);
}

#[test]
fn a_limit_of_zero_that_is_not_understood_is_replaced() {
    for fault in [LimitZero::Silent, LimitZero::Closed] {
        let mut daemon = Daemon::new(Remote::with(&history(30)).tamper(fault));
        daemon.secs(60);
        for _ in 0..3 {
            daemon.publish_now();
            daemon.secs(2);
            daemon.is_equal();
        }
        daemon.world.cut(&daemon.relay, "");
        daemon.secs(60);
        daemon.publish_now();
        daemon.secs(2);
        daemon.is_equal();
    }
}

/// A rate limit closes the live subscription; what comes until it is open again is fetched.
#[test]
fn a_live_subscription_that_is_closed_is_opened_again_and_the_gap_is_fetched() {
    for words in ["rate-limited: slow down", "error: shutting down idle subscription"] {
        let mut daemon = Daemon::new(Remote::with(&history(30)));
        let mut armed = true;
        let live = crate::live::live_name(&daemon.world, &daemon.relay);
        let closing = Seen(move |_, frame: String, turn: &mut Turn| {
            if std::mem::take(&mut armed) {
                turn.say(format!(r#"["CLOSED","{live}","{words}"]"#));
                return None;
            }
            Some(frame)
        });
        let remote = daemon.world.relay_mut(&daemon.relay);
        *remote = std::mem::replace(remote, Remote::with(&[])).tamper(closing);
        // The frame of this event is what the relay closes the subscription instead of.
        daemon.publish_now();
        daemon.secs(5);
        daemon.publish_now();
        daemon.secs(120);
        daemon.publish_now();
        daemon.secs(2);
        daemon.is_equal();
    }
}

fn live_name(world: &World, relay: &RelayUrl) -> String {
    let live = world.relay(relay).heard_of("REQ").into_iter().rfind(|frame| frame.contains("\"limit\":0"));
    live.and_then(|frame| frame.split('"').nth(3)).unwrap_or_default().to_owned()
}

#[test]
fn live_leaves_room_for_history_where_subscriptions_are_few() {
    for by_notice in [false, true] {
        for most in [1, 2, 3] {
            let events: Vec<Event> =
                (0..60).map(|n| note(1_699_000_000 + n).kind(1_000 + (n % 6) as u16).sign()).collect();
            let mut world = World::new();
            let remote = Remote::with(&events).tamper(SubscriptionCap::new(most, by_notice));
            let relay = world.add_relay("wss://relay.example", remote);
            let engine = world.add_engine(daemon());
            let filters = (0..6_u16).map(|kind| Filter::new().kind((1_000 + kind).into()));
            world.sync_with(engine, &relay, filters, LIVE);
            world.run(Duration::from_secs(1_500));
            assert_eq!(world.held(engine).len(), 60, "{most}, {by_notice}\n{}", world.trace());
            assert!(
                world.node(engine).reports()[0].complete,
                "{most}, {by_notice}: {:?}",
                world.node(engine).reports()
            );
            assert!(world.relay(&relay).heard.len() < 800, "{}", world.relay(&relay).heard.len());
        }
    }
}

#[test]
fn a_rate_limited_daemon_comes_back() {
    let mut daemon =
        Daemon::new(Remote::with(&history(300)).tamper(PageCap(20)).tamper(RateLimit::new(10, RateLimitBy::Closed)));
    daemon.secs(1_000);
    daemon.publish_now();
    daemon.secs(2);
    daemon.is_equal();
}

#[test]
fn gaps_are_mended_by_the_next_pass() {
    let events = history(40);
    let mut daemon = Daemon::new(
        Remote::with(&events)
            .tamper(NegentropyRefused::notice("negentropy disabled"))
            .tamper(Eose::new(EoseFault::Lost)),
    );
    daemon.secs(200);
    assert!(!daemon.world.node(daemon.engine).reports()[0].complete);
    daemon.world.relay_mut(&daemon.relay).mend();
    daemon.world.cut(&daemon.relay, "");
    daemon.secs(200);
    daemon.is_equal();
}

#[test]
fn interests_can_be_changed_on_the_fly() {
    let events: Vec<Event> =
        (0..900).map(|n| note(1_699_000_000 + n).kind(1_000 + (n % 3) as u16).content(n.to_string()).sign()).collect();
    let kind = |kind: u16| Filter::new().kind(kind.into());
    for after_ms in [0, 15, 30, 60, 90, 5_000] {
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", Remote::with(&events).tamper(PageCap(20)));
        let engine = world.add_engine(daemon());
        world.sync_with(engine, &relay, [kind(1_000), kind(1_001)], LIVE);
        world.run(Duration::from_millis(after_ms));
        world.sync_with(engine, &relay, [kind(1_001), kind(1_002)], LIVE);
        world.run(Duration::from_secs(30));
        let held = world.node(engine).events(world.now().unix_secs);
        let count = |kind: u16| held.iter().filter(|event| event.kind_number() == kind).count();
        assert_eq!((count(1_001), count(1_002)), (300, 300), "after {after_ms} ms\n{}", world.trace());
        let report = &world.node(engine).reports()[0];
        assert!(report.complete && report.last_error.is_none(), "after {after_ms} ms: {report:?}");
        let before = count(1_000);
        world.publish(&relay, &[note(1_699_999_999).kind(1_000).sign(), note(1_699_999_999).kind(1_002).sign()]);
        world.run(Duration::from_secs(2));
        let held = world.node(engine).events(world.now().unix_secs);
        let count = |kind: u16| held.iter().filter(|event| event.kind_number() == kind).count();
        assert_eq!((count(1_000), count(1_002)), (before, 301));
        // With nothing wanted any more, the relay is left.
        world
            .command(engine, Command::SetInterests { relay: relay.clone(), interests: BTreeSet::new(), options: LIVE });
        world.run(Duration::from_secs(5));
        assert_eq!(world.node(engine).reports()[0].phase, Phase::Done);
        assert!(!world.node(engine).closed.is_empty());
    }
}

#[test]
fn a_change_of_direction_begins_anew() {
    let events = history(40);
    let mut world = World::new();
    let relay = world.add_relay("wss://relay.example", Remote::with(&events[..30]));
    let engine = world.add_engine(daemon());
    world.give(engine, &events[20..]);
    world.sync_with(engine, &relay, [Filter::new()], RelayOptions::default());
    world.run(Duration::from_secs(60));
    assert_eq!((world.held(engine).len(), world.held_by(&relay).len()), (40, 30));
    let both = RelayOptions { direction: relaysync::engine::Direction::Both, ..RelayOptions::default() };
    world.sync_with(engine, &relay, [Filter::new()], both);
    world.run(Duration::from_secs(60));
    assert_eq!(world.held_by(&relay).len(), 40);
}

/// The only subscription that a relay allows is the live one: a probe beside it would be refused, again and again.
#[test]
fn where_one_subscription_is_allowed_the_live_one_is_the_probe() {
    let config = ServeConfig { subscriptions_max: 1, ..plain_relay() };
    let mut daemon = Daemon::new(Remote::configured(config, &history(30)).with_info());
    daemon.secs(1_000);
    daemon.is_equal();
    assert!(daemon.probes().is_empty());
    let asked = filters_asked(&daemon.world, &daemon.relay).len();
    assert!((15..25).contains(&asked), "asked {asked} times");
    daemon.publish_now();
    daemon.secs(1);
    daemon.is_equal();
    // What it answers proves what it has sent until then: after a short absence, little is fetched again.
    let filters = filters_asked(&daemon.world, &daemon.relay).len();
    daemon.world.cut(&daemon.relay, "");
    daemon.secs(60);
    daemon.is_equal();
    let since = daemon.world.now().unix_secs - 60 - 61 - 300;
    let asked = filters_asked(&daemon.world, &daemon.relay);
    let is_short = |filter: &Filter| filter.since.is_some_and(|at| at.as_secs() >= since);
    assert!(asked[filters..].iter().all(is_short), "{:?}", &asked[filters..]);
}

#[test]
fn a_dead_link_is_found_out_where_the_live_subscription_is_the_probe() {
    let config = ServeConfig { subscriptions_max: 1, ..plain_relay() };
    let mut daemon = Daemon::new(Remote::configured(config, &history(30)).with_info());
    daemon.secs(100);
    assert!(!daemon.has_cut());
    daemon.world.relay_mut(&daemon.relay).network = NetFaults { half_opens: 10_000, ..NetFaults::default() };
    daemon.secs(100);
    assert!(daemon.has_cut());
}

/// What such a subscription asks for by `since` says nothing of what the relay gets with an older date: no mark, which
/// the world checks, may say that it was followed.
#[test]
fn where_one_subscription_is_allowed_older_dates_are_not_taken_for_followed() {
    let config = ServeConfig { subscriptions_max: 1, ..plain_relay() };
    let mut daemon = Daemon::new(Remote::configured(config, &history(30)).with_info());
    daemon.secs(500);
    daemon.world.publish(&daemon.relay, &[note(NOW_SECS - 5_000).content("late").sign()]);
    daemon.secs(500);
    daemon.world.cut(&daemon.relay, "");
    daemon.secs(60);
    daemon.secs(26 * 3_600);
    daemon.is_equal();
}
