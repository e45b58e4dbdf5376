//! What the end of a request means for a history: EOSE, refusal, silence, loss.

use super::super::page::PageEnd;
use super::super::reconcile::{Step, WindowEnd};
use super::{FullSecond, History, Reconcile, Stage};
use crate::engine::{Config, Gap, GapReason};
use crate::protocol::message::EoseHint;
use crate::protocol::{Item, ItemSet, Window};
use crate::relay::{Budget, Purpose};
use crate::store::Method;

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// EOSE.
    End(EoseHint),
    /// No progress within the stall time.
    Stalled,
    /// Cut off by us, as it found no end.
    Endless,
    /// Refused, in these words, for good.
    Refused(String),
    /// Ended in these words, since what the relay goes by has changed: to be asked again, but not for ever.
    Changed(String),
    /// To be asked again, for no fault of the request: after a cooldown, an authentication, or a limit learned.
    Again,
    /// The set is too large to be reconciled at once; the relay may have stated its cap.
    TooLarge(Option<u64>),
}

impl History {
    /// A request has ended.
    pub fn handle_end(
        &mut self,
        subscription: u64,
        purpose: Purpose,
        answer: Answer,
        budget: &mut Budget,
        config: &Config,
        now_secs: u64,
    ) {
        let answer = match answer {
            Answer::Changed(_) if self.changes < config.changes_max => {
                self.changes += 1;
                Answer::Again
            }
            answer => answer,
        };
        match purpose {
            Purpose::Page => self.end_page(answer, budget, config),
            Purpose::Split => self.end_split(&answer, budget),
            Purpose::Ids => match answer {
                Answer::Again => self.ids.handle_lost(subscription),
                answer => self.ids.handle_end(subscription, matches!(answer, Answer::End(_)), budget),
            },
            Purpose::Negentropy => self.end_reconciliation(answer, budget, config, now_secs),
            Purpose::Live | Purpose::Probe => {}
        }
    }

    fn end_page(&mut self, answer: Answer, budget: &mut Budget, config: &Config) {
        let Some((page, _)) = &mut self.page else { return };
        match answer {
            Answer::End(hint) => {
                self.methods.insert(Method::Req);
                self.stalls = 0;
                let end = page.handle_end(hint, budget);
                if end == PageEnd::Drained && hint == EoseHint::More {
                    let rest = page.rest();
                    self.add_gap(rest, GapReason::Stalled);
                }
                self.take_page_end(end, config);
            }
            Answer::Again => page.reset(),
            Answer::Stalled | Answer::Endless if page.has_fresh() => {
                let reason = if answer == Answer::Stalled { GapReason::Stalled } else { GapReason::Endless };
                // What came is used, but that nothing was left out above the oldest of it is not proven.
                self.methods.insert(Method::Req);
                let above = page.cursor();
                let end = page.handle_end(EoseHint::None, budget);
                let unproven = Window { since: page.cursor(), until: above };
                self.add_gap(unproven, reason);
                self.take_page_end(end, config);
            }
            Answer::Stalled if self.stalls < config.stalls_max => {
                self.stalls += 1;
                page.reset();
            }
            Answer::Stalled => self.give_up_paging(GapReason::Stalled),
            Answer::Endless => self.give_up_paging(GapReason::Endless),
            Answer::Refused(_) if self.refusals < config.refusals_max => {
                self.refusals += 1;
                page.reset();
            }
            Answer::Refused(words) | Answer::Changed(words) => self.give_up_paging(GapReason::Refused(words)),
            Answer::TooLarge(_) => page.reset(),
        }
    }

    fn take_page_end(&mut self, end: PageEnd, config: &Config) {
        let (events_max, windows_max) = (config.answer_events_max, config.negentropy_windows_max);
        match end {
            PageEnd::Advanced | PageEnd::Drained => {}
            PageEnd::Overflow(full) => self.defer_second(full, events_max),
            PageEnd::UntilIgnored { window } => self.add_gap(window, GapReason::UntilIgnored),
            PageEnd::OldestFirst { window } => self.add_gap(window, GapReason::OldestFirst),
            PageEnd::Disordered { upper, lower } => {
                self.split_page(upper, lower, windows_max);
                return;
            }
        }
        if self.page.as_ref().is_some_and(|(page, _)| page.is_done())
            && let Some((_, window)) = self.page.take()
        {
            self.proofs.add(window, Method::Req);
        }
        // What is proven so far may be committed: a pass that is cut short is then continued, not begun again.
        self.mark_due |= self.keeps_coverage && self.marks_on_the_way == 0;
    }

    /// Goes on with two parts of what is left of the page's window, unless there are too many parts by now.
    fn split_page(&mut self, upper: Window, lower: Window, windows_max: usize) {
        let Some((_, window)) = self.page.take() else { return };
        if upper.until < window.until {
            self.proofs.add(Window { since: upper.until + 1, until: window.until }, Method::Req);
        }
        self.page_splits += 1;
        if self.page_splits > windows_max {
            self.add_gap(Window { since: lower.since, until: upper.until }, GapReason::Disordered);
            return;
        }
        self.windows.push_front(lower);
        self.windows.push_front(upper);
    }

