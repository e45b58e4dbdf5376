//! Faults of what a relay answers to a REQ.

use std::collections::{BTreeMap, BTreeSet};

use super::{Tamper, Turn, eose_of, event_of, req_of};
use crate::protocol::message::{EoseHint, client, relay};
use crate::protocol::{Event, Filter};
use crate::serve::ClientId;

/// The REQ with other filters, if `change` changes any of them.
fn rewritten(frame: String, kind: &'static str, turn: &mut Turn, change: impl Fn(&mut Filter) -> bool) -> String {
    let Some((subscription, mut filters)) = req_of(&frame) else { return frame };
    let changed = filters.iter_mut().filter_map(|filter| change(filter).then_some(())).count();
    if changed > 0 {
        turn.inject(kind);
        return client::req(&subscription, &filters);
    }
    frame
}

/// Gives at most so many stored events for a filter, without a word.
#[derive(Debug, Clone, Copy)]
pub struct PageCap(pub usize);

impl Tamper for PageCap {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        let cap = self.0;
        Some(rewritten(frame, "page cap", turn, |filter| {
            let is_cut = filter.limit.is_none_or(|limit| limit > cap);
            filter.limit = if is_cut { Some(cap) } else { filter.limit };
            is_cut
        }))
    }
}

/// Does not look at a field of filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignores {
    /// `until`, whatever it is.
    Until,
    /// `until` if it is 0.
    UntilZero,
}

impl Ignores {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Until => "until ignored",
            Self::UntilZero => "until 0 ignored",
        }
    }
}

impl Tamper for Ignores {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        let all = *self == Self::Until;
        Some(rewritten(frame, self.name(), turn, |filter| {
            let is_ignored = filter.until.is_some_and(|until| all || until.as_secs() == 0);
            filter.until = filter.until.filter(|_| !is_ignored);
            is_ignored
        }))
    }
}

/// What it makes of `limit: 0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitZero {
    /// It never answers.
    Silent,
    /// It closes the subscription.
    Closed,
    /// It complains, and never answers.
    Notice,
    /// It gives all events, as if there were no limit.
    NoLimit,
}

impl LimitZero {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Silent => "limit 0 not answered",
            Self::Closed => "limit 0 closed",
            Self::Notice => "limit 0 refused by notice",
            Self::NoLimit => "limit 0 taken for none",
        }
    }
}

impl Tamper for LimitZero {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        match req_of(&frame) {
            Some((subscription, filters)) if filters.iter().any(|filter| filter.limit == Some(0)) => {
                turn.inject(self.name());
                match self {
                    Self::Silent => {}
                    Self::Closed => turn.say(relay::closed(&subscription, "invalid: limit must be positive")),
                    Self::Notice => turn.say(relay::notice("ERROR: bad req: limit must be positive")),
                    Self::NoLimit => {
                        let filters: Vec<Filter> =
                            filters.into_iter().map(|filter| Filter { limit: None, ..filter }).collect();
                        return Some(client::req(&subscription, &filters));
                    }
                }
                None
            }
            _ => Some(frame),
        }
    }
}

/// What is wrong with EOSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EoseFault {
    /// It names no subscription.
    WithoutId,
    /// It comes once more.
    Twice,
    /// It never comes.
    Lost,
    /// It comes after so many events, and the others behind it.
    Early(usize),
}

/// A relay with a fault in its EOSE.
#[derive(Debug, Clone)]
pub struct Eose {
    fault: EoseFault,
    sent: BTreeMap<(ClientId, String), usize>,
}

impl Eose {
    /// With this fault.
    pub fn new(fault: EoseFault) -> Self {
        Self { fault, sent: BTreeMap::new() }
    }
}

