//! Inputs that come late, twice, or for nothing: no panic, no effect.

use std::sync::Arc;
use std::time::Duration;

use relaysync::engine::{Config, ConnId, Effect, Engine, Input, RelayOptions, Ticket};
use relaysync::ingest::{Verdict, verify};
use relaysync::plan::Interest;
use relaysync::protocol::{Filter, ItemSet, RelayUrl};
use relaysync::runtime::{CloseReason, ConnectError, Frame, Instant, Now, SignError};
use relaysync::sim::{ClosesAfter, PageCap, Remote, World, note};
use relaysync::store::Snapshot;

use crate::support::{history, one_shot};

fn strays() -> Vec<Input> {
    let (conn, ticket) = (ConnId(999), Ticket(999));
    let event = verify(note(1).sign()).expect("a genuine event");
    vec![
        Input::Connected { conn },
        Input::Frames { conn, frames: vec![Frame::from(r#"["EOSE","s1"]"#.to_owned())] },
        Input::Disconnected { conn, reason: CloseReason::Remote(String::new()) },
        Input::RelayInfo { conn, result: Ok("{}".into()) },
        Input::RelayInfo { conn, result: Err(ConnectError::TimedOut) },
        Input::Verified { ticket, result: Ok(vec![Verdict::Valid(event.clone())]) },
        Input::Verified { ticket, result: Err("late".into()) },
        Input::Committed { ticket, result: Ok(Vec::new()) },
        Input::Committed { ticket, result: Err("late".into()) },
        Input::Items { ticket, result: Ok(Arc::new(ItemSet::default())) },
        Input::Items { ticket, result: Err("late".into()) },
        Input::Known { ticket, result: Ok(vec![true]) },
        Input::Known { ticket, result: Err("late".into()) },
        Input::Events { ticket, result: Ok(vec![None]) },
        Input::Events { ticket, result: Err("late".into()) },
        Input::Signed { conn, result: Ok(event) },
        Input::Signed { conn, result: Err(SignError::NoKey) },
        Input::Tick,
    ]
}

#[test]
fn strays_have_no_effect() {
    let now = Now { instant: Instant::from_origin(Duration::from_secs(5)), unix_secs: 1_700_000_000 };
    let mut engine = Engine::new(Config::default(), Snapshot::default(), 1, now);
    for input in strays() {
        let shown = format!("{input:?}");
        engine.handle(input, now);
        assert!(engine.poll_effect().is_none(), "{shown}");
    }
    let interests = [Interest::Opaque(Arc::new(Filter::new()))].into();
    let relay = RelayUrl::parse("wss://relay.example").expect("a URL");
    engine.handle(
        Input::Command(relaysync::engine::Command::SetInterests { relay, interests, options: RelayOptions::default() }),
        now,
    );
    let conn = match engine.poll_effect() {
        Some(Effect::Connect { conn, .. }) => conn,
        other => panic!("{other:?}"),
    };
    for input in strays() {
        let shown = format!("{input:?}");
        engine.handle(input, now);
        assert!(engine.poll_effect().is_none(), "{shown}");
    }
    // What cannot come before the connection stands is no trouble either.
    engine.handle(Input::Frames { conn, frames: vec![Frame::from(r#"["NOTICE","early"]"#.to_owned())] }, now);
    engine.handle(Input::Signed { conn, result: Err(SignError::NoKey) }, now);
    engine.handle(Input::Connected { conn }, now);
    let first: Vec<_> = std::iter::from_fn(|| engine.poll_effect()).collect();
    assert!(!first.is_empty());
    engine.handle(Input::Connected { conn }, now);
    assert!(engine.poll_effect().is_none(), "connected twice");
}

#[test]
fn a_sync_survives_strays_and_old_connections_at_every_step() {
    let events = history(120);
    let mut world = World::new();
    let remote = Remote::with(&events).tamper(PageCap(30)).tamper(ClosesAfter::new(45, 1));
    let relay = world.add_relay("wss://relay.example", remote);
    let engine = world.add_engine(one_shot());
    world.sync(engine, &relay);
    for round in 0..3_000_u64 {
        if world.node(engine).ended.is_some() {
            break;
        }
        world.run(Duration::from_millis(2));
        for input in strays() {
            world.input(engine, input);
        }
        // Numbers that may have been given out already, but are over.
        for number in 0..4 {
            let conn = ConnId(number);
            if round > 600 {
                world.input(engine, Input::Signed { conn, result: Err(SignError::NoKey) });
            }
        }
    }
    let reports = world.finish(engine);
    assert!(reports[0].complete, "{reports:?}");
    assert_eq!(world.held(engine).len(), 120);
}

#[test]
fn relays_that_send_garbage_are_counted_and_nothing_else() {
    let garbage = [
        "",
        "[]",
        "{}",
        "null",
        "[1]",
        "[\"EVENT\"]",
        "[\"EVENT\",\"s1\"]",
        "[\"EVENT\",\"s1\",{}]",
        "[\"EOSE\",7]",
        "[\"OK\"]",
        "[\"OK\",\"zz\",true,\"\"]",
        "[\"NEG-MSG\",\"s1\",\"zz\"]",
        "[\"NEG-MSG\",\"s1\"]",
        "[\"NEG-ERR\",\"s1\"]",
        "[\"CLOSED\"]",
        "[\"CLOSED\",\"s99999999999999999999999\",\"\"]",
        "[\"COUNT\",\"s1\",{}]",
        "[\"AUTH\",7]",
        "[[[[[[[[[[",
        "[\"NOTICE\",{\"a\":1}]",
        "\u{0}",
    ];
    let events = history(60);
    let noise = relaysync::sim::Seen(move |_, frame: String, turn: &mut relaysync::sim::Turn| {
        if frame.starts_with("[\"EVENT\"") {
            garbage.iter().for_each(|line| turn.say(*line));
        }
        Some(frame)
    });
    for held in [0, 10] {
        let played =
            crate::support::Play::holding(&events[..held]).with(Remote::with(&events).tamper(noise_of(&garbage)));
        played.is_equal();
        assert!(played.report.counters.malformed > 0);
    }
    let played = crate::support::play(Remote::with(&events).tamper(noise));
    played.is_equal();
}

fn noise_of(garbage: &[&'static str]) -> impl relaysync::sim::Tamper + use<> {
    let garbage = garbage.to_vec();
    relaysync::sim::Seen(move |_, frame: String, turn: &mut relaysync::sim::Turn| {
        if frame.starts_with("[\"EVENT\"") {
            garbage.iter().for_each(|line| turn.say(*line));
        }
        Some(frame)
    })
}
