//! Full passes, and another look at what has gaps.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use relaysync::engine::{Config, GapReason, Phase, RelayOptions};
use relaysync::protocol::{Event, Filter, RelayUrl};
use relaysync::runtime::Instant;
use relaysync::sim::{Connects, EngineId, Remote, Seen, Tamper, Turn, World, note};

use crate::support::{Daemon, LIVE, daemon, filters_asked, history};

const HOUR_SECS: u64 = 3_600;
const DAY_LEAST: Duration = Duration::from_secs(23 * HOUR_SECS);
const DAY_MOST: Duration = Duration::from_secs(25 * HOUR_SECS);

/// While `hidden` is set, the relay keeps this event to itself.
fn hiding(event: &Event, hidden: &Rc<Cell<bool>>) -> impl Tamper + use<> {
    let (id, hidden) = (event.id.to_hex(), hidden.clone());
    Seen(move |_, frame: String, _: &mut Turn| Some(frame).filter(|frame| !hidden.get() || !frame.contains(&id)))
}

fn live_requests(daemon: &Daemon) -> usize {
    filters_asked(&daemon.world, &daemon.relay).iter().filter(|filter| filter.limit == Some(0)).count()
}

/// What live subscriptions never got is found by the pass of the next day, and by nothing that relies on proofs.
#[test]
fn each_day_everything_is_fetched_anew() {
    let old = note(1_690_000_000).content("from before").sign();
    let hidden = Rc::new(Cell::new(true));
    let remote = Remote::with(&history(40)).unchecked().tamper(hiding(&old, &hidden));
    let mut daemon = Daemon::new(remote);
    let began = daemon.world.now().instant;
    daemon.world.publish(&daemon.relay, &[old]);
    daemon.secs(HOUR_SECS);
    hidden.set(false);
    // Short breaks, after each of which what was proven is relied on, and committed anew.
    let full = |daemon: &Daemon| daemon.world.held(daemon.engine).len() == 41;
    while !full(&daemon) {
        assert!(daemon.world.now().instant - began <= DAY_MOST, "{}", daemon.world.trace());
        daemon.world.cut(&daemon.relay, "");
        daemon.secs(600);
    }
    assert!(daemon.world.now().instant - began >= DAY_LEAST);
    daemon.is_equal();
}

#[test]
fn full_passes_go_on_and_are_a_day_apart() {
    let mut daemon = Daemon::new(Remote::with(&history(40)));
    daemon.secs(24 * 9 * HOUR_SECS);
    // The first found nothing held: it paged. Those of the following days compare.
    let passes = daemon.world.relay(&daemon.relay).heard.iter().filter(|(_, frame)| frame.starts_with("[\"NEG-OPEN\""));
    let at: Vec<Instant> = passes.map(|(at, _)| *at).collect();
    assert!((8..=9).contains(&at.len()), "{at:?}");
    assert!(at.windows(2).all(|pair| (DAY_LEAST..=DAY_MOST).contains(&(pair[1] - pair[0]))), "{at:?}");
    assert!(at.windows(2).any(|pair| (pair[1] - pair[0]).abs_diff(at[1] - at[0]) > Duration::from_secs(60)));
    assert_eq!(daemon.report().counters.connections, 1);
    assert_eq!(live_requests(&daemon), 1, "live subscriptions stay open");
    daemon.is_equal();
}

/// Which proofs are recent says the wall clock, and it may have been set back meanwhile.
#[test]
fn after_a_long_absence_no_proof_is_relied_on() {
    let events = history(100);
    let mut daemon = Daemon::new(Remote::with(&events[..80]));
    daemon.secs(HOUR_SECS);
    daemon.world.relay_mut(&daemon.relay).connects = Connects::Hangs;
    daemon.world.cut(&daemon.relay, "");
    daemon.secs(2_000);
    daemon.world.publish(&daemon.relay, &events[80..]);
    daemon.world.step_wall(-1_900);
    daemon.world.relay_mut(&daemon.relay).connects = Connects::Always;
    daemon.secs(HOUR_SECS + 100);
    daemon.is_equal();
}

