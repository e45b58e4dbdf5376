//! NEG-OPEN, NEG-MSG, NEG-CLOSE and NEG-ERR (NIP-77).

use std::collections::BTreeSet;
use std::time::Duration;

use negentropy::{Id, Negentropy, NegentropyStorageVector};
use relaysync::protocol::message::client;
use relaysync::protocol::{Event, Filter, RelayMessage, hex};
use relaysync::serve::{ClientId, ServeConfig, ServeInput};

use crate::events::{NOW_SECS, note, notes};
use crate::world::{ALICE, BOB, World, ids, story};

fn storage(events: &[Event]) -> NegentropyStorageVector {
    let mut storage = NegentropyStorageVector::new();
    for event in events {
        storage.insert(event.created_at_secs(), Id::from_byte_array(event.id.to_bytes())).unwrap();
    }
    storage.seal().unwrap();
    storage
}

fn first_message(events: &[Event]) -> Vec<u8> {
    Negentropy::borrowed(&storage(events), 0).unwrap().initiate().unwrap()
}

fn open(world: &mut World, client: ClientId, id: &str, filter: &str, events: &[Event]) -> Vec<String> {
    let filter: Filter = serde_json::from_str(filter).unwrap();
    world.say(client, client::neg_open(id, &filter, &first_message(events)))
}

/// What a reconciliation finds out.
#[derive(Debug, Default, PartialEq, Eq)]
struct Difference {
    have: BTreeSet<String>,
    need: BTreeSet<String>,
    rounds: usize,
}

/// Reconciles what `local` has with the relay, as a client.
fn reconcile(world: &mut World, filter: &str, local: &[Event], frame_bytes_max: u64) -> Difference {
    let storage = storage(local);
    let mut side = Negentropy::borrowed(&storage, frame_bytes_max).unwrap();
    let filter: Filter = serde_json::from_str(filter).unwrap();
    let mut answers = world.say(ALICE, client::neg_open("n", &filter, &side.initiate().unwrap()));
    let mut difference = Difference::default();
    loop {
        difference.rounds += 1;
        let answer = answers.pop().unwrap();
        let RelayMessage::NegMsg { subscription, message } = RelayMessage::parse(&answer).unwrap() else {
            panic!("{answer}")
        };
        assert_eq!(subscription, "n");
        let (mut have, mut need) = (Vec::new(), Vec::new());
        let next = side.reconcile_with_ids(&hex::decode(&message).unwrap(), &mut have, &mut need).unwrap();
        difference.have.extend(have.iter().map(|id| hex::encode(&id.to_bytes())));
        difference.need.extend(need.iter().map(|id| hex::encode(&id.to_bytes())));
        match next {
            Some(message) => answers = world.say(ALICE, client::neg_msg("n", &message)),
            None => break,
        }
    }
    assert_eq!(world.say(ALICE, client::neg_close("n")), [""; 0]);
    difference
}

fn set<'e>(events: impl IntoIterator<Item = &'e Event>) -> BTreeSet<String> {
    ids(events).into_iter().collect()
}

