//! A report as metrics.

mod daemon;
mod peers;
mod places;
mod relays;
mod service;
#[cfg(test)]
mod tests;

use self::places::Places;
use super::exposition::{Exposition, Family, Kind, MetricPrefix};
use super::process::Process;
use super::report::DaemonReport;

/// Makes the page of metrics, and remembers which relays have labels of their own.
#[derive(Debug)]
pub(super) struct Metrics {
    prefix: MetricPrefix,
    relays: Places,
    peers: Places,
}

impl Metrics {
    /// `relays_named_max`: so many relays, and so many peers, get labels of their own; those beyond are taken together.
    pub(super) fn new(prefix: MetricPrefix, relays_named_max: usize) -> Self {
        // No URL is spelled like the one, and no name of a peer like the other.
        let (relays, peers) = (Places::new(relays_named_max, "other"), Places::new(relays_named_max, "all others"));
        Self { prefix, relays, peers }
    }

    /// The page for `report`.
    pub(super) fn page(&mut self, report: &DaemonReport, process: Process) -> String {
        let mut page = Page { prefix: &self.prefix, exposition: Exposition::default() };
        relays::write(&mut page, report, &self.relays.groups(&report.relays, |relay| relay.relay.as_str()));
        if let Some(report) = &report.peers {
            peers::write(&mut page, report, &self.peers.groups(&report.peers, |peer| &peer.stats.server_id));
        }
        daemon::write(&mut page, report);
        process.write(&mut page.exposition, report.started_at_secs);
        page.exposition.into_text()
    }
}

/// A page being written, all of whose metrics have the prefix.
struct Page<'p> {
    prefix: &'p MetricPrefix,
    exposition: Exposition,
}

impl Page<'_> {
    fn family(&mut self, name: &str, kind: Kind, help: &str) -> Family<'_> {
        self.exposition.family(format!("{}_{name}", self.prefix), kind, help)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, Kind::Gauge, help).sample(&[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, Kind::Counter, help).sample(&[], value);
    }
}
