//! Passes over what is wanted: the first one, quick ones after a short absence, a full one each day, and another look
//! at filters with gaps. What is polled, as it is not served live, begins in `requests`.

use std::time::Duration;

use super::{Ctx, Relay};
use crate::engine::{Direction, HistoryId, RelayOptions};
use crate::fetch::{History, HistoryParts};
use crate::plan::{Pack, Todo, windows_to_fetch};
use crate::runtime::Instant;
use crate::store::Method;

/// A filter with gaps is to be looked at again.
#[derive(Debug)]
pub(super) struct Retry {
    /// How long the wait was after the last pass over the filter.
    wait: Duration,
    /// When its turn is; `None` while it is looked at.
    at: Option<Instant>,
    /// Something came up while it is looked at: it has another turn, however this one ends.
    again: bool,
}

impl Relay {
    /// Ends histories without a result.
    pub(super) fn drop_histories(&mut self, which: impl Fn(&History) -> bool, ctx: &mut Ctx<'_>) {
        let over: Vec<HistoryId> =
            self.histories.iter().filter(|(_, history)| which(history)).map(|(id, _)| *id).collect();
        for id in over {
            self.histories.remove(&id);
            self.close_requests_of(id, ctx);
        }
    }

    /// Begins the next pack that waits.
    pub(super) fn begin_history(&mut self, ctx: &mut Ctx<'_>) -> Option<HistoryId> {
        let pack = self.waiting.pop_front()?;
        self.forget_gaps(pack.key());
        self.stale.remove(&pack);
        if self.doubted.remove(&pack) {
            self.coverage.remove(pack.key());
        }
        if let Some(retry) = self.retries.get_mut(&pack) {
            (retry.at, retry.again) = (None, false);
        }
        let id = ctx.tickets.next_history();
        let (todo, method) = self.todo(&pack, ctx);
        // What the relay is to get is passed on as it comes; a poll is for what is new there.
        let direction =
            if self.polled.remove(&pack) { Direction::Down } else { self.direction_of(&pack).unwrap_or_default() };
        self.counters.histories += 1;
        self.moments.sync_started_secs = Some(ctx.now.unix_secs);
        if direction.is_up() {
            // What an older set lacks would not be offered.
            ctx.items.forget(pack.key());
        }
        let options = RelayOptions { method, direction, ..self.options_of(&pack) };
        let rules = self.rules_of(&pack, ctx);
        let parts =
            HistoryParts { id, rules, pack, relay: self.url.clone(), options, todo, now_secs: ctx.now.unix_secs };
        let history = History::new(parts, ctx.config);
        self.histories.insert(id, history);
        Some(id)
    }

    /// What is left to fetch of a pack, and how. After a short absence of a live relay that is what it may have
    /// got meanwhile, and REQ with `since` costs less than a comparison of everything.
    fn todo(&self, pack: &Pack, ctx: &Ctx<'_>) -> (Todo, Option<Method>) {
        let (window, key) = (pack.window(), pack.key());
        // What the relay lacks shows only when all that it has is known.
        let is_polled = self.polled.contains(pack);
        let rules = self.rules_of(pack, ctx);
        let proofs = match self.coverage.get(key).filter(|mark| mark.rules == rules) {
            Some(coverage) if is_polled || !self.direction_of(pack).is_some_and(Direction::is_up) => {
                coverage.windows.as_slice()
            }
            _ => &[],
        };
        let valid_for = match is_polled {
            true => ctx.config.live_retry_proofs,
            false => ctx.config.quick_reconnect_max,
        };
        let todo = windows_to_fetch(window, proofs, ctx.now.unix_secs, valid_for, self.overlap_secs(pack, ctx));
        // Where a gap is left, every way to fetch is open again.
        let quick = self.was_live && !todo.kept.is_empty() && !self.retries.contains_key(pack);
        let method = self.options_of(pack).method.or(quick.then_some(Method::Req));
        (todo, method)
    }

