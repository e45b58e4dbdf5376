//! Access rules: who is refused, what is left out, and what becomes of what is under way when the rules change.

use std::sync::Arc;

use relaysync::peer::{AccessRules, Capability, Rule};
use relaysync::protocol::message::client;
use relaysync::protocol::{Event, Filter, PublicKey};
use relaysync::serve::{ClientId, ServeConfig, ServeEffect, ServeInput};
use relaysync::store::{RequestContext, Store};

use crate::events::{Draft, NOW_SECS, note, notes};
use crate::world::{ALICE, BOB, CHALLENGE, World, at_once, ids, story};

/// Authors whose keys clients have.
pub(crate) const READER: u8 = 11;
pub(crate) const WRITER: u8 = 12;
pub(crate) const STRANGER: u8 = 13;

pub(crate) fn key(author: u8) -> PublicKey {
    note(1).by(author).sign().pubkey
}

pub(crate) fn filter(json: &str) -> Filter {
    serde_json::from_str(json).unwrap()
}

pub(crate) fn rule(author: u8, capability: Capability, json: &str) -> Rule {
    Rule { principal: key(author), capability, events: filter(json) }
}

/// Events of kind 5000 about `x` are read by one and written by another; those about anything else by nobody.
pub(crate) fn rules() -> AccessRules {
    let about_x = r##"{"kinds":[5000],"#r":["x"]}"##;
    AccessRules::new(
        [filter(r#"{"kinds":[5000]}"#)],
        [rule(READER, Capability::SyncRead, about_x), rule(WRITER, Capability::SyncWrite, about_x)],
    )
}

pub(crate) fn guarded(rules: AccessRules) -> ServeConfig {
    ServeConfig { access: Arc::new(rules), ..ServeConfig::default() }
}

pub(crate) fn secret(created_at: u64, about: &str) -> Draft {
    note(created_at).kind(5_000).tag("r", about)
}

pub(crate) fn authenticate(world: &mut World, client: ClientId, author: u8) {
    let event = note(NOW_SECS).by(author).kind(22_242).tag("relay", "wss://relay.example").tag("challenge", CHALLENGE);
    let answer = world.say(client, client::auth(event.sign().json_str()));
    assert!(answer.iter().any(|frame| frame.contains(",true,")), "{answer:?}");
}

pub(crate) fn set_access(world: &mut World, rules: AccessRules) {
    world.input(ServeInput::Access(Arc::new(rules)));
}

const SECRET: &str = r##"{"kinds":[5000],"#r":["x"]}"##;
const CHANGED: &str = "CLOSED error: the access rules have changed, ask again";
const UNKNOWN: &str = "auth-required: the filter asks for protected events, authenticate first (NIP-42)";
const FORBIDDEN: &str = "restricted: the filter asks for protected events that your key may not read";

fn challenge() -> String {
    format!(r#"["AUTH","{CHALLENGE}"]"#)
}

fn req(world: &mut World, client: ClientId, filters: &str) -> Vec<String> {
    story(&world.say(client, format!(r#"["REQ","a",{filters}]"#)))
}

#[test]
fn who_asks_for_protected_events_by_name_is_refused_and_may_authenticate() {
    let mut world = World::with(guarded(rules()), &[secret(1, "x").sign(), note(2).sign()]);
    assert_eq!(req(&mut world, ALICE, SECRET), [challenge(), format!("CLOSED {UNKNOWN}")]);
    assert_eq!(req(&mut world, ALICE, r#"{"kinds":[1]},{"kinds":[1,5000]}"#), [format!("CLOSED {UNKNOWN}")]);
    assert_eq!(world.say(ALICE, format!(r#"["COUNT","c",{SECRET}]"#)), [format!(r#"["CLOSED","c","{UNKNOWN}"]"#)]);
    let opened = world.say(ALICE, format!(r#"["NEG-OPEN","n",{SECRET},"61"]"#));
    assert_eq!(opened, [format!(r#"["NEG-ERR","n","{UNKNOWN}"]"#)]);

    authenticate(&mut world, ALICE, STRANGER);
    assert_eq!(req(&mut world, ALICE, SECRET), [format!("CLOSED {FORBIDDEN}")]);
    assert_eq!(world.say(ALICE, format!(r#"["COUNT","c",{SECRET}]"#)), [format!(r#"["CLOSED","c","{FORBIDDEN}"]"#)]);
    let opened = world.say(ALICE, format!(r#"["NEG-OPEN","n",{SECRET},"61"]"#));
    assert_eq!(opened, [format!(r#"["NEG-ERR","n","{FORBIDDEN}"]"#)]);
    let counters = world.counters();
    assert_eq!((counters.reads_forbidden, counters.requests_refused), (7, 3));

    authenticate(&mut world, ALICE, READER);
    assert_eq!(req(&mut world, ALICE, SECRET), [ids([&secret(1, "x").sign()]), vec!["EOSE".into()]].concat());
    assert_eq!(req(&mut world, ALICE, r#"{"kinds":[5000]}"#), [format!("CLOSED {FORBIDDEN}")], "not all of them");
    assert_eq!(world.say(ALICE, format!(r#"["COUNT","c",{SECRET}]"#)), [r#"["COUNT","c",{"count":1}]"#]);
    assert!(world.say(ALICE, format!(r#"["NEG-OPEN","n",{SECRET},"61000002"]"#))[0].starts_with(r#"["NEG-MSG","n""#));
}

#[test]
fn a_refused_request_leaves_nothing_of_an_older_one_with_its_id() {
    let mut world = World::with(guarded(rules()), &[]);
    assert_eq!(req(&mut world, ALICE, "{}"), ["EOSE"]);
    assert_eq!(req(&mut world, ALICE, SECRET).len(), 2);
    assert!(world.ok(BOB, &note(3).sign()).0);
    assert_eq!(world.heard(ALICE), [""; 0]);
}

#[test]
fn what_is_accepted_reaches_those_who_may_read_it() {
    let mut world = World::with(guarded(rules()), &[]);
    authenticate(&mut world, ALICE, READER);
    authenticate(&mut world, BOB, WRITER);
    assert_eq!(req(&mut world, ALICE, "{}"), ["EOSE"]);
    assert_eq!(req(&mut world, BOB, "{}"), ["EOSE"]);
    let event = secret(1, "x").sign();
    assert!(world.ok(BOB, &event).0);
    assert_eq!(story(&world.heard(ALICE)), ids([&event]));
    let elsewhere = [secret(2, "x").verified(), secret(3, "y").verified(), note(4).verified()];
    world.input(ServeInput::Accepted { events: elsewhere.into() });
    assert_eq!(story(&world.heard(ALICE)), ids([&secret(2, "x").sign(), &note(4).sign()]));
    assert_eq!(story(&world.heard(BOB)), ids([&note(4).sign()]), "to write is not to read");
}

#[test]
fn protected_events_are_taken_from_those_who_may_write_them_whatever_is_held() {
    let held = secret(5, "x").sign();
    let deletion = note(9).kind(5).tag("e", &secret(6, "x").sign().id.to_hex()).sign();
    let mut world = World::with(guarded(rules()), &[held.clone(), secret(6, "x").sign(), deletion]);
    for event in [held.clone(), secret(6, "x").sign(), secret(7, "x").sign()] {
        let refused = "auth-required: this event is protected here, authenticate first (NIP-42)";
        assert_eq!(world.ok(ALICE, &event), (false, refused.into()));
    }
    authenticate(&mut world, ALICE, READER);
    for event in [held.clone(), secret(6, "x").sign(), secret(7, "x").sign()] {
        let refused = "restricted: this event is protected here, and your key may not write it";
        assert_eq!(world.ok(ALICE, &event), (false, refused.into()), "to read is not to write");
    }
    assert_eq!((world.commits, world.counters().writes_forbidden), (0, 6));

    authenticate(&mut world, BOB, WRITER);
    for event in [held.clone(), secret(6, "x").sign(), secret(7, "x").sign()] {
        assert_eq!(world.ok(BOB, &event), (true, String::new()), "what became of it, it may not know");
    }
    assert!(!world.ok(BOB, &secret(7, "y").sign()).0);
    authenticate(&mut world, BOB, READER);
    assert_eq!(world.ok(BOB, &held), (true, "duplicate: already have this event".into()));
}

/// Checking signatures, judging and storing take their time: up to the very commit, the rules of the moment count.
#[test]
fn who_loses_the_right_to_write_while_an_event_is_on_its_way_has_not_written_it() {
    let writer = rule(WRITER, Capability::SyncWrite, SECRET);
    let mut revoked = rules();
    assert!(revoked.revoke(&writer));
    let late = AccessRules::new([], [writer]);
    let cases = [
        (rules(), true, "restricted: this event is protected here, and your key may not write it"),
        (late, false, "auth-required: this event is protected here, authenticate first (NIP-42)"),
    ];
    for (before, is_known, words) in cases {
        for steps in 0..3 {
            let config = ServeConfig { judged: true, ..guarded(before.clone()) };
            let mut world = World::with(config, &[]);
            if is_known {
                authenticate(&mut world, BOB, WRITER);
            }
            world.works = false;
            world.publish(BOB, &secret(1, "x").sign());
            world.publish(BOB, &note(2).sign());
            (0..steps).for_each(|_| world.work_once());
            set_access(&mut world, revoked.clone());
            assert!(matches!(world.waiting.len(), 1..=2), "{:?}", world.waiting);
            world.work();
            let heard = world.heard(BOB);
            let refused = format!(r#"["OK","{}",false,"{words}"]"#, secret(1, "x").sign().id.to_hex());
            let taken = format!(r#"["OK","{}",true,""]"#, note(2).sign().id.to_hex());
            // Once it is being committed, it is written.
            let is_late = steps == 2;
            assert_eq!(heard.contains(&refused), !is_late, "{steps}: {heard:?}");
            assert!(heard.contains(&taken), "{steps}: {heard:?}");
            assert_eq!(
                (world.counters().events_stored, world.counters().writes_forbidden > 0),
                (1 + u64::from(is_late), !is_late)
            );
            assert!(world.server.is_settled());
        }
    }
}

#[test]
fn what_rules_let_in_is_beyond_the_judge() {
    let mut world = World::with(ServeConfig { judged: true, ..guarded(rules()) }, &[]);
    authenticate(&mut world, BOB, WRITER);
    assert_eq!(world.ok(BOB, &secret(1, "x").content("unwanted").sign()), (true, String::new()));
    assert!(!world.ok(BOB, &note(2).content("unwanted").sign()).0);
    assert!(!world.ok(BOB, &secret(3, "y").content("unwanted").sign()).1.contains("nobody wants this"));
}

/// Several protected filters together: neither has all that is asked for.
#[test]
fn what_several_filters_protect_together_is_asked_for_by_name() {
    let about = |value: &str| filter(&format!(r##"{{"kinds":[5000],"#r":["{value}"]}}"##));
    let mut world = World::with(guarded(AccessRules::new([about("x"), about("y")], [])), &[secret(1, "x").sign()]);
    let both = r##"{"kinds":[5000],"#r":["x","y"]}"##;
    assert_eq!(req(&mut world, ALICE, both), [challenge(), format!("CLOSED {UNKNOWN}")]);
    assert_eq!(req(&mut world, BOB, r##"{"kinds":[5000],"#r":["x","z"]}"##), ["EOSE"], "not all of that is protected");
}

#[test]
fn what_a_peer_publishes_is_noted_as_brought_by_it() {
    let mut world = World::with(guarded(rules()), &[]);
    world.input(ServeInput::Peers(Arc::new([(key(WRITER), "primary".into())].into())));
    authenticate(&mut world, BOB, WRITER);
    let (theirs, free, others) = (secret(1, "x").sign(), note(2).sign(), note(3).sign());
    assert!(world.ok(BOB, &theirs).0 && world.ok(BOB, &free).0 && world.ok(ALICE, &others).0);
    let brought = |events: &[&Event]| {
        let ids = events.iter().map(|event| event.id.to_bytes()).collect();
        at_once(world.store.contexts(ids)).unwrap()
    };
    let by_primary = Some(RequestContext { peer: "primary".into(), at_secs: NOW_SECS });
    assert_eq!(brought(&[&theirs, &free, &others]), [by_primary.clone(), by_primary, None]);
}

#[test]
fn reposts_do_not_carry_out_what_is_protected() {
    let mut world = World::with(guarded(rules()), &[]);
    let inner = secret(1, "x").sign();
    let repost = note(2).kind(6).content(inner.json_str()).sign();
    let refused = "blocked: a repost must not embed an event that is protected here";
    assert_eq!(world.ok(ALICE, &repost), (false, refused.into()));
    assert!(world.ok(ALICE, &note(2).kind(16).content(note(1).sign().json_str()).sign()).0);
}

#[test]
fn nothing_is_asked_of_the_store_about_views_that_does_not_concern_what_is_protected() {
    let mut world = World::with(guarded(rules()), &[]);
    world.works = false;
    world.say(ALICE, r#"["REQ","a",{"kinds":[1]},{"limit":3}]"#);
    world.say(ALICE, r#"["COUNT","c",{"kinds":[1]}]"#);
    world.say(ALICE, r#"["NEG-OPEN","n",{"kinds":[1]},"61000002"]"#);
    let views: Vec<bool> = world
        .waiting
        .iter()
        .map(|effect| match effect {
            ServeEffect::Query { query, .. } => query.view.is_all(),
            ServeEffect::Count { view, .. } | ServeEffect::Items { view, .. } => view.is_all(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(views, [true, false, true, true], "only the filter without kinds needs a view");
}

#[test]
fn item_sets_are_shared_by_those_who_see_the_same() {
    let events = [secret(1, "x").sign(), secret(2, "y").sign(), note(3).sign()];
    let mut world = World::with(guarded(rules()), &events);
    let open = r#"["NEG-OPEN","n",{},"6100000200"]"#;
    let strangers = (world.say(ALICE, open), world.say(BOB, open));
    assert_eq!(strangers.0, strangers.1);
    assert_eq!(world.items_read, 1);
    authenticate(&mut world, ALICE, READER);
    let reader = world.say(ALICE, open);
    assert_ne!(reader, strangers.1);
    assert_eq!(world.items_read, 2);
    // What is stored later goes into the sets in which it is seen.
    world.input(ServeInput::Accepted { events: [secret(4, "x").verified(), note(5).verified()].into() });
    let id = |event: &Event| event.id.to_hex();
    let (reader, stranger) = (world.say(ALICE, open).remove(0), world.say(BOB, open).remove(0));
    assert_eq!(world.items_read, 2);
    assert!(reader.contains(&id(&secret(4, "x").sign())) && !stranger.contains(&id(&secret(4, "x").sign())));
    assert!(reader.contains(&id(&note(5).sign())) && stranger.contains(&id(&note(5).sign())));
    assert!(!reader.contains(&id(&secret(2, "y").sign())));
}

#[test]
fn a_rule_taken_back_ends_what_it_allowed() {
    let events = [secret(1, "x").sign(), note(2).sign()];
    let mut world = World::with(guarded(rules()), &events);
    authenticate(&mut world, ALICE, READER);
    for (id, filter) in [("named", SECRET), ("wide", "{}"), ("free", r#"{"kinds":[1]}"#)] {
        assert_eq!(
            world.say(ALICE, format!(r#"["REQ","{id}",{filter}]"#)).last().unwrap(),
            &format!(r#"["EOSE","{id}",["finish"]]"#)
        );
        assert_eq!(world.say(ALICE, format!(r#"["NEG-OPEN","{id}",{filter},"61000002"]"#)).len(), 1);
    }
    let mut fewer = rules();
    assert!(fewer.revoke(&rule(READER, Capability::SyncRead, SECRET)));
    set_access(&mut world, fewer);
    assert_eq!(
        world.heard(ALICE),
        [
            format!(r#"["CLOSED","named","{FORBIDDEN}"]"#),
            format!(r#"["NEG-ERR","named","{FORBIDDEN}"]"#),
            r#"["NEG-ERR","wide","error: the access rules have changed, ask again"]"#.into(),
        ]
    );
    assert_eq!(world.heard(BOB), [""; 0]);
    world.input(ServeInput::Accepted { events: [secret(3, "x").verified(), note(4).verified()].into() });
    let live = world.heard(ALICE);
    assert_eq!(story(&live), ids([&note(4).sign(), &note(4).sign()]), "the others go on, without it");
    assert!(world.say(ALICE, r#"["NEG-MSG","wide","61000002"]"#)[0].contains("closed: no such"));
    assert!(world.say(ALICE, r#"["NEG-MSG","free","61000002"]"#)[0].starts_with(r#"["NEG-MSG""#));
}

#[test]
fn what_was_read_under_other_rules_is_not_sent() {
    let events = [secret(1, "x").sign(), note(2).sign()];
    let mut world = World::with(guarded(rules()), &events);
    authenticate(&mut world, ALICE, READER);
    world.works = false;
    for (id, filter) in [("named", SECRET), ("wide", "{}"), ("free", r#"{"kinds":[1]}"#)] {
        world.say(ALICE, format!(r#"["REQ","{id}",{filter}]"#));
        world.say(ALICE, format!(r#"["NEG-OPEN","{id}",{filter},"61000002"]"#));
    }
    world.say(ALICE, r#"["COUNT","c",{}]"#);
    let (reads, rest) = world.waiting.drain(..).partition::<Vec<_>, _>(|it| matches!(it, ServeEffect::Query { .. }));
    world.waiting.extend(rest);
    // Sets and numbers are read now, pages only afterwards: neither may be used.
    world.input(ServeInput::Accepted { events: [secret(3, "x").verified()].into() });
    set_access(&mut world, AccessRules::new([filter(r#"{"kinds":[5000]}"#)], []));
    let ended = world.heard(ALICE);
    world.waiting.extend(reads);
    world.work();
    let rest = world.heard(ALICE);
    assert_eq!(ended.len(), 4, "{ended:?}");
    let secrets = [secret(1, "x").sign(), secret(3, "x").sign()];
    for frame in ended.iter().chain(&rest) {
        assert!(secrets.iter().all(|event| !frame.contains(&event.id.to_hex())), "{frame}");
    }
    assert!(story(&ended).contains(&CHANGED.to_owned()));
    assert!(story(&rest).contains(&CHANGED.to_owned()), "the COUNT: {rest:?}");
    assert!(rest.iter().any(|frame| frame.starts_with(r#"["NEG-MSG","free""#)));
    assert!(rest.iter().any(|frame| frame.starts_with(r#"["EOSE","free""#)));
    assert_eq!(rest.len(), 4, "{rest:?}");
}

#[test]
fn who_gains_is_challenged_again_and_nobody_else() {
    let mut world = World::with(guarded(rules()), &[secret(1, "y").sign()]);
    authenticate(&mut world, ALICE, READER);
    let mut more = rules();
    more.grant(rule(READER, Capability::SyncRead, r##"{"kinds":[5000],"#r":["y"]}"##)).unwrap();
    set_access(&mut world, more.clone());
    assert_eq!((world.heard(ALICE), world.heard(BOB)), (vec![challenge()], vec![]));
    authenticate(&mut world, ALICE, READER);
    assert_eq!(req(&mut world, ALICE, r##"{"kinds":[5000],"#r":["x","y"]}"##).len(), 2);

    set_access(&mut world, more.clone());
    assert_eq!(world.heard(ALICE), [""; 0], "nothing has changed");
    more.unprotect(&filter(r#"{"kinds":[5000]}"#));
    set_access(&mut world, more);
    assert_eq!((world.heard(ALICE), world.heard(BOB)), (vec![challenge()], vec![]));
    assert_eq!(req(&mut world, BOB, r#"{"kinds":[5000]}"#).len(), 2);
}

#[test]
fn protecting_more_ends_what_is_read_of_it() {
    let events = [secret(1, "x").sign(), note(2).sign()];
    let mut world = World::with(ServeConfig::default(), &events);
    assert_eq!(req(&mut world, ALICE, SECRET).len(), 2);
    assert_eq!(world.say(BOB, r#"["REQ","b",{}]"#).len(), 3);
    set_access(&mut world, rules());
    assert_eq!(story(&world.heard(ALICE)), [challenge(), format!("CLOSED {UNKNOWN}")]);
    assert_eq!(world.heard(BOB), [""; 0]);
    world.input(ServeInput::Accepted { events: [secret(3, "x").verified(), note(4).verified()].into() });
    assert_eq!(story(&world.heard(BOB)), ids([&note(4).sign()]));
    assert_eq!(world.heard(ALICE), [""; 0]);
}

/// A slow reader has pages waiting, and frames of live events that are held back until its stored ones are sent.
#[test]
fn frames_that_are_held_back_are_dropped_with_their_subscription() {
    let config = ServeConfig { outbound_pause_bytes: 1, read_bytes_max: 1, ..ServeConfig::default() };
    let mut world = World::with(config, &notes(1..=200));
    world.clients_read = false;
    let first = world.say(ALICE, r#"["REQ","a",{}]"#);
    assert!(!first.is_empty() && !story(&first).contains(&"EOSE".into()), "{}", first.len());
    world.input(ServeInput::Accepted { events: [secret(900, "x").verified()].into() });
    set_access(&mut world, rules());
    world.clients_read = true;
    let bytes = first.iter().map(String::len).sum();
    world.input(ServeInput::Written { client: ALICE, bytes });
    assert_eq!(story(&world.heard(ALICE)), [CHANGED]);
}

#[test]
fn a_relay_with_protected_events_says_that_writes_are_restricted() {
    let says = |config: &ServeConfig| config.relay_info().limitation.restricted_writes;
    assert_eq!((says(&ServeConfig::default()), says(&guarded(rules()))), (Some(false), Some(true)));
    let identity = Some(key(READER));
    let config = ServeConfig { identity, ..ServeConfig::default() };
    assert_eq!(config.relay_info().relay_key, identity.map(|key| key.to_hex()));
}

/// Who may see more is to say who it is before it asks: what is hidden is left out without a word.
#[test]
fn where_something_is_protected_clients_are_challenged_at_once() {
    let mut world = World::new(ServeConfig { challenges_early: true, ..ServeConfig::default() });
    assert_eq!(world.heard(ALICE), [""; 0]);
    set_access(&mut world, rules());
    assert_eq!((world.heard(ALICE), world.heard(BOB)), (vec![challenge()], vec![challenge()]));
    set_access(&mut world, AccessRules::default());
    assert_eq!(world.heard(ALICE), [""; 0]);
}
