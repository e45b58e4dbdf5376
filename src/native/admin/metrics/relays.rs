//! Metrics of relays: those that GRASP servers are known to have, under the same names, and more.

use std::collections::BTreeMap;

use super::places::Group;
use super::{Kind, Page};
use crate::engine::{Gap, GapReason, Phase, RelayReport};
use crate::native::admin::report::{DaemonReport, gaps_of};
use crate::relay::HealthState;

/// A value of a relay.
type Value = fn(&RelayReport) -> u64;

const STATES: [(HealthState, &str); 5] = [
    (HealthState::Healthy, "healthy"),
    (HealthState::Disconnected, "disconnected"),
    (HealthState::Degraded, "degraded"),
    (HealthState::Dead, "dead"),
    (HealthState::RateLimited, "rate_limited"),
];

const PHASES: [(Phase, &str); 7] = [
    (Phase::Waiting, "waiting"),
    (Phase::Connecting, "connecting"),
    (Phase::Syncing, "syncing"),
    (Phase::Cooldown, "cooldown"),
    (Phase::Live, "live"),
    (Phase::Polling, "polling"),
    (Phase::Done, "done"),
];

pub(super) fn write(page: &mut Page<'_>, report: &DaemonReport, groups: &[Group<'_, RelayReport>]) {
    write_totals(page, &report.relays);
    write_health(page, groups);
    write_gaps(page, groups);
    write_traffic(page, groups);
}

fn count(relays: &[RelayReport], is_counted: impl Fn(&RelayReport) -> bool) -> u64 {
    relays.iter().filter(|relay| is_counted(relay)).count() as u64
}

fn write_totals(page: &mut Page<'_>, relays: &[RelayReport]) {
    let is_dead = |relay: &RelayReport| relay.health == HealthState::Dead;
    let stored = relays.iter().map(|relay| relay.counters.stored).sum();
    page.gauge("relays_tracked_total", "Relays discovered or configured, and tracked.", relays.len() as u64);
    page.gauge("relays_connected_total", "Relays connected.", count(relays, |relay| relay.connected));
    page.gauge("relays_dead_total", "Relays that have failed for a day or more.", count(relays, is_dead));
    page.gauge("relays_complete", "Relays of which everything is held.", count(relays, |relay| relay.complete));
    page.counter("events_synced_total", "Events of relays that were new, and stored.", stored);
    let mut states = page.family("relays_by_status", Kind::Gauge, "Relays by the health of their link.");
    for (state, name) in STATES {
        states.sample(&[("status", name)], count(relays, |relay| relay.health == state));
    }
    let mut phases = page.family("relays_by_phase", Kind::Gauge, "Relays by what they are at.");
    for (phase, name) in PHASES {
        phases.sample(&[("phase", name)], count(relays, |relay| relay.phase == phase));
    }
}

fn write_health(page: &mut Page<'_>, groups: &[Group<'_, RelayReport>]) {
    by_relay(
        page,
        Kind::Gauge,
        "relay_connected",
        "Is the relay connected? Under \"other\": how many are.",
        groups,
        |relay| u64::from(relay.connected),
    );
    let help = "1 healthy, 2 disconnected, 3 degraded, 4 dead, 5 rate limited.";
    let mut status = page.family("relay_status", Kind::Gauge, help);
    for group in groups.iter().filter(|group| group.is_named()) {
        status.sample(&[("relay", group.label)], group.sum(|relay| status_number(relay.health)));
    }
    by_relay(page, Kind::Gauge, "relay_failures", "Failures of the link in a row.", groups, |relay| {
        u64::from(relay.failures)
    });
    let results: [(&str, Value); 2] =
        [("success", |relay| relay.counters.connections), ("failure", |relay| relay.counters.connections_failed)];
    split(page, ("connection_attempts_total", "result"), "Attempts at a connection.", groups, &results);
    by_relay(page, Kind::Counter, "relay_rate_limits_total", "Rate limits met.", groups, |relay| {
        relay.counters.rate_limits
    });
}

fn status_number(health: HealthState) -> u64 {
    match health {
        HealthState::Healthy => 1,
        HealthState::Disconnected => 2,
        HealthState::Degraded => 3,
        HealthState::Dead => 4,
        HealthState::RateLimited => 5,
    }
}

