//! A relay of the operator's beside the daemon: it gets what is found elsewhere, and what it gets from others is acted on.

use std::slice::from_ref;
use std::time::Duration;

use relaysync::engine::{Config, Direction, RelayOptions};
use relaysync::protocol::{Event, Filter, RelayUrl};
use relaysync::relay::HealthState;
use relaysync::sim::{NOW_SECS, NoOk, Remote, Seen, Turn, note};

use super::support::{Discovering, OURS, address, announcement, config, url};

const BESIDE: RelayOptions = RelayOptions { direction: Direction::Both, method: None, live: true, trusted: true };

fn own() -> RelayUrl {
    RelayUrl::parse(OURS).expect("it is a URL")
}

/// A repository, and so many issues of it.
fn repository(issues: u64) -> (Event, Vec<Event>) {
    let ours = announcement("ours", &[OURS, "wss://second.example"]);
    let issue =
        |n| note(NOW_SECS - 4_000 + n).by(4).kind(1621).tag("a", &address(&ours)).content(format!("{n}")).sign();
    let issues = (0..issues).map(issue).collect();
    (ours, issues)
}

/// A daemon beside `own`, with a bootstrap relay and one that lists the repository.
fn begun(config: Config, own_relay: Remote, first: &[Event], second: &[Event]) -> Discovering {
    let relays = [("ours", own_relay), ("first", Remote::with(first)), ("second", Remote::with(second))];
    let mut daemon = Discovering::new(config, relays);
    daemon.world.sync_with(daemon.engine, &own(), [Filter::new()], BESIDE);
    daemon
}

fn has(daemon: &Discovering, event: &Event) -> bool {
    daemon.world.held_by(&own()).items().iter().any(|item| item.id == event.id.to_bytes())
}

fn offered(daemon: &Discovering) -> usize {
    daemon.world.relay(&own()).heard_of("EVENT").len()
}

#[test]
fn what_is_found_is_published_at_once_and_nowhere_else() {
    let (ours, issues) = repository(5);
    let mut daemon = begun(config(), Remote::with(&[]), std::slice::from_ref(&ours), &issues);
    daemon.secs(30);
    assert!(issues.iter().chain([&ours]).all(|event| has(&daemon, event)), "{}", daemon.world.trace());
    let late = note(daemon.world.now().unix_secs).by(5).kind(1111).tag("E", &issues[0].id.to_hex()).sign();
    daemon.world.publish(&url("second"), from_ref(&late));
    daemon.secs(1);
    assert!(has(&daemon, &late), "{}", daemon.world.trace());
    assert_eq!(offered(&daemon), 7, "each once");
    for name in ["first", "second"] {
        assert!(daemon.world.relay(&url(name)).heard_of("EVENT").is_empty(), "{name} is none of ours");
    }
    assert_eq!(daemon.report("ours").unwrap().counters.published, 7);
}

/// What clients publish there is found by the subscription to it: it widens the targets, and does not come back.
#[test]
fn what_clients_publish_there_is_acted_on() {
    let (ours, issues) = repository(5);
    let mut daemon = begun(config(), Remote::with(&[]), &[], &issues);
    daemon.secs(30);
    assert!(daemon.report("second").is_none());
    daemon.world.publish(&own(), from_ref(&ours));
    daemon.secs(10);
    assert!(issues.iter().all(|issue| daemon.holds(issue) && has(&daemon, issue)), "{}", daemon.world.trace());
    assert_eq!(offered(&daemon), 5, "the announcement came from there");
    // Its word counts: what it takes is held, whatever it is.
    let rules = note(NOW_SECS).by(6).content("rules of this relay").sign();
    daemon.world.publish(&own(), from_ref(&rules));
    daemon.secs(1);
    assert!(daemon.holds(&rules));
}

#[test]
fn what_it_held_before_widens_the_targets() {
    let (ours, issues) = repository(5);
    let mut daemon = begun(config(), Remote::with(&[ours]), &[], &issues);
    daemon.secs(30);
    assert!(issues.iter().all(|issue| daemon.holds(issue) && has(&daemon, issue)), "{}", daemon.world.trace());
}

