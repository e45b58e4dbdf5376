//! Faults read in the sources of other sync code, played against a daemon that discovers.

use std::slice::from_ref;
use std::time::Duration;

use relaysync::engine::{Command, Origin, Phase};
use relaysync::protocol::Event;
use relaysync::relay::HealthState;
use relaysync::runtime::ConnectError;
use relaysync::sim::{
    Connects, Direction, NOW_SECS, NegentropyRefused, PageCap, RateLimit, RateLimitBy, Remote, Seen, Turn, note,
};

use super::packs::{begun, busy, comment_of};
use super::support::{Discovering, OURS, address, announcement, config, url};

/// Does this frame of the relay or of a client name it?
fn names(frame: &str, event: &Event) -> bool {
    frame.contains(&event.id.to_hex())
}

/// A relay with nothing confirmed used to be cut after 2 s, while its first history was on its way.
#[test]
fn a_relay_is_kept_while_its_first_history_is_under_way() {
    let (ours, issues, comments) = busy(3);
    let slow = Seen(|direction, frame: String, turn: &mut Turn| {
        if direction == Direction::Up {
            return Some(frame);
        }
        turn.say_later(frame, Duration::from_secs(9));
        None
    });
    let second = Remote::with(&[issues, comments.clone()].concat()).tamper(slow);
    let mut daemon = Discovering::new(config(), [("first", Remote::with(&[ours])), ("second", second)]);
    daemon.secs(16);
    assert_eq!(daemon.report("second").unwrap().phase, Phase::Syncing);
    daemon.secs(120);
    assert!(comments.iter().all(|comment| daemon.holds(comment)), "{}", daemon.world.trace());
    assert_eq!(daemon.report("second").unwrap().counters.connections, 1);
}

/// A relay that failed its first connect, even a bootstrap relay, used to be never tried again.
#[test]
fn a_bootstrap_relay_that_fails_its_first_connect_is_tried_again() {
    let refused = Connects::Refused(ConnectError::Refused("nobody listens".into()));
    for fault in [refused, Connects::Hangs] {
        let (ours, issues, comments) = busy(3);
        let second = Remote::with(&[issues, comments.clone()].concat()).connecting(fault.clone());
        let relays = [("first", Remote::with(&[ours]).connecting(fault)), ("second", second)];
        let mut daemon = Discovering::new(config(), relays);
        daemon.secs(40);
        daemon.world.relay_mut(&url("first")).connects = Connects::Always;
        daemon.secs(120);
        assert!(daemon.report("second").is_some(), "{}", daemon.world.trace());
        daemon.world.relay_mut(&url("second")).connects = Connects::Always;
        daemon.secs(600);
        assert!(comments.iter().all(|comment| daemon.holds(comment)), "{}", daemon.world.trace());
    }
}

/// A rate limit during paging used to freeze every relay.
#[test]
fn a_rate_limit_at_one_relay_delays_none_of_the_others() {
    for by in [RateLimitBy::Notice, RateLimitBy::Closed, RateLimitBy::Close] {
        let listed = [OURS, "wss://second.example", "wss://third.example", "wss://slow.example"];
        let ours = announcement("ours", &listed);
        let issue = |n: u64| note(NOW_SECS - 4_000 + n).by(4).kind(1621).tag("a", &address(&ours)).sign();
        let issues: Vec<Event> = (0..90).map(issue).collect();
        let part = |from: usize| Remote::with(&issues[from..from + 30]).tamper(PageCap(20));
        let slow = part(60).tamper(RateLimit::new(3, by));
        let relays = [("first", Remote::with(&[ours])), ("second", part(0)), ("third", part(30)), ("slow", slow)];
        let mut daemon = Discovering::new(config(), relays);
        daemon.secs(20);
        for name in ["second", "third"] {
            assert!(daemon.report(name).unwrap().complete, "{by:?} {name}: {}", daemon.world.trace());
        }
        assert!(issues[..60].iter().all(|issue| daemon.holds(issue)));
        let report = daemon.report("slow").unwrap();
        assert_eq!((report.phase, report.health), (Phase::Cooldown, HealthState::RateLimited), "{by:?}");
        daemon.world.relay_mut(&url("slow")).mend();
        daemon.secs(120);
        assert!(issues.iter().all(|issue| daemon.holds(issue)), "{by:?}: {}", daemon.world.trace());
    }
}

