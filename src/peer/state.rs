//! What a peer is at, and what is remembered of it over restarts.

use serde::{Deserialize, Serialize};

use super::rfc3339;
use crate::engine::{Moments, RelayReport};
use crate::runtime::FailureKind;

/// What a peer is at. In JSON its moments are text (RFC 3339, in UTC).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerState {
    /// Its name.
    pub server_id: String,
    /// Is it worked on?
    pub state: WorkerState,
    /// Is there a connection?
    pub connected: bool,
    /// When a connection was opened last, in seconds since 1970, as all of these.
    #[serde(rename = "last_connected_at", with = "rfc3339::optional")]
    pub last_connected_secs: Option<u64>,
    /// When one ended last.
    #[serde(rename = "last_disconnected_at", with = "rfc3339::optional")]
    pub last_disconnected_secs: Option<u64>,
    /// When a pass over what is wanted was begun last.
    #[serde(rename = "last_sync_started_at", with = "rfc3339::optional")]
    pub last_sync_started_secs: Option<u64>,
    /// When all that was to be asked had been asked last.
    #[serde(rename = "last_sync_completed_at", with = "rfc3339::optional")]
    pub last_sync_completed_secs: Option<u64>,
    /// When an event came last that was asked for.
    #[serde(rename = "last_event_received_at", with = "rfc3339::optional")]
    pub last_event_received_secs: Option<u64>,
    /// When EOSE came last.
    #[serde(rename = "last_eose_at", with = "rfc3339::optional")]
    pub last_eose_secs: Option<u64>,
    /// Failures of the link in a row.
    pub reconnect_attempts: u32,
    /// The last failure, in words.
    pub last_error: Option<String>,
    /// When it was first seen.
    #[serde(rename = "last_error_at", with = "rfc3339::optional")]
    pub last_error_secs: Option<u64>,
}

/// Is a peer worked on?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// Yes.
    Running,
    /// It is to be, but nothing works at the moment, or not yet.
    Starting,
    /// It is not enabled.
    Stopped,
}

impl PeerState {
    /// How it stands with the peer `id`, by what the engine says of it, if it says something, and by what is remembered.
    pub fn new(id: &str, enabled: bool, report: Option<&RelayReport>, marks: &PeerMarks) -> Self {
        let report = report.filter(|_| enabled);
        let Moments {
            connected_secs,
            disconnected_secs,
            sync_started_secs,
            sync_completed_secs,
            event_secs,
            eose_secs,
        } = marks.moments;
        Self {
            server_id: id.to_owned(),
            state: match (enabled, report) {
                (false, _) => WorkerState::Stopped,
                (true, None) => WorkerState::Starting,
                (true, Some(_)) => WorkerState::Running,
            },
            connected: report.is_some_and(|report| report.connected),
            last_connected_secs: connected_secs,
            last_disconnected_secs: disconnected_secs,
            last_sync_started_secs: sync_started_secs,
            last_sync_completed_secs: sync_completed_secs,
            last_event_received_secs: event_secs,
            last_eose_secs: eose_secs,
            reconnect_attempts: report.map_or(0, |report| report.failures),
            last_error: marks.last_error.as_ref().map(|error| error.text.clone()),
            last_error_secs: marks.last_error.as_ref().map(|error| error.at_secs),
        }
    }
}

/// What is remembered of a peer over restarts: when things last happened, and the last failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerMarks {
    /// When things last happened.
    pub moments: Moments,
    /// The last failure of the link.
    pub last_error: Option<LastError>,
}

/// A failure of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastError {
    /// In words.
    pub text: String,
    /// Its kind, where it has one.
    pub kind: Option<FailureKind>,
    /// When it was first seen, in seconds since 1970.
    pub at_secs: u64,
}

impl PeerMarks {
    /// Takes over what is new in `report`, which was made at `now_secs`. Gives whether anything was.
    pub fn observe(&mut self, report: &RelayReport, now_secs: u64) -> bool {
        let before = self.clone();
        let (old, new) = (self.moments, report.moments);
        self.moments = Moments {
            connected_secs: new.connected_secs.or(old.connected_secs),
            disconnected_secs: new.disconnected_secs.or(old.disconnected_secs),
            sync_started_secs: new.sync_started_secs.or(old.sync_started_secs),
            sync_completed_secs: new.sync_completed_secs.or(old.sync_completed_secs),
            event_secs: new.event_secs.or(old.event_secs),
            eose_secs: new.eose_secs.or(old.eose_secs),
        };
        let error = report.auth_refused.as_ref().or(report.last_error.as_ref());
        if let Some(text) = error
            && self.last_error.as_ref().is_none_or(|last| last.text != *text)
        {
            let kind = if report.auth_refused.is_some() { Some(FailureKind::AuthRefused) } else { report.failure };
            self.last_error = Some(LastError { text: text.clone(), kind, at_secs: now_secs });
        }
        *self != before
    }
}
