//! A peer is who it says it is, or nothing is said to it.

use std::time::Duration;

use relaysync::engine::{ConnId, Input, Phase};
use relaysync::peer::{IdentityField, Peering, Terms};
use relaysync::runtime::{CloseReason, FailureKind};
use relaysync::serve::ServeConfig;
use relaysync::sim::tamper::Info;
use relaysync::sim::{Remote, World, key_of};

use super::support::{PEER, Pair, peer, peering, secrets, terms};

/// Nothing flows, in any direction, and the report says why.
#[track_caller]
fn is_kept_out(pair: &Pair, words: &str) {
    let report = pair.report();
    assert_eq!((pair.heard(), report.counters.stored), (0, 0), "{}", pair.world.trace());
    assert_eq!(report.failure, Some(FailureKind::WrongIdentity), "{report:#?}");
    assert!(report.last_error.as_ref().is_some_and(|error| error.contains(words)), "{report:#?}");
    assert!(report.failures > 0 && !report.connected && !report.complete);
}

fn informed(info: Info) -> Remote {
    let mut remote = peer(&secrets("there", 5));
    remote.info = info;
    remote
}

#[test]
fn who_has_another_key_or_none_or_says_nothing_is_kept_out() {
    let other = key_of(99).to_hex();
    let cases = [
        (Info::Text(format!("{{\"self\":\"{other}\"}}")), "not "),
        (Info::Text(format!("{{\"pubkey\":\"{}\"}}", key_of(PEER).to_hex())), "has no \"self\""),
        (Info::Text("{\"self\":\"me\"}".into()), "names \"me\""),
        (Info::Text("<html>".into()), "is none"),
        (Info::Missing, "cannot be had"),
        (Info::Silent, "in time"),
    ];
    for (info, words) in cases {
        is_kept_out(&Pair::joined(informed(info), peering()), words);
    }
}

#[test]
fn the_administrators_key_counts_where_it_is_meant_and_there_is_no_other() {
    let mut terms = Terms { identity: IdentityField::AdministratorKey, ..terms() };
    let named = format!("{{\"pubkey\":\"{}\"}}", key_of(PEER).to_hex());
    let pair = Pair::joined(informed(Info::Text(named.clone())), Peering { terms: terms.clone(), ..peering() });
    assert!(pair.holds(&secrets("there", 5)));
    let both = format!("{{\"self\":\"{}\",{}", key_of(99).to_hex(), &named[1..]);
    is_kept_out(&Pair::joined(informed(Info::Text(both)), Peering { terms: terms.clone(), ..peering() }), "not ");
    terms.identity = IdentityField::OwnKey;
    is_kept_out(&Pair::joined(informed(Info::Text(named)), Peering { terms, ..peering() }), "no \"self\"");
}

/// It is tried again, later each time, and taken in once it is who it should be.
#[test]
fn a_peer_that_becomes_itself_is_taken_in_after_a_backoff() {
    let mut pair = Pair::joined(informed(Info::Missing), peering());
    pair.secs(3_600);
    let attempts = pair.world.relay(&pair.relay).attempts.len();
    assert!((3..60).contains(&attempts), "{attempts} attempts");
    assert!(pair.world.node(pair.engine).closed.iter().all(|reason| matches!(reason, CloseReason::Identity(_))));
    pair.world.relay_mut(&pair.relay.clone()).info = Info::True;
    pair.secs(3_700);
    assert!(pair.holds(&secrets("there", 5)));
    assert_eq!(pair.report().failure, None);
    pair.is_complete();
}

/// The document of an earlier connection proves nothing for this one, on which somebody else may answer.
#[test]
fn what_was_said_on_an_earlier_connection_counts_for_nothing() {
    let mut pair = Pair::joined(informed(Info::Silent), peering());
    let proof = serde_json::json!({ "self": key_of(PEER).to_hex() }).to_string();
    let engine = pair.engine;
    let waits = |world: &World| world.node(engine).reports()[0].phase == Phase::Waiting;
    assert!(pair.world.run_until(Duration::from_secs(60), waits));
    let before = pair.world.relay(&pair.relay).attempts.len();
    for number in 0..100 {
        pair.world.input(pair.engine, Input::RelayInfo { conn: ConnId(number), result: Ok(proof.clone()) });
    }
    let relay = pair.relay.clone();
    assert!(pair.world.run_until(Duration::from_secs(600), |world| world.relay(&relay).attempts.len() > before));
    pair.secs(1);
    is_kept_out(&pair, "in time");
}

#[test]
fn other_relays_need_no_document() {
    let config = ServeConfig { identity: None, ..relaysync::sim::plain_relay() };
    let events = crate::support::history(5);
    let played = crate::support::Play::default().with(Remote::configured(config, &events));
    played.is_equal();
}