/// Two filters, of which the relay refuses one as long as `refuses` is set.
struct Refused {
    world: World,
    engine: EngineId,
    relay: RelayUrl,
    refuses: Rc<Cell<bool>>,
}

impl Refused {
    fn new(options: RelayOptions) -> Self {
        let events: Vec<Event> = (0..20).map(|n| note(1_699_000_000 + n).kind(1_000 + (n % 2) as u16).sign()).collect();
        let refuses = Rc::new(Cell::new(true));
        let is_on = refuses.clone();
        let refusing = Seen(move |_, frame: String, turn: &mut Turn| {
            if is_on.get()
                && frame.starts_with("[\"REQ\"")
                && frame.contains("[1001]")
                && !frame.contains("\"limit\":0")
            {
                let name = frame.split('"').nth(3).unwrap_or_default();
                turn.say(format!(r#"["CLOSED","{name}","error: index is being rebuilt"]"#));
                return None;
            }
            Some(frame)
        });
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", Remote::with(&events).tamper(refusing));
        let engine = world.add_engine(daemon());
        let filters = [1_000_u16, 1_001].map(|kind| Filter::new().kind(kind.into()));
        world.sync_with(engine, &relay, filters, options);
        world.run(Duration::from_secs(30));
        Self { world, engine, relay, refuses }
    }

    /// Requests for history of a kind.
    fn asked(&self, kind: u16) -> usize {
        let is_of = |filter: &&Filter| {
            filter.limit != Some(0) && filter.kinds.as_ref().is_some_and(|kinds| kinds.contains(&kind.into()))
        };
        filters_asked(&self.world, &self.relay).iter().filter(is_of).count()
    }

    fn minutes(&mut self, minutes: u64) {
        self.world.run(Duration::from_secs(60 * minutes));
    }
}

#[test]
fn filters_with_gaps_are_looked_at_again_less_and_less_often() {
    let mut refused = Refused::new(LIVE);
    let (whole, gaps) = (refused.asked(1_000), refused.asked(1_001));
    assert_eq!(refused.world.held(refused.engine).len(), 10);
    for (minutes, looks) in [(9, 0), (2, 1), (18, 1), (2, 2), (38, 2), (2, 3), (78, 3), (2, 4)] {
        refused.minutes(minutes);
        // A refused page is tried once more at once.
        assert_eq!(refused.asked(1_001) - gaps, 2 * looks, "{}", refused.world.trace());
        let report = &refused.world.node(refused.engine).reports()[0];
        assert!(
            !report.complete && matches!(report.gaps[..], [ref gap] if matches!(gap.reason, GapReason::Refused(_)))
        );
    }
    assert_eq!(refused.asked(1_000), whole, "what has no gap is left alone");
    refused.refuses.set(false);
    refused.minutes(160);
    let report = &refused.world.node(refused.engine).reports()[0];
    assert!(report.complete && report.phase == Phase::Live, "{report:#?}");
    assert_eq!(refused.world.held(refused.engine).len(), 20);
    let asked = refused.asked(1_001);
    refused.minutes(12 * 60);
    assert_eq!(refused.asked(1_001), asked, "without a gap there is nothing to look at");
}

#[test]
fn the_wait_begins_anew_once_a_filter_had_no_gap() {
    let mut refused = Refused::new(LIVE);
    refused.minutes(35);
    refused.refuses.set(false);
    refused.minutes(60);
    assert!(refused.world.node(refused.engine).reports()[0].complete);
    refused.refuses.set(true);
    refused.world.cut(&refused.relay, "");
    refused.minutes(1);
    assert!(!refused.world.node(refused.engine).reports()[0].complete);
    refused.refuses.set(false);
    refused.minutes(10);
    assert!(refused.world.node(refused.engine).reports()[0].complete);
}

#[test]
fn a_relay_that_was_left_is_visited_again_for_its_gaps() {
    let mut refused = Refused::new(RelayOptions::default());
    let report = &refused.world.node(refused.engine).reports()[0];
    assert!(report.phase == Phase::Done && !report.complete, "{report:#?}");
    refused.refuses.set(false);
    refused.minutes(10);
    let report = &refused.world.node(refused.engine).reports()[0];
    assert!(report.phase == Phase::Done && report.complete, "{report:#?}");
    assert_eq!(report.counters.connections, 2);
    refused.minutes(24 * 60);
    assert_eq!(refused.world.node(refused.engine).reports()[0].counters.connections, 2);
}

#[test]
fn a_relay_that_is_dropped_is_not_visited_again() {
    let mut refused = Refused::new(RelayOptions::default());
    refused.world.sync_with(
        refused.engine,
        &refused.relay.clone(),
        [Filter::new().kind(1_000_u16.into())],
        RelayOptions::default(),
    );
    refused.minutes(24 * 60);
    assert_eq!(refused.asked(1_001), 2);
    assert_eq!(refused.world.node(refused.engine).sizes().deadlines, 0);
}

/// A refused CLOSED left a connection open with no subscription on it, for ever.
#[test]
fn a_live_subscription_that_was_refused_is_asked_for_again() {
    for words in ["error: not now", "auth-required: members only"] {
        let refuses = Rc::new(Cell::new(true));
        let is_on = refuses.clone();
        let refusing = Seen(move |_, frame: String, turn: &mut Turn| {
            let is_live =
                frame.starts_with("[\"REQ\"") && (frame.contains("\"limit\":0") || !frame.contains("\"limit\""));
            if is_on.get() && is_live {
                let name = frame.split('"').nth(3).unwrap_or_default();
                turn.say(format!(r#"["CLOSED","{name}","{words}"]"#));
                return None;
            }
            Some(frame)
        });
        let mut daemon = Daemon::new(Remote::with(&history(40)).tamper(refusing));
        daemon.secs(1_000);
        daemon.publish_now();
        refuses.set(false);
        daemon.secs(1_500);
        daemon.is_equal();
        daemon.publish_now();
        daemon.secs(1);
        daemon.is_equal();
        assert_eq!(daemon.report().counters.connections, 1);
    }
}

#[test]
fn a_job_that_ends_waits_for_no_gap() {
    let config = Config { probe_after: Duration::from_secs(1), ..crate::support::one_shot() };
    let played = crate::support::Play::default().config(config).with(Remote::with(&history(10)).tamper(Seen(
        |_, frame: String, turn: &mut Turn| {
            if frame.starts_with("[\"REQ\"") {
                let name = frame.split('"').nth(3).unwrap_or_default();
                turn.say(format!(r#"["CLOSED","{name}","error: no"]"#));
                return None;
            }
            Some(frame)
        },
    )));
    assert!(!played.report.complete);
    played.within(Duration::from_secs(5));
}

/// A quick reconnect does not look for what the relay got with an old date while we were away. No mark may claim it
/// afterwards, however long the next connection lasts, and the report names the pass that is relied on.
#[test]
fn what_came_dated_back_during_an_absence_is_never_claimed() {
    let mut daemon = Daemon::new(Remote::with(&history(40)));
    daemon.secs(1_000);
    daemon.world.cut(&daemon.relay, "");
    let asked_secs = daemon.world.now().unix_secs;
    daemon.world.publish(&daemon.relay, &[note(1_690_000_000).content("dated back").sign()]);
    for _ in 0..5 {
        daemon.secs(1_000);
        daemon.world.cut(&daemon.relay, "");
    }
    daemon.secs(60);
    assert_eq!(daemon.world.held(daemon.engine).len(), 40, "a reconnect is quick");
    assert!(daemon.report().relied_on_secs.is_some_and(|at| at <= asked_secs), "{:#?}", daemon.report());
    let marks = daemon.world.node(daemon.engine).coverage();
    assert!(marks[0].windows.len() <= 3, "{marks:?}");
    daemon.secs(25 * HOUR_SECS);
    daemon.is_equal();
    assert_eq!(daemon.report().relied_on_secs, None);
}
