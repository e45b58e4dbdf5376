//! Publishing single events for the embedder, each to have an answer.

use std::time::Duration;

use super::{Effect, Engine, Notice};
use crate::protocol::{Event, RelayUrl};
use crate::relay::Refusal;

/// What came of one event at one relay. Words are the relay's own, or say what failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishAnswer {
    /// The relay took it.
    Accepted(String),
    /// The relay had it already.
    Duplicate(String),
    /// The relay does not want it.
    Refused(String),
    /// The relay asks for less traffic.
    RateLimited(String),
    /// The relay wants authentication (NIP-42) that it did not get.
    AuthRequired(String),
    /// No connection came about, or none lasted.
    Unreachable(String),
    /// The relay did not answer in time.
    TimedOut,
    /// The engine was stopped before the relay answered.
    Stopped,
}

impl PublishAnswer {
    /// Reads an OK (NIP-01).
    pub(super) fn read(accepted: bool, words: &str) -> Self {
        let words = words.to_owned();
        match (accepted, words.starts_with("duplicate")) {
            (_, true) => Self::Duplicate(words),
            (true, false) => Self::Accepted(words),
            (false, false) => match Refusal::read(&words) {
                Refusal::RateLimited => Self::RateLimited(words),
                Refusal::AuthRequired => Self::AuthRequired(words),
                _ => Self::Refused(words),
            },
        }
    }

    /// Does the relay hold the event now?
    pub fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted(_) | Self::Duplicate(_))
    }

    /// Did the relay hold the event before?
    pub fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate(_))
    }

    /// May the relay answer otherwise later?
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::RateLimited(_) | Self::Unreachable(_) | Self::TimedOut | Self::Stopped)
    }

    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Accepted(_) => "accepted",
            Self::Duplicate(_) => "duplicate",
            Self::Refused(_) => "refused",
            Self::RateLimited(_) => "rate_limited",
            Self::AuthRequired(_) => "auth_required",
            Self::Unreachable(_) => "unreachable",
            Self::TimedOut => "timed_out",
            Self::Stopped => "stopped",
        }
    }

    /// The words.
    pub fn reason(&self) -> &str {
        match self {
            Self::Accepted(words)
            | Self::Duplicate(words)
            | Self::Refused(words)
            | Self::RateLimited(words)
            | Self::AuthRequired(words)
            | Self::Unreachable(words) => words,
            Self::TimedOut => "no answer in time",
            Self::Stopped => "stopped before an answer came",
        }
    }
}

impl Engine {
    /// This is to be published, and an answer given in time.
    pub(super) fn publish(&mut self, ticket: u64, relay: RelayUrl, event: Box<Event>, timeout: Duration) {
        if self.stopping || self.store_error.is_some() {
            let answer = PublishAnswer::Stopped;
            self.out.push_back(Effect::Notify(Notice::Published { ticket, relay, answer }));
            return;
        }
        let number = self.register(relay);
        let give_up_at = self.now.instant + timeout;
        self.with_relay(number, |relay, ctx| relay.post(ticket, event, give_up_at, ctx));
    }
}
