//! The pure parts: what jobs that share an engine want together, and how a job stands by what its engine has said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::entry::{Entry, Standpoint};
use super::reading::{Reading, Selection};
use super::runner::{Purpose, Runner, Way};
use super::{JobReport, JobSpec, JobState, Moment, What};
use crate::engine::{Config, Direction, FilterStanding, Gap, GapReason, Notice, RelayReport, Standing};
use crate::plan::Interest;
use crate::protocol::{Filter, FilterKey, RelayUrl, Window};

const WAY: Way = Way { direction: Direction::Down, method: None };

fn runner() -> Runner {
    Runner::new(Purpose::Live(WAY), Config::default(), WAY.options(true))
}

fn relay(number: u8) -> RelayUrl {
    RelayUrl::parse(&format!("wss://relay{number}.example")).unwrap()
}

fn filter(kind: u16) -> Filter {
    Filter::new().kind(kind.into())
}

fn interests(kinds: &BTreeSet<u16>) -> Vec<Interest> {
    kinds.iter().map(|kind| Interest::Opaque(Arc::new(filter(*kind)))).collect()
}

fn urls(numbers: &BTreeSet<u8>) -> Vec<RelayUrl> {
    numbers.iter().map(|number| relay(*number)).collect()
}

proptest! {
    /// Whatever jobs come and go: of each relay exactly that is wanted that some job wants.
    #[test]
    fn a_relay_is_asked_for_what_some_job_wants(
        jobs in prop::collection::vec(
            (prop::collection::btree_set(0_u8..4, 1..4), prop::collection::btree_set(0_u16..5, 1..4)), 1..12),
        ends in prop::collection::vec(any::<prop::sample::Index>(), 0..16),
    ) {
        let mut runner = runner();
        let mut running: Vec<&(BTreeSet<u8>, BTreeSet<u16>)> = jobs.iter().collect();
        for (relays, kinds) in &jobs {
            runner.want(&urls(relays), &interests(kinds));
        }
        for end in ends {
            if running.is_empty() {
                break;
            }
            let (relays, kinds) = running.remove(end.index(running.len()));
            runner.release(&urls(relays), &interests(kinds));
            let mut expected: BTreeMap<RelayUrl, BTreeSet<Interest>> = BTreeMap::new();
            for (relays, kinds) in &running {
                for url in urls(relays) {
                    expected.entry(url).or_default().extend(interests(kinds));
                }
            }
            prop_assert_eq!(runner.all_wanted(), expected);
        }
    }
}

/// How the job of two filters stands at relay 1, of which this is said.
fn report(standing: Option<Standing>, failure: Option<&str>, is_overdue: bool, is_over: bool) -> JobReport {
    let spec = JobSpec {
        what: What::Filters(vec![filter(1), filter(2)]),
        relays: vec![relay(1)],
        live: true,
        ..JobSpec::default()
    };
    let mut job = Entry::new(Some(spec), Reading::new(0, Selection::Filters(vec![])));
    job.is_overdue = is_overdue;
    let mut runner = runner();
    if let Some(standing) = standing {
        runner.hear(&Notice::Standing(Box::new(standing)));
    }
    if let Some(words) = failure {
        runner.hear(&Notice::StoreFailed(words.into()));
    }
    job.report(Standpoint { runner: Some(&runner), failures_max: 3, is_over, floor_secs: None })
}

fn of_filter(kind: u16, settled: bool, reason: Option<GapReason>) -> FilterStanding {
    let key = FilterKey::of(&filter(kind));
    let gaps =
        reason.map(|reason| Gap { filter: key.clone(), window: Window { since: 5, until: Window::OPEN }, reason });
    FilterStanding {
        filter: key,
        settled,
        gaps: gaps.into_iter().collect(),
        gaps_dropped: 0,
        denied: false,
        followed_secs: Some(1_000),
    }
}

fn standing(filters: Vec<FilterStanding>, change: impl FnOnce(&mut RelayReport)) -> Standing {
    let mut report = RelayReport::live("wss://relay1.example");
    change(&mut report);
    Standing { report, settled: false, followed_secs: None, filters }
}

fn kinds_of_gaps(report: &JobReport) -> Vec<&'static str> {
    report.relays.iter().flat_map(|relay| &relay.gaps).map(|gap| gap.kind).collect()
}

