//! The page of metrics, read back by a strict reader of the format.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::Metrics;
use super::relays::reason_name;
use crate::engine::{GapReason, RelayReport};
use crate::native::admin::exposition::{Exposition, Kind, MetricPrefix};
use crate::native::admin::process::Process;
use crate::native::admin::samples::{daemon, gap, peers, relay};
use crate::native::admin::{DaemonReport, GRAFANA_DASHBOARD};
use crate::protocol::RelayUrl;
use crate::relay::HealthState;

type Labels = Vec<(String, String)>;

/// What a page says: the kinds of metrics by name, and the values by name and labels.
#[derive(Debug, Default)]
struct Read {
    kinds: BTreeMap<String, String>,
    values: BTreeMap<(String, Labels), u64>,
}

impl Read {
    /// Reads a page; panics at anything that the format does not allow.
    fn page(text: &str) -> Self {
        assert!(text.is_empty() || text.ends_with('\n'), "the last line has no end");
        let mut read = Self::default();
        let mut lines = text.split_terminator('\n').peekable();
        while let Some(line) = lines.next() {
            let (name, help) = line.strip_prefix("# HELP ").expect(line).split_once(' ').expect(line);
            assert!(is_name(name) && !help.is_empty() && !help.contains('\\'), "{line}");
            let (typed, kind) = lines.next().unwrap().strip_prefix("# TYPE ").unwrap().split_once(' ').unwrap();
            assert_eq!(typed, name);
            assert!(matches!(kind, "counter" | "gauge"), "{kind}");
            assert!(kind == "gauge" || name.ends_with("_total"), "{name}");
            assert!(read.kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
            while let Some(sample) = lines.next_if(|line| !line.starts_with('#')) {
                let (labels, value) = read_sample(sample.strip_prefix(name).expect(sample));
                assert!(read.values.insert((name.to_owned(), labels), value).is_none(), "{sample} twice");
            }
        }
        read
    }

    #[track_caller]
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let key = (name.to_owned(), labels);
        *self.values.get(&key).unwrap_or_else(|| panic!("{key:?} is not there"))
    }

    fn relays_of(&self, name: &str) -> BTreeSet<&str> {
        self.values.keys().filter(|(metric, _)| metric == name).map(|(_, labels)| labels[0].1.as_str()).collect()
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Labels and value: what comes behind the name.
fn read_sample(text: &str) -> (Labels, u64) {
    let mut labels = Labels::new();
    let mut rest = text;
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            let (name, value) = inside.split_once("=\"").expect(text);
            assert!(is_name(name), "{text}");
            let (value, behind) = read_value(value);
            labels.push((name.to_owned(), value));
            if let Some(behind) = behind.strip_prefix('}') {
                rest = behind;
                break;
            }
            inside = behind.strip_prefix(',').expect(text);
        }
    }
    (labels, rest.strip_prefix(' ').expect(text).parse().expect(text))
}

/// A label's value up to its quotation mark, and what comes behind that.
fn read_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    loop {
        match chars.next().expect("a label's value ends") {
            (at, '"') => return (value, &text[at + 1..]),
            (_, '\\') => value.push(match chars.next().expect("an escape has a letter").1 {
                'n' => '\n',
                char @ ('\\' | '"') => char,
                char => panic!("\\{char} is no escape"),
            }),
            (_, char) => value.push(char),
        }
    }
}

fn page(report: &DaemonReport, prefix: &str) -> Read {
    let mut metrics = Metrics::new(MetricPrefix::parse(prefix).unwrap(), 100);
    Read::page(&metrics.page(report, Process::default()))
}

