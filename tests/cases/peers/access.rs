//! What a peer may bring and get.

use relaysync::engine::{Bringer, Command, Config, Direction, RelayOptions};
use relaysync::peer::{Capability, Peering};
use relaysync::protocol::Filter;
use relaysync::sim::{Remote, note, plain_relay};

use super::support::{
    PEER, Pair, US, grant, guarded, named, open_to, peer, peering, rules, secret, secrets, terms, towards, wanting,
};
use crate::support::{LIVE, daemon, history};

const READ: Capability = Capability::SyncRead;
const WRITE: Capability = Capability::SyncWrite;

#[test]
fn secrets_go_both_ways_where_both_sides_grant_it() {
    let mut pair = Pair::new(peer(&secrets("there", 30)));
    pair.world.give(pair.engine, &secrets("here", 30));
    pair.join(peering());
    pair.secs(20);
    pair.is_complete();
    assert!(pair.holds(&secrets("there", 30)) && pair.gave(&secrets("here", 30)));
    let live = note(pair.world.now().unix_secs).kind(5000).sign();
    pair.publish_there(&live);
    pair.secs(1);
    assert!(pair.holds(&[live]));
}

#[test]
fn what_is_not_granted_is_denied_by_direction_and_said_in_words() {
    for (rule, down, up) in [(None, false, false), (Some(WRITE), true, false), (Some(READ), false, true)] {
        let access = rules(rule.map(|capability| grant(PEER, capability, secret())));
        let config = Config { access: access.into(), ..daemon() };
        let mut pair = Pair::with(config, peer(&secrets("there", 5)));
        pair.world.give(pair.engine, &secrets("here", 5));
        pair.join(peering());
        pair.secs(120);
        assert_eq!(pair.holds(&secrets("there", 5)), down, "{rule:?}\n{}", pair.world.trace());
        assert_eq!(pair.gave(&secrets("here", 5)), up, "{rule:?}\n{}", pair.world.trace());
        let report = pair.report();
        assert_eq!(report.denied.len(), usize::from(!down) + usize::from(!up), "{report:#?}");
        assert!(!report.complete && report.connected && report.failure.is_none());
        for (is_denied, capability) in [(!down, "sync_write"), (!up, "sync_read")] {
            let is_named = |words: &String| words.contains(capability) && words.contains("5000");
            assert_eq!(report.denied.iter().any(is_named), is_denied, "{report:#?}");
        }
    }
}

#[test]
fn of_a_wide_filter_what_an_ungranted_peer_may_not_write_is_dropped_and_counted() {
    let notes = history(20);
    let events = [secrets("there", 10), notes.clone()].concat();
    let config = Config { access: rules([]).into(), ..daemon() };
    let mut pair = Pair::with(config, peer(&events));
    pair.join(wanting([Filter::new()]));
    pair.secs(60);
    assert!(pair.holds(&notes) && !pair.holds_any(&secrets("there", 10)));
    let report = pair.report();
    assert!(report.complete && report.denied.is_empty(), "{report:#?}");
    assert_eq!(report.counters.forbidden, 10);
    let live = note(pair.world.now().unix_secs).kind(5000).sign();
    pair.publish_there(&live);
    pair.secs(1);
    assert!(!pair.holds(&[live]));
    assert_eq!(pair.report().counters.forbidden, 11);
}

#[test]
fn of_another_relay_protected_events_are_dropped_unless_it_is_trusted() {
    for trusted in [false, true] {
        let config = Config { access: rules([]).into(), ..daemon() };
        let mut pair = Pair::with(config, Remote::configured(plain_relay(), &secrets("there", 10)));
        let relay = pair.relay.clone();
        pair.world.sync_with(pair.engine, &relay, [Filter::new()], RelayOptions { trusted, ..LIVE });
        pair.secs(20);
        assert_eq!(pair.holds_any(&secrets("there", 10)), trusted);
        assert_eq!(pair.report().counters.forbidden, if trusted { 0 } else { 10 });
    }
}

/// To no relay that is nobody is anything protected published, be it trusted or not.
#[test]
fn protected_events_are_published_to_peers_alone() {
    let config = Config { access: rules([]).into(), ..daemon() };
    let mut pair = Pair::with(config, Remote::configured(plain_relay(), &[]));
    let notes = history(5);
    pair.world.give(pair.engine, &[secrets("here", 5), notes.clone()].concat());
    let relay = pair.relay.clone();
    let options = RelayOptions { direction: Direction::Both, trusted: true, ..LIVE };
    pair.world.sync_with(pair.engine, &relay, [Filter::new()], options);
    pair.secs(20);
    assert!(pair.gave(&notes) && !pair.gave_any(&secrets("here", 5)));
}

