//! What was proven of a peer, and when it counts no more.

use relaysync::engine::{Command, Config, Direction};
use relaysync::peer::{AccessRules, Capability, Peering, Terms};
use relaysync::protocol::{Filter, FilterKey};
use relaysync::runtime::ConnectError;
use relaysync::sim::tamper::Info;
use relaysync::sim::{Connects, NOW_SECS, Remote, key_of, note};
use relaysync::store::Store as _;

use super::support::{PEER, Pair, US, grant, guarded, named, open_to, peer, rules, secret, secrets, terms, towards};
use crate::support::{daemon, filters_asked, history};

/// The link breaks, and is back after this many seconds or little more; meanwhile `then` happens.
fn away(pair: &mut Pair, secs: u64, then: impl FnOnce(&mut Pair)) {
    let relay = pair.relay.clone();
    pair.world.relay_mut(&relay).connects = Connects::Refused(ConnectError::TimedOut);
    pair.world.cut(&relay, "");
    then(pair);
    pair.secs(secs);
    pair.world.relay_mut(&relay).connects = Connects::Always;
    pair.secs(120);
}

/// No relay says that it has granted more while nobody listened.
#[test]
fn what_the_peer_grants_while_the_link_is_down_is_fetched_after_it() {
    for filter in [Filter::new(), secret()] {
        let access = rules([grant(US, Capability::SyncRead, named("a"))]);
        let events = [secrets("a", 5), secrets("b", 5)].concat();
        let wanted = Peering { filters: vec![filter.into()], ..towards(Direction::Down) };
        let mut pair = Pair::joined(guarded(access, &events), wanted);
        pair.secs(1_200);
        assert!(!pair.holds_any(&events[5..]));
        away(&mut pair, 30, |pair| pair.world.set_relay_access(&pair.relay.clone(), open_to(US)));
        assert!(pair.holds(&events), "{}", pair.world.trace());
        pair.is_complete();
    }
}

/// A peer that asks nobody who they are has no secrets: it is asked for what it got meanwhile, as any relay is.
#[test]
fn of_a_peer_that_does_not_ask_only_what_is_new_is_fetched_after_a_short_absence() {
    let remote = guarded(AccessRules::default(), &history(50));
    let wanted = Peering { filters: vec![Filter::new().into()], ..towards(Direction::Down) };
    let mut pair = Pair::joined(remote, wanted);
    pair.secs(1_200);
    let before = filters_asked(&pair.world, &pair.relay).len();
    away(&mut pair, 30, |_| {});
    pair.is_complete();
    let asked = filters_asked(&pair.world, &pair.relay).split_off(before);
    assert!(!asked.is_empty() && asked.iter().all(|filter| filter.since.is_some() || filter.limit == Some(0)));
}

/// Somebody else is there now, with other events: what was proven of the one before says nothing of them.
#[test]
fn another_principal_at_the_same_url_inherits_no_proof() {
    let other = 21;
    let wanted = Peering { filters: vec![Filter::new().into()], ..towards(Direction::Down) };
    for (is_restarted, is_open) in [(false, true), (false, false), (true, true)] {
        let access = if is_open { AccessRules::default() } else { open_to(PEER) };
        let config = Config { access: access.into(), ..daemon() };
        let mut pair = Pair::with(config, guarded(AccessRules::default(), &history(5)));
        pair.join(wanted.clone());
        pair.secs(60);
        pair.is_complete();
        let old = note(NOW_SECS - 90_000).content("of the other").sign();
        let terms = Terms { principal: key_of(other), ..terms() };
        let (relay, joined) = (pair.relay.clone(), Peering { terms, ..wanted.clone() });
        away(&mut pair, 5, |pair| {
            pair.world.relay_mut(&relay).info = Info::Text(format!("{{\"self\":\"{}\"}}", key_of(other)));
            pair.publish_there(&old);
            pair.join(joined);
            if is_restarted {
                pair.world.crash_for(pair.engine, std::time::Duration::from_secs(1));
            }
        });
        assert!(pair.holds(&[old]), "restarted: {is_restarted}, open: {is_open}\n{}", pair.world.trace());
        pair.is_complete();
    }
}