#[test]
fn dashboards_of_grasp_servers_find_their_metrics() {
    let mut down = relay("wss://b.example");
    (down.health, down.connected, down.failures) = (HealthState::Dead, false, 17);
    (down.counters.stored, down.counters.connections, down.counters.connections_failed) = (5, 2, 19);
    let read = page(&daemon(vec![relay("wss://a.example"), down]), "ngit_sync");
    let (a, b) = (("relay", "wss://a.example"), ("relay", "wss://b.example"));
    for (name, labels, value, kind) in [
        ("ngit_sync_relay_connected", &[a][..], 1, "gauge"),
        ("ngit_sync_relay_connected", &[b], 0, "gauge"),
        ("ngit_sync_connection_attempts_total", &[a, ("result", "success")], 1, "counter"),
        ("ngit_sync_connection_attempts_total", &[b, ("result", "failure")], 19, "counter"),
        ("ngit_sync_relay_status", &[a], 1, "gauge"),
        ("ngit_sync_relay_status", &[b], 4, "gauge"),
        ("ngit_sync_relay_failures", &[b], 17, "gauge"),
        ("ngit_sync_events_synced_total", &[], 12_350, "counter"),
        ("ngit_sync_relays_tracked_total", &[], 2, "gauge"),
        ("ngit_sync_relays_connected_total", &[], 1, "gauge"),
        ("ngit_sync_relays_dead_total", &[], 1, "gauge"),
    ] {
        assert_eq!((read.value(name, labels), read.kinds[name].as_str()), (value, kind), "{name} {labels:?}");
    }
}

#[test]
fn every_health_has_its_number() {
    for (state, number) in [
        (HealthState::Healthy, 1),
        (HealthState::Disconnected, 2),
        (HealthState::Degraded, 3),
        (HealthState::Dead, 4),
        (HealthState::RateLimited, 5),
    ] {
        let report = daemon(vec![RelayReport { health: state, ..relay("wss://a.example") }]);
        assert_eq!(page(&report, "x").value("x_relay_status", &[("relay", "wss://a.example")]), number);
    }
}

#[test]
fn gaps_are_counted_by_relay_and_reason() {
    let mut with_gaps = relay("wss://a.example");
    let refused = |words: &str| gap(GapReason::Refused(words.to_owned()));
    with_gaps.gaps = vec![refused("blocked"), gap(GapReason::Stalled), refused("\"go\\away\"\n")];
    with_gaps.gaps_dropped = 7;
    let read = page(&daemon(vec![with_gaps]), "x");
    for (reason, count) in [("refused", 2), ("stalled", 1), ("unrecorded", 7)] {
        assert_eq!(read.value("x_relay_gaps", &[("relay", "wss://a.example"), ("reason", reason)]), count);
    }
    assert_eq!(read.value("x_gaps", &[]), 10);
    assert_eq!(read.value("x_bound_hits_total", &[("bound", "feed_events_max")]), 3);
}

#[test]
fn reasons_are_named_as_in_json() {
    let text = String::new;
    for reason in [
        GapReason::Unreachable(text()),
        GapReason::ConnectionLost(text()),
        GapReason::Stalled,
        GapReason::EarlyEose,
        GapReason::Endless,
        GapReason::SecondOverflow { received: 1 },
        GapReason::UntilIgnored,
        GapReason::OldestFirst,
        GapReason::Disordered,
        GapReason::Refused(text()),
        GapReason::AuthRequired(text()),
        GapReason::NotDelivered { events: 1 },
        GapReason::Unsettled { events: 1 },
        GapReason::NotAccepted { events: 1, reason: text() },
        GapReason::Unacknowledged { events: 1 },
        GapReason::Store(text()),
        GapReason::Stopped,
    ] {
        assert_eq!(serde_json::to_value(&reason).unwrap()["kind"], reason_name(&reason));
    }
}

