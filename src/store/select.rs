//! Reading, written once for all stores: item sets, counts, pages and single events.

use std::collections::{BTreeSet, BinaryHeap};
use std::ops::ControlFlow;

use nostr::event::Kind;

use super::entry::{Index, Key, Range, Rank, Sequence};
use super::plan::Plan;
use super::tables::{Body, Damaged, Tables};
use super::veil::{Sieve, Veil};
use super::{Arrivals, Page, Query, Record, RequestContext};
use crate::peer::View;
use crate::protocol::filter::{is_void, matches};
use crate::protocol::{Event, Filter, Item, ItemSet, Window, hex};

/// A page looks for so many candidates at a time at least, and at most.
const CANDIDATES_MIN: usize = 64;
const CANDIDATES_MAX: usize = 4096;

/// See [`Store::known`](super::Store::known).
///
/// # Errors
/// The tables cannot be read.
pub fn known<T: Tables>(tables: &T, ids: &[[u8; 32]], view: &View) -> Result<Vec<bool>, T::Error> {
    let any = Filter::new();
    let veil = Veil::over(view, &any);
    let mut known = Vec::with_capacity(ids.len());
    for id in ids {
        known.push(match find(tables, id)? {
            None => false,
            Some(rank) if !veil.may_hide_kind(&rank) => true,
            Some(rank) if tables.fate(rank.sequence()).is_some() => !veil.may_hide_gone(&rank),
            Some(rank) => !veil.hides(&rank, &body(tables, rank.sequence())?)?,
        });
    }
    Ok(known)
}

/// See [`Store::events`](super::Store::events).
///
/// # Errors
/// The tables cannot be read.
pub fn events<T: Tables>(tables: &T, ids: &[[u8; 32]]) -> Result<Vec<Option<Record>>, T::Error> {
    let mut records = Vec::with_capacity(ids.len());
    for id in ids {
        let rank = find(tables, id)?.filter(|rank| tables.fate(rank.sequence()).is_none());
        records.push(match rank {
            Some(rank) => Some(record(&rank, body(tables, rank.sequence())?)),
            None => None,
        });
    }
    Ok(records)
}

/// See [`Store::contexts`](super::Store::contexts).
///
/// # Errors
/// The tables cannot be read.
pub fn contexts<T: Tables>(tables: &T, ids: &[[u8; 32]]) -> Result<Vec<Option<RequestContext>>, T::Error> {
    let mut contexts = Vec::with_capacity(ids.len());
    for id in ids {
        let rank = find(tables, id)?.filter(|rank| tables.fate(rank.sequence()).is_none());
        contexts.push(match rank {
            Some(rank) => tables.context(rank.sequence())?,
            None => None,
        });
    }
    Ok(contexts)
}

/// See [`Store::arrivals`](super::Store::arrivals).
///
/// # Errors
/// The tables cannot be read.
pub fn arrivals<T: Tables>(tables: &T, after: Sequence, limit: usize, bytes_max: usize) -> Result<Arrivals, T::Error> {
    let (mut arrivals, mut bytes) = (Arrivals { last: after, ..Arrivals::default() }, 0);
    // Arrivals count from one, what is in tables from zero.
    for sequence in after..tables.next_sequence() {
        if tables.fate(sequence).is_none() {
            if arrivals.records.len() >= limit || bytes >= bytes_max && !arrivals.records.is_empty() {
                return Ok(arrivals);
            }
            let body = body(tables, sequence)?;
            bytes += body.json.len();
            arrivals.records.push((sequence + 1, arrived(sequence, body)?));
        }
        arrivals.last = sequence + 1;
    }
    Ok(arrivals)
}

/// See [`Store::last_arrival`](super::Store::last_arrival).
pub fn last_arrival<T: Tables>(tables: &T) -> Sequence {
    tables.next_sequence()
}

/// The record of a body, by its own words.
fn arrived(sequence: Sequence, body: Body) -> Result<Record, Damaged> {
    #[derive(serde::Deserialize)]
    struct Head {
        id: nostr::event::EventId,
        created_at: u64,
    }
    let fault = |error| Damaged { what: format!("event number {sequence}: {error}") };
    let head: Head = serde_json::from_slice(&body.json).map_err(fault)?;
    Ok(Record { id: head.id.to_bytes(), created_at: head.created_at, json: body.json })
}

