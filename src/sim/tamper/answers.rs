//! Faults of answers to REQs that happen now and then: at their end, or in what they leave out.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Chance, Tamper, Turn, event_of, name_of, req_of};
use crate::protocol::message::{EoseHint, relay};
use crate::protocol::{Event, Filter};
use crate::serve::ClientId;

/// What may be wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerFault {
    /// EOSE does not come.
    EoseLost,
    /// EOSE comes twice.
    EoseTwice,
    /// EOSE names no subscription.
    EoseWithoutId,
    /// EOSE comes in the midst of an answer, just before an event so old that it cannot be news, and the rest at once
    /// behind it.
    EoseEarly,
    /// EOSE comes before everything, and everything at once behind it.
    EoseFirst,
    /// EOSE comes after some events, and the rest some time after it.
    EoseLongBefore,
    /// EOSE comes after some events, and the rest does not come at all.
    EoseInstead,
    /// An event does not come.
    EventLost,
    /// An event does not come when it is asked for by its id, however often.
    NotServed,
}

impl AnswerFault {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::EoseLost => "eose lost",
            Self::EoseTwice => "eose twice",
            Self::EoseWithoutId => "eose without id",
            Self::EoseEarly => "eose early",
            Self::EoseFirst => "eose first",
            Self::EoseLongBefore => "eose long before the rest",
            Self::EoseInstead => "eose instead of the rest",
            Self::EventLost => "event lost",
            Self::NotServed => "id not served",
        }
    }
}

/// An answer under way.
#[derive(Debug, Clone)]
struct Answer {
    by_ids: bool,
    in_one_second: bool,
    /// The date of its first event, in seconds since 1970.
    first: Option<u64>,
    events: u64,
    /// Events after which the fault happens, if it happens to this answer.
    fails_after: Option<u64>,
    is_over: bool,
}

/// A relay some of whose answers go wrong.
#[derive(Debug, Clone)]
pub struct Answers {
    fault: AnswerFault,
    chance: Chance,
    salt: u64,
    under_way: BTreeMap<(ClientId, String), Answer>,
    /// The earliest time that the wall clock has shown, in seconds since 1970.
    began_at_secs: u64,
}

/// An event is old if it is so many seconds older than the first request: it cannot be news to anybody.
const OLD_SECS: u64 = 600;

/// The longest that the rest of an answer takes behind its EOSE.
const REST_AFTER_MAX_SECS: u64 = 120;

/// Events before an early EOSE, at most.
const EARLY_EVENTS_MAX: u64 = 40;

impl Answers {
    /// With this fault, so often.
    pub fn new(fault: AnswerFault, mut chance: Chance) -> Self {
        let salt = chance.below(u64::MAX);
        Self { fault, chance, salt, under_way: BTreeMap::new(), began_at_secs: u64::MAX }
    }

    /// Does an EOSE of its own come before the answer's last event?
    fn is_early(&self) -> bool {
        use AnswerFault::{EoseEarly, EoseFirst, EoseInstead, EoseLongBefore};
        matches!(self.fault, EoseEarly | EoseFirst | EoseLongBefore | EoseInstead)
    }

    fn begin(&mut self, client: ClientId, name: String, filters: &[Filter]) {
        let fails = self.is_early() && self.chance.hits();
        let events_max = if self.fault == AnswerFault::EoseFirst { 1 } else { EARLY_EVENTS_MAX };
        let fails_after = fails.then(|| self.chance.below(events_max));
        let by_ids = filters.iter().any(|filter| filter.ids.is_some());
        let in_one_second = filters.iter().any(|filter| filter.since.is_some() && filter.since == filter.until);
        let answer = Answer { by_ids, in_one_second, first: None, events: 0, fails_after, is_over: false };
        self.under_way.insert((client, name), answer);
    }

    fn handle_eose(&mut self, frame: String, turn: &mut Turn) {
        let answer = name_of(&frame, "EOSE").and_then(|name| self.under_way.get_mut(&(turn.client, name.to_owned())));
        if answer.is_some_and(|answer| std::mem::replace(&mut answer.is_over, true)) {
            // It has had its EOSE, early.
            return;
        }
        let at_end = [AnswerFault::EoseLost, AnswerFault::EoseTwice, AnswerFault::EoseWithoutId];
        if !at_end.contains(&self.fault) || !self.chance.hits() {
            return turn.say(frame);
        }
        turn.inject(self.fault.name());
        match self.fault {
            AnswerFault::EoseTwice => {
                turn.say(frame.clone());
                turn.say(frame);
            }
            AnswerFault::EoseWithoutId => turn.say("[\"EOSE\"]"),
            _ => {}
        }
    }

    fn handle_event(&mut self, frame: String, name: &str, event: &Event, turn: &mut Turn) {
        let (id, is_early) = (event.id.to_bytes(), self.is_early());
        let Some(answer) = self.under_way.get_mut(&(turn.client, name.to_owned())) else { return turn.say(frame) };
        let created_at = event.created_at_secs();
        let first = *answer.first.get_or_insert(created_at);
        answer.events += 1;
        let is_due = !answer.is_over && answer.fails_after.is_some_and(|after| answer.events > after);
        let happens = match self.fault {
            AnswerFault::EventLost => !answer.by_ids && !answer.is_over && self.chance.hits(),
            AnswerFault::NotServed => answer.by_ids && self.chance.hits_id(&id, self.salt),
            AnswerFault::EoseEarly => {
                // Behind an event of another second, since only then does the client go on asking, and is there to see
                // that more comes.
                let is_old = created_at.saturating_add(OLD_SECS) < self.began_at_secs;
                is_due && is_old && created_at != first && !answer.by_ids && !answer.in_one_second
            }
            _ => is_early && is_due,
        };
        if happens {
            turn.inject(self.fault.name());
            if !is_early {
                return;
            }
            answer.is_over = true;
            turn.say(relay::eose(name, EoseHint::None));
        }
        let is_behind = answer.is_over && answer.fails_after.is_some();
        match self.fault {
            AnswerFault::EoseInstead if is_behind => {}
            AnswerFault::EoseLongBefore if is_behind => {
                let delay = Duration::from_secs(self.chance.within(1, REST_AFTER_MAX_SECS));
                turn.say_later(frame, delay);
            }
            _ => turn.say(frame),
        }
    }
}

impl Tamper for Answers {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        self.began_at_secs = self.began_at_secs.min(turn.now.unix_secs);
        if let Some((name, filters)) = req_of(&frame) {
            self.begin(turn.client, name, &filters);
        }
        Some(frame)
    }

    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        if frame.starts_with("[\"EOSE\"") {
            return self.handle_eose(frame, turn);
        }
        match event_of(&frame) {
            Some((name, event)) => self.handle_event(frame, &name, &event, turn),
            None => turn.say(frame),
        }
    }
}