    /// A second that overflows a page is fetched later, unless too much is remembered of such seconds already.
    fn defer_second(&mut self, full: FullSecond, events_max: usize) {
        let remembered: usize = self.seconds.iter().map(|full| full.seen.len()).sum();
        if remembered >= events_max {
            let window = Window { since: full.second, until: full.second };
            self.add_gap(window, GapReason::SecondOverflow { received: full.seen.len() });
            return;
        }
        self.proofs.add_hole(full.second);
        self.seconds.push_back(full);
    }

    fn end_split(&mut self, answer: &Answer, budget: &mut Budget) {
        let Some(split) = &mut self.split else { return };
        if *answer == Answer::Again {
            split.reset();
            return;
        }
        let was_raising = split.is_raising();
        let is_ended = matches!(answer, Answer::End(hint) if *hint != EoseHint::More);
        let whole = split.handle_end(is_ended, budget);
        if was_raising && whole {
            self.end_second(true);
        } else if was_raising {
            let why = self.fallback.clone();
            self.after_raise(why.as_deref());
        }
    }

    /// A higher limit does not help: reconcile the second, unless the relay has refused that, else split the filter.
    pub(super) fn after_raise(&mut self, refused: Option<&str>) {
        let filter = self.filter().clone();
        let Some(split) = &mut self.split else { return };
        let refused = refused.is_some() || self.fallback.is_some() || self.refused_before.is_some();
        if refused || self.options.method == Some(Method::Req) {
            split.start_parts(&filter);
            return;
        }
        let second = split.second();
        let held: ItemSet = split.seen().iter().map(|seen| Item { created_at: seen.created_at, id: seen.id }).collect();
        let window = Window { since: second, until: second };
        self.reconcile = Some(Reconcile::new(held.into(), window, usize::MAX));
    }

    /// Ends the second whose parts are all through, or as many as are asked for.
    pub(super) fn settle_split(&mut self) {
        if let Some(split) = self.split.as_ref().filter(|split| split.is_done()) {
            let proven = split.is_proven();
            self.end_second(proven);
        }
    }

    fn end_second(&mut self, proven: bool) {
        let Some(split) = self.split.take() else { return };
        let second = split.second();
        if proven {
            self.proofs.fill_hole(second);
        } else {
            let window = Window { since: second, until: second };
            self.add_gap(window, GapReason::SecondOverflow { received: split.seen().len() });
        }
    }

    /// A negentropy message came on `subscription`.
    pub fn handle_neg_msg(&mut self, subscription: u64, message: &[u8], config: &Config) -> Result<(), String> {
        let Some(reconcile) = &mut self.reconcile else { return Ok(()) };
        if self.held_reply.is_some() {
            // Who does not wait for our answers would make us remember whatever it names.
            return Err("a negentropy message out of turn".into());
        }
        let (mut need, mut have) = (Vec::new(), Vec::new());
        let step = reconcile.handle_message(message, config.negentropy_rounds_max, &mut need, &mut have);
        if self.options.direction.is_up() && self.stage == Stage::Seconds {
            self.relay_ids.extend(&need);
        }
        if self.options.direction.is_down() || self.stage == Stage::Seconds {
            self.unchecked.extend(need);
        }
        if self.options.direction.is_up() {
            have.into_iter().for_each(|id| self.publish.offer(id));
        }
        match step {
            Step::Reply(reply) => self.held_reply = Some((subscription, reply)),
            Step::Agreed => self.close_reconciliation = Some(subscription),
            Step::Failed(why) => return Err(why),
        }
        self.methods.insert(Method::Negentropy);
        Ok(())
    }

    /// Does a reconciliation wait for us rather than for the relay?
    pub fn holds_reply(&self) -> bool {
        self.held_reply.is_some()
    }

    fn end_reconciliation(&mut self, answer: Answer, budget: &Budget, config: &Config, now_secs: u64) {
        self.held_reply = None;
        let Some(reconcile) = &mut self.reconcile else { return };
        match answer {
            Answer::Again => reconcile.reset(budget.negentropy_frame_bytes_max()),
            Answer::TooLarge(records_max) => {
                if !reconcile.split(records_max, config.negentropy_windows_max, now_secs) {
                    self.fall_back("the relay reconciles no set of this size".into());
                }
            }
            Answer::End(_) => {}
            Answer::Stalled | Answer::Endless => {
                self.fall_back("no answer to NEG-OPEN or NEG-MSG within the stall time".into())
            }
            Answer::Refused(words) | Answer::Changed(words) => self.fall_back(words),
        }
    }

    /// No reconciliation here, now: what it has not proven is paged.
    fn fall_back(&mut self, why: String) {
        let Some(mut reconcile) = self.reconcile.take() else { return };
        let why = if why.is_empty() { "refused without a word".to_owned() } else { why };
        self.fallback = Some(why.clone());
        if self.stage == Stage::Seconds {
            self.after_raise(Some(&why));
            return;
        }
        let windows = reconcile.give_up();
        if self.options.method == Some(Method::Negentropy) {
            windows.into_iter().for_each(|window| self.add_gap(window, GapReason::Refused(why.clone())));
            self.windows.clear();
        } else {
            // Only what no earlier pass has proven lately is paged.
            let todo = std::mem::take(&mut self.windows);
            let left = windows.iter().flat_map(|window| todo.iter().map(|todo| todo.intersect(window)));
            self.windows = left.filter(|window| !window.is_empty()).collect();
            self.windows.extend(std::mem::take(&mut self.unsettled_windows));
        }
    }

