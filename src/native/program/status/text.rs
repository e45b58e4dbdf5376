//! A daemon's report for people: a verdict, then what there is to say about relays, by how it stands with them.

mod peers;

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use crate::engine::{GapReason, Phase, RelayReport};
use crate::native::admin::{DaemonReport, Standing, gaps_of};
use crate::native::program::numbers::{count, counted, duration};
use crate::protocol::Window;

/// Relays of one section that are shown; JSON has them all.
const RELAYS_SHOWN_MAX: usize = 40;
/// Reasons of one relay that are shown.
const REASONS_SHOWN_MAX: usize = 5;
/// The length of a relay's words, in characters, beyond which they are cut.
const WORDS_CHARS_MAX: usize = 160;
/// What a relay is followed by begins at this column at the latest.
const URL_COLUMNS_MAX: usize = 48;

/// The report as text.
pub(super) fn of(report: &DaemonReport) -> String {
    let mut text = String::new();
    let up_secs = report.made_at_secs.saturating_sub(report.started_at_secs);
    line(&mut text, format_args!("relaysync {}, up {}", words(&report.version), duration(up_secs)));
    line(&mut text, format_args!("{}", verdict(report)));
    for (part, reason) in report.readiness.faults() {
        line(&mut text, format_args!("Not ready: {part}: {}", words(reason)));
    }
    if let Some(peers) = &report.peers {
        peers::write(peers, &mut text);
    }
    for section in sections() {
        section.write(&report.relays, &mut text);
    }
    if let Some(footer) = footer(report) {
        line(&mut text, format_args!("\n{footer}"));
    }
    text
}

fn verdict(report: &DaemonReport) -> String {
    let verdict = report.verdict();
    if verdict.relays == 0 && report.peers.is_some() {
        return "No relay is synced with yet".to_owned();
    }
    if verdict.relays == 0 {
        return "No relay is known yet (name one that has repositories: discovery.bootstrap)".to_owned();
    }
    let relays = counted(verdict.relays, "relay");
    let parts: Vec<String> = [
        (verdict.gaps, format!("{} at {}", counted(verdict.gaps, "gap"), counted(verdict.with_gaps, "relay"))),
        (verdict.unconnected, format!("{} of {relays} not connected", count(verdict.unconnected))),
        (verdict.syncing, format!("{} of {relays} syncing", count(verdict.syncing))),
    ]
    .into_iter()
    .filter_map(|(number, part)| (number > 0).then_some(part))
    .collect();
    if parts.is_empty() {
        format!("Complete: all that {relays} {} is held", if verdict.relays == 1 { "has" } else { "have" })
    } else {
        parts.join(", ")
    }
}