#[test]
fn a_job_is_caught_up_when_each_filter_is_settled() {
    let both = |second| vec![of_filter(1, true, None), of_filter(2, second, None)];
    assert_eq!(report(None, None, false, false).state, JobState::Syncing, "nothing is said yet");
    assert_eq!(report(Some(standing(both(false), |_| ())), None, false, false).state, JobState::Syncing);
    let only = vec![of_filter(1, true, None)];
    assert_eq!(report(Some(standing(only, |_| ())), None, false, false).state, JobState::Syncing);
    let settled = report(Some(standing(both(true), |_| ())), None, false, false);
    assert_eq!((settled.state, settled.complete, kinds_of_gaps(&settled)), (JobState::CaughtUp, true, vec![]));
    assert!(settled.has_come(Moment::CaughtUp) && !settled.has_come(Moment::Done));
}

#[test]
fn what_is_lacking_is_a_gap_with_its_reason() {
    let lacking = vec![of_filter(1, true, None), of_filter(2, true, Some(GapReason::Stalled))];
    let lacking = report(Some(standing(lacking, |_| ())), None, false, false);
    assert_eq!(
        (lacking.state, lacking.complete, kinds_of_gaps(&lacking)),
        (JobState::CaughtUp, false, vec!["stalled"])
    );
    let gap = &lacking.relays[0].gaps[0];
    assert_eq!((gap.filter.as_deref(), gap.since, gap.until), (Some(&filter(2)), Some(5), None));
}

#[test]
fn a_relay_that_fails_again_and_again_is_not_waited_for() {
    let failing = |failures, connections, connected| {
        let standing = standing(vec![of_filter(1, true, None), of_filter(2, false, None)], |report| {
            (report.failures, report.connected) = (failures, connected);
            report.counters.connections = connections;
            report.last_error = Some("nobody listens there".into());
        });
        report(Some(standing), None, false, false)
    };
    assert_eq!(failing(2, 0, false).state, JobState::Syncing);
    assert_eq!(failing(3, 1, true).state, JobState::Syncing, "it is back");
    for (connections, kind) in [(0, "unreachable"), (1, "connection_lost")] {
        let report = failing(3, connections, false);
        assert_eq!((report.state, report.complete), (JobState::CaughtUp, false));
        assert_eq!(kinds_of_gaps(&report), ["disconnected", kind], "of the filter that was fetched, and of the other");
        assert!(report.relays[0].gaps[0].message.ends_with("nobody listens there"));
    }
}

#[test]
fn time_that_is_up_and_an_end_settle_what_is_under_way() {
    let half = || Some(standing(vec![of_filter(1, true, None), of_filter(2, false, None)], |_| ()));
    let overdue = report(half(), None, true, false);
    assert_eq!((overdue.state, kinds_of_gaps(&overdue)), (JobState::CaughtUp, vec!["stopped"]));
    let over = report(half(), None, false, true);
    assert_eq!((over.state, over.complete, kinds_of_gaps(&over)), (JobState::Done, false, vec!["stopped"]));
}

#[test]
fn while_the_store_fails_nothing_is_caught_up_or_complete() {
    let both = || vec![of_filter(1, true, None), of_filter(2, false, None)];
    let failing = report(Some(standing(both(), |_| ())), Some("full"), false, false);
    assert_eq!((failing.state, failing.complete), (JobState::Syncing, false));
    assert_eq!((failing.error.as_deref(), kinds_of_gaps(&failing)), (Some("full"), vec!["store"]));
    let given_up = vec![of_filter(1, true, None), of_filter(2, true, Some(GapReason::Store("full".into())))];
    let failing = report(Some(standing(given_up, |_| ())), Some("full"), false, false);
    assert_eq!((failing.state, kinds_of_gaps(&failing)), (JobState::Syncing, vec!["store"]));
    let over = report(Some(standing(both(), |_| ())), Some("full"), false, true);
    assert_eq!((over.state, over.complete, kinds_of_gaps(&over)), (JobState::Done, false, vec!["store"]));
}

#[test]
fn what_is_wanted_anew_is_not_settled_by_what_was_said_before() {
    let mut runner = runner();
    runner.want(&[relay(1)], &interests(&[1, 2].into()));
    let settled = standing(vec![of_filter(1, true, None), of_filter(2, true, None)], |_| ());
    runner.hear(&Notice::Standing(Box::new(settled)));
    runner.want(&[relay(1)], &interests(&[1].into()));
    assert_eq!(runner.standings[&relay(1)].filters.len(), 2, "another job wants the same");
    runner.release(&[relay(1)], &interests(&[2].into()));
    runner.want(&[relay(1)], &interests(&[2].into()));
    assert_eq!(runner.standings[&relay(1)].filters.len(), 1);
}

