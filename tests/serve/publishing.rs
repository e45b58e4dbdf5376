//! EVENT and OK (NIP-01, 09, 40, 62, 70).

use relaysync::protocol::Event;
use relaysync::serve::{ServeConfig, ServeEffect};

use crate::events::{NOW_SECS, note, notes};
use crate::world::{ALICE, BOB, World, ids, story};

fn world() -> World {
    World::new(ServeConfig::default())
}

#[test]
fn an_event_is_stored_once() {
    let mut world = world();
    let event = note(1).sign();
    assert_eq!(world.ok(ALICE, &event), (true, String::new()));
    let (accepted, reason) = world.ok(BOB, &event);
    assert!(accepted && reason.starts_with("duplicate:"), "{reason}");
    assert_eq!((world.counters().events, world.counters().events_stored), (2, 1));
}

#[test]
fn forged_events_are_refused_and_do_not_block_the_honest_copy() {
    let mut world = world();
    let honest = note(1).sign();
    let signature = hex_of(&honest.sig.to_string());
    let forged = Event::parse(honest.json_str().replace(&signature.0, &signature.1).into()).unwrap();
    assert_eq!(world.ok(ALICE, &forged), (false, "invalid: the signature is not the author's".into()));
    let other = Event::parse(honest.json_str().replace("a note", "a nose").into()).unwrap();
    assert_eq!(world.ok(ALICE, &other), (false, "invalid: the id is not the hash of the event".into()));
    assert!(world.ok(ALICE, &honest).0);
    assert_eq!(world.counters().events_refused, 2);
}

/// A signature, and one that differs in its last digit.
fn hex_of(signature: &str) -> (String, String) {
    let last = if signature.ends_with('0') { "1" } else { "0" };
    (signature.into(), format!("{}{last}", &signature[..signature.len() - 1]))
}

