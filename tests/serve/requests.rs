//! REQ, CLOSE and COUNT (NIP-01, 45, 67).

use relaysync::protocol::Event;
use relaysync::serve::{ServeConfig, ServeInput};

use crate::events::{NOW_SECS, note, notes};
use crate::world::{ALICE, BOB, World, ids, story};

/// Ids and EOSE of a REQ with these filters.
fn ask(world: &mut World, filters: &str) -> Vec<String> {
    let frames = world.say(ALICE, format!(r#"["REQ","a",{filters}]"#));
    story(&frames)
}

fn with_eose(events: &[&Event]) -> Vec<String> {
    let mut story = ids(events.iter().copied());
    story.push("EOSE".into());
    story
}

#[test]
fn stored_events_come_newest_first_and_of_one_second_the_lowest_id_first() {
    let events = notes([10, 30, 20, 20, 20]);
    let mut world = World::with(ServeConfig::default(), &events);
    let mut second: Vec<&Event> = events[2..].iter().collect();
    second.sort_by_key(|event| event.id);
    assert_eq!(
        ask(&mut world, r#"{"kinds":[1]}"#),
        with_eose(&[&events[1], second[0], second[1], second[2], &events[0]])
    );
}

#[test]
fn since_and_until_belong_to_the_window() {
    let events = notes([1, 2, 3, 4]);
    let mut world = World::with(ServeConfig::default(), &events);
    assert_eq!(ask(&mut world, r#"{"since":2,"until":3}"#), with_eose(&[&events[2], &events[1]]));
    assert_eq!(ask(&mut world, r#"{"since":3,"until":2}"#), with_eose(&[]));
    assert_eq!(ask(&mut world, r#"{"kinds":[]}"#), with_eose(&[]));
}

#[test]
fn a_page_is_cut_to_the_cap_without_a_word() {
    let events = notes(1..=9);
    let config = ServeConfig { page_events_max: 4, page_events_default: 2, ..ServeConfig::default() };
    let mut world = World::with(config, &events);
    assert_eq!(ask(&mut world, r#"{"limit":100}"#).len(), 4 + 1);
    assert_eq!(ask(&mut world, r#"{}"#).len(), 2 + 1);
    assert_eq!(ask(&mut world, r#"{"limit":3}"#).len(), 3 + 1);
    assert_eq!(world.counters().pages_capped, 3);
    assert_eq!(ask(&mut world, r#"{"limit":4,"until":4}"#).len(), 4 + 1);
    assert_eq!(world.counters().pages_capped, 3, "a page that is exactly full was not capped");
}

#[test]
fn limit_zero_is_live_only() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=3));
    assert_eq!(ask(&mut world, r#"{"limit":0}"#), with_eose(&[]));
    assert_eq!(world.pages_read, 0);
    let event = note(5).sign();
    world.publish(BOB, &event);
    assert_eq!(story(&world.heard(ALICE)), ids([&event]));
}

#[test]
fn several_filters_are_answered_in_one_order_without_repetition() {
    let events = notes(1..=6);
    let mut world = World::with(ServeConfig::default(), &events);
    let filters = r#"{"since":2,"until":4},{"since":3,"limit":2},{"limit":1},{"until":1}"#;
    let newest_first = [&events[5], &events[4], &events[3], &events[2], &events[1], &events[0]];
    assert_eq!(ask(&mut world, filters), with_eose(&newest_first));
}

#[test]
fn a_page_longer_than_one_read_comes_whole() {
    let events: Vec<Event> = (1..=100).map(|at| note(at).content(format!("{at}{}", "x".repeat(1000))).sign()).collect();
    let config = ServeConfig { read_bytes_max: 40_000, ..ServeConfig::default() };
    let mut world = World::with(config, &events);
    let newest_first: Vec<&Event> = events.iter().rev().collect();
    assert_eq!(ask(&mut world, r#"{"limit":100}"#), with_eose(&newest_first));
    assert!(world.pages_read > 2);
    assert_eq!(ask(&mut world, r#"{"limit":70},{"since":1,"limit":100}"#), with_eose(&newest_first));
}

#[test]
fn no_more_is_read_for_a_client_than_it_takes() {
    let events: Vec<Event> = (1..=100).map(|at| note(at).content(format!("{at}{}", "x".repeat(1000))).sign()).collect();
    let config = ServeConfig { read_bytes_max: 32_768, outbound_pause_bytes: 30_000, ..ServeConfig::default() };
    let mut world = World::with(config, &events);
    world.clients_read = false;
    let first = world.say(ALICE, r#"["REQ","a",{"limit":100}]"#);
    assert_eq!(world.pages_read, 1);
    assert!(first.len() < 40 && world.cuts.is_empty());
    world.clients_read = true;
    let bytes = first.iter().map(String::len).sum();
    world.input(ServeInput::Written { client: ALICE, bytes });
    assert_eq!(first.len() + world.heard(ALICE).len(), 100 + 1);
}

#[test]
fn events_travel_as_the_bytes_that_they_came_in() {
    let event = note(1).content("\u{e9}\n\"").sign();
    let mut world = World::new(ServeConfig::default());
    world.say(BOB, r#"["REQ","live",{"limit":0}]"#);
    world.publish(ALICE, &event);
    let frame = |subscription: &str| format!(r#"["EVENT","{subscription}",{}]"#, event.json_str());
    assert_eq!(world.heard(BOB), [r#"["EOSE","live"]"#.to_owned(), frame("live")][1..]);
    assert_eq!(world.say(BOB, r#"["REQ","stored",{}]"#)[0], frame("stored"));
}

#[test]
fn live_events_go_to_each_matching_subscription_once() {
    let mut world = World::new(ServeConfig::default());
    world.say(BOB, r#"["REQ","two",{"kinds":[1],"limit":0},{"since":1,"limit":0}]"#);
    world.say(BOB, r#"["REQ","other",{"kinds":[7]}]"#);
    world.say(BOB, r##"["REQ","tag",{"#t":["sync"]}]"##);
    world.say(ALICE, r#"["REQ","own",{"kinds":[1]}]"#);
    let event = note(5).tag("t", "sync").sign();
    let own = world.publish(ALICE, &event);
    assert_eq!(own.len(), 2, "the event and its OK: {own:?}");
    let frames = world.heard(BOB);
    assert_eq!(frames.len(), 2, "{frames:?}");
    assert!(frames[0].starts_with(r#"["EVENT","tag","#) && frames[1].starts_with(r#"["EVENT","two","#));
}

#[test]
fn events_of_another_writer_reach_subscribers() {
    let mut world = World::new(ServeConfig::default());
    world.say(BOB, r#"["REQ","a",{"limit":0}]"#);
    let event = note(5);
    world.input(ServeInput::Accepted { events: [event.verified()].into() });
    assert_eq!(story(&world.heard(BOB)), ids([&event.sign()]));
}

#[test]
fn a_req_with_a_known_id_replaces_and_close_ends() {
    let mut world = World::new(ServeConfig::default());
    world.say(BOB, r#"["REQ","a",{"kinds":[1]}]"#);
    world.say(BOB, r#"["REQ","a",{"kinds":[7]}]"#);
    world.publish(ALICE, &note(1).sign());
    assert_eq!(world.heard(BOB), [""; 0]);
    let reaction = note(2).kind(7).sign();
    world.publish(ALICE, &reaction);
    assert_eq!(story(&world.heard(BOB)), ids([&reaction]));
    assert_eq!(world.say(BOB, r#"["CLOSE","a"]"#), [""; 0]);
    world.publish(ALICE, &note(3).kind(7).sign());
    assert_eq!(world.heard(BOB), [""; 0]);
}

#[test]
fn a_replaced_req_gets_nothing_of_what_was_read_for_it() {
    let events = notes([1, 2]);
    let mut world = World::with(ServeConfig::default(), &events);
    world.works = false;
    world.say(ALICE, r#"["REQ","a",{"since":2}]"#);
    world.say(ALICE, r#"["REQ","a",{"until":1}]"#);
    world.work();
    assert_eq!(story(&world.heard(ALICE)), with_eose(&[&events[0]]));
}

#[test]
fn what_is_stored_while_a_page_is_read_comes_once() {
    // Stored before the page is read, known after: in the page, and not again.
    let event = note(1).sign();
    let mut world = World::new(ServeConfig::default());
    world.works = false;
    world.publish(BOB, &event);
    world.work_once(); // verified
    world.say(ALICE, r#"["REQ","a",{}]"#);
    let commit = world.waiting.pop_front().unwrap();
    let query = world.waiting.pop_front().unwrap();
    let relaysync::serve::ServeEffect::Commit { ticket, batch } = commit else { panic!("{commit:?}") };
    let outcomes = crate::world::at_once(relaysync::store::Store::commit(&world.store, batch)).unwrap();
    world.waiting.push_back(query);
    world.work();
    assert_eq!(story(&world.heard(ALICE)), with_eose(&[&event]));
    world.input(ServeInput::Committed { ticket, outcomes: Ok(outcomes) });
    assert_eq!(world.heard(ALICE), [""; 0]);
}

#[test]
fn what_another_writer_stores_while_a_page_is_read_comes_once() {
    let (first, second) = (note(1), note(2));
    let mut world = World::with(ServeConfig::default(), &[first.sign(), second.sign()]);
    // Two commits of another writer are in the store already, and nothing was heard of them but that they began.
    world.input(ServeInput::Elsewhere { begun: 2, over: 0 });
    assert_eq!(ask(&mut world, "{}"), with_eose(&[&second.sign(), &first.sign()]));
    for (over, event) in [(1, first), (2, second)] {
        world.input(ServeInput::Accepted { events: [event.verified()].into() });
        assert_eq!(world.heard(ALICE), [""; 0], "not a second time");
        world.input(ServeInput::Elsewhere { begun: 2, over });
    }
    let third = note(3);
    world.input(ServeInput::Elsewhere { begun: 3, over: 2 });
    world.input(ServeInput::Accepted { events: [third.verified()].into() });
    assert_eq!(story(&world.heard(ALICE)), ids([&third.sign()]));
}

#[test]
fn events_that_cannot_be_handed_in_close_what_would_lack_them() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=2));
    world.say(ALICE, r#"["REQ","a",{}]"#);
    world.say(ALICE, r#"["REQ","b",{}]"#);
    world.heard(ALICE);
    world.input(ServeInput::Missed);
    let closed = "CLOSED error: events were missed, subscribe again";
    assert_eq!(story(&world.heard(ALICE)), [closed, closed]);
    assert_eq!(world.counters().subscriptions_missed, 2);
    assert_eq!(ask(&mut world, "{}").len(), 3);
}

#[test]
fn what_is_stored_after_a_page_was_read_comes_behind_eose() {
    let (old, new) = (note(1).sign(), note(2).sign());
    let mut world = World::with(ServeConfig::default(), std::slice::from_ref(&old));
    world.works = false;
    world.say(ALICE, r#"["REQ","a",{}]"#);
    let query = world.waiting.pop_front().unwrap();
    world.publish(BOB, &new);
    world.work();
    assert_eq!(world.heard(ALICE), [""; 0], "nothing live before the stored events");
    world.waiting.push_back(query);
    world.work();
    // The page was read after the commit here, so it has both; what was held back must not repeat the new one.
    assert_eq!(story(&world.heard(ALICE)), with_eose(&[&new, &old]));
    let newer = note(3).sign();
    world.publish(BOB, &newer);
    world.work();
    assert_eq!(story(&world.heard(ALICE)), ids([&newer]));
}

#[test]
fn what_was_held_back_and_not_in_the_page_follows_eose() {
    let mut world = World::new(ServeConfig::default());
    world.works = false;
    world.say(ALICE, r#"["REQ","a",{}]"#);
    let query = world.waiting.pop_front().unwrap();
    let ephemeral = note(2).kind(20_001).sign();
    world.publish(BOB, &ephemeral);
    world.work();
    world.waiting.push_back(query);
    world.work();
    assert_eq!(story(&world.heard(ALICE)), ["EOSE".to_owned(), ephemeral.id.to_hex()]);
}

#[test]
fn count_counts_an_event_once_and_leaves_no_subscription() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=5));
    assert_eq!(
        world.say(ALICE, r#"["COUNT","c",{"since":2,"limit":1},{"until":3}]"#),
        [r#"["COUNT","c",{"count":5}]"#]
    );
    world.publish(BOB, &note(9).sign());
    assert_eq!(world.heard(ALICE), [""; 0]);
}

#[test]
fn hints_say_whether_the_store_has_more() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=3));
    let last = |world: &mut World, filter: &str| world.say(ALICE, format!(r#"["REQ","a",{filter}]"#)).pop().unwrap();
    assert_eq!(last(&mut world, r#"{}"#), r#"["EOSE","a",["finish"]]"#);
    assert_eq!(last(&mut world, r#"{"limit":3}"#), r#"["EOSE","a",["finish"]]"#);
    assert_eq!(last(&mut world, r#"{"limit":2}"#), r#"["EOSE","a",["more"]]"#);
    assert_eq!(last(&mut world, r#"{"limit":0}"#), r#"["EOSE","a"]"#, "nobody has looked");
    assert_eq!(last(&mut world, r#"{"limit":0},{"limit":1}"#), r#"["EOSE","a",["more"]]"#);
    assert_eq!(last(&mut world, r#"{"ids":[]}"#), r#"["EOSE","a",["finish"]]"#);
    let config = ServeConfig { eose_hints: false, ..ServeConfig::default() };
    let mut world = World::with(config, &notes(1..=3));
    assert_eq!(last(&mut world, "{}"), r#"["EOSE","a"]"#);
}

#[test]
fn expired_events_are_not_served() {
    let at = (NOW_SECS + 10).to_string();
    let mut world = World::with(ServeConfig::default(), &[note(1).tag("expiration", &at).sign()]);
    assert_eq!(ask(&mut world, "{}").len(), 2);
    world.pass(std::time::Duration::from_secs(10));
    assert_eq!(ask(&mut world, "{}"), with_eose(&[]));
}

#[test]
fn a_store_that_fails_ends_the_request_with_a_word() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=3));
    world.broken = true;
    assert_eq!(ask(&mut world, "{}"), ["CLOSED error: the events cannot be read at the moment"]);
    let counted = world.say(ALICE, r#"["COUNT","c",{}]"#);
    assert_eq!(story(&counted), ["CLOSED error: the events cannot be counted at the moment"]);
    assert_eq!(world.counters().faults, 2);
    world.broken = false;
    assert_eq!(ask(&mut world, "{}").len(), 4);
}
