//! Who we are to a peer (NIP-42).

use std::time::Duration;

use relaysync::peer::{Peering, Terms};
use relaysync::protocol::Filter;
use relaysync::runtime::{CloseReason, FailureKind};
use relaysync::sim::{LateChallenge, Seen, Turn};

use super::support::{Pair, US, guarded, open_to, peer, peering, secrets, terms, wanting};

fn id_of(frame: &str) -> String {
    frame.split("\"id\":\"").nth(1).and_then(|rest| rest.get(..64)).unwrap_or("").to_owned()
}

fn is_answer(frame: &str) -> bool {
    frame.starts_with("[\"AUTH\",{")
}

fn is_challenge(frame: &str) -> bool {
    frame.starts_with("[\"AUTH\",\"")
}

/// What is hidden from strangers is left out without a word: we are none when we ask.
#[test]
fn nothing_is_asked_while_we_are_still_to_be_accepted() {
    let pair = Pair::joined(peer(&secrets("there", 30)), wanting([Filter::new()]));
    pair.is_complete();
    assert!(pair.holds(&secrets("there", 30)));
    let heard = &pair.world.relay(&pair.relay).heard;
    assert!(is_answer(&heard[0].1), "{}", pair.world.trace());
}

/// A relay that asks who we are only after it has answered may have left things out.
#[test]
fn what_was_answered_before_we_were_known_is_asked_again() {
    let mut challenge = None;
    let late = Seen(move |_, frame: String, turn: &mut Turn| {
        if is_challenge(&frame) && challenge.is_none() {
            challenge = Some(());
            turn.say_later(frame, Duration::from_secs(5));
            return None;
        }
        Some(frame)
    });
    let mut pair = Pair::joined(peer(&secrets("there", 30)).tamper(late), wanting([Filter::new()]));
    assert!(pair.holds(&secrets("there", 30)), "{}", pair.world.trace());
    pair.secs(10);
    pair.is_complete();
}

/// Of a connection that lives for days, the only challenge was lost on its way: the relay takes us for a stranger, and
/// leaves out what it hides from those without a word. The daily pass introduces us anew.
#[test]
fn a_challenge_that_was_lost_is_made_up_for_by_the_daily_pass() {
    let mut is_lost = false;
    let lose = Seen(move |_, frame: String, _: &mut Turn| {
        Some(frame).filter(|frame| !is_challenge(frame) || std::mem::replace(&mut is_lost, true))
    });
    let mut pair = Pair::joined(peer(&secrets("there", 5)).tamper(lose), wanting([Filter::new()]));
    pair.secs(600);
    assert!(!pair.holds_any(&secrets("there", 5)), "strangers are shown nothing");
    pair.secs(26 * 3_600);
    pair.is_complete();
    assert!(pair.holds(&secrets("there", 5)), "{}", pair.world.trace());
}

#[test]
fn a_challenge_may_come_before_or_after_the_refusal() {
    let members = || guarded(open_to(US), &secrets("there", 30));
    Pair::joined(members().tamper(LateChallenge::default()), peering()).is_complete();
    Pair::joined(members(), peering()).is_complete();
}