#[test]
fn what_is_no_event_is_refused_by_its_id() {
    let mut world = world();
    let id = "a".repeat(64);
    let answers = world.say(ALICE, format!(r#"["EVENT",{{"id":"{id}","kind":1}}]"#));
    assert!(answers[0].starts_with(&format!(r#"["OK","{id}",false,"invalid: "#)), "{answers:?}");
    let answers = world.say(ALICE, r#"["EVENT",{"kind":1}]"#);
    assert!(answers[0].starts_with(r#"["OK","",false,"invalid: "#), "{answers:?}");
    assert!(world.waiting.is_empty() && world.commits == 0);
}

#[test]
fn of_two_versions_in_one_second_the_lowest_id_is_kept() {
    let mut versions = [note(5).kind(0).content("x").sign(), note(5).kind(0).content("y").sign()];
    versions.sort_by_key(|event| event.id);
    let [low, high] = versions;
    let mut world = world();
    assert!(world.ok(ALICE, &high).0);
    assert!(world.ok(ALICE, &low).0);
    assert_eq!(world.ok(ALICE, &high), (false, "replaced: have a newer version".into()));
    assert_eq!(story(&world.say(BOB, r#"["REQ","a",{"kinds":[0]}]"#))[0], low.id.to_hex());
}

#[test]
fn deleted_events_stay_away_and_the_deletion_is_passed_on() {
    let mut world = world();
    let event = note(1).sign();
    let deletion = note(2).kind(5).tag("e", &event.id.to_hex()).sign();
    world.say(BOB, r#"["REQ","a",{"limit":0}]"#);
    world.heard(BOB);
    assert!(world.ok(ALICE, &event).0);
    assert!(world.ok(ALICE, &deletion).0);
    assert_eq!(world.ok(ALICE, &event), (false, "blocked: deleted by its author (NIP-09)".into()));
    assert_eq!(story(&world.heard(BOB)), ids([&event, &deletion]));
    assert_eq!(story(&world.say(BOB, r#"["REQ","b",{}]"#)), [deletion.id.to_hex(), "EOSE".into()]);
}

#[test]
fn who_has_vanished_is_not_stored_again() {
    let mut world = world();
    let vanish = note(10).kind(62).tag("relay", "ALL_RELAYS").sign();
    assert!(world.ok(ALICE, &vanish).0);
    let (accepted, reason) = world.ok(ALICE, &note(9).sign());
    assert!(!accepted && reason.contains("NIP-62"), "{reason}");
}

#[test]
fn expired_events_are_refused() {
    let mut world = world();
    let expired = note(1).tag("expiration", &NOW_SECS.to_string()).sign();
    assert_eq!(world.ok(ALICE, &expired), (false, "invalid: the event has expired (NIP-40)".into()));
    let lasting = note(1).tag("expiration", &(NOW_SECS + 1).to_string()).sign();
    assert!(world.ok(ALICE, &lasting).0);
}

#[test]
fn ephemeral_events_are_passed_on_and_not_stored() {
    let mut world = world();
    world.say(BOB, r#"["REQ","a",{"kinds":[20001]}]"#);
    let event = note(1).kind(20_001).sign();
    assert_eq!(world.ok(ALICE, &event), (true, String::new()));
    assert_eq!(story(&world.heard(BOB)), ids([&event]));
    assert_eq!(story(&world.say(BOB, r#"["REQ","b",{"kinds":[20001]}]"#)), ["EOSE"]);
    assert_eq!(world.counters().events_stored, 0);
}

#[test]
fn events_that_come_together_are_verified_and_committed_together() {
    let mut world = world();
    world.works = false;
    for event in notes(1..=20) {
        world.publish(ALICE, &event);
    }
    assert_eq!(world.waiting.len(), 1, "one batch at a time");
    world.work();
    assert_eq!(world.commits, 2, "the first alone, then all that came meanwhile");
    assert_eq!(world.heard(ALICE).len(), 20);
    assert!(world.server.is_settled());
}

#[test]
fn batches_are_bounded_and_keep_the_order() {
    let mut world = World::new(ServeConfig { batch_events_max: 3, ..ServeConfig::default() });
    world.works = false;
    world.say(BOB, r#"["REQ","a",{"limit":0}]"#);
    world.heard(BOB);
    let events = notes(1..=10);
    for event in &events {
        world.publish(ALICE, event);
    }
    let mut sizes = Vec::new();
    while let Some(effect) = world.waiting.front() {
        match effect {
            ServeEffect::Verify { events, .. } => sizes.push(events.len()),
            ServeEffect::Commit { batch, .. } => sizes.push(batch.events.len()),
            other => panic!("{other:?}"),
        }
        world.work_once();
    }
    assert!(sizes.iter().all(|size| *size <= 3), "{sizes:?}");
    assert_eq!(story(&world.heard(BOB)), ids(&events));
}

#[test]
fn a_client_that_is_ahead_of_the_store_is_not_read_from() {
    let event = note(1).sign();
    let bytes_max = event.json().len() * 4;
    let mut world = World::new(ServeConfig { pending_bytes_max: bytes_max, ..ServeConfig::default() });
    world.works = false;
    for event in notes(1..=6) {
        world.publish(ALICE, &event);
    }
    assert_eq!(world.reading.get(&ALICE), Some(&false));
    assert_eq!(world.reading.get(&BOB), None);
    world.work();
    assert_eq!(world.reading.get(&ALICE), Some(&true));
    assert_eq!(world.counters().readings_paused, 1);
}

#[test]
fn events_of_a_client_that_has_left_are_stored() {
    let mut world = world();
    world.works = false;
    world.publish(ALICE, &note(1).sign());
    world.input(relaysync::serve::ServeInput::Closed { client: ALICE });
    world.work();
    assert_eq!(world.counters().events_stored, 1);
}

#[test]
fn an_event_that_cannot_be_stored_is_not_passed_on() {
    let mut world = world();
    world.say(BOB, r#"["REQ","a",{"limit":0}]"#);
    world.heard(BOB);
    world.broken = true;
    let event = note(1).sign();
    assert_eq!(world.ok(ALICE, &event), (false, "error: the event cannot be stored at the moment".into()));
    assert_eq!(world.heard(BOB), [""; 0]);
    world.broken = false;
    assert!(world.ok(ALICE, &event).0);
}

fn judged_world() -> World {
    World::new(ServeConfig { judged: true, ..ServeConfig::default() })
}

#[test]
fn what_is_not_wanted_is_refused_with_the_judges_words_and_goes_nowhere() {
    let mut world = judged_world();
    world.say(BOB, r#"["REQ","a",{"limit":0}]"#);
    world.heard(BOB);
    let (wanted, unwanted) = (note(1).sign(), note(2).content("unwanted").sign());
    assert_eq!(world.ok(ALICE, &unwanted), (false, "blocked: nobody wants this".into()));
    assert_eq!(world.commits, 0, "a batch that nobody wants is not committed");
    assert_eq!(world.ok(ALICE, &wanted), (true, String::new()));
    assert_eq!(story(&world.heard(BOB)), ids([&wanted]));
    let counters = world.counters();
    assert_eq!((counters.events_stored, counters.events_refused, counters.events_unwanted), (1, 1, 1));
}

#[test]
fn a_forgery_is_never_judged() {
    let mut world = judged_world();
    world.works = false;
    let forged = Event::parse(note(1).sign().json_str().replace("a note", "a nose").into()).unwrap();
    world.publish(ALICE, &forged);
    world.work_once();
    assert!(world.waiting.is_empty(), "{:?}", world.waiting);
    assert!(world.server.is_settled());
}

#[test]
fn a_judge_that_fails_refuses_and_what_follows_is_judged() {
    let mut world = judged_world();
    world.broken = true;
    let event = note(1).sign();
    let (accepted, reason) = world.ok(ALICE, &event);
    assert!(!accepted && reason.starts_with("error:"), "{reason}");
    world.broken = false;
    assert!(world.ok(ALICE, &event).0);
    let counters = world.counters();
    assert_eq!((counters.events_unjudged, counters.faults, counters.events_stored), (1, 1, 1));
}

#[test]
fn a_batch_is_judged_only_when_the_one_before_it_is_committed() {
    let mut world = World::new(ServeConfig { judged: true, batch_events_max: 2, ..ServeConfig::default() });
    world.works = false;
    let events = notes(1..=7);
    for event in &events {
        world.publish(ALICE, event);
    }
    let mut steps = Vec::new();
    while let Some(effect) = world.waiting.front() {
        match effect {
            ServeEffect::Judge { events, .. } => steps.push(("judge", events.len())),
            ServeEffect::Commit { batch, .. } => steps.push(("commit", batch.events.len())),
            _ => {}
        }
        world.work_once();
    }
    assert!(steps.chunks(2).all(|pair| pair[0].0 == "judge" && pair[1] == ("commit", pair[0].1)), "{steps:?}");
    assert_eq!(steps.iter().filter(|step| step.0 == "commit").map(|step| step.1).sum::<usize>(), 7);
    assert_eq!(world.heard(ALICE).len(), 7);
    assert!(world.server.is_settled());
}

#[test]
fn who_asks_to_vanish_is_followed_whatever_the_judge_says() {
    let mut world = judged_world();
    let vanish = |relay: &str| note(10).by(2).kind(62).content("unwanted").tag("relay", relay).sign();
    assert!(!world.ok(ALICE, &vanish("wss://other.example")).0, "what asks others is judged");
    assert!(world.ok(ALICE, &vanish("wss://relay.example")).0);
    assert!(world.ok(ALICE, &vanish("ALL_RELAYS")).0);
    let (accepted, reason) = world.ok(ALICE, &note(9).by(2).sign());
    assert!(!accepted && reason.contains("NIP-62"), "{reason}");
}

#[test]
fn reposts_do_not_carry_protected_events() {
    let mut world = world();
    let (open, closed) = (note(1).sign(), note(2).bare_tag("-").sign());
    for kind in [6, 16] {
        let repost = |event: &Event| note(3).kind(kind).content(event.json_str()).sign();
        assert!(world.ok(ALICE, &repost(&open)).0);
        let (accepted, reason) = world.ok(ALICE, &repost(&closed));
        assert!(!accepted && reason.starts_with("blocked:"), "{reason}");
    }
    assert!(world.ok(ALICE, &note(3).kind(6).sign()).0, "nor need they carry any");
    assert!(world.ok(ALICE, &note(3).content(closed.json_str()).sign()).0, "a note is no repost");
}

#[test]
fn a_deletion_of_a_deletion_has_no_effect() {
    let mut world = world();
    let event = note(1).sign();
    let deletion = note(2).kind(5).tag("e", &event.id.to_hex()).sign();
    let regret = note(3).kind(5).tag("e", &deletion.id.to_hex()).sign();
    for request in [&deletion, &regret] {
        assert!(world.ok(ALICE, request).0);
    }
    assert!(!world.ok(ALICE, &event).0);
    assert_eq!(story(&world.say(BOB, r#"["REQ","a",{"kinds":[5]}]"#)).len(), 3);
}

#[test]
fn clients_that_are_ahead_of_the_store_together_are_not_read_from() {
    let events = notes(1..=12);
    let bytes = events[0].json().len();
    let config = ServeConfig { pending_total_bytes_max: bytes * 4, ..ServeConfig::default() };
    let mut world = World::new(config);
    world.works = false;
    for pair in events.chunks(2) {
        world.publish(ALICE, &pair[0]);
        world.publish(BOB, &pair[1]);
    }
    assert_eq!((world.reading.get(&ALICE), world.reading.get(&BOB)), (Some(&false), Some(&false)));
    world.input(relaysync::serve::ServeInput::Closed { client: ALICE });
    world.work();
    assert_eq!(world.reading.get(&BOB), Some(&true));
    assert_eq!((world.counters().readings_paused, world.counters().events_stored), (2, 12));
}