#[test]
fn relays_beyond_the_bound_are_taken_together_and_none_changes_sides() {
    let numbered = |n: u64| {
        let mut relay = relay(&format!("wss://r{n:02}.example"));
        relay.counters.received = 1 << n;
        relay
    };
    let mut metrics = Metrics::new(MetricPrefix::parse("x").unwrap(), 3);
    let mut read = |relays: Vec<RelayReport>| Read::page(&metrics.page(&daemon(relays), Process::default()));
    let first = read((1..=5).map(numbered).collect());
    let names = BTreeSet::from(["wss://r01.example", "wss://r02.example", "wss://r03.example", "other"]);
    assert_eq!(first.relays_of("x_relay_events_total"), names);
    let received = [("relay", "other"), ("result", "received")];
    assert_eq!(first.value("x_relay_events_total", &received), (1 << 4) + (1 << 5));
    assert_eq!(first.value("x_relay_connected", &[("relay", "other")]), 2);
    assert!(!first.relays_of("x_relay_status").contains("other"), "there is no health of several");
    // An earlier URL takes nobody's place.
    let second = read((0..=5).map(numbered).collect());
    assert_eq!(second.relays_of("x_relay_events_total"), names);
    assert_eq!(second.value("x_relay_events_total", &received), 1 + (1 << 4) + (1 << 5));
    // A place that is free goes to a newcomer, not to one that was counted with the others before.
    let third = read([0, 2, 3, 4, 5, 6].map(numbered).into());
    let names = BTreeSet::from(["wss://r02.example", "wss://r03.example", "wss://r06.example", "other"]);
    assert_eq!(third.relays_of("x_relay_events_total"), names);
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let written: BTreeSet<String> = page(&daemon(vec![]), "relaysync").kinds.into_keys().collect();
    let dashboard: serde_json::Value = serde_json::from_str(GRAFANA_DASHBOARD).unwrap();
    let mut asked = BTreeSet::new();
    collect_metrics(&dashboard, &mut asked);
    assert!(asked.len() > 30, "{asked:?}");
    let missing: Vec<_> = asked.difference(&written).collect();
    assert_eq!(missing, [] as [&String; 0]);
}

/// The names of metrics in all queries below `value`.
fn collect_metrics(value: &serde_json::Value, names: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(query) if matches!(key.as_str(), "expr" | "query" | "definition") => {
                        let query = query.replace("${prefix}", "relaysync");
                        let words = query.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
                        let metrics =
                            words.filter(|word| word.starts_with("relaysync_") || word.starts_with("process_"));
                        names.extend(metrics.map(str::to_owned));
                    }
                    _ => collect_metrics(value, names),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect_metrics(value, names)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn whatever_a_label_says_is_read_back(values in prop::collection::btree_set(".*", 1..20)) {
        let mut exposition = Exposition::default();
        let mut family = exposition.family("x".to_owned(), Kind::Gauge, "Help.");
        for value in &values {
            family.sample(&[("relay", value), ("result", "a")], 1);
        }
        let read = Read::page(&exposition.into_text());
        prop_assert_eq!(read.relays_of("x"), values.iter().map(String::as_str).collect());
    }

    #[test]
    fn hostile_relay_urls_leave_the_page_whole(
        texts in prop::collection::vec("(ws|wss)://[a-z\"\\\\\n{}, =#]{1,20}(\\.[a-z]{1,5})?(/\\PC*)?(\\?.*)?", 1..200),
    ) {
        let urls: BTreeSet<RelayUrl> = texts.iter().filter_map(|text| RelayUrl::parse(text).ok()).collect();
        let report = daemon(urls.iter().map(|url| relay(url.as_str())).collect());
        let read = page(&report, "x");
        let expected: BTreeSet<&str> =
            urls.iter().map(RelayUrl::as_str).take(100).chain((urls.len() > 100).then_some("other")).collect();
        prop_assert_eq!(read.relays_of("x_relay_connected"), expected);
    }
}

#[test]
fn peers_are_counted_by_their_names_and_those_beyond_together() {
    let mut report = daemon(vec![]);
    report.peers = Some(peers());
    let page = |named_max: usize| {
        let mut metrics = Metrics::new(MetricPrefix::default(), named_max);
        Read::page(&metrics.page(&report, Process::default()))
    };
    let read = page(200);
    let received = "relaysync_peer_events_received_total";
    assert_eq!(read.value(received, &[("peer", "tribes-primary")]), 12_350);
    assert_eq!(read.value("relaysync_peer_connected", &[("peer", "tribes-secondary")]), 0);
    let failing = [("peer", "tribes-secondary"), ("reason", "wrong_pin")];
    assert_eq!(read.value("relaysync_peer_failing", &failing), 1);
    assert_eq!(read.value("relaysync_peers_health", &[("status", "degraded")]), 1);
    let read = page(1);
    assert_eq!(read.relays_of(received), ["all others", "tribes-primary"].into());
}
