//! Rate limits, limits on subscriptions, flood and backpressure.

use std::time::Duration;

use relaysync::engine::{Config, GapReason, Phase};
use relaysync::protocol::message::relay;
use relaysync::protocol::{ClientMessage, Filter};
use relaysync::relay::HealthState;
use relaysync::runtime::CloseReason;
use relaysync::sim::{
    NOW_SECS, NegentropyRefused, PageCap, RateLimit, RateLimitBy, Remote, Seen, SubscriptionCap, Turn, World, note,
};

use crate::support::{Play, Played, STALL, history, ids, one_shot, play};

#[test]
fn a_rate_limit_is_waited_for_however_it_is_told() {
    for by in [RateLimitBy::Notice, RateLimitBy::Closed, RateLimitBy::Close] {
        let events = history(200);
        let relay = Remote::with(&events).tamper(PageCap(20)).tamper(RateLimit::new(8, by));
        let played = play(relay);
        played.is_equal();
        assert!(played.report.counters.rate_limits >= 1, "{by:?}");
        // Nothing is asked while the relay rests.
        let times: Vec<_> = played.world.relay(&played.relay).heard.iter().map(|(at, _)| *at).collect();
        let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
        assert!(longest >= Duration::from_secs(60), "{by:?}: {longest:?}");
        assert!(played.asked("REQ") < 40, "{by:?}: {}", played.asked("REQ"));
    }
}

#[test]
fn a_relay_that_refuses_every_request_as_too_many_is_given_up() {
    for by in [RateLimitBy::Notice, RateLimitBy::Closed, RateLimitBy::Close] {
        let played = play(Remote::with(&history(20)).tamper(RateLimit::new(0, by)));
        assert!(!played.report.complete);
        assert_eq!(played.report.gaps.len(), 1, "{by:?}");
        assert!(played.asked("REQ") < 10, "{by:?}");
    }
}

/// A rate limit during paging used to freeze every relay.
#[test]
fn one_relay_never_delays_another() {
    for by in [RateLimitBy::Notice, RateLimitBy::Closed, RateLimitBy::Close] {
        let events = history(200);
        let mut world = World::new();
        let slow = Remote::with(&events).tamper(PageCap(20)).tamper(RateLimit::new(3, by));
        let slow = world.add_relay("wss://slow.example", slow);
        let fast = ["wss://fast.example", "wss://other.example"]
            .map(|url| world.add_relay(url, Remote::with(&events).tamper(PageCap(20))));
        let engine = world.add_engine(one_shot());
        world.sync(engine, &slow);
        world.run(Duration::from_millis(60));
        fast.iter().for_each(|relay| world.sync(engine, relay));
        let are_done = |world: &World| {
            let reports = world.node(engine).reports();
            reports.iter().filter(|report| fast.contains(&report.relay) && report.complete).count() == fast.len()
        };
        assert!(world.run_until(Duration::from_secs(5), are_done), "{by:?}");
        let report = world.node(engine).reports().remove(0);
        assert_eq!((report.phase, report.health), (Phase::Cooldown, HealthState::RateLimited), "{by:?}");
        // It goes on after its rest, and not before.
        let began = world.now().instant;
        assert!(world.finish(engine).iter().all(|report| report.complete), "{by:?}");
        assert!(world.now().instant - began > Duration::from_secs(55), "{by:?}");
    }
}

/// Reported as Yonle/bostr#17: "too many concurrent REQs".
#[test]
fn the_limit_on_subscriptions_is_learned_and_the_rest_waits() {
    for by_notice in [false, true] {
        for most in [1, 2, 5] {
            let events: Vec<_> = (0..60_u16)
                .map(|n| note(NOW_SECS - u64::from(n)).kind(1_000 + n % 20).content(n.to_string()).sign())
                .collect();
            let filters = (0..20_u16).map(|kind| Filter::new().kind((1_000 + kind).into()));
            let config = Config { histories_active_max: 10, ..one_shot() };
            let remote = Remote::with(&events).tamper(SubscriptionCap::new(most, by_notice));
            let played = Play::default().config(config).filters(filters).with(remote);
            played.is_equal();
            assert!(played.asked("REQ") < 120, "{most}, {by_notice}: {}", played.asked("REQ"));
        }
    }
}