fn footer(report: &DaemonReport) -> Option<String> {
    let found = report.discovery.as_ref().map(|found| {
        let roots = counted(found.sizes.roots as u64, "root event");
        let relays = counted(found.sizes.relays as u64, "relay");
        format!("{} with {roots}, at {relays}", repositories(found.sizes.repositories as u64))
    });
    let clients = report
        .service
        .as_ref()
        .map(|service| format!("{} connected to the relay service", counted(service.clients_connected, "client")));
    let waiting = report.hook.as_ref().map_or(0, |hook| hook.repositories_waiting);
    let hook = (waiting > 0).then(|| format!("{} with news that the hook has not taken yet", repositories(waiting)));
    let parts: Vec<String> = [found, clients, hook].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn repositories(number: u64) -> String {
    if number == 1 { "1 repository".to_owned() } else { format!("{} repositories", count(number)) }
}

/// Relays that have something in common, and what is to be said of each.
struct Section {
    title: &'static str,
    /// What can be done.
    hint: &'static str,
    takes: fn(&RelayReport) -> bool,
    tells: fn(&RelayReport) -> Vec<String>,
}

fn sections() -> [Section; 4] {
    [
        Section {
            title: "Connected and complete",
            hint: "",
            takes: |relay| Standing::of(relay) == Standing::Settled && gaps_of(relay) == 0,
            tells: |relay| vec![settled(relay)],
        },
        Section {
            title: "Syncing",
            hint: "use \"relaysync status --watch\" to see how it goes on",
            takes: |relay| Standing::of(relay) == Standing::Syncing,
            tells: |relay| vec![syncing(relay)],
        },
        Section {
            title: "Waiting",
            hint: "tried again without your doing; leave out for good what will not come back",
            takes: |relay| Standing::of(relay) == Standing::Waiting,
            tells: |relay| vec![waiting(relay)],
        },
        Section {
            title: "Gaps",
            hint: "looked at again without your doing, less and less often, and once a day in any case",
            takes: |relay| gaps_of(relay) > 0,
            tells: gaps,
        },
    ]
}

impl Section {
    fn write(&self, relays: &[RelayReport], text: &mut String) {
        let relays: Vec<&RelayReport> = relays.iter().filter(|relay| (self.takes)(relay)).collect();
        if relays.is_empty() {
            return;
        }
        line(text, format_args!("\n{}:", self.title));
        if !self.hint.is_empty() {
            line(text, format_args!("  ({})", self.hint));
        }
        let shown = &relays[..relays.len().min(RELAYS_SHOWN_MAX)];
        let width = shown.iter().map(|relay| relay.relay.as_str().len()).max().unwrap_or_default().min(URL_COLUMNS_MAX);
        for relay in shown {
            let told = (self.tells)(relay);
            let mut label = relay.relay.as_str();
            for words in told {
                line(text, format_args!("        {label:width$}  {words}"));
                label = "";
            }
        }
        if relays.len() > shown.len() {
            let more = count((relays.len() - shown.len()) as u64);
            line(text, format_args!("  and {more} more (use --json to see them all)"));
        }
    }
}

fn settled(relay: &RelayReport) -> String {
    let stored = format!("{} stored", counted(relay.counters.stored, "event"));
    match (relay.phase, &relay.live_refused) {
        (Phase::Live, _) => format!("live, {stored}"),
        (Phase::Polling, Some(why)) => {
            format!("asked from time to time, as it sends nothing by itself ({}), {stored}", words(why))
        }
        (Phase::Polling, None) => format!("asked from time to time, as it sends nothing by itself, {stored}"),
        _ => format!("nothing to do, {stored}"),
    }
}

fn syncing(relay: &RelayReport) -> String {
    let methods: Vec<String> = relay.methods.iter().map(ToString::to_string).collect();
    let how = if methods.is_empty() { String::new() } else { format!("by {}, ", methods.join(" and ")) };
    let counters = &relay.counters;
    let published = match counters.published {
        0 => String::new(),
        events => format!(", {} published", count(events)),
    };
    format!("{how}{} received, {} stored{published}", counted(counters.received, "event"), count(counters.stored))
}

fn waiting(relay: &RelayReport) -> String {
    let next = match relay.next_try_secs {
        Some(secs) => format!("next try in {}", duration(secs)),
        None => "next try at once".to_owned(),
    };
    if relay.phase == Phase::Connecting {
        return "connecting".to_owned();
    }
    let why = match (&relay.last_error, relay.phase) {
        (Some(error), _) => words(error),
        (None, Phase::Cooldown) => "it asked for rest".to_owned(),
        (None, _) => return next,
    };
    let failures = match relay.failures {
        0 | 1 => String::new(),
        failures => format!(" ({} in a row)", counted(u64::from(failures), "failure")),
    };
    format!("{why}{failures}, {next}")
}

/// The reasons, each once.
fn gaps(relay: &RelayReport) -> Vec<String> {
    let mut reasons: BTreeMap<String, (u64, Window, Option<&str>)> = BTreeMap::new();
    for gap in &relay.gaps {
        let counted = reasons.entry(words(gap.reason.to_string())).or_insert((0, gap.window, hint(&gap.reason)));
        counted.0 += 1;
    }
    let unshown: u64 =
        relay.gaps_dropped + reasons.values().skip(REASONS_SHOWN_MAX).map(|(number, ..)| number).sum::<u64>();
    let mut told: Vec<String> = reasons
        .into_iter()
        .take(REASONS_SHOWN_MAX)
        .map(|(reason, (number, window, hint))| {
            let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            match (number, window) {
                (1, Window::ALL) => format!("{reason}{hint}"),
                (1, window) => format!("{window}: {reason}{hint}"),
                (number, _) => format!("{} times {reason}{hint}", count(number)),
            }
        })
        .collect();
    if unshown > 0 {
        told.push(format!("and {}", counted(unshown, "more gap")));
    }
    told
}

/// What can be done about a reason, if anything.
fn hint(reason: &GapReason) -> Option<&'static str> {
    match reason {
        GapReason::AuthRequired(_) => Some("set a key that the relay lets in"),
        GapReason::Refused(_) => Some("ask the relay's operator, or leave the relay out"),
        GapReason::Store(_) => Some("look at the log, and at the disk"),
        _ => None,
    }
}

/// The words of somebody else, fit for a terminal, and not too long.
pub(in crate::native::program) fn words(text: impl Display) -> String {
    let text = printable(&text.to_string());
    let mut chars = text.chars();
    let mut words: String = chars.by_ref().take(WORDS_CHARS_MAX).collect();
    if chars.next().is_some() {
        words.push('…');
    }
    words
}