    /// What was confirmed before the link was lost is fetched again, as far as it may have changed.
    pub(super) fn renew_after_absence(&mut self, ctx: &mut Ctx<'_>) {
        let Some(lost_at) = self.disconnected_at.take() else { return };
        let long = ctx.now.instant - lost_at > ctx.config.quick_reconnect_max;
        match (self.is_live(), long) {
            (true, true) => self.begin_full_pass(ctx),
            (true, false) => {
                self.progress.unconfirm_all();
                self.waiting.extend(self.progress.begin_new());
            }
            (false, true) => self.negentropy_refused = None,
            (false, false) => {}
        }
    }

    /// Begins everything anew, pending and confirmed, and relies on nothing that was proven before. Live subscriptions
    /// stay open.
    pub(super) fn begin_full_pass(&mut self, ctx: &mut Ctx<'_>) {
        self.absorb(ctx);
        self.drop_histories(|_| true, ctx);
        self.waiting.clear();
        self.coverage.clear();
        self.repack(ctx);
        self.was_live = false;
        self.negentropy_refused = None;
        self.budget.forget_pages();
        self.fallbacks.clear();
        self.relied_on_secs = None;
        self.renew_auth(ctx);
        self.live_due |= self.lives.forget_refusals();
        self.full_pass_at = Some(ctx.now.instant + random_between(full_pass_range(ctx), ctx));
        self.restart(ctx);
    }

    /// The first pass may rely on proofs from before a restart, and when the last full one was is not known: then the
    /// next may be due at any moment of a day, so that frequent restarts do not put it off for ever.
    pub(super) fn plan_full_pass(&mut self, ctx: &mut Ctx<'_>) {
        if self.full_pass_at.is_none() {
            let (min, max) = full_pass_range(ctx);
            let min = if self.coverage.is_empty() { min } else { Duration::ZERO };
            self.full_pass_at = Some(ctx.now.instant + random_between((min, max), ctx));
        }
    }

    /// When the next full pass over a relay that stays live is to begin.
    pub(super) fn next_full_pass(&self, ctx: &Ctx<'_>) -> Option<Instant> {
        self.full_pass_at.filter(|_| self.is_live() && !ctx.config.one_shot && self.wants_connection())
    }

    /// Begins the full pass once its moment has come.
    pub(super) fn begin_full_pass_if_due(&mut self, ctx: &mut Ctx<'_>) {
        if self.next_full_pass(ctx).is_some_and(|at| at <= ctx.now.instant) {
            self.begin_full_pass(ctx);
            self.introduce_anew(ctx);
        }
    }

    /// A pass over a filter has ended: if with gaps, it is looked at again, later each time.
    pub(super) fn plan_after(&mut self, history: &History, ctx: &Ctx<'_>) {
        let again = self.retries.get(&history.pack).is_some_and(|retry| retry.again);
        if history.gaps.is_empty() && !again {
            self.retries.remove(&history.pack);
            return;
        }
        if ctx.config.one_shot || self.given_up {
            return;
        }
        let (base, most) = (ctx.config.gap_retry_base, ctx.config.full_pass_min);
        let before = self.retries.get(&history.pack);
        let wait = before.map_or(base, |retry| retry.wait.saturating_mul(2)).min(most);
        self.retries.insert(history.pack.clone(), Retry { wait, at: Some(ctx.now.instant + wait), again: false });
    }

    /// This is to be looked at again, as if it had a gap; once more, if that is being done.
    pub(super) fn plan_retry(&mut self, pack: Pack, ctx: &Ctx<'_>) {
        let again = self.histories.values().any(|history| history.pack == pack);
        let (wait, at) = (ctx.config.gap_retry_base, ctx.now.instant + ctx.config.gap_retry_base);
        let retry = self.retries.entry(pack).or_insert(Retry { wait, at: Some(at), again });
        retry.again |= again;
        retry.at.get_or_insert(at);
    }

    /// When the next filter is to be looked at again.
    pub(super) fn next_retry(&self) -> Option<Instant> {
        self.retries.values().filter_map(|retry| retry.at).min()
    }