#[test]
fn both_sides_learn_what_the_other_lacks() {
    let all = notes((0..600).map(|number| 1_000 + number / 3));
    let mut world = World::with(ServeConfig::default(), &all[..400]);
    let difference = reconcile(&mut world, r#"{"kinds":[1]}"#, &all[200..], 0);
    assert_eq!(difference.need, set(&all[..200]));
    assert_eq!(difference.have, set(&all[400..]));
    let equal = reconcile(&mut world, r#"{"kinds":[1]}"#, &all[..400], 0);
    assert_eq!(equal, Difference { rounds: 1, ..Difference::default() });
}

#[test]
fn answers_stay_below_the_frame_limit() {
    let all = notes((0..1_500).map(|number| 1_000 + number));
    let config = ServeConfig { negentropy_frame_bytes_max: 4096, ..ServeConfig::default() };
    let mut world = World::with(config, &all);
    let local = notes((0..600).map(|number| 5_000 + number));
    let answer = open(&mut world, ALICE, "n", "{}", &local);
    assert!(answer[0].len() <= 2 * 4096 + 32, "{}", answer[0].len());
    let difference = reconcile(&mut world, "{}", &local, 4096);
    assert_eq!(difference.need, set(&all));
    assert_eq!(difference.have, set(&local));
    assert!(difference.rounds > 5, "{}", difference.rounds);
}

#[test]
fn only_the_window_and_filter_asked_for_are_compared() {
    let mut events = notes(1..=9);
    events.push(note(5).kind(7).sign());
    let mut world = World::with(ServeConfig::default(), &events);
    let difference = reconcile(&mut world, r#"{"kinds":[1],"since":3,"until":5}"#, &[], 0);
    assert_eq!(difference.need, set(&events[2..5]));
    let difference = reconcile(&mut world, r#"{"kinds":[7],"limit":1}"#, &[], 0);
    assert_eq!(difference.need, set(&events[9..]));
}

#[test]
fn a_second_reconciliation_reads_nothing() {
    let events = notes(1..=50);
    let mut world = World::with(ServeConfig::default(), &events);
    reconcile(&mut world, "{}", &[], 0);
    reconcile(&mut world, "{}", &events, 0);
    assert_eq!(world.items_read, 1);
    let difference = reconcile(&mut world, r#"{"since":50}"#, &[], 0);
    assert_eq!(difference.need, set(&events[49..]), "a window of a set that is kept");
    assert_eq!(world.items_read, 1);
    reconcile(&mut world, r#"{"kinds":[1]}"#, &[], 0);
    assert_eq!(world.items_read, 2);
    assert_eq!(world.counters().item_sets_read, 2);
}

#[test]
fn a_kept_set_follows_the_store() {
    let events = notes(1..=50);
    let mut world = World::with(ServeConfig::default(), &events);
    reconcile(&mut world, "{}", &[], 0);
    let late = note(60).sign();
    assert!(world.ok(BOB, &late).0);
    let elsewhere = note(61);
    world.input(ServeInput::Accepted { events: [elsewhere.verified()].into() });
    let difference = reconcile(&mut world, "{}", &events, 0);
    assert_eq!(difference.need, set([&late, &elsewhere.sign()]));
    assert_eq!(world.items_read, 1, "what was added needs no read");

    let deletion = note(70).kind(5).tag("e", &late.id.to_hex()).sign();
    assert!(world.ok(BOB, &deletion).0);
    let difference = reconcile(&mut world, "{}", &events, 0);
    assert_eq!(difference.need, set([&deletion]), "what is deleted is offered no more");
    assert_eq!(world.items_read, 2);
    assert!(world.ok(BOB, &note(80).by(2).kind(0).sign()).0);
    reconcile(&mut world, r#"{"kinds":[1]}"#, &events, 0);
    assert!(world.ok(BOB, &note(81).by(2).kind(0).sign()).0);
    reconcile(&mut world, r#"{"kinds":[1]}"#, &events, 0);
    assert_eq!(world.items_read, 3, "a new profile removes no note");
}

#[test]
fn what_is_removed_while_a_set_is_read_is_not_kept() {
    let event = note(1).sign();
    let mut world = World::with(ServeConfig::default(), std::slice::from_ref(&event));
    world.works = false;
    open(&mut world, ALICE, "n", "{}", &[]);
    let read = world.waiting.pop_front().unwrap();
    world.publish(BOB, &note(2).kind(5).tag("e", &event.id.to_hex()).sign());
    world.work();
    world.waiting.push_back(read);
    world.work();
    assert_eq!(world.heard(ALICE).len(), 1);
    world.works = true;
    reconcile(&mut world, "{}", &[], 0);
    assert_eq!(world.items_read, 2);
}

#[test]
fn one_read_serves_all_who_wait_for_it() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=9));
    world.works = false;
    open(&mut world, ALICE, "a", "{}", &[]);
    open(&mut world, ALICE, "b", r#"{"since":5}"#, &[]);
    open(&mut world, BOB, "a", "{}", &[]);
    world.work();
    assert_eq!(world.items_read, 1);
    assert_eq!((world.heard(ALICE).len(), world.heard(BOB).len()), (2, 1));
}

#[test]
fn kept_sets_are_bounded_and_age() {
    let config = ServeConfig { item_sets_max: 2, ..ServeConfig::default() };
    let mut world = World::with(config, &notes(1..=9));
    for filter in [r#"{"kinds":[1]}"#, r#"{"kinds":[2]}"#, r#"{"kinds":[3]}"#, r#"{"kinds":[1]}"#] {
        reconcile(&mut world, filter, &[], 0);
    }
    assert_eq!(world.items_read, 4);
    world.pass(Duration::from_secs(299));
    reconcile(&mut world, r#"{"kinds":[1]}"#, &[], 0);
    assert_eq!(world.items_read, 4);
    world.pass(Duration::from_secs(1));
    reconcile(&mut world, r#"{"kinds":[1]}"#, &[], 0);
    assert_eq!(world.items_read, 5);

    let config = ServeConfig { item_sets_records_max: 8, ..ServeConfig::default() };
    let mut world = World::with(config, &notes(1..=9));
    reconcile(&mut world, "{}", &[], 0);
    reconcile(&mut world, "{}", &[], 0);
    assert_eq!(world.items_read, 2, "a set over the bound is used, and not kept");
}

#[test]
fn expired_events_are_not_offered() {
    let lasting = note(1).sign();
    let expiring = note(2).tag("expiration", &(NOW_SECS + 1).to_string()).sign();
    let mut world = World::with(ServeConfig::default(), &[lasting.clone(), expiring]);
    world.pass(Duration::from_secs(1));
    assert_eq!(reconcile(&mut world, "{}", &[], 0).need, set([&lasting]));
}

#[test]
fn a_set_over_the_cap_is_refused_with_the_cap() {
    let config = ServeConfig { negentropy_records_max: 5, ..ServeConfig::default() };
    let mut world = World::with(config, &notes(1..=6));
    let refusal = r#"["NEG-ERR","n","blocked: too many query results: 6, at most 5",5]"#;
    assert_eq!(open(&mut world, ALICE, "n", "{}", &[]), [refusal]);
    assert_eq!(reconcile(&mut world, r#"{"since":2}"#, &[], 0).need.len(), 5);
    let dead = world.say(ALICE, r#"["NEG-MSG","n","61"]"#);
    assert_eq!(dead, [r#"["NEG-ERR","n","closed: no such reconciliation is open"]"#]);
}

#[test]
fn sessions_are_bounded_and_opening_again_replaces() {
    let config = ServeConfig { negentropy_sessions_max: 2, ..ServeConfig::default() };
    let mut world = World::with(config, &notes(1..=3));
    for id in ["a", "b", "b", "a"] {
        assert!(open(&mut world, ALICE, id, "{}", &[])[0].starts_with("[\"NEG-MSG\""));
    }
    let refused = open(&mut world, ALICE, "c", "{}", &[]);
    assert_eq!(refused, [r#"["NEG-ERR","c","rate-limited: too many concurrent NEG requests, at most 2"]"#]);
    assert!(open(&mut world, BOB, "c", "{}", &[])[0].starts_with("[\"NEG-MSG\""));
    world.say(ALICE, client::neg_close("a"));
    assert!(open(&mut world, ALICE, "c", "{}", &[])[0].starts_with("[\"NEG-MSG\""));
}

#[test]
fn a_replaced_session_gets_nothing_of_what_was_read_for_it() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=3));
    world.works = false;
    open(&mut world, ALICE, "a", r#"{"kinds":[1]}"#, &[]);
    open(&mut world, ALICE, "a", r#"{"kinds":[7]}"#, &[]);
    world.work();
    assert_eq!(world.heard(ALICE).len(), 1);
}

#[test]
fn ids_of_reconciliations_and_subscriptions_are_apart() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=3));
    world.say(ALICE, r#"["REQ","a",{"limit":0}]"#);
    open(&mut world, ALICE, "a", "{}", &[]);
    world.say(ALICE, client::neg_close("a"));
    let event = note(9).sign();
    world.publish(BOB, &event);
    assert_eq!(story(&world.heard(ALICE)), ids([&event]));
    open(&mut world, ALICE, "a", "{}", &[]);
    world.say(ALICE, r#"["CLOSE","a"]"#);
    assert!(world.say(ALICE, client::neg_msg("a", &first_message(&[])))[0].starts_with("[\"NEG-MSG\""));
}

#[test]
fn messages_that_are_none_end_the_session() {
    for message in ["zz", "6", "", "00", "61000003", "61000002ff"] {
        let mut world = World::with(ServeConfig::default(), &notes(1..=3));
        let answers = world.say(ALICE, format!(r#"["NEG-OPEN","n",{{}},"{message}"]"#));
        assert!(answers[0].starts_with(r#"["NEG-ERR","n","invalid: "#), "{message:?}: {answers:?}");
        open(&mut world, ALICE, "n", "{}", &[]);
        let answers = world.say(ALICE, format!(r#"["NEG-MSG","n","{message}"]"#));
        assert!(answers[0].starts_with(r#"["NEG-ERR","n","invalid: "#), "{message:?}: {answers:?}");
        assert!(world.say(ALICE, r#"["NEG-MSG","n","61"]"#)[0].contains("closed:"));
    }
}

#[test]
fn an_unknown_version_is_answered_by_ours() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=3));
    assert_eq!(world.say(ALICE, r#"["NEG-OPEN","n",{},"62"]"#), [r#"["NEG-MSG","n","61"]"#]);
}

#[test]
fn a_message_before_the_answer_to_the_last_ends_the_session() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=3));
    world.works = false;
    open(&mut world, ALICE, "n", "{}", &[]);
    let answers = world.say(ALICE, r#"["NEG-MSG","n","61"]"#);
    assert_eq!(answers, [r#"["NEG-ERR","n","invalid: the last message is still being answered"]"#]);
    world.work();
    assert_eq!(world.heard(ALICE), [""; 0]);
}

#[test]
fn without_negentropy_there_is_a_notice_as_from_relays_that_lack_it() {
    let config = ServeConfig { negentropy: false, ..ServeConfig::default() };
    let mut world = World::with(config, &notes(1..=3));
    let notice = r#"["NOTICE","ERROR: bad msg: negentropy disabled"]"#;
    assert_eq!(open(&mut world, ALICE, "n", "{}", &[]), [notice]);
    assert_eq!(world.say(ALICE, r#"["NEG-MSG","n","61"]"#), [notice]);
}

#[test]
fn a_silent_reconciliation_is_closed() {
    let config = ServeConfig { negentropy_idle_max: Duration::from_secs(40), ..ServeConfig::default() };
    let mut world = World::with(config, &notes(1..=3));
    open(&mut world, ALICE, "old", "{}", &[]);
    world.pass(Duration::from_secs(20));
    open(&mut world, ALICE, "new", "{}", &[]);
    world.pass(Duration::from_secs(20));
    let closed = r#"["NEG-ERR","old","closed: nothing was heard for too long"]"#;
    assert_eq!(world.heard(ALICE), [closed]);
    world.pass(Duration::from_secs(20));
    assert_eq!(world.heard(ALICE).len(), 1);
    assert_eq!(world.server.deadline(), None, "nothing is left to wait for");
}

#[test]
fn a_store_that_fails_ends_the_session_with_a_word() {
    let mut world = World::with(ServeConfig::default(), &notes(1..=3));
    world.broken = true;
    let refusal = r#"["NEG-ERR","n","error: the events cannot be listed at the moment"]"#;
    assert_eq!(open(&mut world, ALICE, "n", "{}", &[]), [refusal]);
    world.broken = false;
    assert_eq!(reconcile(&mut world, "{}", &[], 0).need.len(), 3);
}
