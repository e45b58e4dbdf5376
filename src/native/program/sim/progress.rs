//! What is seen while seeds are played: a bar on a terminal, else a log line every few seconds.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::totals::Totals;
use crate::native::program::numbers::count;
use crate::runtime::Instant;

/// Time between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

/// Shows progress on stderr.
pub(super) struct SeedProgress {
    /// Not drawn where stderr is no terminal.
    bar: ProgressBar,
    seeds: u64,
    shown: Shown,
}

/// What is shown.
enum Shown {
    Nothing,
    Bar,
    /// Lines, the last of them at that moment with so many seeds played.
    Lines(Instant, u64),
}

impl SeedProgress {
    /// `seeds` are to be played.
    pub(super) fn new(seeds: u64, quiet: bool) -> Self {
        let shown = match quiet {
            true => Shown::Nothing,
            false if std::io::stderr().is_terminal() => Shown::Bar,
            false => Shown::Lines(Instant::ZERO, 0),
        };
        let target = match shown {
            Shown::Bar => ProgressDrawTarget::stderr(),
            Shown::Nothing | Shown::Lines(..) => ProgressDrawTarget::hidden(),
        };
        Self { bar: ProgressBar::with_draw_target(Some(seeds), target).with_style(style()), seeds, shown }
    }

    /// Shows how far it is. Call it a few times a second; `now` counts from the start.
    pub(super) fn update(&mut self, totals: &Totals, now: Instant) {
        self.bar.set_position(totals.played());
        self.bar.set_message(count(totals.failed.len() as u64));
        if let Some(line) = self.line_due(totals, now) {
            eprintln!("{line}");
        }
    }

    fn line_due(&mut self, totals: &Totals, now: Instant) -> Option<String> {
        let (Shown::Lines(at, before), played) = (&mut self.shown, totals.played()) else { return None };
        let elapsed = now - *at;
        if elapsed < LOG_INTERVAL {
            return None;
        }
        let per_sec = (played - *before) as f64 / elapsed.as_secs_f64();
        (*at, *before) = (now, played);
        let (seeds, failed) = (self.seeds, totals.failed.len() as u64);
        Some(format!("{} of {} seeds · {per_sec:.1}/s · {} failed", count(played), count(seeds), count(failed)))
    }

    /// Runs `print` with the bar out of the way.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the bar off the screen.
    pub(super) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{wide_bar} {human_pos} of {human_len} seeds · {per_sec} · {msg} failed · {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{SeedProgress, Shown};
    use crate::native::program::sim::totals::Totals;
    use crate::runtime::Instant;

    #[test]
    fn without_a_terminal_a_line_comes_every_few_seconds() {
        let mut progress = SeedProgress { shown: Shown::Lines(Instant::ZERO, 0), ..SeedProgress::new(2_000, true) };
        let mut totals = Totals::default();
        (totals.passed, totals.failed) = (30, vec![7]);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(progress.line_due(&totals, at(4_999)), None);
        let line = progress.line_due(&totals, at(5_000));
        assert_eq!(line.as_deref(), Some("31 of 2,000 seeds · 6.2/s · 1 failed"));
        totals.passed = 1_080;
        assert_eq!(progress.line_due(&totals, at(6_000)), None);
        let line = progress.line_due(&totals, at(10_000));
        assert_eq!(line.as_deref(), Some("1,081 of 2,000 seeds · 210.0/s · 1 failed"));
    }
}
