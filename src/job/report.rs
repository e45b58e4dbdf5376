//! How a job stands: the true answer to "is my copy complete?".

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use crate::engine::{Counters, GapReason, Phase};
use crate::protocol::{Filter, RelayUrl, Window};
use crate::relay::HealthState;
use crate::runtime::FailureKind;
use crate::store::Method;

/// A moment in the life of a job that can be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Each filter is fetched from each relay, or has gaps on record.
    CaughtUp,
    /// The job is over.
    Done,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum JobState {
    /// Something is still to be fetched.
    Syncing,
    /// See [`Moment::CaughtUp`].
    CaughtUp,
    /// The job is over.
    Done,
}

/// How a job stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobReport {
    /// How far it is.
    pub state: JobState,
    /// Everything asked for is proven to be held, from every relay (and, where events are published, taken by it).
    pub complete: bool,
    /// How histories were fetched.
    pub methods: Vec<Method>,
    /// What was counted at all relays.
    pub counts: Counts,
    /// Relay by relay.
    pub relays: Vec<RelayStanding>,
    /// What keeps the job from going on at the moment, if anything does: the store failed, in these words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a job stands at one relay.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelayStanding {
    /// The relay.
    pub url: RelayUrl,
    /// Each filter is fetched, or has gaps on record.
    pub settled: bool,
    /// Each filter is fetched, and there are no gaps.
    pub complete: bool,
    /// What the relay is at, for whatever job.
    pub phase: Phase,
    /// How the link is.
    pub health: HealthState,
    /// Is there a connection at this moment?
    pub connected: bool,
    /// How histories were fetched.
    pub methods: Vec<Method>,
    /// What could not be proven complete.
    pub gaps: Vec<JobGap>,
    /// Gaps beyond the number kept.
    pub gaps_dropped: u64,
    /// Of what kind the failure of the link is that lasts.
    pub failure: Option<FailureKind>,
    /// The last failure of the link, in words.
    pub message: Option<String>,
    /// What was counted on connections to the relay that jobs of this direction share.
    pub counts: Counts,
}

/// Something that could not be proven complete.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobGap {
    /// The filter of the job; `None` where it is one that discovery has made.
    pub filter: Option<Arc<Filter>>,
    /// The first second that it is about, since 1970; `None` for no beginning.
    pub since: Option<u64>,
    /// The last second; `None` for no end.
    pub until: Option<u64>,
    /// Why, in a stable word: see [`GapReason::kind`].
    pub kind: &'static str,
    /// Why, in words.
    pub message: String,
}

impl JobGap {
    pub(super) fn new(filter: Option<Arc<Filter>>, window: Window, reason: &GapReason) -> Self {
        let (since, until) = ends_of(window);
        Self { filter, since, until, kind: reason.kind(), message: reason.to_string() }
    }
}

/// The last second that reports name: the largest whole number that JavaScript and JSON's common readers hold. Who dates
/// events later than that, 285 million years from now, must not make reports unreadable.
const SECS_MAX: u64 = (1 << 53) - 1;

/// The ends of a window, `None` where it is open.
pub(super) fn ends_of(window: Window) -> (Option<u64>, Option<u64>) {
    let named = |secs: u64| secs.min(SECS_MAX);
    ((window.since > 0).then_some(named(window.since)), (window.until < Window::OPEN).then_some(named(window.until)))
}

/// What was counted: of events, if nothing else is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Sent by relays, and asked for.
    pub received: u64,
    /// Of these, new and held now.
    pub stored: u64,
    /// Of these, held already.
    pub duplicate: u64,
    /// Of these, superseded, deleted, vanished, expired or ephemeral.
    pub unwanted: u64,
    /// Of these, with a wrong id or signature.
    pub invalid: u64,
    /// Taken by relays from us.
    pub published: u64,
    /// Refused by relays.
    pub refused: u64,
    /// Connections made.
    pub connections: u64,
    /// Bytes of frames received.
    pub bytes_in: u64,
    /// Bytes of frames sent.
    pub bytes_out: u64,
}

impl Counts {
    pub(super) fn of(counters: &Counters) -> Self {
        Self {
            received: counters.received,
            stored: counters.stored,
            duplicate: counters.duplicate,
            unwanted: counters.unwanted,
            invalid: counters.invalid,
            published: counters.published,
            refused: counters.refused,
            connections: counters.connections,
            bytes_in: counters.bytes_in,
            bytes_out: counters.bytes_out,
        }
    }

    fn and(self, other: &Self) -> Self {
        Self {
            received: self.received + other.received,
            stored: self.stored + other.stored,
            duplicate: self.duplicate + other.duplicate,
            unwanted: self.unwanted + other.unwanted,
            invalid: self.invalid + other.invalid,
            published: self.published + other.published,
            refused: self.refused + other.refused,
            connections: self.connections + other.connections,
            bytes_in: self.bytes_in + other.bytes_in,
            bytes_out: self.bytes_out + other.bytes_out,
        }
    }
}

impl JobReport {
    /// The report on these relays.
    pub(super) fn over(relays: Vec<RelayStanding>, is_done: bool, error: Option<String>) -> Self {
        let is_settled = !relays.is_empty() && relays.iter().all(|relay| relay.settled);
        let state = match is_done {
            true => JobState::Done,
            false if is_settled => JobState::CaughtUp,
            false => JobState::Syncing,
        };
        // Whatever else is said: nothing is complete beside a gap.
        let is_proven = |relay: &RelayStanding| relay.complete && relay.gaps.is_empty() && relay.gaps_dropped == 0;
        let methods: BTreeSet<Method> = relays.iter().flat_map(|relay| &relay.methods).copied().collect();
        Self {
            state,
            complete: is_settled && relays.iter().all(is_proven) && error.is_none(),
            methods: methods.into_iter().collect(),
            counts: relays.iter().fold(Counts::default(), |sum, relay| sum.and(&relay.counts)),
            relays,
            error,
        }
    }

    /// Has this moment come?
    pub(super) fn has_come(&self, moment: Moment) -> bool {
        match moment {
            Moment::CaughtUp => self.state != JobState::Syncing,
            Moment::Done => self.state == JobState::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ends_of;
    use crate::protocol::Window;

    #[test]
    fn ends_are_numbers_that_javascript_holds() {
        assert_eq!(ends_of(Window::ALL), (None, None));
        assert_eq!(ends_of(Window { since: 5, until: 7 }), (Some(5), Some(7)));
        let far = Window { since: 1 << 60, until: (1 << 60) + 1 };
        assert_eq!(ends_of(far), (Some((1 << 53) - 1), Some((1 << 53) - 1)));
    }
}
