//! Faults of set reconciliation (NIP-77) that happen to a session now and then.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Chance, NegRefusal, Tamper, Turn, name_of};
use crate::protocol::filter::matches;
use crate::protocol::message::relay;
use crate::protocol::{ClientMessage, Event, Filter, Item, ItemSet, ItemView, Window, hex};
use crate::serve::{ClientId, reconcile};

/// What may be wrong with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionFault {
    /// It is refused.
    Refused(NegRefusal),
    /// It is refused if the relay has more records than this for the filter.
    TooLarge {
        /// The most records that are reconciled at once.
        records_max: u64,
        /// The refusal says so.
        is_stated: bool,
    },
    /// After so many messages of the relay it is lost in this way.
    LostAfter(u64, Loss),
    /// Every message of the relay finds a difference.
    Endless,
    /// Every message of the relay comes twice.
    OutOfTurn,
    /// A message of the relay is replaced by this.
    Replaced(Replacement),
    /// The relay's set has ids of which there are no events.
    Inventing,
    /// The relay's set lacks a part of what it has.
    Short,
}

/// How a session is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing more comes.
    Silence,
    /// A NEG-ERR comes.
    NegErr,
    /// The connection closes.
    Close,
}

/// What comes in the place of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// A text that is not hexadecimal.
    NotHex,
    /// A message with a range of a mode that does not exist.
    Malformed,
    /// A message that breaks off in the midst of a number.
    BreaksOff,
    /// A message of 2 MB that means nothing.
    Overlong,
    /// The version of another protocol.
    OtherVersion,
}

impl SessionFault {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refused(NegRefusal::Notice(_)) => "negentropy refused by notice",
            Self::Refused(NegRefusal::Closed(_)) => "negentropy refused by closed",
            Self::Refused(NegRefusal::NegErr(_)) => "negentropy refused by neg-err",
            Self::Refused(NegRefusal::Silence) => "negentropy not answered",
            Self::TooLarge { is_stated: true, .. } => "negentropy set too large, cap stated",
            Self::TooLarge { is_stated: false, .. } => "negentropy set too large",
            Self::LostAfter(_, Loss::Silence) => "negentropy falls silent",
            Self::LostAfter(_, Loss::NegErr) => "negentropy session closed",
            Self::LostAfter(_, Loss::Close) => "negentropy connection closed",
            Self::Endless => "negentropy endless",
            Self::OutOfTurn => "negentropy out of turn",
            Self::Replaced(Replacement::NotHex) => "negentropy not hexadecimal",
            Self::Replaced(Replacement::Malformed) => "negentropy malformed",
            Self::Replaced(Replacement::BreaksOff) => "negentropy breaks off",
            Self::Replaced(Replacement::Overlong) => "negentropy overlong",
            Self::Replaced(Replacement::OtherVersion) => "negentropy version unknown",
            Self::Inventing => "negentropy ids invented",
            Self::Short => "negentropy set short",
        }
    }
}

/// A session that something is wrong with.
#[derive(Debug, Clone, Default)]
struct Session {
    /// Messages of the relay so far.
    messages: u64,
    /// The set that is compared in place of the relay's.
    view: Option<ItemView>,
    is_dead: bool,
}

/// A relay some of whose sessions go wrong.
#[derive(Debug, Clone)]
pub struct Sessions {
    fault: SessionFault,
    /// Every event that the relay may have.
    pool: Arc<[Event]>,
    chance: Chance,
    faulty: BTreeMap<(ClientId, String), Session>,
}

/// Bytes of a message that is too long.
const OVERLONG_BYTES: usize = 1 << 20;

/// The largest message of a set of our own, in bytes.
const FRAME_BYTES_MAX: usize = 60_000;

impl Sessions {
    /// With this fault, so often. `pool` has every event that the relay may come to have.
    pub fn new(fault: SessionFault, pool: Arc<[Event]>, chance: Chance) -> Self {
        Self { fault, pool, chance, faulty: BTreeMap::new() }
    }

    fn items(&self, filter: &Filter) -> Vec<Item> {
        self.pool.iter().filter(|event| matches(filter, event)).map(|event| Item::of(event)).collect()
    }

    /// What is compared in place of the relay's set.
    fn view(&mut self, filter: &Filter) -> Option<ItemView> {
        let mut items = self.items(filter);
        match self.fault {
            SessionFault::Short => items.retain(|_| self.chance.below(4) != 0),
            SessionFault::Inventing => {
                let window = Window::of(filter);
                for _ in 0..self.chance.within(1, 8) {
                    let near = self.chance.pick(&items).map_or(window.since, |item| item.created_at);
                    let mut id = [0; 32];
                    id.iter_mut().for_each(|byte| *byte = self.chance.below(256).to_le_bytes()[0]);
                    items.push(Item { created_at: near, id });
                }
            }
            _ => return None,
        }
        Some(ItemView::new(Arc::new(ItemSet::new(items)), Window::ALL))
    }

