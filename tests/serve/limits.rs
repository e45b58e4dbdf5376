//! Bounds, malformed messages, and what is said about them.

use std::collections::BTreeSet;
use std::time::Duration;

use relaysync::protocol::{RelayInfo, RelayMessage};
use relaysync::serve::{ClientId, Cut, ServeConfig, ServeInput};

use crate::events::{note, notes};
use crate::world::{ALICE, BOB, World, ids, story};

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
    let refused = "CLOSED unsupported: search (NIP-50) is not supported";
    assert_eq!(story(&world.say(ALICE, r#"["REQ","a",{"search":"cats"}]"#)), [refused]);
    assert_eq!(story(&world.say(ALICE, r#"["COUNT","a",{"search":"cats"}]"#)), [refused]);
}

#[test]
fn a_filter_with_an_unknown_field_is_refused_rather_than_widened() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=3));
    for field in ["&t", "#tag", "cache", "ID"] {
        let unsupported = format!("CLOSED unsupported: unknown filter field {field:?}");
        for frame in [
            format!(r#"["REQ","a",{{"kinds":[1]}},{{"kinds":[1],"{field}":["x"]}}]"#),
            format!(r#"["COUNT","a",{{"{field}":["x"]}}]"#),
        ] {
            assert_eq!(story(&world.say(ALICE, frame)), [&*unsupported]);
        }
        let refused = world.say(ALICE, format!(r#"["NEG-OPEN","a",{{"{field}":["x"]}},"61"]"#));
        assert!(refused[0].starts_with(r#"["NEG-ERR","a","unsupported: "#), "{refused:?}");
    }
    let known = r##"{"ids":[],"authors":[],"kinds":[],"since":1,"until":2,"limit":3,"#e":[],"#Z":[]}"##;
    assert_eq!(story(&world.say(ALICE, format!(r#"["REQ","a",{known}]"#))), ["EOSE"]);
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
fn of_all_slow_readers_together_the_slowest_is_cut_first() {
    let config = ServeConfig { outbound_total_bytes_max: 20_000, ..ServeConfig::default() };
    let mut world = World::new(config);
    let (slowest, slow) = (ClientId(3), ClientId(4));
    for client in [slowest, slow] {
        world.input(ServeInput::Opened { client, challenge: "c".into() });
    }
    world.say(slowest, r#"["REQ","a",{"limit":0}]"#);
    world.say(slow, r#"["REQ","a",{"limit":0,"since":15}]"#);
    world.clients_read = false;
    let mut events = 0;
    while world.cuts.is_empty() {
        events += 1;
        assert!(events < 100, "nobody is cut");
        world.publish(ALICE, &note(events).sign());
        let bytes = world.heard(ALICE).iter().map(String::len).sum();
        world.input(ServeInput::Written { client: ALICE, bytes });
    }
    assert_eq!(world.cuts.keys().collect::<Vec<_>>(), [&slowest]);
    assert_eq!(world.counters().clients_cut_for_all, 1);
    assert!(world.ok(BOB, &note(1_000).sign()).0, "room for the others");
    assert_eq!(world.cuts.len(), 1);
}

#[test]
fn while_much_waits_for_all_nothing_more_is_read_for_who_has_something_waiting() {
    let events: Vec<_> = (0..60).map(|at| note(at).content(format!("{at}{}", "x".repeat(1_000))).sign()).collect();
    let config = ServeConfig {
        outbound_total_bytes_max: 100_000,
        outbound_pause_bytes: 1_000_000,
        read_bytes_max: 32 * 1024,
        ..ServeConfig::default()
    };
    let mut world = World::with(config, &events);
    world.clients_read = false;
    world.say(ALICE, r#"["REQ","a",{}]"#);
    assert_eq!(world.pages_read, 2, "beyond half of the total, its own is waited for");
    let heard: usize = world.say(BOB, r#"["REQ","b",{"limit":20}]"#).iter().map(String::len).sum();
    assert!(heard > 20_000 && world.cuts.is_empty(), "one that has nothing waiting gets its page");
}

#[test]
fn few_requests_of_a_client_are_read_from_at_a_time() {
    let events: Vec<_> = (0..300).map(|at| note(at).content(format!("{at}{}", "x".repeat(500))).sign()).collect();
    let config = ServeConfig { reads_max: 2, read_bytes_max: 1, ..ServeConfig::default() };
    let mut world = World::with(config, &events);
    world.works = false;
    for id in 0..20 {
        // Both streams end at different places, so that one buffers while the other is read.
        world.say(ALICE, format!(r#"["REQ","{id}",{{"until":250}},{{"since":100}}]"#));
    }
    let (mut begun, mut ended) = (BTreeSet::new(), 0);
    while !world.waiting.is_empty() {
        world.work_once();
        for frame in world.heard(ALICE) {
            match RelayMessage::parse(&frame).unwrap() {
                RelayMessage::Event { subscription, .. } => drop(begun.insert(subscription.into_owned())),
                _ => ended += 1,
            }
        }
        assert!(begun.len() <= ended + 2, "{begun:?} have begun, {ended} ended");
    }
    assert_eq!((begun.len(), ended), (20, 20));
}

#[test]
fn a_client_may_publish_and_ask_so_often_a_minute_and_no_other_suffers() {
    let config = ServeConfig { events_per_minute_max: 3, requests_per_minute_max: 2, ..ServeConfig::default() };
    let mut world = World::new(config);
    let slow_down = "rate-limited: too many events, slow down".to_owned();
    let events = notes(1..=5);
    for event in &events[..3] {
        assert!(world.ok(ALICE, event).0);
    }
    assert_eq!(world.ok(ALICE, &events[3]), (false, slow_down.clone()));
    assert_eq!(world.ok(ALICE, &events[0]), (false, slow_down), "a duplicate costs as much");
    assert!(world.ok(BOB, &events[3]).0);
    let refused = "CLOSED rate-limited: too many requests, slow down";
    assert_eq!(story(&world.say(ALICE, r#"["REQ","a",{"limit":0}]"#)), ["EOSE"]);
    assert_eq!(world.say(ALICE, r#"["COUNT","c",{}]"#).len(), 1);
    assert_eq!(story(&world.say(ALICE, r#"["REQ","b",{}]"#)), [refused]);
    assert_eq!(story(&world.say(ALICE, r#"["COUNT","c",{}]"#)), [refused]);
    let refused = world.say(ALICE, r#"["NEG-OPEN","n",{},"61"]"#);
    assert_eq!(refused, [r#"["NEG-ERR","n","rate-limited: too many requests, slow down"]"#]);
    world.publish(BOB, &events[4]);
    assert_eq!(story(&world.heard(ALICE)), ids([&events[4]]), "what it has asked for before goes on");
    assert_eq!(world.say(ALICE, r#"["CLOSE","a"]"#), [""; 0], "and can be ended");
    world.pass(Duration::from_secs(30));
    assert_eq!(story(&world.say(ALICE, r#"["REQ","b",{}]"#)).last().unwrap(), "EOSE");
    assert!(world.ok(ALICE, &events[0]).0);
    let counters = world.counters();
    assert_eq!((counters.events_rate_limited, counters.requests_rate_limited), (2, 3));
}

#[test]
fn bytes_are_limited_whatever_they_say() {
    let mut world = World::new(ServeConfig { bytes_per_minute_max: 1_000, ..ServeConfig::default() });
    let refusal = "rate-limited: too many bytes, slow down";
    assert_eq!(world.say(ALICE, " ".repeat(900)).len(), 1);
    let event = note(1).sign();
    assert_eq!(world.ok(ALICE, &event), (false, refusal.into()));
    let filler = "x".repeat(200);
    assert_eq!(world.say(ALICE, &*filler), [format!(r#"["NOTICE","{refusal}"]"#)]);
    assert_eq!(
        story(&world.say(ALICE, format!(r##"["REQ","a",{{"#t":["{filler}"]}}]"##))),
        [format!("CLOSED {refusal}")]
    );
    assert_eq!(world.say(ALICE, format!(r#"["NEG-MSG","n","{filler}"]"#)), [format!(r#"["NEG-ERR","n","{refusal}"]"#)]);
    let auth = format!(r#"["AUTH",{{"id":"{}","content":"{filler}"}}]"#, "a".repeat(64));
    assert_eq!(world.say(ALICE, auth), [format!(r#"["OK","{}",false,"{refusal}"]"#, "a".repeat(64))]);
    assert_eq!(world.counters().frames_rate_limited, 5);
    assert!(world.ok(BOB, &event).0);
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
    assert!(nips.contains(&1.into()) && nips.contains(&67.into()) && !nips.contains(&77.into()));
    assert_eq!(info.limitation.restricted_writes, Some(false));
    assert!(info.software.as_ref().is_none_or(|url| url.starts_with("http")), "a URL or nothing: {:?}", info.software);
    assert_eq!(RelayInfo::parse(&serde_json::to_string(&info).unwrap()), Some(info));
    let judged = ServeConfig { judged: true, eose_hints: false, ..ServeConfig::default() }.relay_info();
    assert_eq!(judged.limitation.restricted_writes, Some(true));
    assert!(!judged.supported_nips.unwrap().contains(&67.into()));
}

#[test]
fn a_closed_server_has_said_so_to_all() {
    let mut world = World::new(ServeConfig::default());
    world.server.close_all(&Cut::Shutdown);
    world.input(ServeInput::Tick);
    assert_eq!(world.cuts.len(), 2);
    assert_eq!(world.publish(ALICE, &note(1).sign()), [""; 0]);
}
