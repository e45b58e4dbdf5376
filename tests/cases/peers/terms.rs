//! What is agreed with a peer, and what changes of it.

use std::sync::Arc;
use std::time::Duration;

use relaysync::engine::{Command, Config, Direction, Phase, RelayOptions};
use relaysync::peer::{AccessRules, Peering, Terms, TlsMode, TlsTerms};
use relaysync::protocol::{Filter, RelayUrl};
use relaysync::runtime::{CloseReason, ConnectError, FailureKind};
use relaysync::sim::{Connects, NOW_SECS, key_of, note};

use super::support::{PEER, Pair, guarded, named, open_to, peer, peering, secret, secrets, terms, towards, wanting};
use crate::support::{LIVE, daemon, filters_asked, history};

fn closed(pair: &Pair, reason: &CloseReason) -> usize {
    pair.world.node(pair.engine).closed.iter().filter(|closed| *closed == reason).count()
}

fn attempts(pair: &Pair) -> usize {
    pair.world.relay(&pair.relay).attempts.len()
}

#[test]
fn the_same_terms_again_change_nothing() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), peering());
    let before = pair.heard();
    pair.join(peering());
    pair.secs(5);
    assert_eq!((pair.heard(), attempts(&pair)), (before, 1));
}

#[test]
fn other_pins_end_the_connection_and_it_is_made_anew_at_once() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), peering());
    let pins = ["11".repeat(32).parse().expect("a pin")].into();
    let tls = Arc::new(TlsTerms { pins, mode: TlsMode::Required, ..TlsTerms::default() });
    pair.join(Peering { terms: Terms { tls, ..terms() }, ..peering() });
    pair.secs(1);
    assert_eq!((closed(&pair, &CloseReason::Renewed), attempts(&pair)), (1, 2));
    let report = pair.report();
    assert_eq!((report.failures, report.failure), (0, None));
    pair.secs(5);
    pair.is_complete();
}

/// Pins that were wrong are mended: there is nothing to wait for.
#[test]
fn mended_terms_end_the_backoff() {
    let mut remote = peer(&secrets("there", 5));
    remote.connects = Connects::Refused(ConnectError::Pin("another key".into()));
    let mut pair = Pair::joined(remote, peering());
    pair.secs(3_600);
    assert_eq!(pair.report().failure, Some(FailureKind::WrongPin));
    pair.world.relay_mut(&pair.relay.clone()).connects = Connects::Always;
    let tls = Arc::new(TlsTerms { hostname: Some("peer.example".into()), ..TlsTerms::default() });
    pair.join(Peering { terms: Terms { tls, ..terms() }, ..peering() });
    pair.secs(2);
    pair.is_complete();
    assert_eq!(pair.report().failure, None);
}

/// On the key of somebody else nothing is taken any more, whatever is still on its way.
#[test]
fn another_principal_is_another_peer() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), peering());
    pair.join(Peering { terms: Terms { principal: key_of(99), ..terms() }, ..peering() });
    let live = note(pair.world.now().unix_secs).kind(5000).sign();
    pair.publish_there(&live);
    pair.secs(60);
    assert!(!pair.holds(std::slice::from_ref(&live)));
    let report = pair.report();
    assert_eq!(report.failure, Some(FailureKind::WrongIdentity));
    assert_eq!(report.denied.len(), 2, "{report:#?}");
    pair.join(peering());
    pair.secs(2);
    assert!(pair.holds(&[live]));
    pair.is_complete();
}

#[test]
fn other_filters_leave_the_rest_alone() {
    let mut pair = Pair::joined(
        peer(&[secrets("a", 5), secrets("b", 5), secrets("c", 5)].concat()),
        wanting([named("a"), named("b")]),
    );
    pair.is_complete();
    let before = filters_asked(&pair.world, &pair.relay).len();
    pair.join(wanting([named("b"), named("c")]));
    pair.secs(5);
    pair.is_complete();
    assert!(pair.holds(&secrets("c", 5)));
    let asked = filters_asked(&pair.world, &pair.relay).split_off(before);
    assert!(asked.iter().all(|asked| asked.generic_tags == named("c").generic_tags), "{asked:?}");
    assert_eq!(attempts(&pair), 1);
    assert_eq!(pair.report().counters.subscription_restarts, 0);
}