/// CLOSED used to drop the subscription while its batch waited for ever.
#[test]
fn a_batch_whose_request_is_closed_comes_to_an_end() {
    let (ours, issues, comments) = busy(3);
    let issue = issues[0].clone();
    let mut times = 2;
    let closes = Seen(move |direction, frame: String, turn: &mut Turn| {
        let is_history = frame.starts_with("[\"REQ\"") && !frame.contains("\"limit\":0");
        if direction == Direction::Up && is_history && names(&frame, &issue) && times > 0 {
            times -= 1;
            let subscription = frame.split('"').nth(3).unwrap_or_default();
            turn.say(format!("[\"CLOSED\",\"{subscription}\",\"error: shutting down idle subscription\"]"));
            return None;
        }
        Some(frame)
    });
    let second = Remote::with(&[issues, comments.clone()].concat()).tamper(closes);
    let mut daemon = Discovering::new(config(), [("first", Remote::with(&[ours])), ("second", second)]);
    daemon.secs(60);
    let report = daemon.report("second").unwrap();
    assert!(report.phase != Phase::Syncing, "{report:#?}");
    assert_eq!(report.complete, report.gaps.is_empty());
    daemon.secs(1_200);
    assert!(daemon.report("second").unwrap().complete, "{:#?}", daemon.report("second"));
    assert!(comments.iter().all(|comment| daemon.holds(comment)));
}

/// A cursor that jumps to the newest event in the middle of a catch-up loses the older tail to a break.
#[test]
fn killed_in_the_middle_of_a_catch_up_nothing_of_it_is_lost() {
    let (ours, issues, comments) = busy(60);
    for after_ms in (4_000..8_000).step_by(250) {
        let second = Remote::with(&[issues.clone(), comments.clone()].concat())
            .tamper(PageCap(12))
            .tamper(NegentropyRefused::notice("negentropy disabled"));
        let mut daemon =
            Discovering::new(config(), [("first", Remote::with(std::slice::from_ref(&ours))), ("second", second)]);
        daemon.world.run(Duration::from_millis(after_ms));
        daemon.world.restart(daemon.engine);
        let held = daemon.world.node(daemon.engine).events(daemon.world.now().unix_secs);
        daemon.world.command(
            daemon.engine,
            Command::Accepted { events: held, origin: Origin::Held, brought: Default::default() },
        );
        daemon.secs(120);
        assert!(comments.iter().all(|comment| daemon.holds(comment)), "{after_ms}: {}", daemon.world.trace());
    }
}

/// An event dated in the future used to pin the cursor there.
#[test]
fn an_event_dated_in_the_future_pins_nothing() {
    let (mut daemon, _, issues) = begun(config(), 3);
    let future = note(NOW_SECS + 40_000).by(6).kind(1111).tag("E", &issues[0].id.to_hex()).sign();
    daemon.world.publish(&url("second"), from_ref(&future));
    daemon.secs(4_000);
    assert!(daemon.holds(&future));
    daemon.world.cut(&url("second"), "");
    let missed = comment_of(&issues[1], &daemon);
    daemon.world.publish(&url("second"), from_ref(&missed));
    daemon.secs(60);
    assert!(daemon.holds(&missed), "{}", daemon.world.trace());
}

/// A CLOSED used to leave a relay "connected" with no subscription.
#[test]
fn what_a_relay_does_not_serve_live_shows_and_is_polled() {
    let (ours, issues, comments) = busy(3);
    let closes = Seen(|direction, frame: String, turn: &mut Turn| {
        // Neither `limit: 0` nor `since` without a limit is served.
        let is_live = frame.starts_with("[\"REQ\"") && frame.contains("\"#E\"");
        let is_live = is_live && (frame.contains("\"limit\":0") || !frame.contains("\"limit\""));
        if direction == Direction::Up && is_live {
            let subscription = frame.split('"').nth(3).unwrap_or_default();
            turn.say(format!("[\"CLOSED\",\"{subscription}\",\"blocked: no subscriptions\"]"));
            return None;
        }
        Some(frame)
    });
    let second = Remote::with(&[issues.clone(), comments.clone()].concat()).tamper(closes);
    let mut daemon = Discovering::new(config(), [("first", Remote::with(&[ours])), ("second", second)]);
    daemon.secs(60);
    let report = daemon.report("second").unwrap();
    assert!(report.phase == Phase::Polling && report.live_refused.is_some(), "{report:#?}");
    let late = comment_of(&issues[0], &daemon);
    daemon.world.publish(&url("second"), from_ref(&late));
    daemon.secs(1_300);
    assert!(daemon.holds(&late), "{}", daemon.world.trace());
}

/// One rejected event used to make the health "degraded".
#[test]
fn unwanted_and_forged_events_are_counted_and_the_link_is_healthy() {
    let (ours, issues, comments) = busy(3);
    let forge = Seen(|direction, frame: String, _: &mut Turn| match direction {
        Direction::Down if frame.contains("\"kind\":1111") => {
            Some(frame.replace("\"content\":\"\"", "\"content\":\"!\""))
        }
        _ => Some(frame),
    });
    let other = announcement("other", &["wss://second.example"]);
    let second = Remote::with(&[issues, comments, vec![other]].concat()).unchecked().tamper(forge);
    let mut daemon = Discovering::new(config(), [("first", Remote::with(&[ours])), ("second", second)]);
    daemon.secs(400);
    let report = daemon.report("second").unwrap();
    assert!(report.counters.invalid + report.counters.malformed > 0, "{report:#?}");
    assert!(report.counters.unwanted > 0, "{report:#?}");
    assert_eq!((report.health, report.counters.connections), (HealthState::Healthy, 1), "{report:#?}");
}
