//! Many interests in few filters: packing, consolidating, absences and restarts.

use std::collections::BTreeSet;
use std::slice::from_ref;

use relaysync::discover::DiscoverConfig;
use relaysync::engine::{Command, Config, Origin};
use relaysync::protocol::{Event, Filter, RelayUrl};
use relaysync::sim::{NOW_SECS, Remote, note};

use super::support::{Discovering, OURS, address, announcement, config, url};
use crate::support::filters_asked;

/// A repository with so many issues, each with a comment that is found by the issue alone.
pub(super) fn busy(issues: u64) -> (Event, Vec<Event>, Vec<Event>) {
    let ours = announcement("ours", &[OURS, "wss://second.example"]);
    let at = |n| NOW_SECS - 4_000 + n;
    let issue = |n| note(at(n)).by(4).kind(1621).tag("a", &address(&ours)).content(format!("issue {n}")).sign();
    let issues: Vec<Event> = (0..issues).map(issue).collect();
    let comment =
        |issue: &Event| note(issue.created_at_secs() + 2_000).by(5).kind(1111).tag("E", &issue.id.to_hex()).sign();
    let comments = issues.iter().map(comment).collect();
    (ours, issues, comments)
}

pub(super) fn begun(config: Config, issues: u64) -> (Discovering, Event, Vec<Event>) {
    let (ours, issues, comments) = busy(issues);
    let second: Vec<Event> = issues.iter().chain(&comments).cloned().collect();
    let relays = [("first", Remote::with(std::slice::from_ref(&ours))), ("second", Remote::with(&second))];
    let mut daemon = Discovering::new(config, relays);
    daemon.secs(60);
    for comment in &comments {
        assert!(daemon.holds(comment), "{}", daemon.world.trace());
    }
    (daemon, ours, issues)
}

pub(super) fn whole(filters: &[Filter]) -> Vec<&Filter> {
    let is_whole = |filter: &&Filter| filter.limit != Some(0) && filter.since.is_none() && filter.ids.is_none();
    filters.iter().filter(is_whole).collect()
}

pub(super) fn comment_of(issue: &Event, daemon: &Discovering) -> Event {
    note(daemon.world.now().unix_secs).by(6).kind(1111).tag("E", &issue.id.to_hex()).sign()
}

/// A hundred values a filter, and several filters a subscription.
#[test]
fn a_hundred_issues_go_into_one_filter() {
    let (daemon, ..) = begun(config(), 250);
    let asked = filters_asked(&daemon.world, &url("second"));
    let values = |filter: &Filter| filter.generic_tags.values().map(BTreeSet::len).max().unwrap_or(0);
    assert_eq!(asked.iter().map(values).max(), Some(100));
    let live = daemon.world.relay(&url("second")).heard_of("REQ").into_iter().filter(|req| req.contains("\"limit\":0"));
    assert!(live.count() <= 6, "{}", daemon.world.trace());
    assert!(daemon.report("second").unwrap().complete);
}

/// Scenario 4 of proactive sync: more than 70 filters are put together, nothing is fetched again, what is new arrives.
#[test]
fn too_many_live_filters_are_put_together_and_nothing_is_fetched_again() {
    let (mut daemon, ours, _) = begun(Config { live_filters_max: 20, ..config() }, 3);
    let mut issues = Vec::new();
    for n in 0..12 {
        let at = daemon.world.now().unix_secs;
        let issue = note(at).by(4).kind(1621).tag("a", &address(&ours)).content(format!("late {n}")).sign();
        daemon.world.publish(&url("second"), from_ref(&issue));
        issues.push(issue);
        daemon.secs(20);
    }
    let report = daemon.report("second").unwrap();
    assert!(report.counters.consolidations >= 1, "{report:#?}");
    assert!(report.complete && report.gaps.is_empty(), "{report:#?}");
    let asked = filters_asked(&daemon.world, &url("second"));
    let mut fetched: Vec<&Filter> = whole(&asked);
    let before = fetched.len();
    fetched.dedup();
    assert_eq!(fetched.len(), before, "something was fetched whole twice");
    for issue in &issues {
        let comment = comment_of(issue, &daemon);
        daemon.world.publish(&url("second"), from_ref(&comment));
        daemon.secs(2);
        assert!(daemon.holds(&comment), "{}", daemon.world.trace());
    }
}