#[test]
fn another_direction_is_gone_at_once() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), towards(Direction::Up));
    assert!(!pair.holds_any(&secrets("there", 5)));
    pair.join(towards(Direction::Down));
    pair.secs(5);
    assert!(pair.holds(&secrets("there", 5)));
    pair.join(towards(Direction::Up));
    let live = note(pair.world.now().unix_secs).kind(5000).sign();
    pair.secs(1);
    pair.publish_there(&live);
    pair.secs(5);
    assert!(!pair.holds(&[live]));
    assert_eq!(attempts(&pair), 1);
}

#[test]
fn a_window_of_the_filter_is_kept_to() {
    let events = secrets("there", 30);
    let (since, until) = (NOW_SECS - 300, NOW_SECS - 150);
    let filter = secret().since(since.into()).until(until.into());
    let mut pair = Pair::joined(peer(&events), wanting([filter]));
    pair.is_complete();
    let (inside, outside): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|event| (since..=until).contains(&event.created_at_secs()));
    assert!(pair.holds(&inside) && !pair.holds_any(&outside));
    let live = note(pair.world.now().unix_secs).kind(5000).sign();
    pair.publish_there(&live);
    pair.secs(5);
    assert!(!pair.holds(&[live]));
}

/// How far back is asked for after a short absence of a peer that asks nobody who they are, its terms say.
#[test]
fn the_overlap_is_that_of_the_terms() {
    for overlap_secs in [0, 1_000] {
        let terms = Terms { overlap_secs, ..terms() };
        let remote = guarded(AccessRules::default(), &secrets("there", 5));
        let mut pair = Pair::joined(remote, Peering { terms, ..towards(Direction::Down) });
        pair.secs(1_200);
        let before = filters_asked(&pair.world, &pair.relay).len();
        let cut_at = pair.world.now().unix_secs;
        pair.world.cut(&pair.relay.clone(), "");
        pair.secs(120);
        pair.is_complete();
        let asked = filters_asked(&pair.world, &pair.relay).split_off(before);
        let since = asked.iter().filter_map(|filter| filter.since).map(|at| at.as_secs()).min().expect("a quick pass");
        // Proven is what was asked for up to a minute before, by a probe.
        assert!((cut_at - overlap_secs - 130..=cut_at - overlap_secs).contains(&since), "{} before", cut_at - since);
    }
}

#[test]
fn sync_now_looks_at_all_of_it_again() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), peering());
    let histories = pair.report().counters.histories;
    pair.world.command(pair.engine, Command::SyncNow { relay: pair.relay.clone() });
    pair.secs(2);
    assert_eq!(pair.report().counters.histories, histories + 1);
    pair.is_complete();
    // And does not wait for a backoff to end.
    pair.world.relay_mut(&pair.relay.clone()).connects = Connects::Refused(ConnectError::TimedOut);
    pair.world.cut(&pair.relay.clone(), "");
    pair.secs(7_200);
    pair.world.relay_mut(&pair.relay.clone()).connects = Connects::Always;
    pair.world.command(pair.engine, Command::SyncNow { relay: pair.relay.clone() });
    pair.secs(2);
    pair.is_complete();
    let nobody = RelayUrl::parse("wss://nobody.example").expect("a relay URL");
    pair.world.command(pair.engine, Command::SyncNow { relay: nobody });
}