impl Tamper for Eose {
    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        if let Some(subscription) = eose_of(&frame) {
            match self.fault {
                EoseFault::WithoutId => turn.say("[\"EOSE\"]"),
                EoseFault::Twice => {
                    turn.say(frame.clone());
                    turn.say(frame);
                }
                EoseFault::Lost => {}
                EoseFault::Early(events) => {
                    if self.sent.remove(&(turn.client, subscription)).unwrap_or(0) < events {
                        turn.say(frame);
                    }
                }
            }
            return;
        }
        let subscription = event_of(&frame).map(|(subscription, _)| subscription);
        turn.say(frame);
        if let (EoseFault::Early(events), Some(subscription)) = (self.fault, subscription) {
            let sent = self.sent.entry((turn.client, subscription.clone())).or_default();
            *sent += 1;
            if *sent == events {
                turn.say(relay::eose(&subscription, EoseHint::None));
            }
        }
    }
}

/// Sends the stored events of each answer in another order: oldest first, or shuffled by a seed.
#[derive(Debug, Clone)]
pub struct Shuffled {
    seed: Option<u64>,
    held: BTreeMap<(ClientId, String), Vec<(Event, String)>>,
    live: BTreeSet<(ClientId, String)>,
}

impl Shuffled {
    /// Oldest first.
    pub fn oldest_first() -> Self {
        Self { seed: None, held: BTreeMap::new(), live: BTreeSet::new() }
    }

    /// In an order that `seed` determines.
    pub fn by(seed: u64) -> Self {
        Self { seed: Some(seed), ..Self::oldest_first() }
    }
}

impl Tamper for Shuffled {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        if let Some((subscription, _)) = req_of(&frame) {
            self.live.remove(&(turn.client, subscription));
        }
        Some(frame)
    }

    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        if let Some(subscription) = eose_of(&frame) {
            let key = (turn.client, subscription);
            let mut events = self.held.remove(&key).unwrap_or_default();
            if events.len() > 1 {
                turn.inject(if self.seed.is_none() { "oldest first" } else { "shuffled" });
            }
            match &mut self.seed {
                None => events.reverse(),
                Some(seed) => {
                    *seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                    let salt = *seed;
                    events.sort_by_key(|(event, _)| mix(event, salt));
                }
            }
            events.into_iter().for_each(|(_, frame)| turn.say(frame));
            self.live.insert(key);
            turn.say(frame);
            return;
        }
        match event_of(&frame) {
            Some((subscription, event)) if !self.live.contains(&(turn.client, subscription.clone())) => {
                self.held.entry((turn.client, subscription)).or_default().push((event, frame));
            }
            _ => turn.say(frame),
        }
    }
}

fn mix(event: &Event, salt: u64) -> u64 {
    let id = event.id.to_bytes();
    let mut head = [0; 8];
    head.copy_from_slice(&id[..8]);
    (u64::from_le_bytes(head) ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Never sends these events, though it has them and offers them.
#[derive(Debug, Clone)]
pub struct Missing(pub BTreeSet<[u8; 32]>);

impl Tamper for Missing {
    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        if event_of(&frame).is_none_or(|(_, event)| !self.0.contains(&event.id.to_bytes())) {
            turn.say(frame);
        }
    }
}

/// Sends these events with a signature that is not the author's, or with other contents under the same id.
#[derive(Debug, Clone)]
pub struct Altered {
    ids: BTreeSet<[u8; 32]>,
    signature: bool,
}

impl Altered {
    /// With a wrong signature.
    pub fn signatures(ids: BTreeSet<[u8; 32]>) -> Self {
        Self { ids, signature: true }
    }

    /// With other contents.
    pub fn contents(ids: BTreeSet<[u8; 32]>) -> Self {
        Self { ids, signature: false }
    }
}

impl Tamper for Altered {
    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        let forged =
            event_of(&frame).filter(|(_, event)| self.ids.contains(&event.id.to_bytes())).map(|(name, event)| {
                let mut json: serde_json::Value = serde_json::from_str(event.json_str()).unwrap_or_default();
                if self.signature {
                    json["sig"] = "00".repeat(64).into();
                } else {
                    json["content"] = format!("{} (altered)", event.content).into();
                }
                relay::event(&name, &json.to_string())
            });
        turn.say(forged.unwrap_or(frame));
    }
}
