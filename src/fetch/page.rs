//! Paging by `until` (NIP-01): from the newest event down, one page at a time.
//!
//! The next page asks for `until = oldest second seen`, inclusive, and drops the ids that were seen in that second:
//! `oldest − 1` would lose events whenever a page ends inside a second. Caps are learned: a page is known to have been
//! cut when older events turn up below it. The end is proven by an EOSE that ends a page with nothing new at or below
//! the cursor, and by nothing else.

use std::collections::BTreeSet;

use super::{Arrival, FullSecond, Seen};
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
    /// Events of the last page if it ended below its beginning: if more follows below it, it was cut.
    last_page_events: Option<usize>,
    page: Tally,
    asked: usize,
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
    /// Over.
    Done,
}

/// One page, counted by what the relay sent, not by what was accepted.
#[derive(Debug, Default)]
struct Tally {
    /// Everything that matched, once each.
    seen: BTreeSet<Seen>,
    /// Of these, not known from the edge.
    fresh: usize,
    /// Events newer than asked for: the relay ignores `until`.
    newer: usize,
}

/// What the end of a page means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageEnd {
    /// Go on. Everything from here up is fetched.
    Advanced {
        /// The oldest second that is fetched in full.
        proven_from: u64,
    },
    /// The second at the cursor holds more than a page. Its rest is to be got in another way; paging goes on below.
    Overflow(FullSecond),
    /// Everything in the window is fetched.
    Drained,
    /// The relay gives the same newest events whatever is asked.
    UntilIgnored {
        /// What could not be asked for.
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
            last_page_events: None,
            page: Tally::default(),
            asked: 0,
        }
    }

    /// The filter of the next page, if one is to be asked for now.
    pub fn poll_ask(&mut self, filter: &Filter, budget: &Budget) -> Option<Filter> {
        let until = match self.state {
            State::Ready => {
                self.state = State::Asking;
                self.cursor
            }
            State::Probing { under_way: false } => {
                self.state = State::Probing { under_way: true };
                self.cursor - 1
            }
            _ => return None,
        };
        self.page = Tally::default();
        self.asked = budget.page_events();
        Some(Window { until, ..self.window }.apply(filter).limit(self.asked))
    }

    /// Is a page on its way?
    pub fn is_asking(&self) -> bool {
        matches!(self.state, State::Asking | State::Probing { under_way: true })
    }

    /// The request was lost: it is to be asked again. What came of it stays counted nowhere.
    pub fn reset(&mut self) {
        match self.state {
            State::Asking => self.state = State::Ready,
            State::Probing { .. } => self.state = State::Probing { under_way: false },
            State::Ready | State::Done => {}
        }
        self.page = Tally::default();
    }

    /// What is not fetched yet.
    pub fn rest(&self) -> Window {
        Window { until: self.cursor, ..self.window }
    }

    /// An event that matches the filter came.
    pub fn handle_event(&mut self, seen: Seen) -> Arrival {
        if !self.is_asking() {
            return Arrival::Unasked;
        }
        let until = if matches!(self.state, State::Probing { .. }) { self.cursor - 1 } else { self.cursor };
        if seen.created_at > until {
            self.page.newer += 1;
            return Arrival::Unasked;
        }
        // A repetition within a page was not asked for: else one event, sent for ever, would pass for progress.
        if seen.created_at < self.window.since || !self.page.seen.insert(seen) {
            return Arrival::Unasked;
        }
        if self.edge.contains(&seen) {
            return Arrival::Repeated;
        }
        self.page.fresh += 1;
        Arrival::New
    }

    /// Has the page under way brought anything new?
    pub fn has_fresh(&self) -> bool {
        self.page.fresh > 0
    }

    /// The relay says that the page is over, or (`is_proof` unset) has fallen silent in it.
    pub fn handle_end(&mut self, hint: EoseHint, budget: &mut Budget) -> PageEnd {
        let probing = matches!(self.state, State::Probing { .. });
        let page = std::mem::take(&mut self.page);
        budget.learn_page(page.seen.len());
        if page.fresh > 0 {
            return self.advance(page, probing, hint, budget);
        }
        if page.newer > 0 {
            self.state = State::Done;
            let beyond = probing && !budget.may_be_cut(self.edge.len(), self.asked);
            let until = self.cursor.saturating_sub(u64::from(beyond));
            return PageEnd::UntilIgnored { window: Window { until, ..self.window } };
        }
        let repeated = if probing { self.last_page_events.unwrap_or(0) } else { page.seen.len() };
        if repeated == 0 || hint == EoseHint::Finish && !probing {
            // Nothing there, however much the relay would give.
            self.state = State::Done;
            return PageEnd::Drained;
        }
        // The page repeats the cursor's second and nothing else. That second ends here if the page could have held more.
        if probing || budget.page_cap().is_some() || repeated >= self.asked || self.cursor <= self.window.since {
            if budget.may_be_cut(repeated, self.asked) {
                return self.overflow(self.cursor);
            }
            self.state = State::Done;
            return PageEnd::Drained;
        }
        let events = repeated;
        self.last_page_events = Some(events);
        self.state = State::Probing { under_way: false };
        PageEnd::Advanced { proven_from: self.cursor.saturating_add(1) }
    }

    /// Something new came: the cursor moves down, or stays within its second with a larger edge.
    fn advance(&mut self, page: Tally, probing: bool, hint: EoseHint, budget: &mut Budget) -> PageEnd {
        if let Some(events) = self.last_page_events.take_if(|events| *events < self.asked) {
            budget.learn_page_cap(events);
        }
        let below = page.seen.last().map(|seen| seen.created_at);
        let overflowed =
            probing.then(|| FullSecond { second: self.cursor, seen: std::mem::take(&mut self.edge), below });
        let events = page.seen.len();
        let oldest = page.seen.first().map_or(self.cursor, |seen| seen.created_at);
        if oldest < self.cursor || probing {
            self.edge.clear();
        }
        self.edge.extend(page.seen.into_iter().take_while(|seen| seen.created_at == oldest));
        self.cursor = oldest;
        self.last_page_events = Some(events);
        self.state = State::Ready;
        if hint == EoseHint::Finish {
            self.state = State::Done;
            return PageEnd::Drained;
        }
        match overflowed {
            Some(full) => PageEnd::Overflow(full),
            None => PageEnd::Advanced { proven_from: oldest.saturating_add(1) },
        }
    }

    fn overflow(&mut self, second: u64) -> PageEnd {
        let seen = std::mem::take(&mut self.edge);
        self.last_page_events = None;
        match second.checked_sub(1) {
            Some(below) if below >= self.window.since => {
                self.cursor = below;
                self.state = State::Ready;
            }
            _ => self.state = State::Done,
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
