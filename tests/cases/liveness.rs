//! Connections that are dead without a word, machines that slept, relays that wait to be tried again.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use relaysync::engine::{Command, Config, Effect, Engine, Input};
use relaysync::plan::Interest;
use relaysync::protocol::{Filter, RelayUrl};
use relaysync::runtime::{CloseReason, ConnectError, Instant, Now};
use relaysync::sim::{Connects, LimitZero, NOW_SECS, Remote, Seen, Tamper, Turn, World, note};
use relaysync::store::Snapshot;

use crate::support::{Daemon, LIVE, STALL, daemon, has_cut, history, is_probe};

const PROBE_AFTER: Duration = Duration::from_secs(60);

/// The connection that is open when `dead` is set is dead from then on, both ways.
fn half_open(dead: &Rc<Cell<bool>>) -> impl Tamper + use<> {
    let (dead, mut last) = (dead.clone(), None);
    Seen(move |_, frame: String, turn: &mut Turn| {
        if !dead.get() {
            last = Some(turn.client);
        }
        Some(frame).filter(|_| !dead.get() || last != Some(turn.client))
    })
}

/// Reported as wireapp/wire-webapp#21416: a socket that was open, but dead.
#[test]
fn a_half_open_connection_is_noticed_and_everything_missed_arrives() {
    for limit_zero in [None, Some(LimitZero::Closed), Some(LimitZero::Silent)] {
        let dead = Rc::new(Cell::new(false));
        let mut remote = Remote::with(&history(40));
        if let Some(fault) = limit_zero {
            remote = remote.tamper(fault);
        }
        let mut daemon = Daemon::new(remote.tamper(half_open(&dead)));
        daemon.secs(400);
        daemon.is_equal();
        dead.set(true);
        daemon.publish_now();
        let engine = daemon.engine;
        let noticed = daemon.world.run_until(PROBE_AFTER + STALL, |world| has_cut(world, engine));
        assert!(noticed, "{limit_zero:?}\n{}", daemon.world.trace());
        daemon.publish_now();
        daemon.secs(30);
        daemon.is_equal();
        daemon.publish_now();
        daemon.secs(1);
        daemon.is_equal();
    }
}

#[test]
fn a_relay_is_probed_once_a_minute_and_not_more_often_however_busy_it_is() {
    let mut daemon = Daemon::new(Remote::with(&history(40)));
    let asked = daemon.world.relay(&daemon.relay).heard.len();
    daemon.secs(6 * 3600);
    let probes = daemon.probes();
    assert!((350..=360).contains(&probes.len()), "{} probes in six hours", probes.len());
    assert!(probes.windows(2).all(|pair| pair[1] - pair[0] >= PROBE_AFTER));
    // Each is a REQ and its CLOSE, and there is nothing else.
    assert!(daemon.world.relay(&daemon.relay).heard.len() - asked <= 2 * probes.len());
    for _ in 0..100 {
        daemon.publish_now();
        daemon.secs(50);
    }
    // What it sends by itself does not show that it has sent everything; only the answer to a request does.
    let more = daemon.probes().len() - probes.len();
    assert!((78..=84).contains(&more), "{more} probes in 5,000 seconds");
    assert_eq!(daemon.report().counters.connections, 1);
    assert_eq!(daemon.report().counters.stray_eose, 0);
    daemon.is_equal();
}

#[test]
fn whatever_answers_a_probe_shows_life() {
    let answers: [&str; 9] = [
        r#"["CLOSED","{}","error: internal"]"#,
        r#"["CLOSED","{}",""]"#,
        r#"["CLOSED","{}","auth-required: members only"]"#,
        r#"["CLOSED","{}","error: too many concurrent REQs"]"#,
        r#"["NOTICE","too many concurrent REQs"]"#,
        r#"["NOTICE","auth-required: members only"]"#,
        r#"["NOTICE","could not parse command"]"#,
        r#"["EOSE"]"#,
        "no JSON at all",
    ];
    for answer in answers {
        let refusing = Seen(move |_, frame: String, turn: &mut Turn| {
            if is_probe(&frame) {
                let name = frame.split('"').nth(3).unwrap_or_default();
                turn.say(answer.replace("{}", name));
                return None;
            }
            Some(frame)
        });
        let mut daemon = Daemon::new(Remote::with(&history(40)).tamper(refusing));
        daemon.secs(1_800);
        // Where there is no room for a probe, the live subscription is one.
        let asked = daemon.world.relay(&daemon.relay).heard_of("REQ").len();
        assert!((30..60).contains(&asked), "{answer}: {asked}");
        assert!(daemon.probes().len() >= 20 || answer.contains("too many"), "{answer}: {}", daemon.probes().len());
        daemon.publish_now();
        daemon.secs(1);
        daemon.is_equal();
        let report = daemon.report();
        assert_eq!(report.counters.connections, 1, "{answer}\n{}", daemon.world.trace());
        assert_eq!(daemon.world.node(daemon.engine).sizes().subscriptions, 1, "{answer}");
    }
}

