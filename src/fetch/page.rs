//! Paging by `until` (NIP-01): from the newest event down, one page at a time.
//!
//! The next page asks for `until = oldest second seen`, inclusive, and drops the ids that were seen in that second:
//! `oldest − 1` would lose events whenever a page ends inside a second. Caps are learned: a page is known to have been
//! cut when older events turn up below it. The end is proven by an EOSE that ends a page with nothing new at or below
//! the cursor, and by nothing else.

use std::collections::BTreeSet;

use super::{Arrival, FullSecond, Seen};
use crate::engine::Planted;
use crate::protocol::message::EoseHint;
use crate::protocol::{Filter, Window};
use crate::relay::Budget;

/// The state of paging one window.
#[derive(Debug)]
pub struct Page {
    window: Window,
    state: State,
    /// Pages ask for events up to here.
    cursor: u64,
    /// What has been seen at the cursor's second.
    edge: BTreeSet<Seen>,
    /// What the last page had below the cursor, out of order: it will come again.
    aside: BTreeSet<Seen>,
    /// Events of the last page if it ended below its beginning: if more follows below it, it was cut.
    last_page_events: Option<usize>,
    /// What lies above the last page that brought something, up to where it was asked for, if it began with older events
    /// than it ended with and may have been cut: nothing proves yet that it was not cut above.
    open_above: Option<Window>,
    page: Tally,
    asked: usize,
    /// Pages in a row that brought something new, but nothing older than the cursor's second.
    stays: u32,
    /// The relay was asked a second time for a window that it says is empty.
    is_confirming: bool,
    /// Events from this second on may be news, sent beside the answer: they do not show how much a relay gives in one.
    news_since_secs: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next page is to be asked for.
    Ready,
    /// A page is on its way.
    Asking,
    /// A page brought nothing new, and it is not known whether the relay cuts pages: a look below the cursor's second
    /// is to be asked for, or on its way.
    Probing { under_way: bool },
    /// All that is below is fetched, but by the order of an answer the relay may give the oldest events there are
    /// rather than the newest: a look above it is to be asked for, or on its way.
    LookingUp { window: Window, under_way: bool },
    /// Over.
    Done,
}

/// One page, counted by what the relay sent, not by what was accepted.
#[derive(Debug, Default)]
struct Tally {
    /// Everything that matched, once each.
    seen: BTreeSet<Seen>,
    /// The seconds of these, in the order in which they came.
    order: Vec<u64>,
    /// Of these, not known from the edge.
    fresh: usize,
    /// Events newer than asked for: the relay ignores `until`.
    newer: usize,
}

impl Tally {
    /// The second down to which the page reaches, which began at `cursor`. In an answer that is sent newest first, an
    /// older event between newer ones is none of the page: the relay got it just now, dated back, and sent it to the
    /// open subscription. All that lies between would be skipped if paging went on below it.
    fn oldest(&self, cursor: u64) -> Option<u64> {
        // The cursor's own second is left aside: a page that has anything below it must lead on.
        let below: Vec<u64> = self.order.iter().copied().filter(|at| *at < cursor).collect();
        let ends = longest_descending(below.iter().copied());
        // An answer in another order is of one piece all the same, as far as can be told.
        let least = self.seen.first().map(|seen| seen.created_at);
        if is_most(ends.len(), below.len()) && !ends.is_empty() { ends.last().copied() } else { least }
    }

    /// Came the events neither newest nor oldest first? Then any of those between may have been left out.
    fn is_disordered(&self) -> bool {
        let is_in_order =
            |times: &mut dyn Iterator<Item = u64>| is_most(longest_descending(times).len(), self.order.len());
        !is_in_order(&mut self.order.iter().copied()) && !is_in_order(&mut self.order.iter().rev().copied())
    }

    /// The second in the middle of what was seen.
    fn median(&self) -> Option<u64> {
        self.seen.iter().nth(self.seen.len() / 2).map(|seen| seen.created_at)
    }
}

