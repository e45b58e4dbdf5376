//! The log of what happens at relays, for people: connects, losses, recoveries and gaps, a line each; no line for what
//! merely goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::{Phase, RelayReport};
use crate::native::admin::DaemonReport;
use crate::protocol::RelayUrl;
use crate::relay::HealthState;
use crate::runtime::Instant;

/// What is longer is cut.
const LINE_CHARS_MAX: usize = 400;

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Journal {
    relays: BTreeMap<RelayUrl, Said>,
    summed_up_at: Option<Instant>,
}

/// What was said last of one relay.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    connected: bool,
    connections: u64,
    failing: bool,
    health: HealthState,
    settled: bool,
    gaps: u64,
}

impl Said {
    fn of(relay: &RelayReport) -> Self {
        Self {
            connected: relay.connected,
            connections: relay.counters.connections,
            failing: relay.failures > 0,
            health: relay.health,
            settled: matches!(relay.phase, Phase::Live | Phase::Polling | Phase::Done),
            gaps: relay.gaps.len() as u64 + relay.gaps_dropped,
        }
    }

    fn nothing() -> Self {
        let health = HealthState::Disconnected;
        Self { connected: false, connections: 0, failing: false, health, settled: false, gaps: 0 }
    }
}

impl Journal {
    /// Logs what is new in `report`, and all of it in one line every `summary_interval`.
    pub(super) fn note(&mut self, report: &DaemonReport, summary_interval: Duration) {
        for relay in &report.relays {
            for line in self.news_of(relay) {
                match line {
                    Line::Info(text) => tracing::info!("{}: {}", relay.relay, one_line(&text)),
                    Line::Warn(text) => tracing::warn!("{}: {}", relay.relay, one_line(&text)),
                }
            }
        }
        let last = *self.summed_up_at.get_or_insert(report.made_at);
        if report.made_at - last >= summary_interval {
            self.summed_up_at = Some(report.made_at);
            tracing::info!("{}", summary(report));
        }
    }