    /// Begins anew what is to be looked at again by now.
    pub(super) fn retry_if_due(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now.instant;
        if self.next_retry().is_none_or(|at| at > now) {
            return;
        }
        if self.session.conn().is_some() {
            // Only what is not proven is fetched again.
            self.note_live(ctx);
            self.renew_auth(ctx);
        }
        for (pack, retry) in self.retries.iter_mut().filter(|(_, retry)| retry.at.is_some_and(|at| at <= now)) {
            retry.at = None;
            self.progress.unconfirm(pack);
        }
        self.waiting.extend(self.progress.begin_new());
    }

    /// When a relay has answered a request, it has sent all that was new for the live subscriptions that it serves until
    /// that was sent: proofs that reach to the newest hold until then. Those from before the subscription was opened
    /// hold for what is dated newer only: between the two, the relay may have got events with older dates. So do all
    /// where the subscription asks for nothing older.
    pub(in crate::engine) fn note_live(&mut self, ctx: &Ctx<'_>) {
        let Some(until) = self.session.served_until_secs(ctx.now).filter(|_| self.is_live()) else { return };
        self.was_live = true;
        for pack in self.progress.confirmed().iter().filter(|pack| !self.stale.contains(pack)) {
            let Some((since, is_dated)) = self.live_since_secs(pack) else { continue };
            let rules = self.rules_of(pack, ctx);
            let Some(coverage) = self.coverage.get_mut(pack.key()).filter(|mark| mark.rules == rules) else { continue };
            for proof in &mut coverage.windows {
                if proof.asked_at_secs >= since && !is_dated {
                    proof.asked_at_secs = proof.asked_at_secs.max(until);
                }
                proof.followed_until_secs = proof.followed_until_secs.max(until);
            }
        }
    }

    /// Since when, in seconds since 1970, the relay sends what is new for a pack, if it does; and whether that is
    /// only what is dated so.
    fn live_since_secs(&self, pack: &Pack) -> Option<(u64, bool)> {
        let live = self.lives.of(pack)?;
        let open = self.session.subscription(live.subscription?).filter(|open| open.answered && !live.is_changed)?;
        Some((live.since_secs.unwrap_or(open.opened_secs), live.is_dated))
    }

    /// The number of the rules by which is decided what of this pack is wanted.
    pub(super) fn rules_of(&self, pack: &Pack, ctx: &Ctx<'_>) -> u64 {
        let wanted = match (self.options_of(pack).trusted, pack.is_announcements()) {
            (true, _) => 0,
            (false, true) => ctx.rules.announcements,
            (false, false) => ctx.rules.others,
        };
        wanted ^ self.number_of_rights()
    }

    /// The rules have changed: what was fetched by others is fetched again.
    pub(in crate::engine) fn handle_rules(&mut self, ctx: &mut Ctx<'_>) {
        let is_outdated = |pack: &&Pack| {
            let rules = self.rules_of(pack, ctx);
            self.coverage.get(pack.key()).is_none_or(|mark| mark.rules != rules)
        };
        let outdated: Vec<Pack> = self.progress.target().iter().filter(is_outdated).cloned().collect();
        self.drop_histories(|history| outdated.contains(&history.pack), ctx);
        for pack in &outdated {
            self.progress.begin_again(pack);
        }
        self.waiting.retain(|pack| !outdated.contains(pack));
        self.waiting.extend(self.progress.begin_new());
        self.pump(ctx);
    }

    /// The wall clock was set back: what was proven by it as of moments that are still to come is worth nothing, and
    /// will look recent once they have come.
    pub(in crate::engine) fn handle_clock_set_back(&mut self, ctx: &mut Ctx<'_>) {
        if !self.given_up {
            self.begin_full_pass(ctx);
        }
        self.pump(ctx);
    }
}

fn full_pass_range(ctx: &Ctx<'_>) -> (Duration, Duration) {
    let min = ctx.config.full_pass_min;
    (min, ctx.config.full_pass_max.max(min))
}

fn random_between((min, max): (Duration, Duration), ctx: &mut Ctx<'_>) -> Duration {
    min + (max - min).mul_f64(ctx.rng.fraction())
}