/// The newest ends of descending sequences of each length: the longest one is what was sent in order.
fn longest_descending(times: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut ends: Vec<u64> = Vec::new();
    for at in times {
        let place = ends.partition_point(|end| *end >= at);
        match ends.get_mut(place) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    ends
}

fn is_most(part: usize, whole: usize) -> bool {
    part >= whole - whole / 4
}

/// What the end of a page means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageEnd {
    /// Go on.
    Advanced,
    /// The second at the cursor holds more than a page. Its rest is to be got in another way; paging goes on below.
    Overflow(FullSecond),
    /// Everything in the window is fetched.
    Drained,
    /// The relay gives the same newest events whatever is asked.
    UntilIgnored {
        /// What could not be asked for.
        window: Window,
    },
    /// The relay gives events in no order, and may have left out any of the window: it is to be paged in these two parts.
    Disordered {
        /// The newer part.
        upper: Window,
        /// The older part.
        lower: Window,
    },
    /// The relay gives the oldest events, not the newest.
    OldestFirst {
        /// Where it may have more.
        window: Window,
    },
}

impl Page {
    /// Begins at the upper end of `window`.
    pub fn new(window: Window) -> Self {
        Self {
            window,
            state: State::Ready,
            cursor: window.until,
            edge: BTreeSet::new(),
            aside: BTreeSet::new(),
            last_page_events: None,
            open_above: None,
            page: Tally::default(),
            asked: 0,
            stays: 0,
            is_confirming: false,
            news_since_secs: u64::MAX,
        }
    }

    /// What is dated from this second on, in seconds since 1970, may be news that came beside an answer.
    #[must_use]
    pub fn with_news_since(self, secs: u64) -> Self {
        Self { news_since_secs: secs, ..self }
    }

    /// The filter of the next page, if one is to be asked for now.
    pub fn poll_ask(&mut self, filter: &Filter, budget: &Budget) -> Option<Filter> {
        self.state = match self.state {
            State::Ready => State::Asking,
            State::Probing { under_way: false } => State::Probing { under_way: true },
            State::LookingUp { window, under_way: false } => State::LookingUp { window, under_way: true },
            _ => return None,
        };
        self.page = Tally::default();
        self.asked = budget.page_events();
        Some(self.asked_window().apply(filter).limit(self.asked))
    }

    fn asked_window(&self) -> Window {
        match self.state {
            State::Probing { .. } => Window { until: self.cursor - 1, ..self.window },
            State::LookingUp { window, .. } => window,
            _ => Window { until: self.cursor, ..self.window },
        }
    }

    /// Is a page on its way?
    pub fn is_asking(&self) -> bool {
        matches!(
            self.state,
            State::Asking | State::Probing { under_way: true } | State::LookingUp { under_way: true, .. }
        )
    }

    /// The request was lost: it is to be asked again. What came of it stays counted nowhere.
    pub fn reset(&mut self) {
        match self.state {
            State::Asking => self.state = State::Ready,
            State::Probing { .. } => self.state = State::Probing { under_way: false },
            State::LookingUp { window, .. } => self.state = State::LookingUp { window, under_way: false },
            State::Ready | State::Done => {}
        }
        self.page = Tally::default();
    }

    /// The connection was lost, and with it what may have been on its way behind an empty answer.
    pub fn handle_connection_lost(&mut self) {
        self.reset();
        self.is_confirming = false;
    }

    /// What is not fetched yet, or not known to be.
    pub fn rest(&self) -> Window {
        let is_open_above = self.open_above.is_some() || matches!(self.state, State::LookingUp { .. });
        if is_open_above { self.window } else { Window { until: self.cursor, ..self.window } }
    }

    /// Pages ask for events up to this second.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// An event that matches the filter came.
    pub fn handle_event(&mut self, seen: Seen) -> Arrival {
        if !self.is_asking() {
            return Arrival::Unasked;
        }
        let window = self.asked_window();
        if seen.created_at > window.until {
            self.page.newer += 1;
            return Arrival::Unasked;
        }
        if seen.created_at < window.since {
            return Arrival::Unasked;
        }
        // A repetition within a page is no progress: else one event, sent for ever, would pass for it.
        if !self.page.seen.insert(seen) {
            return Arrival::Copy;
        }
        self.page.order.push(seen.created_at);
        if self.edge.contains(&seen) {
            return Arrival::Repeated;
        }
        self.page.fresh += 1;
        Arrival::New
    }

    /// Events of the page under way.
    pub fn answer_events(&self) -> usize {
        self.page.seen.len()
    }

    /// Ids that are remembered.
    pub fn ids(&self) -> usize {
        self.page.seen.len() + self.edge.len() + self.aside.len()
    }

    /// Has the page under way brought anything new?
    pub fn has_fresh(&self) -> bool {
        self.page.fresh > 0
    }