#[test]
fn a_probe_that_is_rate_limited_is_followed_by_a_rest() {
    let limited = Seen(|_, frame: String, turn: &mut Turn| {
        if is_probe(&frame) {
            let name = frame.split('"').nth(3).unwrap_or_default();
            turn.say(format!(r#"["CLOSED","{name}","rate-limited: slow down"]"#));
            return None;
        }
        Some(frame)
    });
    let mut daemon = Daemon::new(Remote::with(&history(40)).tamper(limited));
    daemon.secs(3_600);
    let probes = daemon.probes();
    assert!(probes.len() >= 20);
    let cooldown = Config::default().rate_limit_cooldown;
    assert!(probes.windows(2).all(|pair| pair[1] - pair[0] >= cooldown), "{probes:?}");
    assert_eq!(daemon.report().counters.connections, 1);
}

#[test]
fn a_relay_that_is_not_read_is_not_probed() {
    let config = Config { ingest_bytes_max: 100, ..daemon() };
    let mut daemon = Daemon::configured(config, Remote::with(&[]));
    daemon.world.node_mut(daemon.engine).work_takes = Duration::from_secs(200);
    daemon.publish_now();
    daemon.secs(1);
    let before = daemon.probes().len();
    daemon.secs(150);
    assert_eq!(daemon.world.node(daemon.engine).reading, [false]);
    assert_eq!(daemon.probes().len(), before);
    daemon.secs(600);
    daemon.is_equal();
    assert!(!daemon.has_cut() && daemon.probes().len() > before);
}

#[test]
fn a_wake_probes_every_connection_at_once() {
    let dead = Rc::new(Cell::new(false));
    let mut daemon = Daemon::new(Remote::with(&history(40)).tamper(half_open(&dead)));
    daemon.publish_now();
    daemon.secs(1);
    // A connection that lives is left alone.
    daemon.world.command(daemon.engine, Command::Wake);
    daemon.secs(20);
    assert_eq!((daemon.probes().len(), daemon.has_cut()), (1, false));
    dead.set(true);
    daemon.publish_now();
    // However often it is woken.
    for _ in 0..4 {
        daemon.world.command(daemon.engine, Command::Wake);
        daemon.world.run(STALL / 4);
    }
    assert!(daemon.has_cut(), "{}", daemon.world.trace());
    assert_eq!(daemon.probes().len(), 2);
    daemon.secs(30);
    daemon.is_equal();
}

/// The monotonic clock of some machines stands still while they sleep: then the relay seems to have been heard of just
/// now, and only the wall clock tells how much was missed.
#[test]
fn a_sleep_that_only_the_wall_clock_shows_loses_nothing() {
    let dead = Rc::new(Cell::new(false));
    let mut daemon = Daemon::new(Remote::with(&history(40)).tamper(half_open(&dead)));
    daemon.secs(400);
    dead.set(true);
    daemon.world.step_wall(8 * 3600);
    for hours_ago in 1..8 {
        let at = daemon.world.now().unix_secs - hours_ago * 3600;
        daemon.world.publish(&daemon.relay, &[note(at).content("while it slept").sign()]);
    }
    daemon.world.command(daemon.engine, Command::Wake);
    daemon.secs(60);
    daemon.is_equal();
    assert_eq!(daemon.report().counters.connections, 2);
}

#[test]
fn a_wake_tries_relays_that_wait_though_not_faster_than_ever() {
    let refused = Connects::Refused(ConnectError::Dns("no network".into()));
    let mut world = World::new();
    let relay = world.add_relay("wss://relay.example", Remote::with(&history(20)).connecting(refused));
    let engine = world.add_engine(daemon());
    world.sync_with(engine, &relay, [Filter::new()], LIVE);
    world.run(Duration::from_secs(12 * 3600));
    let floor = Config::default().backoff_floor;
    for _ in 0..5 {
        world.command(engine, Command::Wake);
        world.run(Duration::from_millis(100));
    }
    let attempts = &world.relay(&relay).attempts;
    assert!(attempts.windows(2).all(|pair| pair[1] - pair[0] >= floor));
    world.relay_mut(&relay).mend();
    world.command(engine, Command::Wake);
    world.run(Duration::from_secs(2));
    assert_eq!(world.held(engine).len(), 20, "{}", world.trace());
}

#[test]
fn a_wake_does_not_end_a_rest() {
    let mut daemon = Daemon::new(Remote::with(&history(20)));
    daemon.world.cut(&daemon.relay, "rate-limited: come back later");
    daemon.secs(1);
    let attempts = daemon.world.relay(&daemon.relay).attempts.len();
    for _ in 0..6 {
        daemon.world.command(daemon.engine, Command::Wake);
        daemon.secs(10);
        assert_eq!(daemon.world.relay(&daemon.relay).attempts.len(), attempts);
    }
    daemon.secs(60);
    daemon.is_equal();
}

/// An engine with one live connection over which nothing has come, and that connection.
fn silent_engine(now: Now) -> Engine {
    let mut engine = Engine::new(daemon(), Snapshot::default(), 7, now);
    let relay = RelayUrl::parse("wss://relay.example").expect("a relay URL");
    let interests = [Interest::Opaque(Arc::new(Filter::new()))].into();
    engine.handle(Input::Command(Command::SetInterests { relay, interests, options: LIVE }), now);
    while let Some(effect) = engine.poll_effect() {
        if let Effect::Connect { conn, .. } = effect {
            engine.handle(Input::Connected { conn }, now);
        }
    }
    engine
}

#[test]
fn a_deadline_that_was_missed_by_far_is_a_wake() {
    let start = Now { instant: Instant::from_origin(Duration::from_secs(1_000)), unix_secs: NOW_SECS };
    let later = |secs| Now { instant: start.instant + Duration::from_secs(secs), unix_secs: NOW_SECS + secs };
    let mut engine = silent_engine(start);
    engine.handle(Input::Tick, later(3_600));
    let effects: Vec<Effect> = std::iter::from_fn(|| engine.poll_effect()).collect();
    let sent = |effect: &Effect| matches!(effect, Effect::Send { frame, .. } if is_probe(frame));
    // What was awaited may still come: nothing is cut off, all is asked.
    assert!(effects.iter().any(sent), "{effects:?}");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Close { .. })), "{effects:?}");
    engine.handle(Input::Tick, later(3_615));
    let closed = |effect: Effect| matches!(effect, Effect::Close { reason: CloseReason::Silent, .. });
    assert!(std::iter::from_fn(|| engine.poll_effect()).any(closed));
}

