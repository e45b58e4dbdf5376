//! What the hook has done, and every bound that bit.

use serde::{Deserialize, Serialize};

/// Counts since the start, and how much waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Events that were stored and are to be handed on, once for each repository.
    pub events: u64,
    /// Repositories that wait for delivery at this moment.
    pub repositories_waiting: u64,
    /// Ids that wait for delivery at this moment.
    pub ids_waiting: u64,
    /// Deliveries under way at this moment.
    pub running: u64,
    /// Deliveries that were taken.
    pub delivered: u64,
    /// Deliveries that were not, time-outs among them. Each is made again.
    pub failed: u64,
    /// Deliveries that took too long.
    pub timed_out: u64,
    /// Deliveries that had become needless, as none of their events is held any more.
    pub gone: u64,
    /// States that were handed on for further repositories, as these name their author as a maintainer.
    pub states_resolved: u64,
    /// Ids that were not listed, as there were too many: their repository is handed on alone.
    pub ids_unlisted: u64,
    /// Events that were not handed on, as too many repositories wait.
    pub repositories_refused: u64,
    /// Addresses in events that were passed over: too long, or too many in one event.
    pub addresses_skipped: u64,
    /// Writes to the outbox that failed: a crash would lose what they were about.
    pub outbox_failures: u64,
}
