//! What many seeds came to: for people, or as one JSON object.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::native::program::numbers::{count, counted, list};
use crate::native::swarm::Outcome;

/// The sum over all seeds that were played.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Totals {
    /// Seeds that passed.
    pub(super) passed: u64,
    /// Seeds that failed, in the order in which they did.
    pub(super) failed: Vec<u64>,
    /// How long it really took.
    #[serde(rename = "elapsed_secs", serialize_with = "as_secs")]
    pub(super) elapsed: Duration,
    /// How long it took on the clocks of the worlds.
    #[serde(rename = "virtual_secs", serialize_with = "as_secs")]
    virtual_time: Duration,
    /// Different events in the worlds.
    events: u64,
    /// Calls of `handle`.
    handles: u64,
    /// The seed that took longest, after its faults had ended, until everything was there.
    slowest_convergence: Option<Convergence>,
    /// Faults that took effect, by kind.
    injected: BTreeMap<&'static str, u64>,
}

/// How long a seed took, after its faults had ended, until everything was there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Convergence {
    #[serde(rename = "virtual_secs", serialize_with = "as_secs")]
    virtual_time: Duration,
    seed: u64,
}

fn as_secs<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

impl Totals {
    /// Seeds that were played.
    pub(super) fn played(&self) -> u64 {
        self.passed + self.failed.len() as u64
    }

    /// Adds what became of one more seed.
    pub(super) fn add(&mut self, outcome: Outcome) {
        let summary = match outcome {
            Ok(summary) => summary,
            Err(failure) => return self.failed.push(failure.seed),
        };
        self.passed += 1;
        self.virtual_time += summary.virtual_time;
        self.events += summary.events;
        self.handles += summary.handles;
        for (kind, faults) in summary.injected {
            *self.injected.entry(kind).or_insert(0) += faults;
        }
        let convergence = Convergence { virtual_time: summary.converged_after, seed: summary.seed };
        // Of equals the lowest seed, whichever came first.
        let rank = |of: &Convergence| (of.virtual_time, std::cmp::Reverse(of.seed));
        self.slowest_convergence = self.slowest_convergence.into_iter().chain([convergence]).max_by_key(rank);
    }

    /// For people, with a line end.
    pub(super) fn to_text(&self) -> String {
        let mut text = format!(
            "{}: {} passed, {} failed, in {:.1} s\n\n",
            counted(self.played(), "seed"),
            count(self.passed),
            count(self.failed.len() as u64),
            self.elapsed.as_secs_f64(),
        );
        let mut row = |name: &str, value: String| text += &format!("{name:<20} {value:>16}\n");
        row("virtual hours", count(self.virtual_time.as_secs() / 3_600));
        row("events", count(self.events));
        row("handles", count(self.handles));
        if let Some(Convergence { virtual_time, seed }) = self.slowest_convergence {
            row("slowest convergence", format!("{} s", count(virtual_time.as_secs())));
            row("  of seed", seed.to_string());
        }
        self.push_faults(&mut text);
        if !self.failed.is_empty() {
            text += &format!("\nfailed seeds: {}\n", list(&self.failed));
        }
        text
    }

    fn push_faults(&self, text: &mut String) {
        if self.injected.is_empty() {
            return;
        }
        let width = self.injected.keys().map(|kind| kind.len()).max().unwrap_or(0);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "\n{:<width$} {:>14}",
            "faults injected",
            count(self.injected.values().sum()),
            width = width.max(22)
        );
        for (kind, faults) in &self.injected {
            let _ = writeln!(text, "  {kind:<width$} {:>12}", count(*faults), width = width.max(22));
        }
    }

    /// One line of JSON, with a line end.
    pub(super) fn to_json(&self) -> String {
        let json = serde_json::to_string(self).expect("names and numbers are always JSON");
        json + "\n"
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Totals;
    use crate::native::swarm::tests::fake;
    use crate::sim::swarm::{Failure, Options};

    fn totals() -> Totals {
        let mut totals = Totals { elapsed: Duration::from_millis(1_500), ..Totals::default() };
        for seed in [0, 4, 2, 1, 5] {
            totals.add(fake(seed, &Options::default()));
        }
        totals.add(Err(Box::new(Failure { seed: 3, why: String::new(), faults: Vec::new(), trace: Vec::new() })));
        totals
    }

    #[test]
    fn for_people() {
        let expected = "\
6 seeds: 3 passed, 3 failed, in 1.5 s

virtual hours                       3
events                             30
handles                           300
slowest convergence               4 s
  of seed                           4

faults injected                    12
  closed                            6
  tarpit                            6

failed seeds: 1, 5, 3
";
        assert_eq!(totals().to_text(), expected);
        assert!(Totals::default().to_text().starts_with("0 seeds: 0 passed, 0 failed"));
    }

    #[test]
    fn as_json() {
        let expected = serde_json::json!({
            "passed": 3, "failed": [1, 5, 3], "elapsed_secs": 1.5, "virtual_secs": 10_800.0, "events": 30,
            "handles": 300, "slowest_convergence": { "virtual_secs": 4.0, "seed": 4 },
            "injected": { "closed": 6, "tarpit": 6 },
        });
        let text = totals().to_json();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), expected);
        assert_eq!(text.lines().count(), 1);
    }
}
