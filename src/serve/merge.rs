//! The stored events of one REQ. Each filter is read as a stream of its own, page by page; the streams are merged in
//! the order of NIP-01 (newest first, of equal times the lowest id first). They share that order, so an event that
//! several filters select comes out of all of them at the same moment, and once.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::access::Views;
use super::config::ServeConfig;
use crate::protocol::message::EoseHint;
use crate::protocol::{Filter, filter};
use crate::store::{Cursor, Page, Query, Record};

/// The merged streams of the filters of one REQ.
#[derive(Debug)]
pub(super) struct Merge {
    streams: Vec<Stream>,
    /// What is seen of what each filter selects.
    views: Views,
    bytes_max: usize,
    is_begun: bool,
}

#[derive(Debug)]
struct Stream {
    filter: Filter,
    /// How many events may still be given out.
    room: usize,
    after: Option<Cursor>,
    buffer: VecDeque<Record>,
    /// A page was asked for and has not come.
    asked: bool,
    /// No further page will be asked for.
    ended: bool,
    /// It ended before the store did.
    capped: bool,
    /// Nothing was to be read, so nobody knows whether there is anything.
    unread: bool,
}

/// Pages of several filters are smaller, so that a REQ costs about the same memory however many it has.
const PAGE_BYTES_MIN: usize = 32 * 1024;

impl Merge {
    pub(super) fn new(filters: &[Filter], views: Views, config: &ServeConfig) -> Self {
        let stream = |filter: &Filter| {
            let room = if filter::is_void(filter) { 0 } else { config.page_events(filter.limit) };
            Stream {
                filter: Filter { limit: None, ..filter.clone() },
                room,
                after: None,
                buffer: VecDeque::new(),
                asked: false,
                ended: room == 0,
                capped: false,
                unread: room == 0 && !filter::is_void(filter),
            }
        };
        let bytes_max = (config.read_bytes_max / filters.len().max(1)).max(PAGE_BYTES_MIN);
        Self { streams: filters.iter().map(stream).collect(), views, bytes_max, is_begun: false }
    }

    /// Queries, `queries_max` at most, for streams that have run dry, each with the stream's number.
    pub(super) fn asks(&mut self, queries_max: usize, now_secs: u64) -> Vec<(usize, Query)> {
        self.is_begun = true;
        let (bytes_max, views) = (self.bytes_max, &self.views);
        let is_dry = |stream: &Stream| !stream.asked && !stream.ended && stream.buffer.is_empty();
        let ask = |(number, stream): (usize, &mut Stream)| {
            stream.asked = true;
            let (filter, after, limit) = (stream.filter.clone(), stream.after, stream.room);
            (number, Query { filter, after, limit, bytes_max, now_secs, view: views.at(number) })
        };
        let dry = self.streams.iter_mut().enumerate().filter(|(_, stream)| is_dry(stream));
        dry.take(queries_max).map(ask).collect()
    }

    /// Takes the page that a stream asked for.
    pub(super) fn answer(&mut self, number: usize, page: Page) {
        let Some(stream) = self.streams.get_mut(number) else { return };
        stream.asked = false;
        stream.room = stream.room.saturating_sub(page.records.len());
        stream.capped = page.next.is_some() && stream.room == 0;
        stream.ended = page.next.is_none() || stream.room == 0;
        stream.after = page.next;
        stream.buffer.extend(page.records);
    }

    /// What is seen of what each filter selects.
    pub(super) fn views(&self) -> &Views {
        &self.views
    }

    /// Has anything been asked for?
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Is a page on its way?
    pub(super) fn is_waiting(&self) -> bool {
        self.streams.iter().any(|stream| stream.asked)
    }

    /// The next event; `None` until a stream that has run dry is fed, or for good.
    pub(super) fn pop(&mut self) -> Option<Record> {
        if self.streams.iter().any(|stream| stream.buffer.is_empty() && !stream.ended) {
            return None;
        }
        let order = |stream: &Stream| stream.buffer.front().map(|record| (Reverse(record.created_at), record.id));
        let first = self.streams.iter().filter_map(order).min()?;
        let mut popped = None;
        for stream in &mut self.streams {
            if order(stream) == Some(first) {
                popped = stream.buffer.pop_front();
            }
        }
        popped
    }

    /// Has everything been given out?
    pub(super) fn is_over(&self) -> bool {
        self.streams.iter().all(|stream| stream.ended && stream.buffer.is_empty())
    }

    /// What is known of whether the store has more (NIP-67).
    pub(super) fn hint(&self) -> EoseHint {
        if self.streams.iter().any(|stream| stream.capped) {
            EoseHint::More
        } else if self.streams.iter().any(|stream| stream.unread) {
            EoseHint::None
        } else {
            EoseHint::Finish
        }
    }

    /// How many filters ended at their limit or the page cap, though the store has more.
    pub(super) fn capped(&self) -> usize {
        self.streams.iter().filter(|stream| stream.capped).count()
    }
}
