//! From what is wanted to what is fetched and followed: packing what is new, smaller packs where something is not wanted
//! any more, and full packs for small ones where there are too many.

use std::collections::BTreeMap;

use super::passes::Retry;
use super::{Ctx, Relay};
use crate::plan::{Pack, Progress, Replaced, intersect};
use crate::protocol::FilterKey;
use crate::store::{Coverage, Proof};

impl Relay {
    /// Packs what is new, and takes leave of what is not wanted any more. What is new is pending from now on.
    pub(super) fn absorb(&mut self, ctx: &mut Ctx<'_>) {
        for replaced in self.packs.thin() {
            let swap = replaced.new.as_ref().zip(replaced.old.first());
            if let Some((new, old)) = swap {
                self.lives.swap(old, new);
                self.live_due = true;
            }
            self.replace(replaced, ctx);
        }
        for pack in self.packs.pack() {
            self.dropped_by = None;
            self.judge(&pack, ctx.access);
            self.follow(&pack);
            if self.direction_of(&pack).is_some() {
                self.progress.add(pack);
            }
        }
        self.waiting.extend(self.progress.begin_new());
    }

    fn follow(&mut self, pack: &Pack) {
        if self.is_to_follow(pack) {
            self.consolidation_due = true;
            self.lives.add(pack);
            self.live_due = true;
        }
    }

    fn unfollow(&mut self, pack: &Pack, ctx: &mut Ctx<'_>) {
        // What is left of its subscription is to be sent again.
        self.live_due = true;
        if let Some(subscription) = self.lives.remove(pack) {
            self.close_subscription(subscription, ctx);
        }
    }

    /// How things are synced has changed: follows what is to be followed, and nothing else.
    pub(super) fn review_lives(&mut self, ctx: &mut Ctx<'_>) {
        let packs: Vec<Pack> = self.packs.iter().cloned().collect();
        for pack in packs {
            match self.is_to_follow(&pack) {
                true => self.follow(&pack),
                false => self.unfollow(&pack, ctx),
            }
        }
    }

    /// Begins these packs anew, as the rules have it by now.
    pub(super) fn begin_anew(&mut self, which: impl Fn(&Pack) -> bool, ctx: &mut Ctx<'_>) {
        if self.given_up {
            return;
        }
        self.drop_histories(|history| which(&history.pack), ctx);
        self.waiting.retain(|pack| !which(pack));
        let packs: Vec<Pack> = self.packs.iter().filter(|pack| which(pack)).cloned().collect();
        for pack in &packs {
            self.judge(pack, ctx.access);
            self.retries.remove(pack);
            self.forget_gaps(pack.key());
            ctx.items.forget(pack.key());
            self.progress.remove(pack);
            if self.direction_of(pack).is_some() {
                self.progress.add(pack.clone());
            }
        }
        self.review_lives(ctx);
        self.waiting.extend(self.progress.begin_new());
    }

    /// Something that came was forbidden. Marks of other rules are worth nothing now, but would be again if those came back:
    /// they must not claim this.
    pub(super) fn drop_outdated_marks(&mut self, ctx: &mut Ctx<'_>) {
        if self.dropped_by.replace(self.number_of_rights()) == Some(self.number_of_rights()) {
            return;
        }
        let is_outdated = |pack: &&Pack| {
            let mark = self.coverage.get(pack.key());
            mark.is_some_and(|mark| mark.rules != self.rules_of(pack, ctx))
        };
        let outdated: Vec<FilterKey> = self.packs.iter().filter(is_outdated).map(|pack| pack.key().clone()).collect();
        for filter in outdated {
            self.coverage.remove(&filter);
            self.push_no_mark(filter, ctx);
        }
    }

    /// A pack takes the place of others. What all of them are proven for, it is proven for, too.
    fn replace(&mut self, replaced: Replaced, ctx: &mut Ctx<'_>) {
        let Replaced { old, new } = replaced;
        if let Some(new) = new {
            self.follow(&new);
            if old.iter().all(|pack| is_through(pack, &self.progress, &self.retries)) {
                self.inherit(&old, &new, ctx);
                if old.iter().any(|pack| self.stale.contains(pack)) {
                    self.stale.insert(new.clone());
                }
                self.progress.add_confirmed(new);
            } else {
                self.progress.add(new);
            }
        }
        old.iter().for_each(|pack| self.forget(pack, ctx));
    }

    fn inherit(&mut self, old: &[Pack], new: &Pack, ctx: &mut Ctx<'_>) {
        let rules = self.rules_of(new, ctx);
        let mark = |pack: &Pack| self.coverage.get(pack.key()).filter(|mark| mark.rules == rules);
        let mut proofs = old.iter().map(|pack| mark(pack).map_or(&[][..], |mark| &mark.windows));
        let first: Vec<Proof> = proofs.next().unwrap_or_default().to_vec();
        let windows = proofs.fold(first, |all, next| intersect(&all, next));
        let (filter, packed) = (new.key().clone(), new.packed());
        let mark = Coverage { relay: self.url.clone(), filter, packed, rules, windows };
        self.coverage.insert(mark.filter.clone(), mark.clone());
        self.push_mark(mark, ctx);
    }

