//! What a peer is at, and what is remembered of it over restarts.

use serde::{Deserialize, Serialize};

use super::rfc3339;
use super::words::cut;
use crate::engine::{Counters, Moments, RelayReport};
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
    /// When it was seen, about.
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
    /// In words, of [`WORDS_CHARS_MAX`](super::WORDS_CHARS_MAX) characters at most.
    pub text: String,
    /// Its kind, where it has one.
    pub kind: Option<FailureKind>,
    /// When it happened, in seconds since 1970. Of the same failure over and over again, the last time.
    pub at_secs: u64,
}

/// What of a report is compared with the next one of the same relay by the same engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    pub(super) counters: Counters,
    moments: Moments,
    last_error: Option<String>,
    last_error_secs: Option<u64>,
}

impl Glimpse {
    /// Of this report.
    pub fn of(report: &RelayReport) -> Self {
        Self {
            counters: report.counters.clone(),
            moments: report.moments,
            last_error: report.last_error.as_deref().map(cut),
            last_error_secs: report.last_error_secs,
        }
    }

    /// Has there been a connection since `base`?
    pub fn has_connected_since(&self, base: Option<&Self>) -> bool {
        self.counters.connections > base.map_or(0, |base| base.counters.connections)
    }

    /// Has something failed since `before`, which is `None` if nothing was known before? An error that is still told of
    /// when all is well again is no new one.
    fn has_failed_since(&self, before: Option<&Self>) -> bool {
        self.last_error_secs.is_some()
            && before.is_none_or(|before| {
                (self.last_error_secs, &self.last_error) != (before.last_error_secs, &before.last_error)
            })
    }
}

impl PeerMarks {
    /// Takes over what is new in `report` over what was seen `before` of the same engine, for this peer or not. Gives
    /// whether anything was.
    pub fn observe(&mut self, report: &RelayReport, before: Option<&Glimpse>) -> bool {
        let seen = Glimpse::of(report);
        let former = before.map_or_else(Moments::default, |before| before.moments);
        let (mut moments, new) = (self.moments, report.moments);
        for (mark, new, former) in [
            (&mut moments.connected_secs, new.connected_secs, former.connected_secs),
            (&mut moments.disconnected_secs, new.disconnected_secs, former.disconnected_secs),
            (&mut moments.sync_started_secs, new.sync_started_secs, former.sync_started_secs),
            (&mut moments.sync_completed_secs, new.sync_completed_secs, former.sync_completed_secs),
            (&mut moments.event_secs, new.event_secs, former.event_secs),
            (&mut moments.eose_secs, new.eose_secs, former.eose_secs),
        ] {
            if new.is_some() && new != former {
                *mark = new;
            }
        }
        let new = Some(&seen).filter(|seen| seen.has_failed_since(before));
        let error = new.and_then(|seen| seen.last_error.clone().zip(seen.last_error_secs));
        let error = error.map(|(text, at_secs)| LastError { text, kind: report.last_error_kind, at_secs });
        let observed = Self { moments, last_error: error.or_else(|| self.last_error.clone()) };
        let is_new = *self != observed;
        *self = observed;
        is_new
    }
}

#[cfg(test)]
mod tests;