#[test]
fn a_peer_that_is_removed_and_put_again_is_as_at_first() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), peering());
    let relay = pair.relay.clone();
    pair.world.set_peer(pair.engine, &relay, None);
    pair.secs(2);
    assert_eq!(pair.report().phase, Phase::Done);
    let live = note(pair.world.now().unix_secs).kind(5000).sign();
    pair.publish_there(&live);
    pair.secs(5);
    assert!(!pair.holds(std::slice::from_ref(&live)));
    pair.join(peering());
    pair.secs(2);
    assert!(pair.holds(&[live]));
    pair.is_complete();
    assert_eq!(attempts(&pair), 2);
    for _ in 0..5 {
        pair.world.set_peer(pair.engine, &relay, None);
        pair.join(peering());
    }
    pair.secs(5);
    pair.is_complete();
}

/// What else is wanted of it waits while it is a peer, and is as it was afterwards.
#[test]
fn what_others_want_of_a_peer_comes_back_with_its_end() {
    let events = [secrets("there", 5), history(5)].concat();
    let mut pair = Pair::with(Config { access: open_to(PEER).into(), ..daemon() }, peer(&events));
    let relay = pair.relay.clone();
    pair.world.sync_with(pair.engine, &relay, [Filter::new().kind(1.into())], LIVE);
    pair.join(peering());
    pair.secs(20);
    assert!(pair.holds(&events[..5]) && !pair.holds_any(&events[5..]));
    pair.world.sync_with(pair.engine, &relay, [Filter::new().kind(1.into())], LIVE);
    pair.secs(5);
    assert!(!pair.holds_any(&events[5..]));
    pair.world.set_peer(pair.engine, &relay, None);
    pair.secs(20);
    assert!(pair.holds(&events));
}

#[test]
fn moments_and_counters_tell_what_happened() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), peering());
    let report = pair.report();
    let moments = report.moments;
    assert!(moments.connected_secs.is_some() && moments.disconnected_secs.is_none(), "{moments:?}");
    assert!(moments.sync_started_secs <= moments.sync_completed_secs && moments.sync_started_secs.is_some());
    assert!(moments.eose_secs.is_some() && moments.event_secs.is_some(), "{moments:?}");
    assert_eq!((report.counters.histories, report.counters.subscription_restarts), (1, 0));
    pair.world.cut(&pair.relay.clone(), "");
    pair.secs(60);
    let report = pair.report();
    assert!(report.moments.disconnected_secs < report.moments.connected_secs);
    assert_eq!((report.counters.histories, report.counters.subscription_restarts), (2, 1));
    assert_eq!(report.failure, None);
}

/// A relay that is discovered and a peer at once: the filters of the peer go both ways, what is discovered comes down.
#[test]
fn peer_and_discovered_at_once() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), peering());
    let options = RelayOptions { direction: Direction::Down, method: None, live: true, trusted: false };
    let announcement = note(NOW_SECS - 50).kind(30_617).tag("d", "alpha").sign();
    let own = note(NOW_SECS - 40).kind(30_617).tag("d", "beta").sign();
    pair.publish_there(&announcement);
    pair.world.give(pair.engine, std::slice::from_ref(&own));
    let relay = pair.relay.clone();
    let added = vec![relaysync::plan::Interest::Announcements];
    pair.world
        .command(pair.engine, Command::ChangeInterests { relay: relay.clone(), added, removed: Vec::new(), options });
    pair.world.run(Duration::from_secs(10));
    assert!(pair.holds(&[announcement]) && !pair.gave(&[own]));
    pair.is_complete();
    pair.world.set_peer(pair.engine, &relay, None);
    pair.secs(10);
    let later = note(pair.world.now().unix_secs).kind(30_617).tag("d", "gamma").sign();
    pair.publish_there(&later);
    let secret = note(pair.world.now().unix_secs).kind(5000).sign();
    pair.publish_there(&secret);
    pair.secs(10);
    assert!(pair.holds(&[later]) && !pair.holds(&[secret]), "what is discovered stays");
    assert_eq!(pair.world.relay(&relay).attempts.len(), 2);
    pair.join(peering());
    pair.secs(10);
    pair.is_complete();
}