/// The text on one line, without what moves the cursor.
pub(in crate::native::program) fn printable(text: &str) -> String {
    // Marks that turn the direction of the text are as bad as escape sequences.
    let is_turning = |char| matches!(char, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_harmful = |char: char| char.is_control() || is_turning(char);
    text.chars().map(|char| if is_harmful(char) { ' ' } else { char }).collect()
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::{RELAYS_SHOWN_MAX, of};
    use crate::engine::{GapReason, Phase, RelayReport};
    use crate::native::admin::samples::{daemon, gap, peers, relay};
    use crate::native::admin::{DaemonReport, Readiness, Stage};
    use crate::native::hook;
    use crate::protocol::{RelayUrl, Window};
    use crate::store::Method;

    fn mixed() -> DaemonReport {
        let mut polled = relay("wss://poll.example");
        (polled.phase, polled.live_refused) = (Phase::Polling, Some("restricted: no live feed".to_owned()));
        let mut syncing = relay("wss://new.example/with/a/path");
        (syncing.phase, syncing.complete, syncing.methods) = (Phase::Syncing, false, vec![Method::Req]);
        (syncing.counters.received, syncing.counters.stored, syncing.counters.published) = (1, 1, 12);
        let mut down = relay("wss://down.example");
        (down.phase, down.complete, down.connected, down.failures) = (Phase::Waiting, false, false, 7);
        down.last_error = Some("connection refused:\n\u{1b}[31mConnection refused".to_owned());
        down.next_try_secs = Some(754);
        let mut resting = relay("wss://busy.example");
        (resting.phase, resting.complete) = (Phase::Cooldown, false);
        (resting.last_error, resting.next_try_secs) = (Some("rate limited: slow down".to_owned()), Some(43));
        let mut lacking = relay("wss://gaps.example");
        lacking.complete = false;
        lacking.gaps = vec![
            gap(GapReason::AuthRequired("auth-required: members only".to_owned())),
            gap(GapReason::AuthRequired("auth-required: members only".to_owned())),
            gap(GapReason::NotDelivered { events: 12 }),
        ];
        lacking.gaps[2].window = Window { since: 1_690_000_000, until: 1_690_086_400 };
        lacking.gaps_dropped = 2;
        let mut report = daemon(vec![relay("wss://a.example"), polled, syncing, down, resting, lacking]);
        report.hook = Some(hook::Counters { repositories_waiting: 1, ..hook::Counters::default() });
        report
    }

    #[test]
    fn it_reads_like_git_status() {
        assert_eq!(
            of(&mixed()),
            "\
relaysync 1.2.3, up 2 d 3 h
5 gaps at 1 relay, 2 of 6 relays not connected, 1 of 6 relays syncing

Connected and complete:
        wss://a.example     live, 12,345 events stored
        wss://poll.example  asked from time to time, as it sends nothing by itself (restricted: no live feed), 12,345 events stored

Syncing:
  (use \"relaysync status --watch\" to see how it goes on)
        wss://new.example/with/a/path  by req, 1 event received, 1 stored, 12 published

Waiting:
  (tried again without your doing; leave out for good what will not come back)
        wss://down.example  connection refused:  [31mConnection refused (7 failures in a row), next try in 12 min
        wss://busy.example  rate limited: slow down, next try in 43 s

Gaps:
  (looked at again without your doing, less and less often, and once a day in any case)
        wss://gaps.example  1690000000 to 1690086400: 12 events offered by the relay, but not delivered
                            2 times the relay wants authentication: auth-required: members only (set a key that the relay lets in)
                            and 2 more gaps

200 repositories with 20,000 root events, at 8 relays; 3 clients connected to the relay service; \
1 repository with news that the hook has not taken yet
"
        );
    }

    #[test]
    fn nothing_missing_is_said_first() {
        let mut report = daemon(vec![relay("wss://a.example"), relay("wss://b.example")]);
        (report.discovery, report.service) = (None, None);
        assert_eq!(
            of(&report),
            "\
relaysync 1.2.3, up 2 d 3 h
Complete: all that 2 relays have is held

Connected and complete:
        wss://a.example  live, 12,345 events stored
        wss://b.example  live, 12,345 events stored
"
        );
    }

    #[test]
    fn peers_stand_there_by_their_names() {
        let mut report = daemon(vec![]);
        (report.discovery, report.service, report.peers) = (None, None, Some(peers()));
        assert_eq!(
            of(&report),
            "\
relaysync 1.2.3, up 2 d 3 h
No relay is synced with yet

Peers: sync is not working with all of them, 1 of 2 enabled peers connected
        tribes-primary    wss://tribes-primary.example, 12,350 events received, 12,345 accepted
        tribes-secondary  wrong_pin: pinned key not found; if the relay has a new key, ask its operator for the new pin and \
add it to tls.pins; else somebody is in between
"
        );
    }

    #[test]
    fn a_start_is_told() {
        let mut report = daemon(vec![]);
        report.readiness =
            Readiness { index: Stage::Pending("12,000 events read so far".to_owned()), ..Readiness::default() };
        let text = of(&report);
        assert!(text.contains("\nNo relay is known yet (name one"), "{text}");
        assert!(text.contains("\nNot ready: index: 12,000 events read so far\n"), "{text}");
    }

    #[test]
    fn long_lists_and_long_words_are_cut() {
        let talkative = |n: usize| {
            let mut relay = relay(&format!("wss://r{n:03}.example"));
            relay.gaps = vec![gap(GapReason::Refused(format!("{n} {}", "é\u{202e}".repeat(10_000))))];
            RelayReport { relay: RelayUrl::parse(&format!("wss://r{n:03}.example")).unwrap(), ..relay }
        };
        let text = of(&daemon((0..RELAYS_SHOWN_MAX + 3).map(talkative).collect()));
        assert!(text.contains("\n  and 3 more (use --json to see them all)\n"), "{text}");
        assert!(text.len() < 30_000 && !text.contains('\u{202e}'), "{}", text.len());
    }
}
