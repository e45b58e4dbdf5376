//! Relays that want authentication (NIP-42) when nobody expects it.

use super::{Chance, Tamper, Turn, name_of};
use crate::protocol::message::relay;
use crate::protocol::{ClientMessage, Event};

/// How authentication goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthFault {
    /// A request is refused until the client authenticates; the challenge comes first.
    ChallengeFirst,
    /// The same; the refusal comes first.
    RefusalFirst,
    /// The same, and the challenge is replaced by another one at once.
    ChallengeReplaced,
    /// The same, and the answer to the challenge is refused.
    AnswerRefused,
    /// The same, and nothing is said to the answer.
    AnswerIgnored,
    /// A challenge comes for nothing, in the midst of everything.
    ChallengeForNothing,
}

impl AuthFault {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChallengeFirst => "auth required, challenge first",
            Self::RefusalFirst => "auth required, refusal first",
            Self::ChallengeReplaced => "auth challenge replaced",
            Self::AnswerRefused => "auth refused",
            Self::AnswerIgnored => "auth not answered",
            Self::ChallengeForNothing => "auth challenge for nothing",
        }
    }
}

/// A relay that wants authentication at any time. It takes any answer to its own challenges; the relay behind it does
/// not get to see those.
#[derive(Debug, Clone)]
pub struct AuthDemands {
    fault: AuthFault,
    chance: Chance,
    challenges: u64,
}

/// What the challenges begin with, by which the answers are known.
const CHALLENGE: &str = "demanded ";

impl AuthDemands {
    /// Goes wrong so, so often.
    pub fn new(fault: AuthFault, chance: Chance) -> Self {
        Self { fault, chance, challenges: 0 }
    }

    fn challenge(&mut self, turn: &mut Turn) {
        self.challenges += 1;
        turn.say(relay::auth(&format!("{CHALLENGE}{}", self.challenges)));
    }

    fn refuse(&mut self, frame: &str, turn: &mut Turn) {
        let words = self.chance.words(&REFUSALS);
        if let Some(name) = name_of(frame, "REQ") {
            turn.say(relay::closed(name, words));
        } else if let Some(name) = name_of(frame, "NEG-OPEN") {
            turn.say(relay::neg_err(name, words, None));
        } else if let Some(event) = event_to(frame) {
            turn.say(relay::ok(&event.id.to_hex(), false, words));
        }
    }

    fn answer(&mut self, event: &Event, turn: &mut Turn) {
        let id = event.id.to_hex();
        let last = format!("{CHALLENGE}{}", self.challenges);
        match self.fault {
            AuthFault::AnswerIgnored => {}
            AuthFault::AnswerRefused => turn.say(relay::ok(&id, false, "restricted: not a member")),
            _ if event.json_str().contains(&last) => turn.say(relay::ok(&id, true, "")),
            _ => turn.say(relay::ok(&id, false, "invalid: the challenge is another one by now")),
        }
    }
}

/// The event of an EVENT from a client.
fn event_to(frame: &str) -> Option<Event> {
    match ClientMessage::parse(frame) {
        Ok(ClientMessage::Event { json } | ClientMessage::Auth { json }) => Event::parse(json.to_owned().into()).ok(),
        _ => None,
    }
}

impl Tamper for AuthDemands {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        if frame.starts_with("[\"AUTH\"") && frame.contains(CHALLENGE) {
            if let Some(event) = event_to(&frame) {
                self.answer(&event, turn);
            }
            return None;
        }
        let concerned = ["[\"REQ\"", "[\"NEG-OPEN\"", "[\"EVENT\""].iter().any(|start| frame.starts_with(start));
        if self.fault == AuthFault::ChallengeForNothing || !concerned || !self.chance.hits() {
            return Some(frame);
        }
        turn.inject(self.fault.name());
        let refusal_first = match self.fault {
            AuthFault::ChallengeFirst => false,
            AuthFault::RefusalFirst => true,
            _ => self.chance.below(2) == 0,
        };
        if refusal_first {
            self.refuse(&frame, turn);
        }
        self.challenge(turn);
        if self.fault == AuthFault::ChallengeReplaced {
            self.challenge(turn);
        }
        if !refusal_first {
            self.refuse(&frame, turn);
        }
        None
    }

    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        turn.say(frame);
        if self.fault == AuthFault::ChallengeForNothing && self.chance.hits() {
            turn.inject(self.fault.name());
            self.challenge(turn);
        }
    }
}

const REFUSALS: [&str; 3] = [
    "auth-required: members only",
    "ERROR: auth-required: we only serve members",
    "restricted: authentication required",
];