/// A mark that a full pass has set aside is still in the store, and would count after a restart.
#[test]
fn what_is_void_is_void_after_a_restart_too() {
    let wanted = Peering { filters: vec![Filter::new().into()], ..towards(Direction::Down) };
    let mut pair = Pair::joined(peer(&secrets("there", 5)), wanted);
    let marks = |pair: &Pair| {
        let snapshot = futures_util::FutureExt::now_or_never(pair.world.node(pair.engine).store().load());
        snapshot.expect("at once").expect("the store in memory does not fail").coverage
    };
    assert_eq!(marks(&pair).len(), 1);
    let relay = pair.relay.clone();
    pair.world.relay_mut(&relay).connects = Connects::Refused(ConnectError::TimedOut);
    pair.world.cut(&relay, "");
    pair.world.command(pair.engine, Command::SyncNow { relay: relay.clone() });
    pair.world.set_access(pair.engine, rules([]));
    pair.secs(5);
    assert_eq!(marks(&pair), []);
}

/// Health looks a peer's gaps up by the names of its own filters.
#[test]
fn gaps_have_the_names_of_the_peers_filters() {
    let filters = [
        secret(),
        secret().since((NOW_SECS - 300).into()),
        secret().until(NOW_SECS.into()).limit(10),
        named("a").since(5.into()).until((NOW_SECS - 9).into()),
    ];
    let wanted = Peering { filters: filters.iter().cloned().map(Into::into).collect(), ..towards(Direction::Down) };
    let mut pair = Pair::joined(guarded(rules([]), &secrets("a", 5)), wanted);
    pair.secs(60);
    let report = pair.report();
    let named: Vec<&FilterKey> = report.gaps.iter().map(|gap| &gap.filter).collect();
    assert!(filters.iter().all(|filter| named.contains(&&FilterKey::of(filter))), "{report:#?}");
    assert!(named.iter().all(|name| filters.iter().any(|filter| **name == FilterKey::of(filter))));
}

/// Who has not proven who it is was not connected to, as far as statistics go; and a failure has its own time.
#[test]
fn connections_count_once_the_peer_has_proven_who_it_is() {
    let mut remote = peer(&secrets("there", 5));
    remote.info = Info::Text(format!("{{\"self\":\"{}\"}}", "x".repeat(100_000)));
    let mut pair = Pair::joined(remote, towards(Direction::Down));
    pair.secs(600);
    let report = pair.report();
    assert_eq!(report.counters.connections, 0);
    assert!(report.counters.connections_failed > 1, "{report:#?}");
    assert!(report.last_error.is_some_and(|words| words.len() <= daemon().words_bytes_max));
    assert_eq!(report.last_error_kind, Some(relaysync::runtime::FailureKind::WrongIdentity));
    assert!(report.last_error_secs.is_some_and(|at| at > NOW_SECS));
    pair.world.relay_mut(&pair.relay.clone()).info = Info::True;
    pair.world.command(pair.engine, Command::SyncNow { relay: pair.relay.clone() });
    pair.secs(20);
    pair.is_complete();
    let report = pair.report();
    assert_eq!((report.counters.connections, report.last_error_secs.is_some()), (1, true));
}

/// A relay that lists ids of events in a reconciliation learns by no request whether they are held, if it may not read them.
#[test]
fn what_is_asked_for_does_not_depend_on_what_the_peer_may_not_read() {
    let heard = |is_held: bool| {
        let access = rules([grant(PEER, Capability::SyncWrite, secret())]);
        let config = Config { access: access.into(), ..daemon() };
        let (own, notes) = (secrets("own", 10), history(20));
        let mut pair = Pair::with(config, peer(&[own.clone(), notes.clone()].concat()));
        pair.world.give(pair.engine, &notes[..10]);
        if is_held {
            pair.world.give(pair.engine, &own);
        }
        pair.join(Peering { filters: vec![Filter::new().into()], ..towards(Direction::Down) });
        pair.secs(30);
        pair.is_complete();
        assert!(pair.holds(&own) && pair.holds(&notes));
        let remote: &Remote = pair.world.relay(&pair.relay);
        assert!(!remote.heard_of("NEG-OPEN").is_empty(), "else this shows nothing");
        remote.heard.iter().map(|(_, frame)| frame.clone()).collect::<Vec<String>>()
    };
    assert_eq!(heard(false), heard(true));
}
