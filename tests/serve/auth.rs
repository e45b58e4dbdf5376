//! AUTH (NIP-42) and protected events (NIP-70).

use std::time::Duration;

use relaysync::protocol::Event;
use relaysync::protocol::message::client;
use relaysync::serve::{Cut, ServeConfig};

use crate::events::{Draft, NOW_SECS, note};
use crate::world::{ALICE, BOB, CHALLENGE, World};

fn closed_world() -> World {
    World::new(ServeConfig { auth_required: true, ..ServeConfig::default() })
}

fn auth(relay: &str, challenge: &str) -> Draft {
    note(NOW_SECS).kind(22_242).tag("relay", relay).tag("challenge", challenge)
}

fn say_auth(world: &mut World, event: &Event) -> String {
    world.say(ALICE, client::auth(event.json_str())).pop().unwrap()
}

#[test]
fn the_challenge_comes_at_once_and_everything_else_needs_its_answer() {
    let mut world = closed_world();
    assert_eq!(world.heard(ALICE), [format!(r#"["AUTH","{CHALLENGE}"]"#)]);
    let refused = "auth-required: authenticate first (NIP-42)";
    assert_eq!(world.say(ALICE, r#"["REQ","a",{}]"#), [format!(r#"["CLOSED","a","{refused}"]"#)]);
    assert_eq!(world.say(ALICE, r#"["COUNT","a",{}]"#), [format!(r#"["CLOSED","a","{refused}"]"#)]);
    assert_eq!(world.say(ALICE, r#"["NEG-OPEN","a",{},"61"]"#), [format!(r#"["NEG-ERR","a","{refused}"]"#)]);
    assert_eq!(world.ok(ALICE, &note(1).sign()), (false, refused.into()));

    let event = auth("wss://relay.example", CHALLENGE).sign();
    assert_eq!(say_auth(&mut world, &event), format!(r#"["OK","{}",true,""]"#, event.id.to_hex()));
    assert!(world.ok(ALICE, &note(1).sign()).0);
    assert_eq!(world.say(ALICE, r#"["REQ","a",{}]"#).len(), 2);
    assert_eq!(world.say(ALICE, r#"["COUNT","c",{}]"#), [r#"["COUNT","c",{"count":1}]"#]);
    let refused = world.say(BOB, r#"["REQ","a",{}]"#).pop().unwrap();
    assert!(refused.contains("auth-required:"), "one client's AUTH is not another's: {refused}");
}

#[test]
fn the_relay_tag_is_compared_by_host_alone() {
    for (relay, is_ours) in [
        ("ws://relay.example:8080/path", true),
        ("wss://RELAY.example/", true),
        ("wss://relay.example.evil", false),
        ("wss://other.example", false),
        ("relay.example", false),
    ] {
        let mut world = closed_world();
        let answer = say_auth(&mut world, &auth(relay, CHALLENGE).sign());
        assert_eq!(answer.contains(",true,"), is_ours, "{relay}: {answer}");
    }
}

#[test]
fn wrong_answers_are_refused() {
    let good = auth("wss://relay.example", CHALLENGE);
    let mut forged = good.sign().json_str().to_owned();
    forged = forged.replace("a note", "a nose");
    let cases = [
        auth("wss://relay.example", "another").sign(),
        note(NOW_SECS).tag("relay", "wss://relay.example").tag("challenge", CHALLENGE).sign(),
        note(NOW_SECS).kind(22_242).sign(),
        Event::parse(forged.into()).unwrap(),
    ];
    for event in cases {
        let mut world = closed_world();
        let answer = say_auth(&mut world, &event);
        let refused = format!(r#"["OK","{}",false,"invalid: "#, event.id.to_hex());
        assert!(answer.starts_with(&refused), "{answer}");
        assert!(world.say(ALICE, r#"["REQ","a",{}]"#).pop().unwrap().contains("auth-required:"));
    }
}

#[test]
fn the_time_may_be_ten_minutes_off() {
    for (age, is_good) in [(600, true), (601, false)] {
        let mut world = closed_world();
        world.pass(Duration::from_secs(age));
        let answer = say_auth(&mut world, &auth("wss://relay.example", CHALLENGE).sign());
        assert_eq!(answer.contains(",true,"), is_good, "{age} s: {answer}");
    }
}

#[test]
fn attempts_are_bounded() {
    let mut world = World::new(ServeConfig { auth_attempts_max: 2, ..ServeConfig::default() });
    for _ in 0..3 {
        world.say(ALICE, r#"["AUTH",{}]"#);
    }
    assert_eq!(world.cuts.get(&ALICE), Some(&Cut::AuthAttempts));
    assert_eq!(world.counters().auths_refused, 2);
}

#[test]
fn protected_events_are_taken_from_their_author_only() {
    let mut world = World::new(ServeConfig::default());
    let (own, foreign) = (note(1).bare_tag("-").sign(), note(1).by(2).bare_tag("-").sign());
    assert_eq!(world.heard(ALICE), [""; 0], "no challenge where none is needed");
    let answers = world.publish(ALICE, &own);
    assert_eq!(answers[0], format!(r#"["AUTH","{CHALLENGE}"]"#));
    assert!(answers[1].contains(",false,\"auth-required: "), "{answers:?}");
    say_auth(&mut world, &auth("wss://relay.example", CHALLENGE).sign());
    assert!(world.ok(ALICE, &own).0);
    let (accepted, reason) = world.ok(ALICE, &foreign);
    assert!(!accepted && reason.starts_with("restricted:"), "{reason}");
}

#[test]
fn several_keys_may_authenticate() {
    let mut world = World::new(ServeConfig::default());
    for author in [1, 2] {
        say_auth(&mut world, &auth("wss://relay.example", CHALLENGE).by(author).sign());
        assert!(world.ok(ALICE, &note(1).by(author).bare_tag("-").sign()).0);
    }
}

#[test]
fn auth_events_are_never_published() {
    let mut world = World::new(ServeConfig::default());
    world.say(BOB, r#"["REQ","a",{}]"#);
    world.heard(BOB);
    assert!(!world.ok(ALICE, &auth("wss://relay.example", CHALLENGE).sign()).0);
    assert_eq!(world.heard(BOB), [""; 0]);
}
