//! Fetching a history: three small machines (`page`, `reconcile`, and `split` for a second that overflows a page),
//! downloads by id, and publishing. A [`History`] drives them for one filter at one relay.
//!
//! A machine has no socket, clock or subscription. It is asked what it wants to send next, told what came, and ends in
//! a result: complete, or with gaps.

mod form;
mod history;
mod ids;
mod page;
mod publish;
mod reconcile;
mod split;

pub use history::{Answer, Ask, History, HistoryParts, Need, Stage};
pub use ids::IdFetch;
pub use page::{Page, PageEnd};
pub use publish::Publish;
pub use reconcile::{Reconcile, Step};
pub use split::{FullSecond, Split};

use crate::protocol::Event;

/// What an event is to the request that it came for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing: it was not asked for.
    Unasked,
    /// It was asked for, and has come before: pages overlap by a second.
    Repeated,
    /// It has come in this very answer already, so it is no progress; but that copy may turn out to be forged, and
    /// this one not.
    Copy,
    /// It was asked for.
    New,
    /// It was the last one asked for: the request is through without an EOSE.
    Last,
}

/// What a machine needs to know of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// Seconds since 1970.
    pub created_at: u64,
    /// The id.
    pub id: [u8; 32],
    /// The kind.
    pub kind: u16,
    /// The author.
    pub author: [u8; 32],
}

impl Seen {
    /// What there is to know of `event`.
    pub fn of(event: &Event) -> Self {
        Self {
            created_at: event.created_at_secs(),
            id: event.id.to_bytes(),
            kind: event.kind_number(),
            author: event.pubkey.to_bytes(),
        }
    }
}
