//! How things are at a relay, as JavaScript sees it.

use serde::Serialize;

use crate::engine::{Phase, RelayReport};
use crate::relay::HealthState;
use crate::runtime::FailureKind;
use crate::store::Method;

/// How things are at a relay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::browser) struct RelayView {
    url: String,
    health: HealthState,
    phase: Phase,
    connected: bool,
    /// Of what kind the failure of the link is that lasts.
    failure: Option<FailureKind>,
    /// The last failure of the link, in words.
    reason: Option<String>,
    next_try_secs: Option<u64>,
    methods: Vec<Method>,
    auth_refused: Option<String>,
    live_refused: Option<String>,
    complete: bool,
    counts: RelayCounts,
}

/// What was counted at a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct RelayCounts {
    received: u64,
    stored: u64,
    duplicate: u64,
    unwanted: u64,
    invalid: u64,
    malformed: u64,
    unsolicited: u64,
    published: u64,
    refused: u64,
    connections: u64,
    connections_failed: u64,
    rate_limits: u64,
    bytes_in: u64,
    bytes_out: u64,
}

impl RelayView {
    /// The view of a report.
    pub(super) fn of(report: &RelayReport) -> Self {
        let counters = &report.counters;
        Self {
            url: report.relay.to_string(),
            health: report.health,
            phase: report.phase,
            connected: report.connected,
            failure: report.failure,
            reason: report.last_error.clone(),
            next_try_secs: report.next_try_secs,
            methods: report.methods.clone(),
            auth_refused: report.auth_refused.clone(),
            live_refused: report.live_refused.clone(),
            complete: report.complete,
            counts: RelayCounts {
                received: counters.received,
                stored: counters.stored,
                duplicate: counters.duplicate,
                unwanted: counters.unwanted,
                invalid: counters.invalid,
                malformed: counters.malformed,
                unsolicited: counters.unsolicited,
                published: counters.published,
                refused: counters.refused,
                connections: counters.connections,
                connections_failed: counters.connections_failed,
                rate_limits: counters.rate_limits,
                bytes_in: counters.bytes_in,
                bytes_out: counters.bytes_out,
            },
        }
    }

    /// The relay.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// What is told of when it changes: not every event that comes.
    pub(super) fn standing(&self) -> (HealthState, Phase, bool, Option<FailureKind>) {
        (self.health, self.phase, self.connected, self.failure)
    }
}
