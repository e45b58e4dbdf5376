//! One second that holds more events than a page: asked for with a higher limit, then in parts.
//!
//! The higher limit has brought all when the answer reaches below the second: relays give the newest first. A part is
//! known to be whole when it brings fewer events than the relay has given in one answer. The parts of a
//! filter that lists kinds, authors, ids or tag values cover it; an open filter can only be split by the kinds that
//! were seen, which proves nothing for kinds that were not: then a gap stays on record, however much was found.

use std::collections::{BTreeSet, VecDeque};

use super::{Arrival, Seen};
use crate::protocol::{Filter, Window};
use crate::relay::Budget;

/// A second that holds more events than a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullSecond {
    /// The second.
    pub second: u64,
    /// What is known of it.
    pub seen: BTreeSet<Seen>,
    /// The next older second that has events, if it is known.
    pub below: Option<u64>,
}

/// The state of one overflowing second.
#[derive(Debug)]
pub struct Split {
    second: u64,
    seen: BTreeSet<Seen>,
    below: Option<u64>,
    /// The answer under way has events from below the second.
    reached_below: bool,
    /// The answer under way has events that are newer than asked for: the relay ignores `until`.
    has_newer: bool,
    limit: usize,
    queue: VecDeque<Filter>,
    asking: Option<(Filter, BTreeSet<Seen>)>,
    /// Kinds that have been asked for by themselves.
    kinds_asked: BTreeSet<u16>,
    raising: bool,
    unproven: bool,
    left: u32,
}

impl Split {
    /// Begins with what paging has seen. `limit` is the raised limit, `requests_max` bounds the work.
    pub fn new(full: FullSecond, limit: usize, requests_max: u32) -> Self {
        Self {
            second: full.second,
            seen: full.seen,
            below: full.below,
            reached_below: false,
            has_newer: false,
            limit,
            queue: VecDeque::new(),
            asking: None,
            kinds_asked: BTreeSet::new(),
            raising: true,
            unproven: false,
            left: requests_max.max(1),
        }
    }

    /// The second.
    pub fn second(&self) -> u64 {
        self.second
    }

    /// What is known of the second so far.
    pub fn seen(&self) -> &BTreeSet<Seen> {
        &self.seen
    }

    /// Events of the answer under way.
    pub fn answer_events(&self) -> usize {
        self.asking.as_ref().map_or(0, |(_, part)| part.len())
    }

    /// Ids that are remembered.
    pub fn ids(&self) -> usize {
        self.seen.len() + self.answer_events()
    }

    /// Is the higher limit still to be tried?
    pub fn is_raising(&self) -> bool {
        self.raising
    }

    /// Goes over to parts, after the higher limit (and reconciliation) did not help.
    pub fn start_parts(&mut self, filter: &Filter) {
        self.raising = false;
        self.push_parts(filter);
    }

    /// The next request, if there is one to make.
    pub fn poll_ask(&mut self, filter: &Filter) -> Option<Filter> {
        if self.asking.is_some() {
            return None;
        }
        let next = if self.raising { filter.clone() } else { self.queue.pop_front()? };
        if self.left == 0 {
            self.unproven = true;
            self.queue.clear();
            return None;
        }
        self.left -= 1;
        self.asking = Some((next.clone(), BTreeSet::new()));
        self.reached_below = false;
        self.has_newer = false;
        let since = self.below.filter(|_| self.raising).unwrap_or(self.second);
        Some(Window { since, until: self.second }.apply(&next).limit(self.limit))
    }

    /// An event that matches the history's filter came.
    pub fn handle_event(&mut self, seen: Seen) -> Arrival {
        let Some((_, part)) = &mut self.asking else { return Arrival::Unasked };
        let is_below = self.raising && self.below == Some(seen.created_at);
        if !is_below && seen.created_at != self.second {
            self.has_newer |= seen.created_at > self.second;
            return Arrival::Unasked;
        }
        if !part.insert(seen) {
            return Arrival::Copy;
        }
        self.reached_below |= is_below;
        if is_below || self.seen.contains(&seen) { Arrival::Repeated } else { Arrival::New }
    }

    /// The relay has ended the answer, or refused it (`answered` unset). True when the higher limit has brought all.
    pub fn handle_end(&mut self, answered: bool, budget: &mut Budget) -> bool {
        let Some((filter, mut part)) = self.asking.take() else { return false };
        let events = part.len();
        budget.learn_page(events);
        // An answer without what is known to be there is no answer to this.
        let is_apt = !self.has_newer && (!self.raising || self.seen.is_subset(&part));
        let whole = answered && is_apt && (self.reached_below || !budget.may_be_cut(events, self.limit));
        part.retain(|seen| seen.created_at == self.second);
        self.seen.extend(part);
        if self.seen.len() >= budget.answer_events_max() {
            self.left = 0;
        }
        if self.raising {
            return whole;
        }
        if !whole {
            self.push_parts(&filter);
        }
        if filter.kinds.is_none() || self.unproven {
            self.push_new_kinds(&filter);
        }
        false
    }

    /// The request was lost with the connection: it is to be made again.
    pub fn reset(&mut self) {
        if let Some((filter, mut part)) = self.asking.take() {
            part.retain(|seen| seen.created_at == self.second);
            self.seen.extend(part);
            self.left += 1;
            if !self.raising {
                self.queue.push_front(filter);
            }
        }
    }

    /// Are all parts through?
    pub fn is_done(&self) -> bool {
        !self.raising && self.asking.is_none() && self.queue.is_empty()
    }

