//! The closing report of a sync: for people, or as one JSON object.

use std::fmt::Write as _;

use serde::Serialize;

use super::Exit;
use super::numbers::{bytes, count, counted};
use crate::protocol::RelayUrl;
use crate::relay::HealthState;
use crate::store::Method;

/// Gaps of one relay that are shown to people; JSON has them all.
const GAPS_SHOWN_MAX: usize = 20;

/// What came of a sync.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Is everything that was asked for complete, at every relay?
    pub complete: bool,
    /// How long it took, in seconds.
    pub elapsed_secs: f64,
    /// One report a relay, in the order in which they were named.
    pub relays: Vec<RelayReport>,
}

/// What came of a sync at one relay. Counts are of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RelayReport {
    /// The relay.
    pub relay: RelayUrl,
    /// How its history was fetched; `None` if it was not reached.
    pub method: Option<Method>,
    /// Why not by reconciliation, where that was tried.
    pub fallback: Option<String>,
    /// Older dates were not asked for again: they had been proven as of this moment, in seconds since 1970.
    pub relied_on_secs: Option<u64>,
    /// Sent by the relay.
    pub received: u64,
    /// New, and stored.
    pub stored: u64,
    /// Known already.
    pub duplicate: u64,
    /// Not genuine: wrong id or signature.
    pub invalid: u64,
    /// Not stored for another reason: superseded, deleted, expired.
    pub rejected: u64,
    /// Taken by the relay from us.
    pub published: u64,
    /// Offered by us, and not taken by the relay.
    pub refused: u64,
    /// Pages asked for.
    pub pages: u64,
    /// Rounds of reconciliation.
    pub rounds: u64,
    /// In a dry run: what would be fetched and stored.
    pub would_store: u64,
    /// In a dry run: what would be offered.
    pub would_publish: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// How the link was at the end. Events that were rejected are no ill health.
    pub health: HealthState,
    /// The words in which the relay refused to send what is new as it comes, if it did.
    pub live_refused: Option<String>,
    /// Nothing is missing.
    pub complete: bool,
    /// What is missing, and why.
    pub gaps: Vec<GapReport>,
    /// Why the relay could not be asked, if so.
    pub error: Option<String>,
}

/// Something that the relay may have, and that is not held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GapReport {
    /// What is missing: a filter, as JSON.
    pub filter: String,
    /// From which second on, since 1970.
    pub since: Option<u64>,
    /// Up to which second.
    pub until: Option<u64>,
    /// Why.
    pub reason: String,
}

impl Report {
    /// Sums up the relays.
    pub fn new(relays: Vec<RelayReport>, elapsed_secs: f64) -> Self {
        Self { complete: relays.iter().all(|relay| relay.complete), elapsed_secs, relays }
    }

    /// The exit status that says the same: failed only if no relay could be asked at all.
    pub fn exit(&self) -> Exit {
        if self.complete {
            Exit::Complete
        } else if self.relays.iter().all(|relay| relay.error.is_some()) {
            Exit::Failed
        } else {
            Exit::Partial
        }
    }

    /// The report as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a report has only strings and finite numbers")
    }

    /// The report for people.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for relay in &self.relays {
            relay.write_text(&mut text);
        }
        let sum = |number: fn(&RelayReport) -> u64| self.relays.iter().map(number).sum();
        let stored = counted(sum(|relay| relay.stored), "new event");
        let published = match sum(|relay| relay.published) {
            0 => String::new(),
            events => format!(", {} published", count(events)),
        };
        let relays = counted(self.relays.len() as u64, "relay");
        let complete = self.relays.iter().filter(|relay| relay.complete).count();
        let verdict = if self.complete { "all complete".into() } else { format!("{complete} complete") };
        line(&mut text, &format!("{relays}, {verdict}: {stored}{published} in {:.1} s", self.elapsed_secs));
        text
    }
}

impl RelayReport {
    fn write_text(&self, text: &mut String) {
        let verdict = match (&self.error, self.complete) {
            (Some(error), _) => format!("failed: {error}"),
            (None, true) => "complete".to_owned(),
            (None, false) if self.gaps.is_empty() => "incomplete".to_owned(),
            (None, false) => counted(self.gaps.len() as u64, "gap"),
        };
        let method = match (self.method, &self.fallback) {
            (Some(method), Some(why)) => format!(" (by {method}; no reconciliation: {why})"),
            (Some(method), None) => format!(" (by {method})"),
            (None, _) => String::new(),
        };
        line(text, &format!("{}  {verdict}{method}", self.relay));
        if self.error.is_none() || self.received > 0 || self.published > 0 {
            line(text, &format!("  {}", self.counts()));
            line(text, &format!("  {} in, {} out", bytes(self.bytes_in), bytes(self.bytes_out)));
        }
        if let Some(words) = &self.live_refused {
            line(text, &format!("  not live, new events were asked for from time to time: {words}"));
        }
        if let (None, Some(words)) = (&self.error, link(self.health)) {
            line(text, &format!("  link: {words}"));
        }
        if let Some(secs) = self.relied_on_secs {
            line(text, &format!("  older dates as of {secs}, in seconds since 1970"));
        }
        // What the first line says need not be said again.
        let gaps: Vec<_> = self.gaps.iter().filter(|gap| self.error.as_ref() != Some(&gap.reason)).collect();
        for gap in gaps.iter().take(GAPS_SHOWN_MAX) {
            line(text, &format!("  missing: {gap}"));
        }
        if gaps.len() > GAPS_SHOWN_MAX {
            let more = (gaps.len() - GAPS_SHOWN_MAX) as u64;
            line(text, &format!("  and {}", counted(more, "more gap")));
        }
    }