    /// The relay says that the page is over, or has fallen silent in it.
    pub fn handle_end(&mut self, hint: EoseHint, budget: &mut Budget) -> PageEnd {
        let probing = matches!(self.state, State::Probing { .. });
        let page = std::mem::take(&mut self.page);
        budget.learn_page(page.seen.iter().filter(|seen| seen.created_at < self.news_since_secs).count());
        if let State::LookingUp { window, .. } = self.state {
            self.state = State::Done;
            return if page.fresh > 0 { PageEnd::OldestFirst { window } } else { PageEnd::Drained };
        }
        let is_last = budget.plants(Planted::PageThreshold) && budget.page_cap().is_none() && page.seen.len() < 75;
        let hint = if is_last { EoseHint::Finish } else { hint };
        if page.fresh > 0 {
            if let Some(parts) = self.split_disordered(&page, hint, budget) {
                if probing {
                    // The look below has shown that the second above it was cut. What is below is asked for again.
                    return self.overflow(self.cursor);
                }
                self.state = State::Done;
                return parts;
            }
            return self.advance(page, probing, hint, budget);
        }
        if page.newer > 0 {
            self.state = State::Done;
            let beyond = probing && !budget.may_be_cut(self.edge.len(), self.asked);
            let until = self.cursor.saturating_sub(u64::from(beyond));
            let window = if self.open_above.take().is_some() { self.window } else { Window { until, ..self.window } };
            return PageEnd::UntilIgnored { window };
        }
        let repeated = if probing { self.last_page_events.unwrap_or(0) } else { page.seen.len() };
        if repeated == 0 || hint == EoseHint::Finish && !probing {
            if !probing && hint != EoseHint::Finish && self.is_to_be_confirmed(page.seen.is_empty()) {
                self.state = State::Ready;
                return PageEnd::Advanced;
            }
            // Nothing there, however much the relay would give.
            return self.drain();
        }
        // The page repeats the cursor's second and nothing else. That second ends here if the page could have held more.
        if probing || budget.page_cap().is_some() || repeated >= self.asked || self.cursor <= self.window.since {
            if budget.may_be_cut(repeated, self.asked) {
                return self.overflow(self.cursor);
            }
            return self.drain();
        }
        self.last_page_events = Some(repeated);
        self.state = State::Probing { under_way: false };
        PageEnd::Advanced
    }

    /// Is an answer without anything new to be asked for once more? It is odd where something must be, and where it is the
    /// only one: some relays say that this was all before they send anything, and then it comes while they are asked
    /// again.
    fn is_to_be_confirmed(&mut self, is_empty: bool) -> bool {
        let is_first = self.edge.is_empty() && self.cursor == self.window.until;
        let lacks_edge = is_empty && !self.edge.is_empty();
        (is_first || lacks_edge) && !std::mem::replace(&mut self.is_confirming, true)
    }

    /// If `page` came in no order and may have been cut, nothing says what was left out of it.
    fn split_disordered(&self, page: &Tally, hint: EoseHint, budget: &Budget) -> Option<PageEnd> {
        if hint == EoseHint::Finish || !page.is_disordered() || !budget.may_be_cut(page.seen.len(), self.asked) {
            return None;
        }
        let asked = self.asked_window();
        let since = page.median()?.max(asked.since.saturating_add(1));
        let upper = Window { since, until: asked.until };
        let lower = Window { since: asked.since, until: since - 1 };
        (!upper.is_empty() && !lower.is_empty()).then_some(PageEnd::Disordered { upper, lower })
    }

    /// Nothing is left below.
    fn drain(&mut self) -> PageEnd {
        self.state = State::Done;
        match self.open_above.take() {
            Some(window) => {
                self.state = State::LookingUp { window, under_way: false };
                PageEnd::Advanced
            }
            None => PageEnd::Drained,
        }
    }

