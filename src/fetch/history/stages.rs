//! From stage to stage: what is fetched, compared, reported and proven.

use super::{History, Stage};
use crate::engine::{Config, GapReason};
use crate::protocol::Window;
use crate::relay::Budget;
use crate::store::{Coverage, Proof};

impl History {
    /// Goes on to the next stage where this one is through. Call after everything that happens.
    pub fn advance(&mut self, budget: &Budget, config: &Config) {
        if self.stage == Stage::Fetching || self.stage == Stage::Seconds {
            self.settle_reconciliation(budget, config);
        }
        if self.stage == Stage::Seconds && self.reconcile.is_none() {
            self.settle_split();
        }
        if self.stage == Stage::Fetching && self.is_fetched() {
            self.stage = Stage::Seconds;
        }
        if self.stage == Stage::Seconds && self.is_fetched() && self.seconds.is_empty() && self.split.is_none() {
            self.compare();
            self.stage = Stage::Publishing;
        }
        if self.stage == Stage::Publishing && self.publish.is_idle() {
            self.report_publishing();
            self.report_missing();
            self.stage = Stage::Settling;
            self.mark_due = self.keeps_coverage;
        }
        if self.stage == Stage::Settling && !self.mark_due && self.marks_on_the_way == 0 && self.unsettled == 0 {
            self.stage = Stage::Done;
        }
    }

    fn is_fetched(&self) -> bool {
        self.page.is_none() && self.windows.is_empty() && self.reconcile.is_none() && self.is_downloaded()
    }

    pub(super) fn is_downloaded(&self) -> bool {
        // Whether what came is genuine is to be known before a window counts as held.
        let is_settled = self.unsettled == 0 || self.reconcile.is_none();
        is_settled && self.ids.is_idle() && self.unchecked.is_empty() && !self.checking && self.held_reply.is_none()
    }

    /// What the relay was not seen to have in the windows that were paged is offered to it.
    fn compare(&mut self) {
        let paged = std::mem::take(&mut self.paged);
        if !self.options.direction.is_up() {
            return;
        }
        self.relay_ids.sort_unstable();
        let set = self.set.clone();
        for item in paged.iter().flat_map(|window| &set.items()[set.range(*window)]) {
            if self.relay_ids.binary_search(&item.id).is_err() {
                self.publish.offer(item.id);
            }
        }
        self.relay_ids = Vec::new();
    }

    pub(super) fn report_publishing(&mut self) {
        let whole = Window::of(self.filter());
        if let Some((events, reason)) = self.publish.refused.take() {
            self.add_gap(whole, GapReason::NotAccepted { events, reason });
        }
        if self.publish.unacknowledged > 0 {
            self.add_gap(whole, GapReason::Unacknowledged { events: self.publish.unacknowledged });
        }
    }

    pub(super) fn report_missing(&mut self) {
        let events = self.ids.missing().len();
        if events > 0 {
            self.add_gap(Window::of(self.filter()), GapReason::NotDelivered { events });
        }
    }

    /// The proofs so far, as they are committed.
    pub(super) fn coverage(&self) -> Coverage {
        let current = self.page.as_ref().map(|(page, window)| (page.rest(), *window));
        // Where what the relay has offered does not come is not known by its date.
        let is_delivered = self.ids.missing().is_empty();
        let windows: Vec<Proof> = if is_delivered { self.proofs.windows(current, &self.gaps) } else { Vec::new() };
        Coverage {
            relay: self.relay.clone(),
            filter: self.key().clone(),
            packed: self.pack.packed(),
            rules: self.rules,
            windows,
        }
    }
}