/// See [`Store::items`](super::Store::items).
///
/// # Errors
/// The tables cannot be read.
pub fn items<T: Tables>(tables: &T, filter: &Filter, window: Window, view: &View) -> Result<ItemSet, T::Error> {
    let mut items: Vec<Item> = Vec::new();
    let with_gone = filter.generic_tags.is_empty();
    let hidden = Veil::over(view, filter).hidden(tables, window, with_gone)?;
    select(tables, filter, window, &mut |rank| {
        if (with_gone || tables.fate(rank.sequence()).is_none()) && !hidden.has(rank) {
            items.push(rank.item());
        }
    })?;
    // Read newest first, in a few sorted sequences: the stable sort merges those without looking for more order. Then
    // the whole is turned round, and what has the same second once more.
    items.sort_by(|one, other| other.created_at.cmp(&one.created_at).then_with(|| one.id.cmp(&other.id)));
    items.reverse();
    items.chunk_by_mut(|one, other| one.created_at == other.created_at).for_each(<[Item]>::reverse);
    Ok(ItemSet::new(items))
}

/// See [`Store::held_items`](super::Store::held_items).
///
/// # Errors
/// The tables cannot be read.
pub fn held_items<T: Tables>(
    tables: &T,
    filter: &Filter,
    window: Window,
    view: &View,
    now_secs: u64,
) -> Result<ItemSet, T::Error> {
    let expired = expired(tables, now_secs)?;
    let hidden = Veil::over(view, filter).hidden(tables, window, false)?;
    let mut items: Vec<Item> = Vec::new();
    select(tables, filter, window, &mut |rank| {
        let is_held = tables.fate(rank.sequence()).is_none() && !expired.contains(&rank.sequence());
        if is_held && !hidden.has(rank) {
            items.push(rank.item());
        }
    })?;
    items.reverse();
    items.sort();
    Ok(ItemSet::new(items))
}

/// See [`Store::count`](super::Store::count).
///
/// # Errors
/// The tables cannot be read.
pub fn count<T: Tables>(tables: &T, filters: &[Filter], view: &View, now_secs: u64) -> Result<u64, T::Error> {
    let expired = expired(tables, now_secs)?;
    let mut held: Vec<Sequence> = Vec::new();
    for filter in filters {
        let hidden = Veil::over(view, filter).hidden(tables, Window::ALL, false)?;
        select(tables, filter, Window::ALL, &mut |rank| {
            let sequence = rank.sequence();
            if tables.fate(sequence).is_none() && !expired.contains(&sequence) && !hidden.has(rank) {
                held.push(sequence);
            }
        })?;
    }
    held.sort_unstable();
    held.dedup();
    Ok(held.len() as u64)
}

/// See [`Store::query`](super::Store::query).
///
/// # Errors
/// The tables cannot be read.
pub fn query<T: Tables>(tables: &T, query: &Query) -> Result<Page, T::Error> {
    let filter = &query.filter;
    let limit = query.limit.min(filter.limit.unwrap_or(usize::MAX));
    let mut page = Page::default();
    if limit == 0 || is_void(filter) {
        return Ok(page);
    }
    let plan = Plan::choose(tables, filter, Window::ALL)?;
    let expired = expired(tables, query.now_secs)?;
    let mut sieve = Sieve::new(Veil::over(&query.view, filter));
    let at_once = limit.saturating_add(1).clamp(CANDIDATES_MIN, CANDIDATES_MAX);
    let mut after = query.after;
    let mut bytes = 0;
    loop {
        let suits = |rank: &Rank| {
            plan.kinds.is_none_or(|kinds| kinds.contains(&Kind::from(rank.kind())))
                && tables.fate(rank.sequence()).is_none()
                && !expired.contains(&rank.sequence())
                && sieve.may_pass(rank)
        };
        let ranges = plan.ranges().map(|range| after.iter().fold(range, |range, cursor| range.after(cursor)));
        let best = newest(tables, ranges, at_once, suits)?;
        for rank in &best.ranks {
            let body = body(tables, rank.sequence())?;
            if !selects(&plan, filter, rank, &body)? || !sieve.passes(tables, plan.window, rank, &body)? {
                continue;
            }
            if page.records.len() == limit || bytes >= query.bytes_max && !page.records.is_empty() {
                page.next = next_of(&page, filter);
                return Ok(page);
            }
            bytes += body.json.len();
            page.records.push(record(rank, body));
        }
        match best.ranks.last() {
            Some(last) if !best.is_all => after = Some(last.cursor()),
            _ => return Ok(page),
        }
    }
}