    pub(super) fn push_mark(&mut self, mark: Coverage, ctx: &mut Ctx<'_>) {
        self.note_mark(&mark);
        let source = self.source(ctx.tickets.next_history());
        ctx.pipeline.push_mark(source, mark, true);
    }

    /// Which filters have marks that outlast a restart is known, even where they count no more until then.
    pub(super) fn note_mark(&mut self, mark: &Coverage) {
        match mark.windows.is_empty() {
            true => self.marked.remove(&mark.filter),
            false => self.marked.insert(mark.filter.clone()),
        };
    }

    /// The mark of a pack that is no more is worth nothing, not even after a restart.
    fn remove_mark(&mut self, pack: &Pack, ctx: &mut Ctx<'_>) {
        self.coverage.remove(pack.key());
        if pack.layer().is_some() {
            self.push_no_mark(pack.key().clone(), ctx);
        }
    }

    fn push_no_mark(&mut self, filter: FilterKey, ctx: &mut Ctx<'_>) {
        let mark = Coverage { relay: self.url.clone(), filter, packed: None, rules: 0, windows: Vec::new() };
        self.push_mark(mark, ctx);
    }

    /// All marks go, and those that count no more since a full pass was begun, too.
    pub(in crate::engine) fn remove_marks(&mut self, ctx: &mut Ctx<'_>) {
        self.coverage.clear();
        for filter in std::mem::take(&mut self.marked) {
            self.push_no_mark(filter, ctx);
        }
    }

    /// Nothing of this pack is wanted any more.
    fn forget(&mut self, pack: &Pack, ctx: &mut Ctx<'_>) {
        self.progress.remove(pack);
        self.waiting.retain(|waiting| waiting != pack);
        self.drop_histories(|history| history.pack == *pack, ctx);
        self.forget_gaps(pack.key());
        self.remove_mark(pack, ctx);
        self.stale.remove(pack);
        self.doubted.remove(pack);
        self.polled.remove(pack);
        self.retries.remove(pack);
        self.denied.remove(pack);
        self.unfollow(pack, ctx);
    }

    /// Are more filters followed than relays like, or more than this one has subscriptions for, and would it help to make
    /// full packs of small ones?
    fn has_too_many_filters(&self, ctx: &Ctx<'_>) -> bool {
        let followed = self.lives.filters();
        let has_no_room = self.live_due && self.is_unserved();
        (followed > ctx.config.live_filters_max || has_no_room)
            && self.lives.retiring.is_empty()
            && (self.packs.filters_min() + (followed / 4).max(1) <= followed || has_no_room && self.could_be_fuller())
    }

    /// Are there twice as many subscriptions as these filters need?
    fn could_be_fuller(&self) -> bool {
        self.lives.groups() >= 2 * self.lives.filters().div_ceil(self.budget.filters_max()).max(1)
    }

    /// Makes full packs of small ones. What was fetched is not fetched again; what is followed is followed by new
    /// subscriptions before the old ones end. Packs that are under way stay as they are.
    pub(super) fn consolidate_if_due(&mut self, ctx: &mut Ctx<'_>) {
        if !self.is_live() || !std::mem::take(&mut self.consolidation_due) || !self.has_too_many_filters(ctx) {
            return;
        }
        let before = self.lives.filters();
        let replaced = self.packs.consolidate(|pack| is_through(pack, &self.progress, &self.retries));
        if replaced.is_empty() && !self.could_be_fuller() {
            return;
        }
        self.counters.consolidations += 1;
        self.note_live(ctx);
        let session = &self.session;
        self.lives.dissolve(|id| session.subscription(id).filter(|open| open.answered).map(|open| open.opened_secs));
        for replaced in replaced {
            if let Some(new) = &replaced.new {
                self.lives.continue_as(&replaced.old, new);
            }
            self.replace(replaced, ctx);
        }
        self.live_due = true;
        tracing::debug!(relay = %self.url, before, after = self.lives.filters(), "consolidated what is followed");
    }

    /// Everything is begun anew, so all packs may be made anew, too.
    pub(super) fn repack(&mut self, ctx: &mut Ctx<'_>) {
        for pack in self.packs.forget_remembered() {
            self.remove_mark(&pack, ctx);
        }
        for replaced in self.packs.consolidate(|_| true) {
            if let Some(new) = replaced.new {
                self.follow(&new);
                self.progress.add(new);
            }
            replaced.old.iter().for_each(|pack| self.forget(pack, ctx));
        }
    }
}

/// Has a pack been fetched without gaps?
fn is_through(pack: &Pack, progress: &Progress, retries: &BTreeMap<Pack, Retry>) -> bool {
    progress.confirmed().contains(pack) && !retries.contains_key(pack)
}