#[test]
fn what_it_refuses_is_counted_and_holds_up_nothing() {
    let (ours, issues) = repository(40);
    let no = NoOk { words: Some("blocked: not here".into()), times: 3 };
    let mut daemon = begun(config(), Remote::with(&[]).tamper(no), std::slice::from_ref(&ours), &issues);
    daemon.secs(30);
    let taken = issues.iter().chain([&ours]).filter(|event| has(&daemon, event)).count();
    let report = daemon.report("ours").unwrap();
    assert_eq!((taken, report.counters.published, report.counters.refused), (38, 38, 3));
    assert!(!report.complete && report.gaps.len() == 1, "what it lacks is no secret: {:?}", report.gaps);
    assert_eq!(report.counters.connections, 1);
    assert_eq!(offered(&daemon), 41, "what is refused is not offered again at once");
}

#[test]
fn a_rate_limit_is_waited_for_and_everything_comes_after_it() {
    let (ours, issues) = repository(40);
    let no = NoOk { words: Some("rate-limited: slow down".into()), times: 10 };
    let mut daemon = begun(config(), Remote::with(&[]).tamper(no), &[ours], &issues);
    daemon.secs(30);
    assert_eq!(daemon.report("ours").unwrap().health, HealthState::RateLimited);
    assert!(issues.iter().all(|issue| daemon.holds(issue)), "others are not delayed");
    daemon.secs(120);
    assert!(issues.iter().all(|issue| has(&daemon, issue)), "{}", daemon.world.trace());
}

#[test]
fn what_a_lost_connection_interrupts_is_published_on_the_next() {
    let (ours, issues) = repository(40);
    let (mut heard, mut breaks) = (0, 3);
    let flaky = Seen(move |_, frame: String, turn: &mut Turn| {
        heard += usize::from(frame.starts_with("[\"EVENT\",{"));
        if heard == 7 && breaks > 0 {
            (heard, breaks) = (0, breaks - 1);
            turn.close("");
            return None;
        }
        Some(frame)
    });
    let mut daemon = begun(config(), Remote::with(&[]).tamper(flaky), &[ours], &issues);
    daemon.secs(300);
    assert_eq!(daemon.report("ours").unwrap().counters.connections, 4, "{}", daemon.world.trace());
    assert!(issues.iter().all(|issue| has(&daemon, issue)), "{}", daemon.world.trace());
}

/// Events in flight are bounded, and those without an answer are sent once more, and then left to the next pass.
#[test]
fn events_without_an_answer_are_paced() {
    let (ours, issues) = repository(40);
    let config = Config { publish_in_flight_max: 4, ..config() };
    let silent = NoOk { words: None, times: usize::MAX };
    let mut daemon = begun(config, Remote::with(&[]).tamper(silent), &[ours], &issues);
    daemon.secs(14);
    assert!((1..=8).contains(&offered(&daemon)), "{} at once", offered(&daemon));
    let before = daemon.world.now().instant;
    daemon.secs(3_600);
    let sent = daemon.world.relay(&own()).heard.iter().filter(|(at, frame)| {
        *at > before && frame.starts_with("[\"EVENT\"") && *at < before + Duration::from_secs(3_600)
    });
    let sent = sent.count();
    assert!(sent < 41 * 12, "{sent} in an hour");
}

#[test]
fn more_than_waits_at_a_time_is_found_by_the_next_pass() {
    let (ours, issues) = repository(60);
    let config = Config { outbox_events_max: 5, publish_in_flight_max: 1, ..config() };
    let mut daemon = begun(config, Remote::with(&[]), &[ours], &issues);
    daemon.secs(60);
    assert!(daemon.report("ours").unwrap().counters.outbox_overflows > 0);
    daemon.secs(1_500);
    assert!(issues.iter().all(|issue| has(&daemon, issue)), "{}", daemon.world.trace());
}
