//! A report as metrics.

mod daemon;
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
    places: Places,
}

impl Metrics {
    /// `relays_named_max`: so many relays get labels of their own, those beyond are taken together.
    pub(super) fn new(prefix: MetricPrefix, relays_named_max: usize) -> Self {
        Self { prefix, places: Places::new(relays_named_max) }
    }

    /// The page for `report`.
    pub(super) fn page(&mut self, report: &DaemonReport, process: Process) -> String {
        let mut page = Page { prefix: &self.prefix, exposition: Exposition::default() };
        relays::write(&mut page, report, &self.places.groups(&report.relays));
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