fn write_gaps(page: &mut Page<'_>, groups: &[Group<'_, RelayReport>]) {
    by_relay(page, Kind::Gauge, "relay_complete", "Is everything that the relay has held?", groups, |relay| {
        u64::from(relay.complete)
    });
    let mut gaps = page.family("relay_gaps", Kind::Gauge, "What could not be proven complete, by reason.");
    for group in groups {
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for Gap { reason, .. } in group.members.iter().flat_map(|relay| &relay.gaps) {
            *reasons.entry(reason_name(reason)).or_default() += 1;
        }
        let unrecorded = group.sum(|relay| relay.gaps_dropped);
        reasons.extend((unrecorded > 0).then_some(("unrecorded", unrecorded)));
        for (reason, count) in reasons {
            gaps.sample(&[("relay", group.label), ("reason", reason)], count);
        }
    }
    page.gauge(
        "gaps",
        "What could not be proven complete, at all relays.",
        groups.iter().map(|group| group.sum(gaps_of)).sum(),
    );
}

/// The reason without its particulars, as reports have it in JSON.
pub(super) fn reason_name(reason: &GapReason) -> &'static str {
    match reason {
        GapReason::Unreachable(_) => "unreachable",
        GapReason::ConnectionLost(_) => "connection_lost",
        GapReason::Stalled => "stalled",
        GapReason::EarlyEose => "early_eose",
        GapReason::Endless => "endless",
        GapReason::SecondOverflow { .. } => "second_overflow",
        GapReason::UntilIgnored => "until_ignored",
        GapReason::OldestFirst => "oldest_first",
        GapReason::Disordered => "disordered",
        GapReason::Refused(_) => "refused",
        GapReason::AuthRequired(_) => "auth_required",
        GapReason::NotDelivered { .. } => "not_delivered",
        GapReason::Unsettled { .. } => "unsettled",
        GapReason::NotAccepted { .. } => "not_accepted",
        GapReason::Unacknowledged { .. } => "unacknowledged",
        GapReason::Store(_) => "store",
        GapReason::Stopped => "stopped",
        GapReason::Disconnected(_) => "disconnected",
        GapReason::Pruned => "pruned",
    }
}

fn write_traffic(page: &mut Page<'_>, groups: &[Group<'_, RelayReport>]) {
    let results: [(&str, Value); 6] = [
        ("received", |relay| relay.counters.received),
        ("stored", |relay| relay.counters.stored),
        ("duplicate", |relay| relay.counters.duplicate),
        ("unwanted", |relay| relay.counters.unwanted),
        ("invalid", |relay| relay.counters.invalid),
        ("unsolicited", |relay| relay.counters.unsolicited),
    ];
    split(page, ("relay_events_total", "result"), "Events of relays, by what became of them.", groups, &results);
    let results: [(&str, Value); 2] =
        [("accepted", |relay| relay.counters.published), ("refused", |relay| relay.counters.refused)];
    split(page, ("relay_published_total", "result"), "Events offered to relays, by their answer.", groups, &results);
    by_relay(page, Kind::Counter, "relay_outbox_overflows_total", "Events not passed on at once.", groups, |relay| {
        relay.counters.outbox_overflows
    });
    by_relay(
        page,
        Kind::Counter,
        "relay_consolidations_total",
        "Times that live filters were put together.",
        groups,
        |relay| relay.counters.consolidations,
    );
    let directions: [(&str, Value); 2] =
        [("in", |relay| relay.counters.bytes_in), ("out", |relay| relay.counters.bytes_out)];
    split(page, ("relay_bytes_total", "direction"), "Bytes of frames.", groups, &directions);
    let kinds: [(&str, Value); 3] = [
        ("page", |relay| relay.counters.pages),
        ("negentropy", |relay| relay.counters.rounds),
        ("ids", |relay| relay.counters.id_requests),
    ];
    split(page, ("relay_requests_total", "kind"), "Requests for what is stored, by their kind.", groups, &kinds);
    let faults: [(&str, Value); 2] =
        [("malformed", |relay| relay.counters.malformed), ("stray_eose", |relay| relay.counters.stray_eose)];
    split(page, ("relay_faulty_frames_total", "fault"), "Frames that make no sense.", groups, &faults);
}

fn by_relay(page: &mut Page<'_>, kind: Kind, name: &str, help: &str, groups: &[Group<'_, RelayReport>], value: Value) {
    let mut family = page.family(name, kind, help);
    for group in groups {
        family.sample(&[("relay", group.label)], group.sum(value));
    }
}

/// A counter with a second label: its name, then that label's.
fn split(
    page: &mut Page<'_>,
    names: (&str, &str),
    help: &str,
    groups: &[Group<'_, RelayReport>],
    values: &[(&str, Value)],
) {
    let (name, label) = names;
    let mut family = page.family(name, Kind::Counter, help);
    for group in groups {
        for (part, value) in values {
            family.sample(&[("relay", group.label), (label, part)], group.sum(value));
        }
    }
}