/// The same page, by entries alone: only the bodies that are handed out are read. For a store that has them far away.
///
/// # Errors
/// The tables cannot be read.
pub(super) fn page<T: Tables>(tables: &T, query: &Query) -> Result<Page, T::Error> {
    let filter = &query.filter;
    let limit = query.limit.min(filter.limit.unwrap_or(usize::MAX));
    let (mut page, mut bytes, mut after) = (Page::default(), 0, query.after);
    if limit == 0 || is_void(filter) {
        return Ok(page);
    }
    let plan = Plan::choose(tables, filter, Window::ALL)?;
    let conditions = Conditions::of(tables, &plan)?;
    let expired = expired(tables, query.now_secs)?;
    let hidden = Veil::over(&query.view, filter).hidden(tables, Window::ALL, false)?;
    let suits = |rank: &Rank| {
        let is_held = tables.fate(rank.sequence()).is_none() && !expired.contains(&rank.sequence());
        is_held && conditions.hold(&plan, rank) && !hidden.has(rank)
    };
    let at_once = limit.saturating_add(1).clamp(CANDIDATES_MIN, CANDIDATES_MAX);
    loop {
        let ranges = plan.ranges().map(|range| after.iter().fold(range, |range, cursor| range.after(cursor)));
        let best = newest(tables, ranges, at_once, suits)?;
        for rank in &best.ranks {
            if page.records.len() == limit || bytes >= query.bytes_max && !page.records.is_empty() {
                page.next = next_of(&page, filter);
                return Ok(page);
            }
            let body = body(tables, rank.sequence())?;
            bytes += body.json.len();
            page.records.push(record(rank, body));
        }
        match best.ranks.last() {
            Some(last) if !best.is_all => after = Some(last.cursor()),
            _ => return Ok(page),
        }
    }
}

/// Where a page that is full goes on: nowhere, if the filter itself asked for no more.
fn next_of(page: &Page, filter: &Filter) -> Option<super::Cursor> {
    let last = page.records.last().filter(|_| filter.limit != Some(page.records.len()))?;
    Some(super::Cursor { created_at: last.created_at, id: last.id })
}

/// The first of what some ranges have.
struct Newest {
    /// In order, each event once.
    ranks: Vec<Rank>,
    /// Is there nothing else?
    is_all: bool,
}

fn newest<T: Tables>(
    tables: &T,
    ranges: impl Iterator<Item = Range>,
    ranks_max: usize,
    suits: impl Fn(&Rank) -> bool,
) -> Result<Newest, T::Error> {
    let mut best: BinaryHeap<Rank> = BinaryHeap::new();
    let mut is_all = true;
    for range in ranges.filter(|range| !range.is_empty()) {
        tables.scan(&range, &mut |entry| {
            let rank = entry.rank();
            if best.len() == ranks_max && best.peek().is_some_and(|worst| rank >= *worst) {
                is_all = false;
                return ControlFlow::Break(());
            }
            if suits(&rank) {
                best.push(rank);
                if best.len() > ranks_max {
                    best.pop();
                    is_all = false;
                }
            }
            ControlFlow::Continue(())
        })?;
    }
    let mut ranks = best.into_sorted_vec();
    // Several tags of one event.
    ranks.dedup();
    Ok(Newest { ranks, is_all })
}

fn selects(plan: &Plan, filter: &Filter, rank: &Rank, body: &Body) -> Result<bool, Damaged> {
    let author = || nostr::key::PublicKey::from_byte_array(body.author);
    let id = || nostr::event::EventId::from_byte_array(rank.id());
    if plan.ids.is_some_and(|ids| !ids.contains(&id()))
        || filter.authors.as_ref().is_some_and(|authors| !authors.contains(&author()))
    {
        return Ok(false);
    }
    if plan.tags.is_empty() {
        return Ok(true);
    }
    let event = parsed(rank, body)?;
    Ok(matches(filter, &event))
}

