//! Authentication (NIP-42). Reported as nostr-dev-kit/ndk#171: a REQ closed with auth-required was never sent again.

use std::time::Duration;

use relaysync::engine::{Config, Direction, Gap, GapReason, RelayOptions};
use relaysync::protocol::message::relay;
use relaysync::protocol::{Filter, RelayUrl};
use relaysync::serve::ServeConfig;
use relaysync::sim::{self, LateChallenge, Remote, Seen, Turn, plain_relay};

use crate::support::{Daemon, Play, STALL, history, play};

fn members_only(count: u64) -> Remote {
    let own = RelayUrl::parse("wss://relay.example").expect("a relay URL");
    let config = ServeConfig { auth_required: true, urls: vec![own], ..plain_relay() };
    Remote::configured(config, &history(count))
}

#[test]
fn requests_are_sent_again_after_authentication_whichever_came_first() {
    let events = history(80);
    for held in [0, 5] {
        Play::holding(&events[..held]).signing().with(members_only(80)).is_equal().within(Duration::from_secs(2));
        let late = members_only(80).tamper(LateChallenge::default());
        Play::holding(&events[..held]).signing().with(late).is_equal().within(Duration::from_secs(2));
    }
}

#[test]
fn without_a_key_it_is_a_gap_and_not_silence() {
    let played = Play::default().with(members_only(10));
    assert!(matches!(played.report.gaps[..], [ref gap] if matches!(gap.reason, GapReason::AuthRequired(_))));
    played.within(Duration::from_secs(2));
}

