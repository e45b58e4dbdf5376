//! Requests that the relay closes, and what it will not do at all.

use std::time::Duration;

use relaysync::engine::{Config, Direction as Way, GapReason, Phase, RelayOptions};
use relaysync::protocol::message::relay;
use relaysync::protocol::{ClientMessage, Event, Filter, RelayMessage, RelayUrl};
use relaysync::relay::HealthState;
use relaysync::serve::ServeConfig;
use relaysync::sim::{
    Altered, Direction, NOW_SECS, NoOk, PageCap, Remote, Seen, Tamper, Turn, World, note, plain_relay,
};

use crate::support::{Daemon, LIVE, Play, daemon, filters_asked, history, ids, one_shot};

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    Live,
    Page,
    Second,
    Ids,
    Reconciliation,
}

fn purpose(frame: &str) -> Option<(For, String)> {
    match ClientMessage::parse(frame) {
        Ok(ClientMessage::NegOpen { subscription, .. }) => Some((For::Reconciliation, subscription.into_owned())),
        Ok(ClientMessage::Req { subscription, filters }) => {
            let filter = filters.first()?;
            let purpose = match filter.limit {
                _ if filter.ids.is_some() => For::Ids,
                Some(0) | None => For::Live,
                _ if filter.since.is_some() && filter.since == filter.until => For::Second,
                _ => For::Page,
            };
            Some((purpose, subscription.into_owned()))
        }
        _ => None,
    }
}

/// Closes requests of one purpose, `times` times, after so many of the events of the answer.
fn closing(what: For, words: &'static str, times: usize, after_events: usize) -> impl Tamper + use<> {
    let (mut left, mut marked) = (times, None::<(String, usize)>);
    Seen(move |direction, frame: String, turn: &mut Turn| {
        if direction == Direction::Up {
            let Some((_, name)) = purpose(&frame).filter(|(purpose, _)| *purpose == what && left > 0) else {
                return Some(frame);
            };
            left -= 1;
            if after_events == 0 {
                turn.say(relay::closed(&name, words));
                return None;
            }
            marked = Some((name, after_events));
            return Some(frame);
        }
        let ended = |name: &str| marked.as_ref().is_some_and(|(marked, _)| marked == name);
        match RelayMessage::parse(&frame) {
            Ok(RelayMessage::Event { subscription, .. }) if ended(&subscription) => {
                let (name, events) = marked.as_mut()?;
                *events = events.checked_sub(1)?;
                if *events == 0 {
                    let closed = relay::closed(name, words);
                    turn.say(frame);
                    turn.say(closed);
                    return None;
                }
                Some(frame)
            }
            Ok(RelayMessage::Eose { subscription: Some(name), .. }) if ended(&name) => None,
            _ => Some(frame),
        }
    })
}

/// 200 events in one second, and 60 around it.
fn crowded() -> Vec<Event> {
    let second = NOW_SECS - 5_000;
    let inside = (0..200_u16).map(|n| note(second).kind(1_000 + n % 10).content(n.to_string()).sign());
    let around = (0..60_u64).map(|n| note(second - 290 + 10 * n + 1).kind(1_000).content(format!("around {n}")).sign());
    inside.chain(around).collect()
}

/// A CLOSED used to drop the subscription, while what had asked for it waited for ever.
#[test]
fn every_closed_request_is_asked_again_or_reported_in_bounded_time() {
    let events = crowded();
    let filter = Filter::new().kinds((1_000..1_010).map(Into::into));
    for what in [For::Page, For::Second, For::Ids, For::Reconciliation] {
        for words in ["", "error: shutting down idle subscription", "blocked: not now", "unsupported: no"] {
            for times in [1, usize::MAX] {
                for after_events in [0, 5] {
                    let held = if matches!(what, For::Ids | For::Reconciliation) { 100 } else { 0 };
                    let remote = Remote::with(&events).tamper(PageCap(100));
                    let played = Play::holding(&events[..held])
                        .filters([filter.clone()])
                        .with(remote.tamper(closing(what, words, times, after_events)).unchecked());
                    let context = format!("{what:?}, {words:?}, {times}, {after_events}");
                    assert!(played.took < Duration::from_secs(120), "{context}: took {:?}", played.took);
                    let report = &played.report;
                    assert_eq!(report.complete, report.gaps.is_empty(), "{context}: {report:?}");
                    let all = played.world.held(played.engine) == played.world.held_by(&played.relay);
                    assert!(all || !report.complete, "{context}: complete without having it all");
                    // Once closed, it is asked again; without reconciliation there are pages.
                    let has_another_way = times == 1 || what == For::Reconciliation;
                    assert!(report.complete || !has_another_way, "{context}: {report:?}");
                }
            }
        }
    }
}

/// Rules may change again and again while one filter is fetched: that is no word on what the relay can do.
#[test]
fn a_relay_whose_rules_have_changed_is_asked_anew_but_not_for_ever() {
    let words = "error: the access rules have changed, ask again";
    let events = history(400);
    for what in [For::Page, For::Reconciliation] {
        for times in [5, usize::MAX] {
            let held = if what == For::Page { 0 } else { 200 };
            let remote = Remote::with(&events).tamper(PageCap(100)).tamper(closing(what, words, times, 0)).unchecked();
            let played = Play::holding(&events[..held]).with(remote);
            assert!(played.took < Duration::from_secs(60), "{what:?}, {times}: took {:?}", played.took);
            let report = &played.report;
            assert_eq!(report.complete, times == 5 || what == For::Reconciliation, "{what:?}, {times}: {report:?}");
            assert_eq!(
                report.fallbacks.contains_key("negentropy"),
                times != 5 && what == For::Reconciliation,
                "{report:?}"
            );
        }
    }
}

