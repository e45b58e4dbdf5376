//! What was not wanted when it came, and is wanted later.

use std::slice::from_ref;

use relaysync::discover::{Accept, DiscoverConfig};
use relaysync::engine::{Command, Config};
use relaysync::protocol::{Event, hex};
use relaysync::sim::{NOW_SECS, NegentropyRefused, PageCap, Remote, note};

use super::support::{Discovering, OURS, address, announcement, config, url};
use crate::support::filters_asked;

/// With NIP-77 and without.
fn both(events: &[Event]) -> [Remote; 2] {
    let paged = Remote::with(events).tamper(PageCap(20)).tamper(NegentropyRefused::notice("negentropy disabled"));
    [Remote::with(events), paged]
}

/// A list and a state that no repository of ours is known for yet, at a relay that the repository does not list.
#[test]
fn what_a_new_repository_makes_wanted_is_fetched_where_it_was_refused() {
    let maintainer = note(0).by(7).sign().pubkey;
    let ours = note(NOW_SECS - 5_000).by(2).kind(30_617).tag("d", "ours").tag("relays", OURS);
    let ours = ours.tag("maintainers", &hex::encode(&maintainer.to_bytes())).sign();
    let list = note(NOW_SECS - 100).by(7).kind(10_317).tag("g", "wss://elsewhere.example").sign();
    let state = note(NOW_SECS - 90).by(7).kind(30_618).tag("d", "ours").sign();
    let noise: Vec<Event> =
        (0..50).map(|n| note(NOW_SECS - 400 - n).by(8).kind(30_618).tag("d", &format!("{n}")).sign()).collect();
    for first in both(&[vec![list.clone(), state.clone()], noise.clone()].concat()) {
        let mut daemon = Discovering::new(config(), [("first", first)]);
        daemon.secs(60);
        daemon.holds_exactly(&[]);
        let received = daemon.report("first").unwrap().counters.received;
        daemon.world.publish(&url("first"), from_ref(&ours));
        daemon.secs(20);
        daemon.holds_exactly(&[&ours, &list, &state]);
        let again = daemon.report("first").unwrap().counters.received - received;
        assert!(again <= 5, "{again} came again");
        assert!(daemon.report("first").unwrap().complete);
    }
}

/// The version that moves a repository away comes before the one by which we accept it.
#[test]
fn a_version_that_moves_a_repository_away_is_found_though_it_came_first() {
    let ours = announcement("ours", &[OURS, "wss://second.example"]);
    let away = note(NOW_SECS - 100).by(2).kind(30_617).tag("d", "ours").tag("relays", "wss://elsewhere.example").sign();
    let discovery = DiscoverConfig { bootstrap: vec![url("first"), url("second")], ..config().discovery.unwrap() };
    for first in both(from_ref(&away)) {
        let config = Config { discovery: Some(discovery.clone()), ..config() };
        let mut daemon = Discovering::new(config, [("first", first), ("second", Remote::with(&[]))]);
        daemon.secs(60);
        daemon.holds_exactly(&[]);
        daemon.world.publish(&url("second"), from_ref(&ours));
        daemon.secs(20);
        daemon.holds_exactly(&[&away]);
    }
}

/// A configuration that accepts more finds what was refused before.
#[test]
fn after_a_reload_everything_is_judged_anew() {
    let other = announcement("other", &["wss://second.example"]);
    let issue = note(NOW_SECS - 10).by(4).kind(1621).tag("a", &address(&other)).sign();
    for first in both(std::slice::from_ref(&other)) {
        let mut daemon =
            Discovering::new(config(), [("first", first), ("second", Remote::with(std::slice::from_ref(&issue)))]);
        daemon.secs(60);
        daemon.holds_exactly(&[]);
        let archive = DiscoverConfig { accept: Accept::All, ..config().discovery.unwrap() };
        daemon.world.command(daemon.engine, Command::Discover(Box::new(archive)));
        daemon.secs(20);
        daemon.holds_exactly(&[&other, &issue]);
        let asked = filters_asked(&daemon.world, &url("first")).len();
        daemon.secs(3_600);
        assert_eq!(filters_asked(&daemon.world, &url("first")).len(), asked, "once");
    }
}

/// What came while it was not wanted was refused, though the interest in it had not been withdrawn yet.
#[test]
fn what_is_accepted_again_within_the_batch_window_is_fetched_anew() {
    let other = announcement("other", &["wss://second.example"]);
    let accepting = |accept| DiscoverConfig { accept, ..config().discovery.unwrap() };
    let archive = Config { discovery: Some(accepting(Accept::All)), ..config() };
    let relays = [("first", Remote::with(std::slice::from_ref(&other))), ("second", Remote::with(&[]))];
    let mut daemon = Discovering::new(archive, relays);
    daemon.secs(60);
    daemon.world.command(daemon.engine, Command::Discover(Box::new(accepting(Accept::Allowed))));
    let issue = note(daemon.world.now().unix_secs).by(4).kind(1621).tag("a", &address(&other)).sign();
    daemon.world.publish(&url("second"), from_ref(&issue));
    daemon.secs(2);
    daemon.holds_exactly(&[&other]);
    daemon.world.command(daemon.engine, Command::Discover(Box::new(accepting(Accept::All))));
    daemon.secs(20);
    daemon.holds_exactly(&[&other, &issue]);
    assert_eq!(daemon.report("second").unwrap().counters.connections, 1);
}

/// Whatever a blocked author wrote was refused, of repositories, too, that stayed accepted.
#[test]
fn what_an_author_wrote_who_is_blocked_no_more_is_fetched() {
    let ours = announcement("ours", &[OURS, "wss://second.example"]);
    let issue = note(NOW_SECS - 20).by(4).kind(1621).tag("a", &address(&ours)).sign();
    let comment = note(NOW_SECS - 10).by(6).kind(1111).tag("E", &issue.id.to_hex()).sign();
    let block_authors = [comment.pubkey.to_bytes()].into();
    let blocking = DiscoverConfig { block_authors, ..config().discovery.unwrap() };
    let relays = [
        ("first", Remote::with(std::slice::from_ref(&ours))),
        ("second", Remote::with(&[issue.clone(), comment.clone()])),
    ];
    let mut daemon = Discovering::new(Config { discovery: Some(blocking), ..config() }, relays);
    daemon.secs(60);
    daemon.holds_exactly(&[&ours, &issue]);
    daemon.world.command(daemon.engine, Command::Discover(Box::new(config().discovery.unwrap())));
    daemon.secs(20);
    daemon.holds_exactly(&[&ours, &issue, &comment]);
}

/// What was refused is not remembered over a restart.
#[test]
fn after_a_restart_what_was_refused_before_is_found_as_well() {
    let list = note(NOW_SECS - 100).by(2).kind(10_317).tag("g", "wss://elsewhere.example").sign();
    let ours = announcement("ours", &[OURS]);
    for first in both(from_ref(&list)) {
        let mut daemon = Discovering::new(config(), [("first", first)]);
        daemon.secs(60);
        daemon.world.restart(daemon.engine);
        daemon.secs(60);
        daemon.holds_exactly(&[]);
        daemon.world.publish(&url("first"), from_ref(&ours));
        daemon.secs(20);
        daemon.holds_exactly(&[&ours, &list]);
    }
}