/// The fingerprints of what we hold tell a peer nothing of what it may not read: they are the same as if it were not held.
#[test]
fn fingerprints_do_not_depend_on_what_the_peer_may_not_read() {
    let opened = |held: usize, readable: bool| {
        let mut access = vec![grant(PEER, WRITE, secret()), grant(PEER, READ, named("shared"))];
        access.extend(readable.then(|| grant(PEER, READ, secret())));
        let mut pair = Pair::with(Config { access: rules(access).into(), ..daemon() }, peer(&secrets("there", 30)));
        let own = secrets("own", 40);
        pair.world.give(pair.engine, &[&secrets("shared", 20)[..], &own[..held]].concat());
        pair.join(Peering { filters: vec![Filter::new().into()], ..towards(Direction::Down) });
        pair.secs(20);
        assert!(pair.holds(&secrets("there", 30)));
        let heard = pair.world.relay(&pair.relay).heard_of("NEG-OPEN");
        heard[0].rsplit('"').nth(1).expect("a message").to_owned()
    };
    let message = opened(0, false);
    assert_eq!(opened(40, false), message);
    assert_ne!(opened(40, true), message, "else this shows nothing");
}

#[test]
fn up_alone_needs_no_right_to_write() {
    let access = rules([grant(PEER, READ, secret())]);
    let mut pair = Pair::with(Config { access: access.into(), ..daemon() }, peer(&secrets("there", 5)));
    pair.world.give(pair.engine, &secrets("here", 30));
    pair.join(towards(Direction::Up));
    pair.secs(20);
    assert!(pair.gave(&secrets("here", 30)) && !pair.holds_any(&secrets("there", 5)));
    pair.is_complete();
}

/// The very input that says so is the last that anything goes by the old rules.
#[test]
fn a_revoked_rule_holds_at_once_in_both_directions() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), peering());
    pair.is_complete();
    let (engine, relay) = (pair.engine, pair.relay.clone());
    // In the pipeline, and waiting to be sent, at the moment of the change.
    let live = note(pair.world.now().unix_secs).kind(5000).content("live").sign();
    pair.publish_there(&live);
    pair.millis(30);
    let own = note(pair.world.now().unix_secs).kind(5000).content("own").sign();
    pair.world.give(engine, std::slice::from_ref(&own));
    let origin = relaysync::engine::Origin::Client;
    pair.world.command(engine, Command::Accepted { events: vec![own.clone()], origin, brought: Default::default() });
    pair.world.set_access(engine, rules([]));
    pair.secs(60);
    let later = note(pair.world.now().unix_secs).kind(5000).content("later").sign();
    pair.publish_there(&later);
    pair.secs(5);
    assert!(!pair.holds_any(&[live.clone(), later.clone()]), "{}", pair.world.trace());
    assert!(!pair.gave_any(std::slice::from_ref(&own)));
    assert!(pair.report().counters.forbidden > 0, "{:#?}", pair.report());
    assert_eq!(pair.report().denied.len(), 2);
    pair.world.set_access(engine, open_to(PEER));
    pair.secs(1);
    assert!(pair.holds(&[live, later]) && pair.gave(&[own]), "{}", pair.world.trace());
    pair.is_complete();
    assert_eq!(pair.world.relay(&relay).attempts.len(), 1, "the link stands");
}

/// A peer that has published something to our own relay service has it.
#[test]
fn what_a_peer_has_brought_as_a_client_is_not_sent_back_to_it() {
    for bringer in [None, Some("another"), Some("peer")] {
        let mut pair = Pair::joined(peer(&[]), peering());
        let event = note(pair.world.now().unix_secs).kind(5000).content("brought").sign();
        pair.world.give(pair.engine, std::slice::from_ref(&event));
        let brought = bringer.map(|name| (event.id.to_bytes(), Bringer::Peer(name.into()))).into_iter().collect();
        let origin = relaysync::engine::Origin::Client;
        pair.world.command(pair.engine, Command::Accepted { events: vec![event.clone()], origin, brought });
        pair.secs(5);
        assert_eq!(pair.gave(&[event]), bringer != Some("peer"), "{bringer:?}\n{}", pair.world.trace());
    }
}

/// What was dropped while it was forbidden is fetched once it is not, whatever its date, also after a restart.
#[test]
fn nothing_forbidden_is_taken_for_held() {
    for restarts in [false, true] {
        let mut pair = Pair::joined(peer(&secrets("there", 5)), wanting([Filter::new()]));
        pair.is_complete();
        let engine = pair.engine;
        pair.world.set_access(engine, rules([]));
        pair.secs(5);
        let old = note(1_600_000_000).kind(5000).content("old").sign();
        pair.publish_there(&old);
        pair.secs(60);
        assert!(!pair.holds(std::slice::from_ref(&old)) && pair.report().complete);
        if restarts {
            pair.world.crash_for(engine, std::time::Duration::from_secs(5));
        }
        pair.world.set_access(engine, open_to(PEER));
        pair.secs(20);
        assert!(pair.holds(&[old]), "restarts: {restarts}\n{}", pair.world.trace());
    }
}