    /// A session is opened. `None`: it does not get to the relay.
    fn open(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        let Ok(ClientMessage::NegOpen { subscription, filter, message }) = ClientMessage::parse(&frame) else {
            return Some(frame);
        };
        let key = (turn.client, subscription.clone().into_owned());
        self.faulty.remove(&key);
        if !self.chance.hits() {
            return Some(frame);
        }
        let mut session = Session::default();
        match &self.fault {
            SessionFault::Refused(refusal) => {
                refusal.say(&subscription, turn);
                session.is_dead = true;
            }
            SessionFault::TooLarge { records_max, is_stated } => {
                if self.items(&filter).len() as u64 <= *records_max {
                    return Some(frame);
                }
                let stated = is_stated.then_some(*records_max);
                turn.say(relay::neg_err(&subscription, "blocked: too many query results", stated));
                session.is_dead = true;
            }
            SessionFault::LostAfter(0, loss) => {
                lose(*loss, &subscription, turn);
                session.is_dead = true;
            }
            _ => session.view = self.view(&filter),
        }
        let passes = !session.is_dead && session.view.is_none() && self.fault != SessionFault::Endless;
        if !passes {
            turn.inject(self.fault.name());
        }
        self.faulty.insert(key, session);
        if !passes {
            self.answer(&subscription, &message, turn);
            return None;
        }
        Some(frame)
    }

    /// Answers in the relay's place.
    fn answer(&mut self, subscription: &str, message: &str, turn: &mut Turn) {
        let Some(session) = self.faulty.get_mut(&(turn.client, subscription.to_owned())) else { return };
        session.messages += 1;
        if session.is_dead {
            return;
        }
        let Some(view) = session.view.clone() else {
            // Version 1; one range, up to infinity; a fingerprint (mode 1) that fits nothing.
            let mut answer = vec![0x61, 0, 0, 1];
            answer.extend((0..16).map(|_| self.chance.below(256).to_le_bytes()[0]));
            return turn.say(relay::neg_msg(subscription, &answer));
        };
        let answer = hex::decode(message).map(|message| reconcile(view, &message, FRAME_BYTES_MAX));
        match answer {
            Some(Ok(answer)) => turn.say(relay::neg_msg(subscription, &answer)),
            _ => turn.say(relay::neg_err(subscription, "PROTOCOL-ERROR", None)),
        }
    }

    fn replacement(&self, what: Replacement, name: &str) -> String {
        match what {
            Replacement::NotHex => format!("[\"NEG-MSG\",\"{name}\",\"not hexadecimal\"]"),
            Replacement::Malformed => relay::neg_msg(name, &[0x61, 0, 0, 9]),
            Replacement::BreaksOff => relay::neg_msg(name, &[0x61, 0x80, 0x80]),
            Replacement::Overlong => relay::neg_msg(name, &vec![0x61; OVERLONG_BYTES]),
            Replacement::OtherVersion => relay::neg_msg(name, &[0x60]),
        }
    }
}

fn lose(loss: Loss, name: &str, turn: &mut Turn) {
    match loss {
        Loss::Silence => {}
        Loss::NegErr => turn.say(relay::neg_err(name, "closed: session expired", None)),
        Loss::Close => turn.close("error: internal"),
    }
}

impl Tamper for Sessions {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        if frame.starts_with("[\"NEG-OPEN\"") {
            return self.open(frame, turn);
        }
        let Some(name) = name_of(&frame, "NEG-MSG") else { return Some(frame) };
        let Some(session) = self.faulty.get(&(turn.client, name.to_owned())) else { return Some(frame) };
        if session.is_dead {
            return None;
        }
        if session.view.is_some() || self.fault == SessionFault::Endless {
            if let Ok(ClientMessage::NegMsg { subscription, message }) = ClientMessage::parse(&frame) {
                self.answer(&subscription, &message, turn);
            }
            return None;
        }
        Some(frame)
    }

    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        let Some(name) = name_of(&frame, "NEG-MSG") else { return turn.say(frame) };
        let Some(session) = self.faulty.get_mut(&(turn.client, name.to_owned())) else { return turn.say(frame) };
        session.messages += 1;
        match self.fault {
            SessionFault::LostAfter(after, loss) if session.messages >= after => {
                session.is_dead = true;
                turn.inject(self.fault.name());
                lose(loss, name, turn);
            }
            SessionFault::OutOfTurn => {
                turn.inject(self.fault.name());
                turn.say(frame.clone());
                turn.say(frame);
            }
            SessionFault::Replaced(what) => {
                turn.inject(self.fault.name());
                turn.say(self.replacement(what, name));
            }
            _ => turn.say(frame),
        }
    }
}

/// How relays that have no negentropy, or not now, say so in a NOTICE.
pub const NOTICES: [&str; 9] = [
    "negentropy disabled",
    "ERROR: bad msg: negentropy disabled",
    "bad msg: unknown message type",
    "could not parse command",
    "too many concurrent NEG requests",
    "invalid: unknown cmd",
    "unknown message type NEG-OPEN",
    "Error: failed to parse message",
    "unrecognized command",
];

/// How they say so in a CLOSED or NEG-ERR.
pub const REFUSALS: [&str; 9] = [
    "",
    "PROTOCOL-ERROR",
    "blocked: you are banned",
    "blocked: too many requests",
    "closed: session expired",
    "error: negentropy disabled",
    "rate-limited: too many sessions",
    "auth-required: for reconciliation",
    "unsupported: NIP-77",
];