    /// Is everything in this second known to be fetched?
    pub fn is_proven(&self) -> bool {
        self.is_done() && !self.unproven
    }

    fn push_parts(&mut self, filter: &Filter) {
        let parts = halves(filter);
        if parts.is_empty() {
            self.unproven = true;
            self.push_new_kinds(filter);
        }
        self.queue.extend(parts);
    }

    fn push_new_kinds(&mut self, filter: &Filter) {
        if filter.kinds.is_some() {
            return;
        }
        let kinds: BTreeSet<u16> = self.seen.iter().map(|seen| seen.kind).collect();
        for kind in kinds {
            if self.kinds_asked.insert(kind) {
                self.queue.push_back(filter.clone().kind(kind.into()));
            }
        }
    }
}

/// `filter` as two filters that together select the same events; none if it has no list to split.
fn halves(filter: &Filter) -> Vec<Filter> {
    fn cut<T: Ord + Clone>(set: &BTreeSet<T>) -> Option<(BTreeSet<T>, BTreeSet<T>)> {
        let middle = set.iter().nth(set.len() / 2).filter(|_| set.len() > 1)?.clone();
        let mut low = set.clone();
        let high = low.split_off(&middle);
        Some((low, high))
    }
    let both = |low: Filter, high: Filter| vec![low, high];
    if let Some((low, high)) = filter.kinds.as_ref().and_then(cut) {
        return both(Filter { kinds: Some(low), ..filter.clone() }, Filter { kinds: Some(high), ..filter.clone() });
    }
    if let Some((low, high)) = filter.authors.as_ref().and_then(cut) {
        return both(Filter { authors: Some(low), ..filter.clone() }, Filter { authors: Some(high), ..filter.clone() });
    }
    if let Some((low, high)) = filter.ids.as_ref().and_then(cut) {
        return both(Filter { ids: Some(low), ..filter.clone() }, Filter { ids: Some(high), ..filter.clone() });
    }
    for (name, values) in &filter.generic_tags {
        if let Some((low, high)) = cut(values) {
            let mut parts = both(filter.clone(), filter.clone());
            parts[0].generic_tags.insert(*name, low);
            parts[1].generic_tags.insert(*name, high);
            return parts;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Config;

    fn burst(events: u16, kinds: u16) -> Vec<Seen> {
        let mut all: Vec<Seen> = (0..events)
            .map(|n| {
                let mut id = [0; 32];
                id[..2].copy_from_slice(&n.to_be_bytes());
                Seen { created_at: 9, id, kind: n % kinds, author: [1; 32] }
            })
            .collect();
        all.sort_unstable();
        all
    }

    /// Plays a relay that gives at most `cap` events an answer.
    fn play(split: &mut Split, filter: &Filter, events: &[Seen], cap: usize) {
        let mut budget = Budget::new(&Config::default());
        budget.learn_page_cap(split.seen().len().min(cap));
        for _ in 0..500 {
            let Some(ask) = split.poll_ask(filter) else {
                if split.is_raising() {
                    panic!("asks nothing");
                }
                break;
            };
            let window = Window::of(&ask);
            let wanted = |seen: &&Seen| {
                let listed = ask.kinds.as_ref().is_none_or(|kinds| kinds.contains(&seen.kind.into()));
                listed && window.contains(seen.created_at)
            };
            let limit = ask.limit.unwrap().min(cap);
            for seen in events.iter().filter(wanted).take(limit) {
                assert_ne!(split.handle_event(*seen), Arrival::Unasked);
            }
            if split.handle_end(true, &mut budget) {
                return;
            }
            if split.is_raising() {
                split.start_parts(filter);
            }
        }
    }

    fn full(seen: &[Seen], below: Option<u64>) -> Split {
        Split::new(FullSecond { second: 9, seen: seen.iter().copied().collect(), below }, 5000, 64)
    }

    #[test]
    fn a_higher_limit_is_enough_where_the_answer_reaches_below() {
        let mut events = burst(700, 4);
        events.push(Seen { created_at: 3, ..events[0] });
        let mut split = full(&events[..500], Some(3));
        play(&mut split, &Filter::new(), &events, 1000);
        assert_eq!(split.seen().len(), 700);
        assert!(split.is_raising(), "no parts were needed");
        let mut split = full(&events[..500], Some(3));
        play(&mut split, &Filter::new(), &events, 600);
        assert!(!split.is_proven());
    }

    #[test]
    fn listed_kinds_are_split_and_proven() {
        let events = burst(700, 16);
        let filter = Filter::new().kinds((0..16).map(Into::into));
        let mut split = full(&events[..100], None);
        play(&mut split, &filter, &events, 100);
        assert_eq!(split.seen().len(), 700);
        assert!(split.is_proven());
    }

    #[test]
    fn an_open_filter_finds_what_it_can_and_proves_nothing() {
        let events = burst(700, 16);
        let mut split = full(&events[..100], None);
        play(&mut split, &Filter::new(), &events, 100);
        assert_eq!(split.seen().len(), 700);
        assert!(!split.is_proven());
    }

    #[test]
    fn the_work_is_bounded() {
        let events = burst(60_000, 60_000);
        let filter = Filter::new().kinds((0..60_000).map(|kind| (kind as u16).into()));
        let mut split = full(&events[..100], None);
        play(&mut split, &filter, &events, 100);
        assert!(!split.is_proven() && split.is_done());
    }
}