/// Where the peer shows us more than before, it says so by another challenge, and all is asked again.
#[test]
fn what_the_peer_grants_us_is_fetched_within_a_second() {
    let mut pair = Pair::joined(guarded(rules([]), &secrets("there", 20)), wanting([Filter::new(), secret()]));
    pair.secs(60);
    assert!(!pair.holds_any(&secrets("there", 20)));
    assert!(!pair.report().complete);
    pair.world.set_relay_access(&pair.relay.clone(), open_to(US));
    pair.secs(1);
    assert!(pair.holds(&secrets("there", 20)), "{}", pair.world.trace());
    pair.secs(10);
    pair.is_complete();
}

/// A peer that protects something only by now has told nobody who connected before: it does so then.
#[test]
fn what_a_peer_protects_later_is_not_taken_for_gone() {
    let mut pair = Pair::joined(guarded(relaysync::peer::AccessRules::default(), &[]), wanting([Filter::new()]));
    assert_eq!(pair.heard_of("AUTH"), 0);
    pair.world.set_relay_access(&pair.relay.clone(), open_to(US));
    pair.secs(1);
    assert_eq!(pair.heard_of("AUTH"), 1);
    let live = note(pair.world.now().unix_secs).kind(5000).sign();
    pair.publish_there(&live);
    pair.secs(1);
    assert!(pair.holds(&[live]), "{}", pair.world.trace());
    pair.is_complete();
}

/// What it does not grant us any more does not come, and is asked for seldom.
#[test]
fn what_the_peer_revokes_is_a_gap_and_no_storm() {
    let mut pair = Pair::joined(peer(&secrets("there", 20)), peering());
    pair.is_complete();
    pair.world.set_relay_access(&pair.relay.clone(), rules([]));
    pair.secs(1_800);
    let before = pair.heard();
    pair.secs(3_600);
    let said = pair.heard() - before;
    assert!(said < 400, "{said} frames in an hour");
    assert!(pair.report().live_refused.is_some(), "{:#?}", pair.report());
    pair.world.set_relay_access(&pair.relay.clone(), open_to(US));
    pair.secs(10);
    pair.is_complete();
    assert_eq!(pair.report().live_refused, None);
}

/// Nothing that follows from a sleep goes by rules that ended in it.
#[test]
fn rules_that_change_while_the_machine_sleeps_hold_for_what_it_wakes_to() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), peering());
    pair.world.suspend(pair.engine, std::time::Duration::from_secs(600), false);
    pair.secs(300);
    let live = note(pair.world.now().unix_secs).kind(5000).sign();
    pair.publish_there(&live);
    // The world checks each input: this is the first one after the sleep.
    pair.world.set_access(pair.engine, rules([]));
    pair.secs(600);
    assert!(!pair.holds(std::slice::from_ref(&live)));
    pair.world.suspend(pair.engine, std::time::Duration::from_secs(600), false);
    pair.secs(300);
    pair.world.set_access(pair.engine, open_to(PEER));
    pair.secs(900);
    assert!(pair.holds(&[live]));
}

/// A job that has given a peer up has, whatever is granted or revoked then.
#[test]
fn a_job_ends_whatever_rules_change() {
    let config = Config { access: open_to(PEER).into(), ..crate::support::one_shot() };
    let mut remote = peer(&secrets("there", 5));
    remote.info = relaysync::sim::tamper::Info::Missing;
    let mut pair = Pair::with(config, remote);
    let silent = pair.world.add_relay("wss://silent.example", Remote::configured(plain_relay(), &history(5)));
    pair.world.relay_mut(&silent).connects = relaysync::sim::Connects::Hangs;
    pair.world.sync(pair.engine, &silent);
    pair.join(Peering { options: RelayOptions { live: false, ..peering().options }, ..peering() });
    pair.secs(15);
    pair.world.set_access(pair.engine, rules([]));
    let reports = pair.world.finish(pair.engine);
    assert!(reports.iter().all(|report| !report.complete), "{reports:#?}");
}

/// What a peer takes from those that it knows alone does not keep it from the rest.
#[test]
fn a_stranger_publishes_what_strangers_may() {
    let notes = history(5);
    let mut pair = Pair::new(peer(&[]));
    pair.world.give(pair.engine, &[secrets("here", 5), notes.clone()].concat());
    let terms = relaysync::peer::Terms { authenticates: false, ..terms() };
    pair.join(Peering { terms, filters: vec![Filter::new().into()], ..towards(Direction::Up) });
    pair.secs(60);
    assert!(pair.gave(&notes) && !pair.gave_any(&secrets("here", 5)));
}

#[test]
fn who_has_brought_an_event_is_noted() {
    use relaysync::store::Store as _;
    let pair = Pair::joined(peer(&secrets("there", 5)), peering());
    let ids = secrets("there", 5).iter().map(|event| event.id.to_bytes()).collect();
    let contexts = futures_util::FutureExt::now_or_never(pair.world.node(pair.engine).store().contexts(ids));
    let contexts = contexts.expect("at once").expect("the store in memory does not fail");
    assert_eq!(contexts.len(), 5);
    assert!(contexts.iter().flatten().all(|context| *context.peer == *terms().id && context.at_secs > 0));
    assert_eq!(contexts.iter().flatten().count(), 5);
}
