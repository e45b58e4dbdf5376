//! What several filters select together, newest first, each event once.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::Failure;
use crate::peer::View;
use crate::protocol::Filter;
use crate::store::{Cursor, Query, Record, Store};

/// Events fetched from the store at once, at most.
const PAGE_EVENTS_MAX: usize = 500;
/// Bytes of events fetched from the store at once.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Pages through the union of filters. All filters are read in one order, so what several of them select comes from
/// all of them at the same moment and is given out once: nothing need be remembered.
pub(super) struct Selection<'a, S> {
    store: &'a S,
    branches: Vec<Branch>,
    now_secs: u64,
}

/// One filter, and how far it has been read.
struct Branch {
    filter: Filter,
    /// How many more its own limit lets through.
    remaining: usize,
    records: VecDeque<Record>,
    after: Option<Cursor>,
    drained: bool,
}

impl<'a, S: Store> Selection<'a, S> {
    pub(super) fn new(store: &'a S, filters: Vec<Filter>, now_secs: u64) -> Self {
        let branches = filters.into_iter().map(Branch::new).collect();
        Self { store, branches, now_secs }
    }

    /// The next events; none at the end.
    pub(super) async fn next_page(&mut self) -> Result<Vec<Record>, Failure> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        while page.len() < PAGE_EVENTS_MAX && bytes < PAGE_BYTES_MAX {
            for branch in &mut self.branches {
                branch.fill(self.store, self.now_secs).await?;
            }
            let heads = self.branches.iter().filter_map(|branch| branch.records.front());
            let Some(next) = heads.min_by_key(|record| place(record)).map(place) else { break };
            let mut record = None;
            for branch in &mut self.branches {
                if branch.records.front().is_some_and(|head| place(head) == next) {
                    record = branch.take();
                }
            }
            if let Some(record) = record {
                bytes += record.json.len();
                page.push(record);
            }
        }
        Ok(page)
    }
}

/// The order of NIP-01: newest first, of equal times the lowest id first.
fn place(record: &Record) -> (Reverse<u64>, [u8; 32]) {
    (Reverse(record.created_at), record.id)
}

impl Branch {
    fn new(mut filter: Filter) -> Self {
        let remaining = filter.limit.take().unwrap_or(usize::MAX);
        Self { filter, remaining, records: VecDeque::new(), after: None, drained: false }
    }

    fn take(&mut self) -> Option<Record> {
        self.remaining -= 1;
        self.records.pop_front()
    }

    async fn fill<S: Store>(&mut self, store: &S, now_secs: u64) -> Result<(), Failure> {
        if self.remaining == 0 {
            self.records.clear();
        } else if self.records.is_empty() && !self.drained {
            let query = Query {
                filter: self.filter.clone(),
                after: self.after,
                limit: self.remaining.min(PAGE_EVENTS_MAX),
                bytes_max: PAGE_BYTES_MAX,
                now_secs,
                view: View::all(),
            };
            let page = store.query(query).await.map_err(Failure::new)?;
            self.drained = page.next.is_none();
            self.after = page.next;
            self.records = page.records.into();
        }
        Ok(())
    }
}
