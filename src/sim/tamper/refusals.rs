//! Relays that refuse: rate limits, limits on subscriptions, authentication, closing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::{Tamper, Turn, event_of, req_of};
use crate::protocol::message::relay;
use crate::protocol::{ClientMessage, RelayMessage};
use crate::runtime::Instant;
use crate::serve::ClientId;

/// How a rate limit is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLimitBy {
    /// By a NOTICE.
    Notice,
    /// By a CLOSED.
    Closed,
    /// By closing the connection.
    Close,
}

impl RateLimitBy {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Notice => "rate limit by notice",
            Self::Closed => "rate limit by closed",
            Self::Close => "rate limit by close",
        }
    }
}

/// At most so many REQs a minute.
#[derive(Debug, Clone)]
pub struct RateLimit {
    requests_max: usize,
    by: RateLimitBy,
    times: VecDeque<Instant>,
}

impl RateLimit {
    /// At most `requests_max` REQs a minute.
    pub fn new(requests_max: usize, by: RateLimitBy) -> Self {
        Self { requests_max, by, times: VecDeque::new() }
    }
}

impl Tamper for RateLimit {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        let Some((subscription, _)) = req_of(&frame) else { return Some(frame) };
        let now = turn.now.instant;
        while self.times.front().is_some_and(|at| now - *at > Duration::from_secs(60)) {
            self.times.pop_front();
        }
        if self.times.len() < self.requests_max {
            self.times.push_back(now);
            return Some(frame);
        }
        turn.inject(self.by.name());
        match self.by {
            RateLimitBy::Notice => turn.say(relay::notice("rate-limited: slow down there chief")),
            RateLimitBy::Closed => turn.say(relay::closed(&subscription, "rate-limited: too many queries")),
            RateLimitBy::Close => turn.close("rate-limited: too many requests"),
        }
        None
    }
}

/// At most so many REQs open at a time, on one connection.
#[derive(Debug, Clone)]
pub struct SubscriptionCap {
    most: usize,
    by_notice: bool,
    open: BTreeMap<ClientId, BTreeSet<String>>,
    /// How often it was exceeded.
    pub refusals: usize,
}

impl SubscriptionCap {
    /// Refuses more than `most` by CLOSED, or by a NOTICE without an id.
    pub fn new(most: usize, by_notice: bool) -> Self {
        Self { most, by_notice, open: BTreeMap::new(), refusals: 0 }
    }
}

impl Tamper for SubscriptionCap {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        let open = self.open.entry(turn.client).or_default();
        match ClientMessage::parse(&frame) {
            Ok(ClientMessage::Req { subscription, .. }) => {
                if open.len() < self.most {
                    open.insert(subscription.into_owned());
                    return Some(frame);
                }
                self.refusals += 1;
                turn.inject(if self.by_notice { "subscription cap by notice" } else { "subscription cap by closed" });
                turn.say(match self.by_notice {
                    true => relay::notice("too many concurrent REQs"),
                    false => relay::closed(&subscription, "error: too many concurrent REQs"),
                });
                None
            }
            Ok(ClientMessage::Close { subscription }) => {
                open.remove(&*subscription);
                Some(frame)
            }
            _ => Some(frame),
        }
    }

    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        if let Ok(RelayMessage::Closed { subscription, .. }) = RelayMessage::parse(&frame)
            && let Some(open) = self.open.get_mut(&turn.client)
        {
            open.remove(&*subscription);
        }
        turn.say(frame);
    }
}

/// Closes the connection after so many events, so many times.
#[derive(Debug, Clone)]
pub struct ClosesAfter {
    events: usize,
    times: usize,
    sent: usize,
}

impl ClosesAfter {
    /// After `events` events on a connection, `times` times.
    pub fn new(events: usize, times: usize) -> Self {
        Self { events, times, sent: 0 }
    }
}

impl Tamper for ClosesAfter {
    fn handle_open(&mut self, _client: ClientId) {
        self.sent = 0;
    }

    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        let is_event = event_of(&frame).is_some();
        if is_event && self.times > 0 && self.sent == self.events {
            self.times -= 1;
            turn.close("");
            return;
        }
        self.sent += usize::from(is_event);
        turn.say(frame);
    }
}

/// Sends the challenge (NIP-42) behind the refusal that calls for it, not before.
#[derive(Debug, Clone, Default)]
pub struct LateChallenge {
    held: Option<String>,
}

impl Tamper for LateChallenge {
    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        match RelayMessage::parse(&frame) {
            Ok(RelayMessage::Auth { .. }) => self.held = Some(frame),
            Ok(RelayMessage::Closed { .. } | RelayMessage::NegErr { .. }) => {
                turn.say(frame);
                if let Some(challenge) = self.held.take() {
                    turn.say(challenge);
                }
            }
            _ => turn.say(frame),
        }
    }
}

/// Answers no EVENT with an OK, or refuses all in these words.
#[derive(Debug, Clone, Default)]
pub struct NoOk {
    /// The words of the refusal; silence without any.
    pub words: Option<String>,
    /// Only so many events are treated so.
    pub times: usize,
}

impl Tamper for NoOk {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        let Ok(ClientMessage::Event { json }) = ClientMessage::parse(&frame) else { return Some(frame) };
        if self.times == 0 {
            return Some(frame);
        }
        self.times -= 1;
        if let (Some(words), Ok(event)) = (&self.words, crate::protocol::Event::parse(json.to_owned().into())) {
            turn.say(relay::ok(&event.id.to_hex(), false, words));
        }
        None
    }
}