    fn news_of(&mut self, relay: &RelayReport) -> Vec<Line> {
        let now = Said::of(relay);
        let before = self.relays.insert(relay.relay.clone(), now.clone()).unwrap_or_else(Said::nothing);
        let mut lines = Vec::new();
        lines.extend(link(&before, &now, relay));
        lines.extend(health(&before, &now));
        lines.extend(completeness(&before, &now, relay));
        lines
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Info(String),
    Warn(String),
}

/// Relays choose some of the words, and must not choose what the log looks like.
fn one_line(text: &str) -> String {
    let printable = |character: char| if character.is_control() { ' ' } else { character };
    text.chars().take(LINE_CHARS_MAX).map(printable).collect()
}

fn link(before: &Said, now: &Said, relay: &RelayReport) -> Option<Line> {
    let error = || relay.last_error.as_deref().unwrap_or("no reason was given");
    let next = || relay.next_try_secs.map(|secs| format!(", next try in {secs} s")).unwrap_or_default();
    match (before.connected, now.connected) {
        (false, true) => Some(Line::Info("connected".to_owned())),
        (true, false) => Some(Line::Info(format!("connection lost: {}{}", error(), next()))),
        (true, true) if now.connections > before.connections => {
            Some(Line::Info(format!("connected again, after it was lost: {}", error())))
        }
        (false, false) if now.connections > before.connections => {
            Some(Line::Info(format!("connected for a moment, then lost: {}{}", error(), next())))
        }
        // Once: how often it is tried again, and each time why in vain, is in the status.
        (false, false) if now.failing && !before.failing => {
            Some(Line::Info(format!("no connection: {}{}", error(), next())))
        }
        _ => None,
    }
}

fn health(before: &Said, now: &Said) -> Option<Line> {
    if before.health == now.health {
        return None;
    }
    match (before.health, now.health) {
        (_, HealthState::Dead) => {
            Some(Line::Warn("dead: it has failed for long, and is tried rarely from now on".to_owned()))
        }
        (_, HealthState::RateLimited) => Some(Line::Info("it asks for less traffic, and is left alone".to_owned())),
        (HealthState::Dead, _) => Some(Line::Info("not dead any more".to_owned())),
        (HealthState::Degraded, HealthState::Healthy) => Some(Line::Info("healthy again".to_owned())),
        _ => None,
    }
}

fn completeness(before: &Said, now: &Said, relay: &RelayReport) -> Option<Line> {
    if now.gaps > before.gaps {
        let first = relay.gaps.first().map(|gap| format!(", the first: {gap}")).unwrap_or_default();
        let gaps = if now.gaps == 1 { "1 gap".to_owned() } else { format!("{} gaps", now.gaps) };
        return Some(Line::Warn(format!("{gaps}{first}")));
    }
    if now.gaps == 0 && before.gaps > 0 {
        return Some(Line::Info("no gaps any more".to_owned()));
    }
    (now.settled && !before.settled && now.gaps == 0)
        .then(|| Line::Info(format!("complete, {} events new", relay.counters.stored)))
}

fn summary(report: &DaemonReport) -> String {
    let verdict = report.verdict();
    let connected = report.relays.iter().filter(|relay| relay.connected).count();
    let stored: u64 = report.relays.iter().map(|relay| relay.counters.stored).sum();
    format!(
        "{connected} of {} relays connected, {} syncing, {} gaps, {stored} events new since the start",
        verdict.relays, verdict.syncing, verdict.gaps
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Counters, GapReason};
    use crate::native::admin::samples;

    /// The lines that one report after the other makes.
    fn lines(reports: &[RelayReport]) -> Vec<Vec<Line>> {
        let mut journal = Journal::default();
        reports.iter().map(|report| journal.news_of(report)).collect()
    }

    fn info(text: &str) -> Line {
        Line::Info(text.to_owned())
    }

    #[test]
    fn what_merely_goes_on_has_no_line() {
        let live = samples::relay("wss://relay.example");
        let busier =
            RelayReport { counters: Counters { received: 99_999, stored: 99_999, ..live.counters }, ..live.clone() };
        assert_eq!(lines(&[live, busier]), [vec![info("connected"), info("complete, 12345 events new")], vec![]]);
    }

    #[test]
    fn a_loss_and_each_way_back_has_one() {
        let live = samples::relay("wss://relay.example");
        let lost = RelayReport {
            connected: false,
            phase: Phase::Waiting,
            health: HealthState::Degraded,
            failures: 1,
            next_try_secs: Some(7),
            last_error: Some("the relay has closed it".to_owned()),
            ..live.clone()
        };
        let failing = RelayReport { failures: 2, last_error: Some("refused".to_owned()), ..lost.clone() };
        let dead = RelayReport { health: HealthState::Dead, ..failing.clone() };
        let said = lines(&[live.clone(), lost, failing.clone(), dead, live]);
        assert_eq!(said[1], [info("connection lost: the relay has closed it, next try in 7 s")]);
        assert_eq!(said[2], [], "why each further attempt fails is in the status");
        assert!(matches!(&said[3][..], [Line::Warn(text)] if text.starts_with("dead")), "{said:?}");
        assert_eq!(said[4][..2], [info("connected"), info("not dead any more")]);
        let never = RelayReport { counters: Counters::default(), ..failing };
        assert_eq!(lines(&[never])[0], [info("no connection: refused, next try in 7 s")], "a relay that never was");
    }

    #[test]
    fn an_absence_between_two_reports_is_noticed() {
        let live = samples::relay("wss://relay.example");
        let mut again = live.clone();
        again.counters.connections += 1;
        again.last_error = Some("reset".to_owned());
        assert_eq!(lines(&[live, again])[1], [info("connected again, after it was lost: reset")]);
    }

    #[test]
    fn gaps_are_told_when_there_are_more_and_when_there_are_none() {
        let live = samples::relay("wss://relay.example");
        let gap = |count| RelayReport {
            gaps: vec![samples::gap(GapReason::Stalled); count],
            complete: count == 0,
            ..live.clone()
        };
        let said = lines(&[gap(2), gap(2), gap(1), gap(0)]);
        assert!(matches!(&said[0][1], Line::Warn(text) if text.starts_with("2 gaps, the first: all of time: ")));
        assert_eq!(said[1..], [vec![], vec![], vec![info("no gaps any more")]]);
    }

    #[test]
    fn words_of_relays_stay_on_their_line() {
        assert_eq!(one_line("a\nb\x1b[2J"), "a b [2J");
        assert_eq!(one_line(&"x".repeat(10_000)).len(), LINE_CHARS_MAX);
    }
}
