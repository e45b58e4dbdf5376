//! What is wanted changes: repositories of one name, rules that accept more, an index that is still being read.

use std::slice::from_ref;

use relaysync::discover::{Accept, DiscoverConfig};
use relaysync::engine::{Command, Config, Origin};
use relaysync::protocol::Event;
use relaysync::sim::{NOW_SECS, NegentropyRefused, Remote, note};

use super::support::{Discovering, OURS, address, announcement, config, url};

/// A repository of this author.
fn repository(author: u8, identifier: &str, at: u64) -> Event {
    let relays = ["relays", OURS, "wss://second.example"].map(str::to_owned);
    note(at).by(author).kind(30617).tag("d", identifier).tags(&relays).sign()
}

fn paging(events: &[Event]) -> Remote {
    Remote::with(events).tamper(NegentropyRefused::notice("negentropy disabled"))
}

/// The states of both are found by the same filter; what is known of the one says nothing of the other.
#[test]
fn a_second_repository_of_the_same_name_gets_its_own_state() {
    let (first, second) = (repository(2, "same", NOW_SECS - 900), repository(3, "same", NOW_SECS - 100));
    let state = |author| note(NOW_SECS - 5_000).by(author).kind(30618).tag("d", "same").sign();
    let relays = [("first", paging(&[first])), ("second", paging(&[state(2), state(3)]))];
    let mut daemon = Discovering::new(config(), relays);
    daemon.secs(100);
    assert!(daemon.holds(&state(2)) && !daemon.holds(&state(3)));
    daemon.world.publish(&url("first"), &[second]);
    daemon.secs(60);
    assert!(daemon.holds(&state(3)), "{}", daemon.world.trace());
}

/// What was refused by other rules is looked at again at once, not with the next daily pass.
#[test]
fn rules_that_accept_more_are_applied_to_what_was_refused() {
    let other = announcement("other", &["wss://second.example"]);
    let issue = note(NOW_SECS - 4_000).by(4).kind(1621).tag("a", &address(&other)).sign();
    for refuses in [false, true] {
        let remote = |events: &[Event]| if refuses { paging(events) } else { Remote::with(events) };
        let relays =
            [("first", remote(std::slice::from_ref(&other))), ("second", remote(std::slice::from_ref(&issue)))];
        let mut daemon = Discovering::new(config(), relays);
        daemon.secs(100);
        daemon.holds_exactly(&[]);
        let all = DiscoverConfig { accept: Accept::All, ..config().discovery.unwrap() };
        daemon.world.command(daemon.engine, Command::Discover(Box::new(all)));
        daemon.secs(60);
        daemon.holds_exactly(&[&other, &issue]);
    }
}

/// The same with a restart in between: proofs say by which rules they were made.
#[test]
fn rules_that_accept_more_hold_after_a_restart() {
    let other = announcement("other", &["wss://second.example"]);
    let mut daemon = Discovering::new(config(), [("first", paging(std::slice::from_ref(&other)))]);
    daemon.secs(100);
    let all = DiscoverConfig { accept: Accept::All, ..config().discovery.unwrap() };
    daemon.world.node_mut(daemon.engine).config.discovery = Some(all);
    daemon.world.restart(daemon.engine);
    daemon.secs(30);
    daemon.holds_exactly(&[&other]);
}

/// Else the news that a repository went away would be judged before it is known to be ours.
#[test]
fn nobody_is_asked_before_all_that_is_held_is_known() {
    let ours = announcement("ours", &[OURS, "wss://second.example"]);
    let away = note(NOW_SECS).by(2).kind(30617).tag("d", "ours").tag("relays", "wss://elsewhere.example").sign();
    let mut daemon = Discovering::new(config(), [("first", Remote::with(std::slice::from_ref(&ours)))]);
    daemon.secs(30);
    daemon.holds_exactly(&[&ours]);
    daemon.world.crash(daemon.engine);
    daemon.world.publish(&url("first"), from_ref(&away));
    daemon.world.node_mut(daemon.engine).config = Config { awaits_held: true, ..config() };
    daemon.world.restart(daemon.engine);
    daemon.secs(30);
    assert!(daemon.report("first").is_none(), "it was asked before");
    daemon.world.command(
        daemon.engine,
        Command::Accepted { events: vec![ours], origin: Origin::Held, brought: Default::default() },
    );
    daemon.world.command(daemon.engine, Command::AllHeld);
    daemon.secs(30);
    assert!(daemon.holds(&away), "that it went away is news of a repository of ours");
}