/// The event that an entry and a body are of.
pub(super) fn parsed(rank: &Rank, body: &Body) -> Result<Event, Damaged> {
    let fault = |error| Damaged { what: format!("event {}: {error}", hex::encode(&rank.id())) };
    Event::parse(body.json.clone()).map_err(fault)
}

/// Calls `each` for every event, held or gone, that `filter` selects in `window`; by entries alone.
pub(super) fn select<T: Tables>(
    tables: &T,
    filter: &Filter,
    window: Window,
    each: &mut dyn FnMut(&Rank),
) -> Result<(), T::Error> {
    if is_void(filter) {
        return Ok(());
    }
    let plan = Plan::choose(tables, filter, window)?;
    let conditions = Conditions::of(tables, &plan)?;
    for range in plan.ranges().filter(|range| !range.is_empty()) {
        tables.scan(&range, &mut |entry| {
            let rank = entry.rank();
            if conditions.hold(&plan, &rank) {
                each(&rank);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(())
}

/// What a plan leaves to check, by entries alone: for each condition, the events that meet it.
struct Conditions {
    sequences: Vec<Vec<Sequence>>,
}

impl Conditions {
    fn of<T: Tables>(tables: &T, plan: &Plan) -> Result<Self, T::Error> {
        let mut conditions = Vec::new();
        if let Some(authors) = plan.authors {
            let keys: Vec<Key> = authors.iter().map(|author| Key::author(author.as_bytes())).collect();
            conditions.push(sequences(tables, &keys, plan.window)?);
        }
        for (name, values) in &plan.tags {
            let keys: Vec<Key> = values.iter().map(|value| Key::tag(name.as_byte(), value)).collect();
            conditions.push(sequences(tables, &keys, plan.window)?);
        }
        Ok(Self { sequences: conditions })
    }

    fn hold(&self, plan: &Plan, rank: &Rank) -> bool {
        plan.kinds.is_none_or(|kinds| kinds.contains(&Kind::from(rank.kind())))
            && plan.ids.is_none_or(|ids| ids.contains(&nostr::event::EventId::from_byte_array(rank.id())))
            && self.sequences.iter().all(|sequences| sequences.binary_search(&rank.sequence()).is_ok())
    }
}

fn sequences<T: Tables>(tables: &T, keys: &[Key], window: Window) -> Result<Vec<Sequence>, T::Error> {
    let mut sequences = Vec::new();
    for range in keys.iter().map(|key| Range::of(key, window)).filter(|range| !range.is_empty()) {
        tables.scan(&range, &mut |entry| {
            sequences.push(entry.rank().sequence());
            ControlFlow::Continue(())
        })?;
    }
    sequences.sort_unstable();
    Ok(sequences)
}

/// What has expired by now, but is not known to be gone yet.
fn expired<T: Tables>(tables: &T, now_secs: u64) -> Result<BTreeSet<Sequence>, T::Error> {
    let mut expired = BTreeSet::new();
    if now_secs > tables.swept_secs() {
        tables.scan(&Range::expired(tables.swept_secs(), now_secs), &mut |entry| {
            debug_assert_eq!(entry.index(), Index::Expiry);
            expired.insert(entry.rank().sequence());
            ControlFlow::Continue(())
        })?;
    }
    Ok(expired)
}

fn find<T: Tables>(tables: &T, id: &[u8; 32]) -> Result<Option<Rank>, T::Error> {
    let mut found = None;
    tables.scan(&Range::all(&Key::id(id)), &mut |entry| {
        if entry.rank().id() != *id {
            return ControlFlow::Continue(());
        }
        found = Some(entry.rank());
        ControlFlow::Break(())
    })?;
    Ok(found)
}

fn body<T: Tables>(tables: &T, sequence: Sequence) -> Result<Body, T::Error> {
    let lost = || Damaged { what: format!("event number {sequence} has entries but no body") };
    tables.body(sequence)?.ok_or_else(|| lost().into())
}

fn record(rank: &Rank, body: Body) -> Record {
    Record { id: rank.id(), created_at: rank.created_at(), json: body.json }
}
