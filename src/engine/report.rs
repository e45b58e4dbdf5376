//! What became of a sync: the true answer to "is my copy complete?".

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::protocol::{FilterKey, RelayUrl, Window};
use crate::relay::HealthState;
use crate::runtime::FailureKind;
use crate::store::Method;

/// Something that could not be proven complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The filter.
    pub filter: FilterKey,
    /// The time that it is about.
    pub window: Window,
    /// Why.
    pub reason: GapReason,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.window, self.reason)
    }
}

/// Why something could not be proven complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "detail")]
pub enum GapReason {
    /// No connection came about.
    Unreachable(String),
    /// Connections came about, and were lost each time before anything was brought to its end.
    ConnectionLost(String),
    /// The relay was followed, and is not connected any more, in these words: what it got since then is not known.
    Disconnected(String),
    /// The relay stopped answering: what it sent is held, but it did not say that this was all.
    Stalled,
    /// The relay sent stored events after it had said that this was all.
    EarlyEose,
    /// An answer had more events than are taken in one.
    Endless,
    /// More events in one second than the relay gives in a page, and no other way to ask for the rest.
    SecondOverflow {
        /// Events of that second that the relay gave.
        received: usize,
    },
    /// The relay does not honour `until`, so older events cannot be asked for.
    UntilIgnored,
    /// The relay gives the oldest events rather than the newest when there are more than it gives at once.
    OldestFirst,
    /// The relay gives events in no order, and more than it gives at once, however small the parts that it is asked for.
    Disordered,
    /// The relay refused, in these words.
    Refused(String),
    /// The relay wants authentication (NIP-42) that it did not get.
    AuthRequired(String),
    /// The relay offered events, but did not deliver them when asked, twice.
    NotDelivered {
        /// How many.
        events: usize,
    },
    /// Reconciliation kept finding differences.
    Unsettled {
        /// How many at the end.
        events: usize,
    },
    /// The relay did not take these of our events, in its words.
    NotAccepted {
        /// How many.
        events: usize,
        /// The first refusal.
        reason: String,
    },
    /// The relay did not say whether it took these of our events.
    Unacknowledged {
        /// How many.
        events: usize,
    },
    /// The store has no room for events that are so old: see [`Store::floor_secs`](crate::store::Store::floor_secs).
    Pruned,
    /// The store failed.
    Store(String),
    /// Stopped before the end: by the user, or because the time was up.
    Stopped,
}

impl GapReason {
    /// A stable word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::ConnectionLost(_) => "connection_lost",
            Self::Disconnected(_) => "disconnected",
            Self::Stalled => "stalled",
            Self::EarlyEose => "early_eose",
            Self::Endless => "endless",
            Self::SecondOverflow { .. } => "second_overflow",
            Self::UntilIgnored => "until_ignored",
            Self::OldestFirst => "oldest_first",
            Self::Disordered => "disordered",
            Self::Refused(_) => "refused",
            Self::AuthRequired(_) => "auth_required",
            Self::NotDelivered { .. } => "not_delivered",
            Self::Unsettled { .. } => "unsettled",
            Self::NotAccepted { .. } => "not_accepted",
            Self::Unacknowledged { .. } => "unacknowledged",
            Self::Pruned => "pruned",
            Self::Store(_) => "store",
            Self::Stopped => "stopped",
        }
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "relay not reachable: {why}"),
            Self::ConnectionLost(why) => write!(f, "no connection lasted: {why}"),
            Self::Disconnected(why) if why.is_empty() => f.write_str("not connected, so not followed"),
            Self::Disconnected(why) => write!(f, "not connected, so not followed: {why}"),
            Self::Stalled => f.write_str("the relay stopped answering before it said that this was all"),
            Self::EarlyEose => f.write_str("the relay sent events after it had said that this was all"),
            Self::Endless => f.write_str("the relay sent more in one answer than is taken, and was cut off"),
            Self::SecondOverflow { received } => {
                write!(f, "more events in this second than the relay gives at once ({received} received)")
            }
            Self::UntilIgnored => f.write_str("the relay ignores \"until\", so older events cannot be asked for"),
            Self::OldestFirst => f.write_str("the relay gives its oldest events, and may have more of these"),
            Self::Disordered => f.write_str("the relay gives events in no order, and may have left some out"),
            Self::Refused(words) if words.is_empty() => f.write_str("refused by the relay, without a word"),
            Self::Refused(words) => write!(f, "refused by the relay: {words}"),
            Self::AuthRequired(words) => write!(f, "the relay wants authentication: {words}"),
            Self::NotDelivered { events } => write!(f, "{events} events offered by the relay, but not delivered"),
            Self::Unsettled { events } => write!(f, "{events} differences left after repeated reconciliation"),
            Self::NotAccepted { events, reason } => write!(f, "{events} events not accepted by the relay: {reason}"),
            Self::Unacknowledged { events } => write!(f, "{events} events sent, but not acknowledged"),
            Self::Pruned => f.write_str("older than what the store has room for"),
            Self::Store(error) => write!(f, "the store failed: {error}"),
            Self::Stopped => f.write_str("stopped before the end"),
        }
    }
}

