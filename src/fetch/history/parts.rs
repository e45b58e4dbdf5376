//! What goes into a history and what comes out of it.

use crate::engine::{HistoryId, RelayOptions};
use crate::plan::{Pack, Todo};
use crate::protocol::{Filter, RelayUrl};
use crate::relay::Purpose;
use crate::store::{Coverage, Record};

/// Where a history stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// What is held is being loaded.
    Loading,
    /// The relay's events are being fetched.
    Fetching,
    /// Seconds that overflow a page are being fetched.
    Seconds,
    /// What the relay lacks is being sent.
    Publishing,
    /// Everything has come; the proof waits to be durable.
    Settling,
    /// Over.
    Done,
}

/// What to send.
#[derive(Debug)]
pub enum Ask {
    /// Open a subscription.
    Req(Purpose, Filter),
    /// Open a subscription for these ids.
    Ids(Vec<[u8; 32]>),
    /// Open a reconciliation.
    NegOpen(Filter, Vec<u8>),
    /// Go on with the reconciliation.
    NegMsg(u64, Vec<u8>),
    /// Close the reconciliation.
    NegClose(u64),
    /// Publish.
    Event(Record),
}

/// What to get from, or give to, the store.
#[derive(Debug)]
pub enum Need {
    /// All items of the filter.
    Items,
    /// Which of these ids are known?
    Known(Vec<[u8; 32]>),
    /// Events to publish.
    Events(Vec<[u8; 32]>),
    /// Commit this behind all events so far.
    Mark {
        /// The proofs so far.
        coverage: Coverage,
        /// Nothing more will follow: there is nothing to wait for.
        last: bool,
    },
}

/// What a history is made from.
#[derive(Debug)]
pub struct HistoryParts {
    /// Its number.
    pub id: HistoryId,
    /// What it fetches.
    pub pack: Pack,
    /// From whom.
    pub relay: RelayUrl,
    /// How.
    pub options: RelayOptions,
    /// The number of the rules by which is decided what is wanted.
    pub rules: u64,
    /// What is left to fetch, and what is proven already.
    pub todo: Todo,
    /// Wall time, in seconds since 1970: what the relay gets from now on is not covered.
    pub now_secs: u64,
}