#[test]
fn a_refused_authentication_is_a_gap() {
    let refuse = Seen(|_, frame: String, turn: &mut Turn| {
        if !frame.starts_with("[\"AUTH\",{") {
            return Some(frame);
        }
        let id = frame.split("\"id\":\"").nth(1).and_then(|rest| rest.get(..64)).unwrap_or("").to_owned();
        turn.say(format!(r#"["OK","{id}",false,"restricted: not a member"]"#));
        None
    });
    let played = Play::default().signing().with(members_only(10).tamper(refuse));
    assert!(matches!(played.report.gaps[..], [ref gap] if matches!(gap.reason, GapReason::AuthRequired(_))));
}

#[test]
fn an_unanswered_authentication_ends_in_bounded_time() {
    let swallow = Seen(|_, frame: String, _: &mut Turn| Some(frame).filter(|frame| !frame.starts_with("[\"AUTH\",{")));
    let played = Play::default().signing().with(members_only(10).tamper(swallow));
    assert!(matches!(played.report.gaps[..], [ref gap] if matches!(gap.reason, GapReason::AuthRequired(_))));
    played.within(STALL + Duration::from_secs(2));
}

#[test]
fn a_relay_that_wants_more_after_authentication_is_given_up() {
    let never = Seen(|_, frame: String, turn: &mut Turn| {
        let name = frame.strip_prefix("[\"REQ\",\"").and_then(|rest| rest.split('"').next());
        match name {
            Some(name) => {
                turn.say(format!(r#"["CLOSED","{name}","auth-required: with another key"]"#));
                None
            }
            None => Some(frame),
        }
    });
    let played = Play::default().signing().with(members_only(10).tamper(never));
    assert!(matches!(played.report.gaps[..], [ref gap] if matches!(gap.reason, GapReason::AuthRequired(_))));
    assert!(played.asked("REQ") < 10);
}

/// Live subscription and history must not keep each other going: each answer to a challenge would be another beginning.
#[test]
fn a_relay_that_accepts_us_and_demands_it_anew_each_time_is_left_alone_for_a_while() {
    let (mut challenges, mut demands) = (0, 0..24);
    let again = Seen(move |_, frame: String, turn: &mut Turn| {
        let id = || frame.split("\"id\":\"").nth(1).and_then(|rest| rest.get(..64)).unwrap_or("").to_owned();
        if frame.starts_with("[\"AUTH\",{") {
            turn.say(format!(r#"["OK","{}",true,""]"#, id()));
            return None;
        }
        let Some(name) = frame.strip_prefix("[\"REQ\",\"").and_then(|rest| rest.split('"').next()) else {
            return Some(frame);
        };
        if demands.next().is_none() {
            return Some(frame);
        }
        challenges += 1;
        turn.say(format!("[\"CLOSED\",\"{name}\",\"auth-required: members only\"]"));
        turn.say(format!("[\"AUTH\",\"challenge {challenges}\"]"));
        None
    });
    let mut daemon = Daemon::wanting([Filter::new()], Remote::with(&history(20)).tamper(again), Some(7));
    let asked = daemon.world.relay(&daemon.relay).heard_of("REQ").len();
    assert!(asked < 12, "asked {asked} times in 40 s\n{}", daemon.world.trace());
    assert!(matches!(daemon.report().gaps[..], [ref gap] if matches!(gap.reason, GapReason::AuthRequired(_))));
    daemon.secs(3_000);
    daemon.is_equal();
}

#[test]
fn a_challenge_that_is_replaced_while_it_is_signed_is_answered_too() {
    let mut first = true;
    let replace = Seen(move |_, frame: String, turn: &mut Turn| {
        if frame.starts_with("[\"AUTH\",\"") && std::mem::take(&mut first) {
            turn.say(r#"["AUTH","outdated"]"#);
        }
        Some(frame)
    });
    Play::default().signing().with(members_only(30).tamper(replace)).is_equal().within(Duration::from_secs(2));
}

#[test]
fn publishing_waits_for_authentication_too() {
    let events = history(30);
    let options = RelayOptions { direction: Direction::Both, ..RelayOptions::default() };
    let play = Play { options, held: events[10..].to_vec(), ..Play::default() };
    let own = RelayUrl::parse("wss://relay.example").expect("a relay URL");
    let config = ServeConfig { auth_required: true, urls: vec![own], ..plain_relay() };
    let played = play
        .signing()
        .config(Config { progress_interval: Duration::ZERO, ..Config::one_shot() })
        .with(Remote::configured(config, &events[..20]).tamper(LateChallenge::default()));
    played.is_equal();
    assert!(played.asked("EVENT") <= 20, "{}", played.asked("EVENT"));
}

/// Only publishing needs authentication here: it must not be tried over and over before that.
#[test]
fn a_refused_event_is_sent_again_once_after_authentication() {
    let events = history(5);
    let mut authenticated = false;
    let gate = Seen(move |_, frame: String, turn: &mut Turn| {
        let id = || frame.split("\"id\":\"").nth(1).and_then(|rest| rest.get(..64)).unwrap_or("").to_owned();
        if frame.starts_with("[\"AUTH\",{") {
            authenticated = true;
            turn.say(format!(r#"["OK","{}",true,""]"#, id()));
            return None;
        }
        if frame.starts_with("[\"EVENT\",{") && !authenticated {
            turn.say(format!(r#"["OK","{}",false,"auth-required: to write"]"#, id()));
            turn.say_later(r#"["AUTH","a challenge"]"#, Duration::from_secs(1));
            return None;
        }
        Some(frame)
    });
    let played = Play::towards(Direction::Up, &events).signing().with(Remote::with(&[]).tamper(gate));
    played.is_equal();
    assert!(played.asked("EVENT") <= 10, "{}", played.asked("EVENT"));
}

/// Without a key, a relay that asks for authentication ends as a gap at once, whichever of its messages comes first.
#[test]
fn without_a_key_a_job_ends_whatever_comes_first() {
    for challenge_first in [false, true] {
        let asks = Seen(move |_, frame: String, turn: &mut Turn| {
            let Some(name) = frame.strip_prefix("[\"REQ\",\"").and_then(|rest| rest.split('"').next()) else {
                return Some(frame);
            };
            if challenge_first {
                turn.say("[\"AUTH\",\"c1\"]");
            }
            turn.say(format!("[\"CLOSED\",\"{name}\",\"auth-required: members only\"]"));
            if !challenge_first {
                turn.say("[\"AUTH\",\"c1\"]");
            }
            None
        });
        let played = play(Remote::with(&history(60)).tamper(asks));
        assert!(matches!(played.report.gaps[..], [Gap { reason: GapReason::AuthRequired(_), .. }]));
        played.within(STALL);
    }
}

/// A second look at an empty answer that is refused at first is one look, not the first of many.
#[test]
fn an_empty_answer_is_looked_at_twice_however_often_authentication_is_demanded() {
    let mut asked = 0;
    let moody = Seen(move |direction, frame: String, turn: &mut Turn| {
        let name = frame.split('"').nth(3).unwrap_or_default().to_owned();
        match (direction, frame.split('"').nth(1)) {
            (sim::Direction::Up, Some("REQ")) => {
                asked += 1;
                if asked % 2 == 0 {
                    turn.say(relay::closed(&name, "auth-required: members only"));
                    turn.say(format!("[\"AUTH\",\"demanded {asked}\"]"));
                    return None;
                }
                Some(frame)
            }
            (sim::Direction::Up, Some("AUTH")) => {
                let id = frame.split("\"id\":\"").nth(1).and_then(|rest| rest.get(..64)).unwrap_or_default();
                turn.say(relay::ok(id, true, ""));
                None
            }
            _ => Some(frame),
        }
    });
    let played = Play::default().signing().with(Remote::with(&[]).tamper(moody));
    assert!(played.asked("REQ") <= 4, "{} requests\n{}", played.asked("REQ"), played.world.trace());
    assert!(played.report.complete, "{:?}", played.report);
}