/// How the job of two filters, both settled, stands at relay 1 by what is known otherwise.
fn settled_report(change: impl FnOnce(&mut RelayReport), at: impl FnOnce(Standpoint<'_>) -> JobReport) -> JobReport {
    let mut runner = runner();
    let both = vec![of_filter(1, true, None), of_filter(2, true, None)];
    runner.hear(&Notice::Standing(Box::new(standing(both, change))));
    at(Standpoint { runner: Some(&runner), failures_max: 3, is_over: false, floor_secs: None })
}

fn job_of(live: bool, filters: Vec<Filter>) -> Entry {
    let spec = JobSpec { what: What::Filters(filters), relays: vec![relay(1)], live, ..JobSpec::default() };
    Entry::new(Some(spec), Reading::new(0, Selection::Filters(vec![])))
}

#[test]
fn a_job_that_stays_is_not_complete_while_its_relay_is_away() {
    let away = |report: &mut RelayReport| {
        (report.connected, report.last_error) = (false, Some("gone".into()));
    };
    let both = || vec![filter(1), filter(2)];
    for is_over in [false, true] {
        let report = settled_report(away, |at| job_of(true, both()).report(Standpoint { is_over, ..at }));
        assert!(!report.complete, "{report:?}");
        assert_eq!(kinds_of_gaps(&report), ["disconnected", "disconnected"]);
        let gap = &report.relays[0].gaps[0];
        assert_eq!((gap.since, gap.until), (Some(1_000), None), "what was followed is proven");
        assert!(gap.message.ends_with("gone"));
    }
    let once = settled_report(away, |at| job_of(false, both()).report(at));
    assert!(once.complete, "it has an end, and is complete as of that");
}

#[test]
fn who_ends_a_connection_does_not_lack_it() {
    let mut runner = runner();
    let both = || vec![of_filter(1, true, None), of_filter(2, true, None)];
    let connected = |connected| move |report: &mut RelayReport| report.connected = connected;
    runner.hear(&Notice::Standing(Box::new(standing(both(), connected(true)))));
    runner.stop();
    runner.hear(&Notice::Standing(Box::new(standing(both(), connected(false)))));
    let at = Standpoint { runner: Some(&runner), failures_max: 3, is_over: true, floor_secs: None };
    assert!(job_of(true, vec![filter(1), filter(2)]).report(at).complete);
}

#[test]
fn what_the_store_had_no_room_for_is_a_gap() {
    let newer = filter(2).since(6_000.into());
    let job = job_of(true, vec![filter(1), filter(5)]);
    let pruned = |job: &Entry| {
        let mut runner = runner();
        let filters = [filter(1), filter(5), filter(2).since(6_000.into())];
        let settled =
            filters.iter().map(|filter| FilterStanding { filter: FilterKey::of(filter), ..of_filter(1, true, None) });
        runner.hear(&Notice::Standing(Box::new(standing(settled.collect(), |_| ()))));
        job.report(Standpoint { runner: Some(&runner), failures_max: 3, is_over: true, floor_secs: Some(5_000) })
    };
    let report = pruned(&job);
    assert_eq!((report.complete, kinds_of_gaps(&report)), (false, vec!["pruned"]), "deletions are not pruned");
    let gap = &report.relays[0].gaps[0];
    assert_eq!((gap.filter.as_deref(), gap.since, gap.until), (Some(&filter(1)), None, Some(5_000)));
    assert!(pruned(&job_of(true, vec![newer])).complete);
}

#[test]
fn what_discovery_has_not_handed_out_yet_keeps_a_job_from_being_complete() {
    let what = What::Repos { addresses: BTreeSet::new(), authors: BTreeSet::new() };
    let spec = JobSpec { what, relays: vec![relay(1)], ..JobSpec::default() };
    let job = Entry::new(Some(spec), Reading::new(0, Selection::Filters(vec![])));
    let mut runner = runner();
    for (settled, complete, kinds) in [(false, false, vec!["stopped"]), (true, true, vec![])] {
        let said = Standing { settled, ..standing(Vec::new(), |report| report.complete = true) };
        runner.hear(&Notice::Standing(Box::new(said)));
        let at = Standpoint { runner: Some(&runner), failures_max: 3, is_over: true, floor_secs: None };
        let report = job.report(at);
        assert_eq!((report.complete, kinds_of_gaps(&report)), (complete, kinds));
    }
}
