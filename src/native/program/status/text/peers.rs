//! The configured peers, by their names.

use super::{RELAYS_SHOWN_MAX, URL_COLUMNS_MAX, line, words};
use crate::native::admin::{PeerReport, PeersReport};
use crate::native::program::numbers::{count, counted};
use crate::peer::{HealthStatus, WorkerState};

pub(super) fn write(report: &PeersReport, text: &mut String) {
    line(text, format_args!("\nPeers: {}", verdict(report)));
    let shown = &report.peers[..report.peers.len().min(RELAYS_SHOWN_MAX)];
    let name = |peer: &PeerReport| words(&peer.stats.server_id);
    let width = shown.iter().map(|peer| name(peer).chars().count()).max().unwrap_or_default().min(URL_COLUMNS_MAX);
    for peer in shown {
        line(text, format_args!("        {:width$}  {}", name(peer), standing(report, peer)));
    }
    if report.peers.len() > shown.len() {
        let more = count((report.peers.len() - shown.len()) as u64);
        line(text, format_args!("  and {more} more (use --json to see them all)"));
    }
}

fn verdict(report: &PeersReport) -> String {
    let stats = &report.stats;
    let connected =
        format!("{} of {} connected", count(stats.servers_connected), counted(stats.servers_enabled, "enabled peer"));
    match report.health.status {
        HealthStatus::Ok => format!("sync is working, {connected}"),
        HealthStatus::Degraded => format!("sync is not working with all of them, {connected}"),
        HealthStatus::Failing => format!("sync is not working, {connected}"),
        HealthStatus::Idle => "none is enabled".to_owned(),
    }
}

fn standing(report: &PeersReport, peer: &PeerReport) -> String {
    let id = &peer.stats.server_id;
    if let Some(failing) = report.health.servers_failing.iter().find(|failing| failing.id == *id) {
        return format!("{}: {}", failing.reason, words(&failing.detail));
    }
    if let Some(pending) = report.health.servers_pending.iter().find(|pending| pending.id == *id) {
        return words(&pending.detail);
    }
    if peer.runtime.state == WorkerState::Stopped {
        return format!("stopped (relaysync peer start {})", words(id));
    }
    let tally = &peer.stats.tally;
    let published = match tally.events_published {
        0 => String::new(),
        events => format!(", {} published", count(events)),
    };
    let received = counted(tally.events_received, "event");
    format!("{}, {received} received, {} accepted{published}", words(&peer.relay), count(tally.events_accepted))
}