    /// A window whose downloads are through is proven, or reconciled once more.
    pub(super) fn settle_reconciliation(&mut self, budget: &Budget, config: &Config) {
        if !self.is_downloaded() {
            return;
        }
        let Some(reconcile) = &mut self.reconcile else { return };
        match reconcile.handle_settled(config.negentropy_passes_max, budget.negentropy_frame_bytes_max()) {
            Some(WindowEnd::Proven(window)) => {
                self.proofs.add(window, Method::Negentropy);
                self.end_reconciled_second(true);
            }
            Some(WindowEnd::Unsettled(window, _))
                if self.stage == Stage::Fetching && self.options.method != Some(Method::Negentropy) =>
            {
                self.unsettled_windows.push_back(window);
            }
            Some(WindowEnd::Unsettled(window, events)) => {
                self.add_gap(window, GapReason::Unsettled { events });
                self.end_reconciled_second(false);
            }
            Some(WindowEnd::Again) | None => {}
        }
        if self.reconcile.as_ref().is_some_and(Reconcile::is_done) {
            self.reconcile = None;
            if self.stage == Stage::Fetching {
                self.windows = std::mem::take(&mut self.unsettled_windows);
                self.proofs.forget_kept();
            }
        }
    }

    fn end_reconciled_second(&mut self, proven: bool) {
        if self.stage == Stage::Seconds {
            self.end_second(proven);
        }
    }

    /// The connection is lost: everything under way is to be asked again.
    pub fn handle_connection_lost(&mut self, budget: &Budget) {
        self.waits_for_auth = false;
        self.held_reply = None;
        self.close_reconciliation = None;
        self.ids.reset();
        self.publish.handle_lost();
        if let Some(reconcile) = &mut self.reconcile {
            reconcile.reset(budget.negentropy_frame_bytes_max());
        }
        if let Some((page, _)) = &mut self.page {
            page.handle_connection_lost();
        }
        if let Some(split) = &mut self.split {
            split.reset();
        }
    }

    fn give_up_paging(&mut self, reason: GapReason) {
        if let Some((mut page, window)) = self.page.take() {
            let rest = page.rest();
            page.give_up();
            if rest.until < window.until {
                self.proofs.add(Window { since: rest.until + 1, until: window.until }, Method::Req);
            }
            self.add_gap(rest, reason.clone());
        }
        let unsettled = std::mem::take(&mut self.unsettled_windows);
        for window in std::mem::take(&mut self.windows).into_iter().chain(unsettled) {
            self.add_gap(window, reason.clone());
        }
    }

    /// Nothing more can be fetched or sent, for `reason`: what is not proven becomes gaps.
    pub fn give_up(&mut self, reason: &GapReason) {
        if matches!(reason, GapReason::Store(_)) && self.stage < Stage::Done {
            // Events of windows that count as fetched may be among those that were not stored.
            self.add_gap(Window::of(self.filter()), reason.clone());
        }
        if self.stage >= Stage::Settling {
            return;
        }
        self.waits_for_auth = false;
        if let Some(mut reconcile) = self.reconcile.take()
            && self.stage <= Stage::Fetching
        {
            reconcile.give_up().into_iter().for_each(|window| self.add_gap(window, reason.clone()));
        }
        self.give_up_paging(reason.clone());
        let open: Vec<u64> = self
            .split
            .take()
            .map(|split| split.second())
            .into_iter()
            .chain(self.seconds.drain(..).map(|full| full.second))
            .collect();
        open.into_iter().for_each(|second| self.add_gap(Window { since: second, until: second }, reason.clone()));
        let left = self.ids.give_up() + std::mem::take(&mut self.unchecked).len() + self.publish.give_up();
        if (left > 0 || self.checking) && self.gaps.is_empty() {
            self.add_gap(Window::of(self.filter()), reason.clone());
        }
        self.checking = false;
        self.held_reply = None;
        self.report_publishing();
        self.report_missing();
        self.stage = Stage::Settling;
        self.mark_due = self.keeps_coverage;
    }

    /// Records a gap; one that continues the last gap of the same reason extends it, unless it is about one second.
    pub(super) fn add_gap(&mut self, window: Window, reason: GapReason) {
        if window.is_empty() {
            return;
        }
        if let Some(last) = self.gaps.last_mut()
            && last.reason == reason
            && !matches!(reason, GapReason::SecondOverflow { .. })
            && last.window.since <= window.until.saturating_add(1)
            && window.since <= last.window.until.saturating_add(1)
        {
            last.window =
                Window { since: last.window.since.min(window.since), until: last.window.until.max(window.until) };
            return;
        }
        self.gaps.push(Gap { filter: self.key().clone(), window, reason });
    }
}
