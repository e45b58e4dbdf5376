//! The few operations on which everything else about a store is built, once for all stores.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;

use bytes::Bytes;

use super::entry::{Entry, Range, Sequence};
use super::{Coverage, Outcome, RequestContext};
use crate::ingest::Verified;
use crate::protocol::Event;

/// Something that was stored cannot be read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// What.
    pub what: String,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stored data is damaged: {}", self.what)
    }
}

impl std::error::Error for Damaged {}

/// What is held of an event beside its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The author's key.
    pub author: [u8; 32],
    /// The JSON, as it came.
    pub json: Bytes,
}

/// A consistent state of a store, to be read.
pub trait Tables {
    /// What can go wrong.
    type Error: From<Damaged>;

    /// Hands over the entries in `range`: in one ascending sequence or in several, one after the other. `Break` ends
    /// the current sequence, not the others.
    ///
    /// # Errors
    /// The store cannot be read.
    fn scan(&self, range: &Range, each: &mut dyn FnMut(&Entry) -> ControlFlow<()>) -> Result<(), Self::Error>;

    /// About how many entries `range` has.
    ///
    /// # Errors
    /// The store cannot be read.
    fn estimate(&self, range: &Range) -> Result<usize, Self::Error>;

    /// Why an event is gone; `None` while it is held.
    fn fate(&self, sequence: Sequence) -> Option<Outcome>;

    /// The body of an event that is held.
    ///
    /// # Errors
    /// The store cannot be read.
    fn body(&self, sequence: Sequence) -> Result<Option<Body>, Self::Error>;

    /// Who brought an event; `None` if no peer has.
    ///
    /// # Errors
    /// The store cannot be read.
    fn context(&self, sequence: Sequence) -> Result<Option<RequestContext>, Self::Error>;

    /// The number that the next event gets.
    fn next_sequence(&self) -> Sequence;

    /// What expires up to this moment, in seconds since 1970, is known to be gone already.
    fn swept_secs(&self) -> u64;
}

/// What a batch changes: to be written as a whole or not at all.
#[derive(Debug, Default)]
pub struct Changes {
    /// One outcome an event of the batch.
    pub outcomes: Vec<Outcome>,
    /// New entries that are looked up while the batch is worked through.
    pub points: BTreeSet<Entry>,
    /// Other new entries, unsorted.
    pub entries: Vec<Entry>,
    /// New events; some of them may be gone again by `fates`.
    pub held: BTreeMap<Sequence, Verified<Event>>,
    /// Events that are gone now.
    pub fates: BTreeMap<Sequence, Outcome>,
    /// The number for the next event.
    pub next_sequence: Sequence,
    /// See [`Tables::swept_secs`].
    pub swept_secs: u64,
    /// Who brought the new events with numbers from the first to the last of these.
    pub contexts: Vec<(Sequence, Sequence, RequestContext)>,
    /// Coverage marks to replace.
    pub coverage: Vec<Coverage>,
}

impl Changes {
    /// Notes who brought the event with the latest number.
    pub(super) fn note_context(&mut self, sequence: Sequence, context: RequestContext) {
        match self.contexts.last_mut() {
            Some((_, last, same)) if *last + 1 == sequence && *same == context => *last = sequence,
            _ => self.contexts.push((sequence, sequence, context)),
        }
    }

    /// Is there nothing to write?
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.entries.is_empty() && self.fates.is_empty() && self.coverage.is_empty()
    }
}