/// Reported of sync code that built layers 2 and 3 anew for what is live alone: what came in the gap was never fetched.
#[test]
fn what_came_during_a_short_absence_is_fetched_in_all_layers() {
    let (mut daemon, _, issues) = begun(config(), 120);
    daemon.secs(4_000);
    let asked = filters_asked(&daemon.world, &url("second")).len();
    let missed = comment_of(&issues[77], &daemon);
    daemon.world.cut(&url("second"), "");
    daemon.world.publish(&url("second"), from_ref(&missed));
    daemon.secs(60);
    assert!(daemon.holds(&missed), "{}", daemon.world.trace());
    let asked = filters_asked(&daemon.world, &url("second")).split_off(asked);
    assert!(whole(&asked).is_empty(), "{:?}", whole(&asked));
}

/// After a restart within a quarter of an hour, what is proven holds: the same interests are packed in the same way.
#[test]
fn a_restart_within_a_quarter_of_an_hour_is_a_quick_reconnect() {
    let (mut daemon, ours, issues) = begun(config(), 230);
    let (held, asked) = ([vec![ours], issues].concat(), filters_asked(&daemon.world, &url("second")).len());
    let missed = comment_of(&held[7], &daemon);
    daemon.world.crash(daemon.engine);
    daemon.world.publish(&url("second"), from_ref(&missed));
    daemon.world.restart(daemon.engine);
    daemon
        .world
        .command(daemon.engine, Command::Accepted { events: held, origin: Origin::Held, brought: Default::default() });
    daemon.secs(60);
    assert!(daemon.holds(&missed), "{}", daemon.world.trace());
    let asked = filters_asked(&daemon.world, &url("second")).split_off(asked);
    assert!(!asked.is_empty() && whole(&asked).is_empty(), "{:?}", whole(&asked));
}

/// A repository that moves away takes its interests along; a relay that has none left is let go, bootstrap relays never.
#[test]
fn a_relay_without_interests_is_disconnected_and_a_bootstrap_relay_is_not() {
    let (mut daemon, ..) = begun(config(), 3);
    let away = note(NOW_SECS).by(2).kind(30617).tag("d", "ours").tag("relays", "wss://elsewhere.example").sign();
    daemon.world.add_relay(RelayUrl::parse("wss://elsewhere.example").unwrap().as_str(), Remote::with(&[]));
    daemon.world.publish(&url("first"), &[away]);
    daemon.secs(30);
    let phase = |name| format!("{:?}", daemon.report(name).unwrap().phase);
    assert_eq!((phase("first"), phase("second")), ("Live".to_owned(), "Done".to_owned()));
    assert!(daemon.report("elsewhere").is_none(), "the repository is not ours any more");
}

#[test]
fn an_archive_takes_what_lists_others_too() {
    let archive = DiscoverConfig { accept: relaysync::discover::Accept::All, ..config().discovery.unwrap() };
    let other = announcement("other", &["wss://second.example"]);
    let issue = note(NOW_SECS - 10).by(4).kind(1621).tag("a", &address(&other)).sign();
    let relays =
        [("first", Remote::with(std::slice::from_ref(&other))), ("second", Remote::with(std::slice::from_ref(&issue)))];
    let mut daemon = Discovering::new(Config { discovery: Some(archive), ..config() }, relays);
    daemon.secs(30);
    daemon.holds_exactly(&[&other, &issue]);
}

/// Where nothing can be put into one filter, filters go into fewer subscriptions before anything is only asked for from
/// time to time.
#[test]
fn when_subscriptions_run_out_they_are_made_fuller() {
    let config = Config { values_per_filter_max: 1, subscriptions_max: 8, ..config() };
    let (mut daemon, ours, _) = begun(config, 3);
    let mut issues = Vec::new();
    for n in 0..8 {
        let at = daemon.world.now().unix_secs;
        let issue = note(at).by(4).kind(1621).tag("a", &address(&ours)).content(format!("late {n}")).sign();
        daemon.world.publish(&url("second"), std::slice::from_ref(&issue));
        issues.push(issue);
        daemon.secs(20);
    }
    let report = daemon.report("second").unwrap();
    assert_eq!(format!("{:?}", report.phase), "Live", "{report:#?}");
    for issue in &issues {
        let comment = comment_of(issue, &daemon);
        daemon.world.publish(&url("second"), std::slice::from_ref(&comment));
        daemon.secs(2);
        assert!(daemon.holds(&comment), "{}", daemon.world.trace());
    }
}
