//! Bounds, malformed messages, and what is said about them.

use relaysync::protocol::RelayInfo;
use relaysync::serve::{Cut, ServeConfig, ServeInput};

use crate::events::{note, notes};
use crate::world::{ALICE, BOB, World, story};

#[test]
fn subscriptions_filters_and_ids_are_bounded() {
    let config = ServeConfig { subscriptions_max: 2, filters_max: 2, ..ServeConfig::default() };
    let mut world = World::new(config);
    assert_eq!(story(&world.say(ALICE, r#"["REQ","a",{}]"#)), ["EOSE"]);
    assert_eq!(story(&world.say(ALICE, r#"["REQ","b",{}]"#)), ["EOSE"]);
    assert_eq!(
        story(&world.say(ALICE, r#"["REQ","c",{}]"#)),
        ["CLOSED rate-limited: too many open subscriptions, at most 2"]
    );
    assert_eq!(story(&world.say(ALICE, r#"["REQ","b",{}]"#)), ["EOSE"], "an open one may be replaced");
    assert_eq!(story(&world.say(ALICE, r#"["REQ","b",{},{},{}]"#)), ["CLOSED invalid: too many filters, at most 2"]);
    assert_eq!(story(&world.say(ALICE, r#"["REQ","c",{}]"#)), ["EOSE"], "the refused one is closed");
    for (id, is_good) in [("\u{e9}".repeat(64), true), ("x".repeat(65), false), (String::new(), false)] {
        let story = story(&world.say(BOB, format!(r#"["REQ","{id}",{{}}]"#)));
        assert_eq!(story[0] == "EOSE", is_good, "{id:?}: {story:?}");
    }
    assert_eq!(world.counters().requests_refused, 4);
}

#[test]
fn a_search_is_refused_rather_than_answered_with_everything() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=3));
    let refused = "CLOSED invalid: search (NIP-50) is not supported";
    assert_eq!(story(&world.say(ALICE, r#"["REQ","a",{"search":"cats"}]"#)), [refused]);
    assert_eq!(story(&world.say(ALICE, r#"["COUNT","a",{"search":"cats"}]"#)), [refused]);
}

#[test]
fn malformed_messages_are_answered_in_kind() {
    let mut world = World::new(ServeConfig::default());
    for (frame, answer) in [
        (r#"["REQ","a"]"#, r#"["CLOSED","a","invalid: "#),
        (r#"["REQ","a",{"kinds":"many"}]"#, r#"["CLOSED","a","invalid: "#),
        (r#"["COUNT","a",7]"#, r#"["CLOSED","a","invalid: "#),
        (r#"["NEG-OPEN","a",{}]"#, r#"["NEG-ERR","a","invalid: "#),
        (r#"["NEG-OPEN","a",{"kinds":7},"61"]"#, r#"["NEG-ERR","a","invalid: "#),
        (r#"["NEG-MSG","a",7]"#, r#"["NEG-ERR","a","invalid: "#),
        (r#"["REQ"]"#, r#"["NOTICE","invalid: "#),
        (r#"["EVENT"]"#, r#"["NOTICE","invalid: "#),
        (r#"["HELLO","a"]"#, r#"["NOTICE","invalid: unknown message type"#),
        (r#"{"REQ":1}"#, r#"["NOTICE","invalid: "#),
        ("", r#"["NOTICE","invalid: "#),
        (&"[".repeat(100), r#"["NOTICE","invalid: message nested deeper"#),
    ] {
        let answers = world.say(ALICE, frame);
        assert!(answers.len() == 1 && answers[0].starts_with(answer), "{frame}: {answers:?}");
    }
    assert_eq!(world.counters().frames_malformed, 12);
    assert!(world.cuts.is_empty());
}

#[test]
fn a_frame_over_the_limit_ends_that_connection_alone() {
    let mut world = World::new(ServeConfig { frame_bytes_max: 1000, ..ServeConfig::default() });
    world.say(ALICE, " ".repeat(1001));
    assert_eq!(world.cuts.get(&ALICE), Some(&Cut::FrameTooLarge));
    assert_eq!(world.say(ALICE, r#"["REQ","a",{}]"#), [""; 0]);
    assert_eq!(story(&world.say(BOB, r#"["REQ","a",{}]"#)), ["EOSE"]);
    assert_eq!(world.counters().clients_cut, 1);
}

#[test]
fn a_slow_reader_is_cut_and_nobody_else() {
    let config = ServeConfig { outbound_bytes_max: 5_000, ..ServeConfig::default() };
    let mut world = World::new(config);
    world.say(BOB, r#"["REQ","a",{"limit":0}]"#);
    world.clients_read = false;
    for event in notes(1..=20) {
        world.publish(ALICE, &event);
        let bytes = world.heard(ALICE).iter().map(String::len).sum();
        world.input(ServeInput::Written { client: ALICE, bytes });
    }
    assert_eq!(world.cuts.get(&BOB), Some(&Cut::SlowReader));
    assert_eq!(world.cuts.get(&ALICE), None);
    let bytes: usize = world.heard(BOB).iter().map(String::len).sum();
    assert!(bytes <= 5_000, "{bytes}");
    assert_eq!(world.counters().events_stored, 20);
}

#[test]
fn what_is_held_back_for_a_reader_counts_as_waiting() {
    let config = ServeConfig { outbound_bytes_max: 5_000, ..ServeConfig::default() };
    let mut world = World::new(config);
    world.works = false;
    world.say(BOB, r#"["REQ","a",{}]"#);
    let query = world.waiting.pop_front().unwrap();
    for event in notes(1..=20) {
        world.publish(ALICE, &event);
        world.work();
    }
    assert_eq!(world.cuts.get(&BOB), Some(&Cut::SlowReader));
    world.waiting.push_back(query);
    world.work();
    assert_eq!(world.heard(BOB), [""; 0]);
}

#[test]
fn reads_and_counts_in_flight_are_bounded() {
    let config = ServeConfig { reads_max: 3, counts_max: 2, ..ServeConfig::default() };
    let mut world = World::with(config, &notes(1..=3));
    world.works = false;
    for id in 0..9 {
        world.say(ALICE, format!(r#"["REQ","{id}",{{"since":1}},{{"since":2}}]"#));
    }
    assert_eq!(world.waiting.len(), 3);
    world.say(BOB, r#"["REQ","b",{}]"#);
    assert_eq!(world.waiting.len(), 4, "each client has its own bound");
    world.waiting.clear();
    for _ in 0..2 {
        assert_eq!(world.say(BOB, r#"["COUNT","c",{}]"#), [""; 0]);
    }
    let refused = world.say(BOB, r#"["COUNT","c",{}]"#);
    assert_eq!(story(&refused), ["CLOSED rate-limited: too many COUNTs at once, at most 2"]);

    let mut world = World::with(ServeConfig { reads_max: 3, ..ServeConfig::default() }, &notes(1..=3));
    world.works = false;
    for id in 0..9 {
        world.say(ALICE, format!(r#"["REQ","{id}",{{"since":1}},{{"since":2}}]"#));
    }
    world.work();
    assert_eq!(world.heard(ALICE).len(), 9 * 4, "all have their turn");
}

#[test]
fn the_document_says_what_holds() {
    let config = ServeConfig { page_events_max: 300, negentropy: false, ..ServeConfig::default() };
    let info = config.relay_info();
    assert_eq!(info.limitation.max_limit, Some(300));
    assert_eq!(info.limitation.default_limit, Some(300));
    assert_eq!(info.limitation.max_subid_length, Some(64));
    assert_eq!(info.limitation.auth_required, Some(false));
    let nips = info.supported_nips.clone().unwrap();
    assert!(nips.contains(&1.into()) && !nips.contains(&77.into()));
    assert_eq!(RelayInfo::parse(&serde_json::to_string(&info).unwrap()), Some(info));
}

#[test]
fn a_closed_server_has_said_so_to_all() {
    let mut world = World::new(ServeConfig::default());
    world.server.close_all(&Cut::Shutdown);
    world.input(ServeInput::Tick);
    assert_eq!(world.cuts.len(), 2);
    assert_eq!(world.publish(ALICE, &note(1).sign()), [""; 0]);
}
