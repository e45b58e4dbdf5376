//! What a server has seen since it started. Every bound that bites is counted here.

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counters {
    /// Connections opened.
    pub clients: u64,
    /// Connections turned away because there were too many, in all or from one address: counted by a binding to sockets.
    pub clients_turned_away: u64,
    /// Connections that the server ended for their behaviour.
    pub clients_cut: u64,
    /// Frames received.
    pub frames: u64,
    /// Frames that were no message.
    pub frames_malformed: u64,
    /// Times that reading from a client was paused because its events waited to be stored.
    pub readings_paused: u64,
    /// Events received from clients.
    pub events: u64,
    /// Events of clients that were stored.
    pub events_stored: u64,
    /// Events of clients that were refused, duplicates not among them.
    pub events_refused: u64,
    /// Events of clients, among those refused, that were judged not to be wanted.
    pub events_unwanted: u64,
    /// Events of clients, among those refused, of which nobody could say whether they are wanted.
    pub events_unjudged: u64,
    /// Events of clients, among those refused, that were more than a client may publish in a minute.
    pub events_rate_limited: u64,
    /// REQs answered.
    pub requests: u64,
    /// REQs refused.
    pub requests_refused: u64,
    /// Subscriptions closed because events that were stored elsewhere could not be offered to them.
    pub subscriptions_missed: u64,
    /// REQs, COUNTs and NEG-OPENs that were more than a client may send in a minute.
    pub requests_rate_limited: u64,
    /// Frames that were refused because a client had sent as many bytes as it may in a minute.
    pub frames_rate_limited: u64,
    /// Connections that were ended because too much waited for all clients together, and most for these.
    pub clients_cut_for_all: u64,
    /// REQs, COUNTs and NEG-OPENs, among those refused, and subscriptions and reconciliations ended by a change of the
    /// rules, that asked for protected events which the client may not read.
    pub reads_forbidden: u64,
    /// Events of clients, among those refused, that are protected and that the client may not write.
    pub writes_forbidden: u64,
    /// Filters that the page cap cut short.
    pub pages_capped: u64,
    /// COUNTs answered.
    pub counts: u64,
    /// COUNTs refused.
    pub counts_refused: u64,
    /// AUTH events accepted.
    pub auths: u64,
    /// AUTH events refused.
    pub auths_refused: u64,
    /// Reconciliations opened.
    pub negentropy: u64,
    /// Reconciliations refused or ended by an error.
    pub negentropy_refused: u64,
    /// Item sets read from the store.
    pub item_sets_read: u64,
    /// Pieces of work that failed, as the store or the machine let us down.
    pub faults: u64,
}