/// The same for live subscriptions of a daemon, whose history is not disturbed by it.
#[test]
fn a_live_subscription_that_is_closed_once_is_opened_again() {
    for words in [
        "",
        "error: shutting down idle subscription",
        "rate-limited: slow down",
        "error: too many REQs",
        "error: the access rules have changed, ask again",
    ] {
        let mut daemon = Daemon::new(Remote::with(&history(40)).tamper(closing(For::Live, words, 1, 0)));
        daemon.secs(200);
        daemon.publish_now();
        daemon.secs(2);
        daemon.is_equal();
        assert_eq!(daemon.report().live_refused, None, "{words:?}");
    }
}

/// A CLOSED used to leave a relay "connected" without any subscription, and nobody saw it.
#[test]
fn a_relay_that_serves_nothing_live_says_so_and_is_asked_from_time_to_time() {
    let words = "restricted: no live subscriptions for you";
    let mut daemon = Daemon::new(Remote::with(&history(40)).tamper(closing(For::Live, words, usize::MAX, 0)));
    for _ in 0..5 {
        let report = daemon.report();
        assert_eq!((report.phase, report.live_refused.as_deref()), (Phase::Polling, Some(words)));
        assert!(report.last_error.is_some_and(|error| error.contains(words)));
        daemon.publish_now();
        daemon.secs(630);
        assert!(
            daemon.world.held(daemon.engine) == daemon.world.held_by(&daemon.relay),
            "new events arrive all the same"
        );
    }
    let asked = filters_asked(&daemon.world, &daemon.relay).len();
    assert!(asked < 40, "{asked} requests in an hour\n{}", daemon.world.trace());
    daemon.world.relay_mut(&daemon.relay).mend();
    daemon.secs(630);
    daemon.publish_now();
    daemon.secs(1);
    daemon.is_equal();
    assert_eq!(daemon.report().live_refused, None);
}

/// A refused authentication used to leave the relay "connected" and silent.
#[test]
fn a_refused_authentication_is_shown_and_tried_again_on_the_next_connection() {
    let refuse = Seen(|_, frame: String, turn: &mut Turn| {
        if !frame.starts_with("[\"AUTH\",{") {
            return Some(frame);
        }
        let id = frame.split("\"id\":\"").nth(1).and_then(|rest| rest.get(..64)).unwrap_or("").to_owned();
        turn.say(relay::ok(&id, false, "restricted: not a member"));
        None
    });
    let own = RelayUrl::parse("wss://relay.example").expect("a relay URL");
    let config = ServeConfig { auth_required: true, urls: vec![own], ..plain_relay() };
    let remote = Remote::configured(config, &history(30)).tamper(refuse);
    let mut daemon = Daemon::wanting([Filter::new()], remote, Some(7));
    for _ in 0..3 {
        let report = daemon.report();
        assert_eq!(report.phase, Phase::Polling, "{report:?}");
        assert!(!report.complete);
        assert!(report.live_refused.is_some_and(|words| words.contains("auth-required")));
        assert!(matches!(report.gaps[..], [ref gap] if matches!(gap.reason, GapReason::AuthRequired(_))));
        daemon.secs(700);
    }
    assert!(daemon.world.relay(&daemon.relay).heard.len() < 60, "{}", daemon.world.relay(&daemon.relay).heard.len());
    daemon.world.relay_mut(&daemon.relay).mend();
    daemon.world.cut(&daemon.relay, "");
    daemon.secs(60);
    daemon.publish_now();
    daemon.secs(1);
    daemon.is_equal();
}

/// One rejected event used to make the health "degraded".
#[test]
fn rejected_events_are_counted_and_the_link_is_healthy() {
    let events = history(60);
    let remote = Remote::with(&events).tamper(Altered::signatures(ids(&events[..20])));
    let refusing = NoOk { words: Some("blocked: not welcome".into()), times: usize::MAX };
    let mut world = World::new();
    let relay = world.add_relay("wss://relay.example", remote.tamper(refusing).unchecked());
    let engine = world.add_engine(daemon());
    let own: Vec<Event> = (0..10).map(|n| note(NOW_SECS - n).by(2).content(n.to_string()).sign()).collect();
    world.give(engine, &own);
    world.sync_with(engine, &relay, [Filter::new()], RelayOptions { direction: Way::Both, ..LIVE });
    world.run(Duration::from_secs(400));
    // Live as well: outdated versions, and ones that the store has already.
    let versions = [note(NOW_SECS + 300).kind(0).sign(), note(NOW_SECS + 200).kind(0).sign()];
    world.publish(&relay, &versions);
    world.run(Duration::from_secs(5));
    let report = world.node(engine).reports().remove(0);
    assert!(report.counters.invalid >= 20 && report.counters.refused >= 10, "{:?}", report.counters);
    assert_eq!((report.health, report.counters.connections), (HealthState::Healthy, 1));
}

/// A job that ends says how the link was, too.
#[test]
fn a_resting_or_failing_link_is_seen_in_the_report() {
    let limited = Seen(|_, frame: String, turn: &mut Turn| {
        let (_, name) = purpose(&frame)?;
        turn.say(relay::closed(&name, "rate-limited: come back later"));
        None
    });
    let config = Config { attempts_max: 1, ..one_shot() };
    let played = Play::default().config(config).with(Remote::with(&history(5)).tamper(limited));
    assert_eq!(played.report.health, HealthState::RateLimited);
    let played = Play::default().with(Remote::with(&history(5)));
    assert_eq!(played.report.health, HealthState::Disconnected);
}
