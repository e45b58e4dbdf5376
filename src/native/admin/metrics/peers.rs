//! Metrics of configured peers.

use super::places::Group;
use super::{Kind, Page};
use crate::native::admin::report::{PeerReport, PeersReport};
use crate::peer::HealthStatus;

/// A counter: its name, its help, its value at a peer.
type Row = (&'static str, &'static str, fn(&PeerReport) -> u64);

const STATUSES: [(HealthStatus, &str); 4] = [
    (HealthStatus::Ok, "ok"),
    (HealthStatus::Degraded, "degraded"),
    (HealthStatus::Failing, "failing"),
    (HealthStatus::Idle, "idle"),
];

const COUNTERS: [Row; 9] = [
    ("events_received", "Events that came from the peer, and were asked for.", |peer| peer.stats.tally.events_received),
    ("events_accepted", "Of these, new, and held now.", |peer| peer.stats.tally.events_accepted),
    ("events_duplicate", "Of these, held already.", |peer| peer.stats.tally.events_duplicate),
    ("events_rejected", "Of these, not taken.", |peer| peer.stats.tally.events_rejected),
    ("events_published", "Events that the peer took.", |peer| peer.stats.tally.events_published),
    ("events_refused", "Events that the peer did not take.", |peer| peer.stats.tally.events_refused),
    ("query_runs", "Times that what is stored was looked at.", |peer| peer.stats.tally.query_runs),
    ("subscription_restarts", "Live subscriptions opened again.", |peer| peer.stats.tally.subscription_restarts),
    ("reconnects", "Connections after the first.", |peer| peer.stats.tally.reconnects),
];

pub(super) fn write(page: &mut Page<'_>, report: &PeersReport, groups: &[Group<'_, PeerReport>]) {
    let stats = &report.stats;
    page.gauge("peers", "Configured peers.", stats.servers_total);
    page.gauge("peers_enabled", "Configured peers that are enabled.", stats.servers_enabled);
    page.gauge("peers_running", "Configured peers that are worked on.", stats.servers_running);
    page.gauge("peers_connected", "Configured peers that are connected.", stats.servers_connected);
    let mut statuses = page.family("peers_health", Kind::Gauge, "1 for how sync with the peers is, in a word.");
    for (status, name) in STATUSES {
        statuses.sample(&[("status", name)], u64::from(report.health.status == status));
    }
    let help = "Is the peer connected? Under \"all others\": how many are.";
    let mut connected = page.family("peer_connected", Kind::Gauge, help);
    for group in groups {
        connected.sample(&[("peer", group.label)], group.sum(|peer| u64::from(peer.runtime.connected)));
    }
    let mut failing =
        page.family("peer_failing", Kind::Gauge, "1 for each peer with which sync is not working, and why.");
    for group in groups.iter().filter(|group| group.is_named()) {
        for peer in report.health.servers_failing.iter().filter(|failing| failing.id == group.label) {
            failing.sample(&[("peer", group.label), ("reason", &peer.reason.to_string())], 1);
        }
    }
    for (name, help, value) in COUNTERS {
        let mut family = page.family(&format!("peer_{name}_total"), Kind::Counter, help);
        for group in groups {
            family.sample(&[("peer", group.label)], group.sum(value));
        }
    }
}