/// Reported as divinevideo/divine-mobile#9007: an aggregated EOSE waited for ever on a relay that refused by NOTICE.
#[test]
fn a_refusal_by_notice_without_an_id_ends_in_bounded_time() {
    let refuse = Seen(|_, frame: String, turn: &mut Turn| {
        if frame.starts_with("[\"REQ\"") {
            turn.say(r#"["NOTICE","ERROR: we do not serve you"]"#);
            return None;
        }
        Some(frame)
    });
    let events = history(50);
    let mut world = World::new();
    let good = world.add_relay("wss://good.example", Remote::with(&events));
    let bad = world.add_relay("wss://bad.example", Remote::with(&events).tamper(refuse));
    let engine = world.add_engine(one_shot());
    world.sync(engine, &good);
    world.sync(engine, &bad);
    let began = world.now().instant;
    let reports = world.finish(engine);
    assert!(world.now().instant - began < Duration::from_secs(90));
    assert!(reports[0].complete);
    assert!(matches!(reports[1].gaps[..], [ref gap] if gap.reason == GapReason::Stalled), "{:?}", reports[1].gaps);
    assert_eq!(world.held(engine).len(), 50);
}

#[test]
fn deep_json_ends_the_connection_by_its_name_and_disturbs_nobody_else() {
    let events = history(50);
    let deep = Seen(|_, frame: String, turn: &mut Turn| {
        if frame.starts_with("[\"REQ\"") {
            turn.say(format!("[\"EVENT\",\"s1\",{}", "[".repeat(100_000)));
        }
        Some(frame)
    });
    let mut world = World::new();
    let good = world.add_relay("wss://good.example", Remote::with(&events));
    let bad = world.add_relay("wss://bad.example", Remote::with(&events).tamper(deep));
    let engine = world.add_engine(one_shot());
    world.sync(engine, &bad);
    world.sync(engine, &good);
    let reports = world.finish(engine);
    assert!(world.node(engine).closed.contains(&CloseReason::TooDeep));
    assert!(!reports[0].complete);
    assert!(reports[1].complete);
}

#[test]
fn a_flood_ends_the_connection_and_disturbs_nobody_else() {
    let events = history(50);
    let flood = Seen(|_, frame: String, turn: &mut Turn| {
        if frame.starts_with("[\"REQ\"") {
            let junk = note(1).content("x".repeat(1_000)).sign();
            (0..200).for_each(|_| turn.say(format!(r#"["EVENT","nobody",{}]"#, junk.json_str())));
            return None;
        }
        Some(frame)
    });
    let mut world = World::new();
    let good = world.add_relay("wss://good.example", Remote::with(&events));
    let bad = world.add_relay("wss://bad.example", Remote::with(&events).tamper(flood));
    let engine = world.add_engine(Config { unsolicited_bytes_max: 100_000, ..one_shot() });
    world.sync(engine, &bad);
    world.sync(engine, &good);
    let reports = world.finish(engine);
    assert!(world.node(engine).closed.contains(&CloseReason::Flood));
    assert!(!reports[0].complete);
    assert!(reports[0].counters.unsolicited > 50);
    assert!(reports[1].complete);
}

/// One event, said again and again while a page is open, is no news, and no sign of life.
#[test]
fn an_event_repeated_without_end_is_a_flood() {
    let events = history(5);
    let parrot = Seen(|_, frame: String, turn: &mut Turn| {
        let name = frame.strip_prefix("[\"REQ\",\"").and_then(|rest| rest.split('"').next()).map(str::to_owned);
        let Some(name) = name.filter(|_| !frame.contains("\"limit\":0")) else { return Some(frame) };
        let junk = note(NOW_SECS - 100).content("x".repeat(1_000)).sign();
        (0..1_500).for_each(|_| turn.say(format!(r#"["EVENT","{name}",{}]"#, junk.json_str())));
        None
    });
    let mut world = World::new();
    let bad = world.add_relay("wss://bad.example", Remote::with(&events).tamper(parrot));
    let engine = world.add_engine(Config { unsolicited_bytes_max: 500_000, ..one_shot() });
    world.sync(engine, &bad);
    let reports = world.finish(engine);
    assert!(world.node(engine).closed.contains(&CloseReason::Flood), "{reports:#?}");
}

/// A relay chooses its words, and how many.
#[test]
fn of_long_words_the_beginning_is_kept() {
    let refusal = Seen(|_, frame: String, turn: &mut Turn| {
        let name = frame.strip_prefix("[\"REQ\",\"").and_then(|rest| rest.split('"').next())?.to_owned();
        turn.say(format!(r#"["CLOSED","{name}","blocked: {}"]"#, "ö".repeat(200_000)));
        None
    });
    let mut world = World::new();
    let bad = world.add_relay("wss://bad.example", Remote::with(&history(5)).tamper(refusal));
    let engine = world.add_engine(one_shot());
    world.sync(engine, &bad);
    let report = world.finish(engine).remove(0);
    assert!(!report.gaps.is_empty());
    let text = serde_json::to_string(&report).expect("a report is JSON");
    assert!(text.len() < 10_000 && text.contains("blocked: ö"), "{} bytes", text.len());
}

#[test]
fn reading_pauses_while_checks_are_behind_and_a_slow_store_is_no_stall_of_the_relay() {
    let events = history(600);
    let mut world = World::new();
    let relay = Remote::with(&events).tamper(NegentropyRefused::notice("negentropy disabled"));
    let relay = world.add_relay("wss://relay.example", relay);
    let config = Config { ingest_bytes_max: 20_000, verify_events_max: 10, verify_in_flight_max: 1, ..one_shot() };
    let engine = world.add_engine(config);
    world.node_mut(engine).work_takes = Duration::from_secs(5);
    world.sync(engine, &relay);
    let reports = world.finish(engine);
    assert!(reports[0].complete, "{:?}", reports[0].gaps);
    assert_eq!(world.held(engine).len(), 600);
    let reading = &world.node(engine).reading;
    assert!(reading.contains(&false) && reading.last() == Some(&true), "{reading:?}");
    assert!(reading.windows(2).all(|pair| pair[0] != pair[1]));
}

/// Whatever is remembered of an answer is bounded, and so is what a relay gets by repeating itself.
#[test]
fn an_answer_without_end_is_cut_off_and_is_a_gap() {
    let events = history(50);
    let mut number = 0;
    let endless = Seen(move |_, frame: String, turn: &mut Turn| match ClientMessage::parse(&frame) {
        Ok(ClientMessage::Req { subscription, .. }) if number < 600 => {
            for _ in 0..200 {
                number += 1;
                let event = note(NOW_SECS - number / 150).content(format!("endless {number}")).sign();
                turn.say(relay::event(&subscription, event.json_str()));
            }
            None
        }
        _ => Some(frame),
    });
    let config = Config { answer_events_max: 100, ..one_shot() };
    let remote = Remote::with(&events).tamper(NegentropyRefused::notice("negentropy disabled")).tamper(endless);
    let played = Play::default().config(config).with(remote.unchecked());
    assert!(played.report.gaps.iter().any(|gap| gap.reason == GapReason::Endless), "{:?}", played.report.gaps);
    assert!(ids(&events).is_subset(&ids_held(&played)), "what comes in order is taken");
    played.within(STALL);
}

fn ids_held(played: &Played) -> std::collections::BTreeSet<[u8; 32]> {
    played.world.held(played.engine).items().iter().map(|item| item.id).collect()
}
