//! What is seen while a sync runs: one line a relay on a terminal, else a log line every few seconds.

use std::collections::BTreeMap;
use std::fmt;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::numbers::{bytes, count, counted};
use crate::protocol::RelayUrl;
use crate::runtime::Instant;

/// Time between two log lines of one relay.
const LOG_INTERVAL: Duration = Duration::from_secs(5);
/// Events a second are measured over this time.
const RATE_INTERVAL: Duration = Duration::from_secs(2);
/// How often a terminal's spinners turn.
const TICK_INTERVAL: Duration = Duration::from_millis(120);

/// How far one relay is. Counts are totals since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayProgress {
    /// The relay.
    pub relay: RelayUrl,
    /// What is going on.
    pub phase: Phase,
    /// Events received.
    pub events: u64,
    /// Events published.
    pub published: u64,
    /// Rounds of reconciliation.
    pub rounds: u64,
    /// Pages.
    pub pages: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
}

/// What is going on at one relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Connecting, or about to try again.
    Connecting,
    /// Finding the differences (NIP-77).
    Reconciling,
    /// Fetching events.
    Fetching,
    /// Offering events.
    Publishing,
    /// Complete, and listening.
    Live,
    /// Waiting, and for what.
    Waiting(String),
    /// At its end, in words.
    Ended(String),
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("connecting"),
            Self::Reconciling => f.write_str("comparing"),
            Self::Fetching => f.write_str("fetching"),
            Self::Publishing => f.write_str("publishing"),
            Self::Live => f.write_str("live"),
            Self::Waiting(what) => write!(f, "waiting: {what}"),
            Self::Ended(how) => f.write_str(how),
        }
    }
}

impl RelayProgress {
    /// A relay at the very start.
    pub fn new(relay: RelayUrl) -> Self {
        let phase = Phase::Connecting;
        Self { relay, phase, events: 0, published: 0, rounds: 0, pages: 0, bytes_in: 0, bytes_out: 0 }
    }

    fn to_text(&self, events_per_sec: u64) -> String {
        let mut parts = vec![self.phase.to_string(), counted(self.events, "event")];
        if events_per_sec > 0 {
            parts.push(format!("{}/s", count(events_per_sec)));
        }
        if self.published > 0 {
            parts.push(format!("{} published", count(self.published)));
        }
        if self.rounds > 0 {
            parts.push(counted(self.rounds, "round"));
        }
        if self.pages > 0 {
            parts.push(counted(self.pages, "page"));
        }
        parts.push(format!("{} in", bytes(self.bytes_in)));
        parts.push(format!("{} out", bytes(self.bytes_out)));
        parts.join(" · ")
    }
}

/// Shows progress on stderr.
pub struct ProgressView {
    /// `None` where stderr is no terminal.
    terminal: Option<MultiProgress>,
    rows: BTreeMap<RelayUrl, Row>,
}

/// One relay as it is shown.
struct Row {
    bar: Option<ProgressBar>,
    rate: Rate,
    shown: Option<(Phase, Instant)>,
}

impl ProgressView {
    /// A view on stderr.
    pub fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal().then(MultiProgress::new), rows: BTreeMap::new() }
    }

    /// Shows how far a relay is now. Call it as often as there is news, at most some hundred times a second.
    pub fn update(&mut self, progress: &RelayProgress, now: Instant) {
        if let Some(text) = self.render(progress, now) {
            eprintln!("{text}");
        }
    }

    /// Runs `print` with the progress lines out of the way, for output of another kind.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.terminal {
            Some(terminal) => terminal.suspend(print),
            None => print(),
        }
    }

    /// Takes the progress lines off the screen.
    pub fn finish(self) {
        for row in self.rows.into_values() {
            if let Some(bar) = row.bar {
                bar.finish_and_clear();
            }
        }
    }

    /// Draws on a terminal; elsewhere gives the line that is due, if one is.
    fn render(&mut self, progress: &RelayProgress, now: Instant) -> Option<String> {
        let terminal = &self.terminal;
        let row = self.rows.entry(progress.relay.clone()).or_insert_with(|| Row::new(terminal.as_ref(), progress));
        let events_per_sec = row.rate.update(progress.events + progress.published, now);
        let text = progress.to_text(events_per_sec);
        if let Some(bar) = &row.bar {
            bar.set_message(text);
            return None;
        }
        let due = match &row.shown {
            None => true,
            Some((phase, at)) => *phase != progress.phase || now - *at >= LOG_INTERVAL,
        };
        due.then(|| {
            row.shown = Some((progress.phase.clone(), now));
            format!("{}  {text}", progress.relay)
        })
    }
}

impl Default for ProgressView {
    fn default() -> Self {
        Self::new()
    }
}

impl Row {
    fn new(terminal: Option<&MultiProgress>, progress: &RelayProgress) -> Self {
        let bar = terminal.map(|terminal| {
            let bar = terminal.add(ProgressBar::new_spinner()).with_style(style());
            bar.set_prefix(progress.relay.to_string());
            bar.enable_steady_tick(TICK_INTERVAL);
            bar
        });
        Self { bar, rate: Rate::default(), shown: None }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {prefix}  {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Events a second, over the last whole interval.
#[derive(Debug, Default)]
struct Rate {
    since: Option<(u64, Instant)>,
    per_sec: u64,
}

impl Rate {
    fn update(&mut self, total: u64, now: Instant) -> u64 {
        let (before, at) = *self.since.get_or_insert((total, now));
        let elapsed = now - at;
        if elapsed >= RATE_INTERVAL {
            self.per_sec = (total.saturating_sub(before) as f64 / elapsed.as_secs_f64()).round() as u64;
            self.since = Some((total, now));
        }
        self.per_sec
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::{Phase, ProgressView, RelayProgress};
    use crate::protocol::RelayUrl;
    use crate::runtime::Instant;

    #[test]
    fn without_a_terminal_a_line_comes_with_each_phase_and_every_few_seconds() {
        let mut view = ProgressView { terminal: None, rows: BTreeMap::new() };
        let mut progress = RelayProgress::new(RelayUrl::parse("ws://a.example").unwrap());
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(
            view.render(&progress, at(0)).as_deref(),
            Some("ws://a.example  connecting · 0 events · 0 B in · 0 B out")
        );
        assert_eq!(view.render(&progress, at(100)), None);
        progress.phase = Phase::Reconciling;
        progress.rounds = 1;
        progress.bytes_out = 1500;
        assert_eq!(
            view.render(&progress, at(1000)).as_deref(),
            Some("ws://a.example  comparing · 0 events · 1 round · 0 B in · 1.5 kB out")
        );
        progress.events = 12_000;
        assert_eq!(view.render(&progress, at(5999)), None);
        assert_eq!(
            view.render(&progress, at(6000)).as_deref(),
            Some("ws://a.example  comparing · 12,000 events · 2,000/s · 1 round · 0 B in · 1.5 kB out")
        );
    }
}