/// A connection attempt from before a sleep has its time after it, but not for ever.
#[test]
fn a_wake_does_not_put_off_a_connection_that_hangs() {
    let mut world = World::new();
    let relay = world.add_relay("wss://relay.example", Remote::with(&history(20)).connecting(Connects::Hangs));
    let engine = world.add_engine(daemon());
    world.sync(engine, &relay);
    for _ in 0..30 {
        world.command(engine, Command::Wake);
        world.run(Duration::from_secs(1));
    }
    assert!(world.relay(&relay).attempts.len() >= 2, "{}", world.trace());
}

/// Attempts that end at once, again and again, hold up nobody else.
#[test]
fn a_relay_that_is_due_again_at_once_does_not_hold_up_the_others() {
    let now = Now { instant: Instant::from_origin(Duration::from_secs(1_000)), unix_secs: NOW_SECS };
    let zero = Duration::ZERO;
    let config = Config { connect_timeout: zero, backoff_base: zero, backoff_floor: zero, ..daemon() };
    let mut engine = Engine::new(config, Snapshot::default(), 7, now);
    for name in ["wss://one.example", "wss://two.example"] {
        let relay = RelayUrl::parse(name).expect("a relay URL");
        let interests = [Interest::Opaque(Arc::new(Filter::new()))].into();
        engine.handle(Input::Command(Command::SetInterests { relay, interests, options: LIVE }), now);
    }
    let mut attempts = || {
        let effects: Vec<Effect> = std::iter::from_fn(|| engine.poll_effect()).collect();
        engine.handle(Input::Tick, now);
        effects.iter().filter(|effect| matches!(effect, Effect::Connect { .. })).count()
    };
    assert_eq!([attempts(), attempts(), attempts()], [2, 2, 2]);
}

#[test]
fn what_an_engine_holds_is_told_and_returns_to_nothing() {
    let events = history(900);
    let mut world = World::new();
    let relay = world.add_relay("wss://relay.example", Remote::with(&events));
    let engine = world.add_engine(daemon());
    world.sync_with(engine, &relay, [Filter::new()], LIVE);
    let busy = |world: &World| {
        let sizes = world.node(engine).sizes();
        sizes.pipeline_events > 0 && sizes.pipeline_bytes > 0 && sizes.pipeline_ids > 0 && sizes.history_ids > 0
    };
    assert!(world.run_until(Duration::from_secs(5), busy));
    let sizes = world.node(engine).sizes();
    assert_eq!((sizes.relays, sizes.histories, sizes.subscriptions), (1, 1, 2), "{sizes:?}");
    world.run(Duration::from_secs(150));
    let sizes = world.node(engine).sizes();
    let held = [sizes.effects, sizes.effect_bytes, sizes.pipeline_events, sizes.pipeline_bytes, sizes.pipeline_ids];
    assert_eq!(held, [0; 5], "{sizes:?}");
    let open = [sizes.history_ids, sizes.histories, sizes.histories_waiting, sizes.store_questions, sizes.gaps];
    assert_eq!((open, sizes.item_sets), ([0; 5], 0), "{sizes:?}");
    assert_eq!((sizes.subscriptions, sizes.deadlines), (1, 1), "{sizes:?}");
}