#[test]
fn a_challenge_may_be_replaced_at_any_time() {
    for at in 0..4 {
        let mut answers = 0;
        let replace = Seen(move |_, frame: String, turn: &mut Turn| {
            if is_answer(&frame) {
                answers += 1;
                if answers == 1 {
                    // The answer crosses another challenge, and is not for that one.
                    turn.say(format!(r#"["OK","{}",false,"invalid: the challenge is another"]"#, id_of(&frame)));
                    return None;
                }
            }
            if is_challenge(&frame) {
                for _ in 0..at {
                    turn.say("[\"AUTH\",\"outdated\"]");
                }
                turn.say_later(frame.clone(), Duration::from_millis(at * 3));
            }
            Some(frame)
        });
        let mut pair = Pair::joined(peer(&secrets("there", 30)).tamper(replace), peering());
        pair.secs(60);
        pair.is_complete();
        assert!(pair.holds(&secrets("there", 30)));
    }
}

#[test]
fn a_refusal_is_shown_and_tried_again_by_the_backoff() {
    let refuse = Seen(|_, frame: String, turn: &mut Turn| {
        if !is_answer(&frame) {
            return Some(frame);
        }
        turn.say(format!(r#"["OK","{}",false,"restricted: not a member"]"#, id_of(&frame)));
        None
    });
    let mut pair = Pair::joined(peer(&secrets("there", 5)).tamper(refuse), peering());
    pair.secs(3_600);
    let report = pair.report();
    assert_eq!(report.failure, Some(FailureKind::AuthRefused), "{report:#?}");
    assert_eq!(report.auth_refused.as_deref(), Some("restricted: not a member"));
    let attempts = pair.world.relay(&pair.relay).attempts.len();
    assert!((4..40).contains(&attempts), "{attempts} attempts in an hour");
    assert!(!pair.holds_any(&secrets("there", 5)));
    pair.world.relay_mut(&pair.relay.clone()).mend();
    pair.secs(3_700);
    let report = pair.report();
    assert_eq!((report.failure, report.auth_refused), (None, None));
    pair.is_complete();
}

#[test]
fn an_answer_that_nothing_is_said_to_is_a_refusal() {
    let swallow = Seen(|_, frame: String, _: &mut Turn| Some(frame).filter(|frame| !is_answer(frame)));
    let mut pair = Pair::joined(peer(&secrets("there", 5)).tamper(swallow), peering());
    pair.secs(60);
    assert_eq!(pair.report().failure, Some(FailureKind::AuthRefused));
}

#[test]
fn who_is_not_to_answer_does_not_and_gets_what_strangers_get() {
    let events = [secrets("there", 5), crate::support::history(5)].concat();
    let terms = Terms { authenticates: false, ..terms() };
    let mut pair = Pair::joined(peer(&events), Peering { terms, ..wanting([Filter::new(), super::support::secret()]) });
    pair.secs(7_200);
    assert_eq!(pair.heard_of("AUTH"), 0);
    assert!(pair.holds(&events[5..]) && !pair.holds_any(&events[..5]));
    let report = pair.report();
    assert!(!report.complete && report.connected, "{report:#?}");
    assert!(pair.heard() < 400, "{} frames in two hours", pair.heard());
}

/// Our key is another by now: relays that know us get to know us anew, at once.
#[test]
fn a_new_key_is_shown_at_once() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), peering());
    pair.is_complete();
    pair.world.set_relay_access(&pair.relay.clone(), open_to(US + 1));
    pair.secs(1);
    let later = secrets("later", 3);
    later.iter().for_each(|event| pair.publish_there(event));
    pair.secs(60);
    assert!(!pair.holds_any(&later));
    pair.world.renew(pair.engine, US + 1);
    pair.secs(1);
    assert!(pair.holds(&later), "{}", pair.world.trace());
    let closed = &pair.world.node(pair.engine).closed;
    assert_eq!(closed.iter().filter(|reason| **reason == CloseReason::Renewed).count(), 1, "{closed:?}");
    assert_eq!(pair.report().failures, 0);
    pair.is_complete();
}

/// A demand that comes with each refusal is met by asking what was refused again, not all.
#[test]
fn demands_without_end_lead_to_no_storm() {
    let mut challenges = 0;
    let again = Seen(move |_, frame: String, turn: &mut Turn| {
        if is_answer(&frame) {
            turn.say(format!(r#"["OK","{}",true,""]"#, id_of(&frame)));
            return None;
        }
        let Some(name) = frame.strip_prefix("[\"REQ\",\"").and_then(|rest| rest.split('"').next()) else {
            return Some(frame).filter(|frame| !is_challenge(frame));
        };
        challenges += 1;
        if challenges % 2 == 0 {
            return Some(frame);
        }
        turn.say(format!("[\"AUTH\",\"challenge {challenges}\"]"));
        turn.say(format!("[\"CLOSED\",\"{name}\",\"auth-required: members only\"]"));
        None
    });
    let mut pair = Pair::joined(peer(&crate::support::history(5)).tamper(again), wanting([Filter::new()]));
    pair.secs(600);
    assert!(pair.heard_of("REQ") < 60, "{} requests", pair.heard_of("REQ"));
    assert!(pair.holds(&crate::support::history(5)));
}

/// A relay that accepts us again and again keeps nothing going for ever.
#[test]
fn challenges_without_end_lead_to_no_storm() {
    let mut pair = Pair::joined(peer(&secrets("there", 5)), peering());
    let before = pair.heard_of("REQ") + pair.heard_of("NEG-OPEN");
    for _ in 0..500 {
        let relay = pair.relay.clone();
        pair.world.say(&relay, "[\"AUTH\",\"challenge 1\"]");
        pair.secs(1);
    }
    let asked = pair.heard_of("REQ") + pair.heard_of("NEG-OPEN") - before;
    assert!(asked < 100, "asked {asked} times");
}