    /// Something new came: the cursor moves down, or stays within its second with a larger edge.
    fn advance(&mut self, page: Tally, probing: bool, hint: EoseHint, budget: &mut Budget) -> PageEnd {
        // What came before, out of order, is no news: only what is new shows that the last page was cut.
        let is_news = |seen: &Seen| !self.edge.contains(seen) && !self.aside.contains(seen);
        let has_news = page.seen.iter().any(is_news);
        if let Some(events) = self.last_page_events.take().filter(|events| has_news && *events < self.asked) {
            budget.learn_page_cap(events);
        }
        let events = page.seen.len();
        let below = page.seen.last().map(|seen| seen.created_at);
        let overflowed =
            probing.then(|| FullSecond { second: self.cursor, seen: std::mem::take(&mut self.edge), below });
        let oldest = page.oldest(if probing { u64::MAX } else { self.cursor }).unwrap_or(self.cursor);
        // Events below the last page show that it was not the end of the relay's that was cut off above.
        let is_upwards = page.order.first() < page.order.last();
        let newest = page.seen.last().map(|seen| seen.created_at);
        let asked = self.asked_window();
        // What is known of the cursor's own second was asked for by the page before.
        let until = if self.edge.is_empty() { asked.until } else { asked.until.saturating_sub(1) };
        let above = newest.and_then(|newest| newest.checked_add(1)).map(|since| Window { since, until });
        let is_open = is_upwards && budget.may_be_cut(events, self.asked);
        self.open_above = above.filter(|above| is_open && !above.is_empty());
        if oldest < self.cursor || probing {
            self.edge.clear();
            self.stays = 0;
        } else {
            self.stays += 1;
        }
        self.aside = page.seen.iter().copied().take_while(|seen| seen.created_at < oldest).collect();
        self.edge.extend(page.seen.into_iter().filter(|seen| seen.created_at == oldest));
        self.cursor = oldest.saturating_sub(u64::from(budget.plants(Planted::OldestMinusOne)));
        self.last_page_events = Some(events);
        self.is_confirming = false;
        self.state = State::Ready;
        if hint == EoseHint::Finish {
            self.state = State::Done;
            self.open_above = None;
            // All below the second is here: that says nothing of the second itself.
            return overflowed.map_or(PageEnd::Drained, PageEnd::Overflow);
        }
        let is_endless = self.edge.len() >= budget.answer_events_max() || self.stays >= budget.page_stays_max();
        if overflowed.is_none() && is_endless {
            return self.overflow(self.cursor);
        }
        match overflowed {
            Some(full) => PageEnd::Overflow(full),
            None => PageEnd::Advanced,
        }
    }

    fn overflow(&mut self, second: u64) -> PageEnd {
        let seen = std::mem::take(&mut self.edge);
        self.last_page_events = None;
        self.stays = 0;
        match second.checked_sub(1) {
            Some(below) if below >= self.window.since => {
                self.cursor = below;
                self.state = State::Ready;
            }
            _ => drop(self.drain()),
        }
        PageEnd::Overflow(FullSecond { second, seen, below: None })
    }

    /// Is the window through?
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Nothing more is asked for.
    pub fn give_up(&mut self) {
        self.state = State::Done;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Config, Rng};

    /// Pages a relay that gives at most `cap` events of what is asked for, any of them, in any order.
    fn page_from_chaos(held: &[Seen], cap: usize, seed: u64) -> BTreeSet<Seen> {
        let (mut budget, mut rng) = (Budget::new(&Config::default()), Rng::new(seed));
        let (mut windows, mut got, filter) = (vec![Window::ALL], BTreeSet::new(), Filter::new());
        while let Some(window) = windows.pop() {
            let mut page = Page::new(window);
            while let Some(ask) = page.poll_ask(&filter, &budget) {
                let asked = Window::of(&ask);
                let mut answer: Vec<Seen> =
                    held.iter().copied().filter(|seen| asked.contains(seen.created_at)).collect();
                answer.sort_by_cached_key(|_| rng.bits());
                for seen in answer.into_iter().take(cap.min(ask.limit.unwrap_or(usize::MAX))) {
                    page.handle_event(seen);
                    got.insert(seen);
                }
                if let PageEnd::Disordered { upper, lower } = page.handle_end(EoseHint::None, &mut budget) {
                    windows.extend([lower, upper]);
                }
            }
        }
        got
    }

    #[test]
    fn a_relay_that_gives_any_events_in_any_order_is_paged_in_parts() {
        let seen = |n: u64| {
            let mut id = [0; 32];
            id[..8].copy_from_slice(&n.to_be_bytes());
            Seen { created_at: 1_000 + n, id, kind: 1, author: [1; 32] }
        };
        let held: Vec<Seen> = (0..2_000).map(seen).collect();
        for (seed, cap) in [(1, 500), (2, 500), (3, 100), (4, 37)] {
            assert_eq!(page_from_chaos(&held, cap, seed).len(), held.len(), "seed {seed}, cap {cap}");
        }
    }
}