/// What was counted at one relay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Events that the relay sent and that were asked for.
    pub received: u64,
    /// Of these, new and held now.
    pub stored: u64,
    /// Of these, held already, or come from another relay at the same time.
    pub duplicate: u64,
    /// Of these, neither stored nor duplicate: superseded, deleted, expired, vanished or ephemeral.
    pub unwanted: u64,
    /// Of these, with a wrong id or signature.
    pub invalid: u64,
    /// Of these, protected events that the access rules do not let this relay write.
    pub forbidden: u64,
    /// Frames that were no message, or held no event.
    pub malformed: u64,
    /// Events that match no filter that they were sent for, or that nobody asked for.
    pub unsolicited: u64,
    /// EOSE without a subscription, or for one that is not open.
    pub stray_eose: u64,
    /// Events that the relay took from us.
    pub published: u64,
    /// Events that the relay refused.
    pub refused: u64,
    /// Events that were not passed on at once, as too many waited already.
    pub outbox_overflows: u64,
    /// Histories begun: each is one filter, or several packed ones, looked at from its beginning or from what was proven.
    pub histories: u64,
    /// Live subscriptions that were opened again, after a loss or a refusal.
    pub subscription_restarts: u64,
    /// Pages asked for.
    pub pages: u64,
    /// Negentropy messages exchanged, both ways together counting one.
    pub rounds: u64,
    /// Requests by id.
    pub id_requests: u64,
    /// Connections made.
    pub connections: u64,
    /// Attempts at a connection that came to nothing.
    pub connections_failed: u64,
    /// Rate limits met.
    pub rate_limits: u64,
    /// How often small live filters were put together, as there were too many.
    pub consolidations: u64,
    /// Bytes of frames received.
    pub bytes_in: u64,
    /// Bytes of frames sent.
    pub bytes_out: u64,
    /// In a dry run: events that a real one would have downloaded.
    pub would_store: u64,
    /// In a dry run: events that a real one would have published.
    pub would_publish: u64,
}

/// What a relay is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Not connected: waiting for the first or the next attempt.
    Waiting,
    /// Connecting.
    Connecting,
    /// Fetching history.
    Syncing,
    /// Resting because the relay asked for less traffic.
    Cooldown,
    /// History done; live.
    Live,
    /// History done, but the relay does not serve all that is new live: it is asked for that from time to time.
    Polling,
    /// Nothing more to do.
    Done,
}

/// One relay's part of a sync.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayReport {
    /// The relay.
    pub relay: RelayUrl,
    /// What it is at.
    pub phase: Phase,
    /// How the link is. Events that were rejected are no ill health, but counters.
    pub health: HealthState,
    /// Is there a connection at this moment?
    pub connected: bool,
    /// Failures of the link in a row, without anything useful between them.
    pub failures: u32,
    /// In how many seconds, from the moment of this report, the relay may be tried or asked again, if it may not now.
    pub next_try_secs: Option<u64>,
    /// The words in which the relay last refused a live subscription, unless it has served it since.
    pub live_refused: Option<String>,
    /// How histories were fetched; more than one if a filter fell back, or filters differed.
    pub methods: Vec<Method>,
    /// Why a preferred method was not used: `negentropy` → the refusal.
    pub fallbacks: BTreeMap<String, String>,
    /// Parts of the windows were not asked for again, because they were proven as of this wall time, in seconds since 1970,
    /// by an earlier pass, or by what followed it live: what the relay got since then with an older date is not known.
    pub relied_on_secs: Option<u64>,
    /// Counters.
    #[serde(flatten)]
    pub counters: Counters,
    /// Everything asked for is proven to be held (and, for `up`, taken by the relay).
    pub complete: bool,
    /// What is not.
    pub gaps: Vec<Gap>,
    /// Gaps beyond the number kept.
    pub gaps_dropped: u64,
    /// The last failure of the link.
    pub last_error: Option<String>,
    /// When that was, in seconds since 1970.
    pub last_error_secs: Option<u64>,
    /// Of what kind that was, if it has one.
    pub last_error_kind: Option<FailureKind>,
    /// Of what kind it was.
    pub failure: Option<FailureKind>,
    /// The words in which the relay refused our authentication (NIP-42), unless it has accepted it since.
    pub auth_refused: Option<String>,
    /// What the access rules keep from being synced with this relay, in words; empty if nothing, or if it is not told.
    #[serde(default)]
    pub denied: Vec<String>,
    /// When things last happened.
    pub moments: Moments,
}

#[cfg(test)]
impl RelayReport {
    /// A relay that is connected, live and complete, and has brought nothing: what tests change parts of.
    pub(crate) fn live(url: &str) -> Self {
        Self {
            relay: RelayUrl::parse(url).expect("tests write URLs"),
            phase: Phase::Live,
            health: HealthState::Healthy,
            connected: true,
            failures: 0,
            next_try_secs: None,
            live_refused: None,
            methods: vec![],
            fallbacks: BTreeMap::new(),
            relied_on_secs: None,
            counters: Counters::default(),
            complete: true,
            gaps: vec![],
            gaps_dropped: 0,
            last_error: None,
            last_error_secs: None,
            last_error_kind: None,
            failure: None,
            auth_refused: None,
            denied: vec![],
            moments: Moments::default(),
        }
    }
}

/// When things last happened at a relay, in seconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    /// The connection was opened.
    pub connected_secs: Option<u64>,
    /// The connection ended.
    pub disconnected_secs: Option<u64>,
    /// A pass over something that is wanted was begun.
    pub sync_started_secs: Option<u64>,
    /// The last of those under way was through.
    pub sync_completed_secs: Option<u64>,
    /// An event came that was asked for.
    pub event_secs: Option<u64>,
    /// EOSE came.
    pub eose_secs: Option<u64>,
}