    /// Received and stored always; the rest where there is something to say.
    fn counts(&self) -> String {
        let mut text = format!("{} received, {} stored", count(self.received), count(self.stored));
        for (number, word) in [
            (self.duplicate, "known already"),
            (self.invalid, "invalid"),
            (self.rejected, "not to be stored"),
            (self.published, "published"),
            (self.refused, "refused by the relay"),
            (self.would_store, "would be fetched"),
            (self.would_publish, "would be published"),
        ] {
            if number > 0 {
                // Writing to a String cannot fail.
                let _ = write!(text, ", {} {word}", count(number));
            }
        }
        text
    }
}

impl std::fmt::Display for GapReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.filter)?;
        match (self.since, self.until) {
            (None, None) => {}
            (Some(since), Some(until)) if since == until => write!(f, ", second {since}")?,
            (Some(since), Some(until)) => write!(f, ", {since} to {until}")?,
            (Some(since), None) => write!(f, ", since {since}")?,
            (None, Some(until)) => write!(f, ", until {until}")?,
        }
        write!(f, ": {}", self.reason)
    }
}

/// What people are told of a link, if it is worth a line.
fn link(health: HealthState) -> Option<&'static str> {
    match health {
        HealthState::Healthy | HealthState::Disconnected => None,
        HealthState::Degraded => Some("failing"),
        HealthState::Dead => Some("failing for a day or more"),
        HealthState::RateLimited => Some("resting, as the relay asked for less traffic"),
    }
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::{Exit, GapReport, RelayReport, Report};
    use crate::protocol::RelayUrl;
    use crate::relay::HealthState;
    use crate::store::Method;

    fn relay(url: &str) -> RelayReport {
        RelayReport {
            relay: RelayUrl::parse(url).unwrap(),
            method: Some(Method::Negentropy),
            fallback: None,
            relied_on_secs: None,
            received: 20_000,
            stored: 19_996,
            duplicate: 4,
            invalid: 0,
            rejected: 0,
            published: 0,
            refused: 0,
            pages: 0,
            rounds: 3,
            would_store: 0,
            would_publish: 0,
            bytes_in: 12_345_678,
            bytes_out: 987,
            health: HealthState::Disconnected,
            live_refused: None,
            complete: true,
            gaps: vec![],
            error: None,
        }
    }

    fn mixed() -> Report {
        let gap = GapReport {
            filter: "{\"kinds\":[1]}".into(),
            since: Some(1_700_000_000),
            until: Some(1_700_000_000),
            reason: "more events in one second than a page holds".into(),
        };
        let partial =
            RelayReport { complete: false, gaps: vec![gap], method: Some(Method::Req), ..relay("ws://b.example") };
        let reason = "cannot resolve the host name: not known";
        let dead = RelayReport {
            method: None,
            received: 0,
            stored: 0,
            complete: false,
            gaps: vec![GapReport { filter: "{}".into(), since: None, until: None, reason: reason.into() }],
            error: Some(reason.into()),
            ..relay("ws://c.example")
        };
        Report::new(vec![relay("wss://a.example"), partial, dead], 2.34)
    }

    #[test]
    fn reads_well() {
        assert_eq!(
            mixed().to_text(),
            "wss://a.example  complete (by negentropy)\n  \
               20,000 received, 19,996 stored, 4 known already\n  \
               12.3 MB in, 987 B out\n\
             ws://b.example  1 gap (by req)\n  \
               20,000 received, 19,996 stored, 4 known already\n  \
               12.3 MB in, 987 B out\n  \
               missing: {\"kinds\":[1]}, second 1700000000: more events in one second than a page holds\n\
             ws://c.example  failed: cannot resolve the host name: not known\n\
             3 relays, 1 complete: 39,992 new events in 2.3 s\n"
        );
    }

    #[test]
    fn an_ill_link_and_a_refused_subscription_are_told() {
        let words = Some("restricted: not for you".to_owned());
        let ill = RelayReport { health: HealthState::Degraded, live_refused: words, ..relay("ws://a.example") };
        let report = Report::new(vec![ill], 1.0);
        for line in ["  link: failing\n", "  not live, new events were asked for from time to time: restricted"] {
            assert!(report.to_text().contains(line), "{}", report.to_text());
        }
        assert!(report.to_json().contains(r#""health":"degraded","live_refused":"restricted: not for you""#));
    }

    #[test]
    fn what_was_published_is_summed_up() {
        let up = RelayReport { stored: 0, published: 1_200, ..relay("ws://a.example") };
        let text = Report::new(vec![up], 1.0).to_text();
        assert!(text.ends_with("1 relay, all complete: 0 new events, 1,200 published in 1.0 s\n"), "{text}");
    }

    #[test]
    fn the_exit_status_says_the_same() {
        assert_eq!(Report::new(vec![relay("ws://a.example")], 0.1).exit(), Exit::Complete);
        assert_eq!(mixed().exit(), Exit::Partial);
        assert_eq!(Report::new(mixed().relays.split_off(2), 0.1).exit(), Exit::Failed);
    }

    #[test]
    fn json_is_one_object_with_everything() {
        let json = mixed().to_json();
        assert!(!json.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["complete"], false);
        assert_eq!(value["relays"][0]["method"], "negentropy");
        assert_eq!(value["relays"][1]["gaps"][0]["since"], 1_700_000_000);
        assert_eq!(value["relays"][2]["method"], serde_json::Value::Null);
    }
}
