//! Connecting, losing the connection, trying again, giving up; and every deadline of a relay.

use std::collections::BTreeSet;

use super::{Ctx, Relay};
use crate::engine::{Effect, GapReason, HistoryId, RelayOptions};
use crate::fetch::{Answer, History, HistoryParts};
use crate::plan::{Interest, Todo, windows_to_fetch};
use crate::protocol::{FilterKey, RelayInfo, Window};
use crate::relay::session::{Link, Subscription};
use crate::relay::{Purpose, Refusal};
use crate::runtime::{CloseReason, Instant, Now};
use crate::store::Method;

impl Relay {
    pub(in crate::engine) fn set_interests(
        &mut self,
        target: BTreeSet<Interest>,
        options: RelayOptions,
        ctx: &mut Ctx<'_>,
    ) {
        let is_other_way =
            (options.direction, options.method) != (self.options.direction, self.options.method) || self.given_up;
        self.options = options;
        self.given_up = false;
        self.live_due = true;
        let dropped: BTreeSet<Interest> = self.interests.set_target(target).into_iter().collect();
        if is_other_way {
            self.waiting.clear();
            self.interests.clear();
        }
        self.waiting.retain(|interest| !dropped.contains(interest));
        self.drop_histories(|history| is_other_way || dropped.contains(&history.interest), ctx);
        for interest in &dropped {
            self.forget_gaps(&FilterKey::of(interest.filter()));
            self.stale.remove(interest);
            self.drop_live(interest, ctx);
        }
        if !options.live {
            let live: Vec<Interest> = self.live.keys().cloned().collect();
            live.iter().for_each(|interest| self.drop_live(interest, ctx));
        }
        self.waiting.extend(self.interests.begin_new());
        self.pump(ctx);
    }

    fn drop_histories(&mut self, which: impl Fn(&History) -> bool, ctx: &mut Ctx<'_>) {
        let over: Vec<HistoryId> =
            self.histories.iter().filter(|(_, history)| which(history)).map(|(id, _)| *id).collect();
        for id in over {
            self.histories.remove(&id);
            self.close_requests_of(id, ctx);
        }
    }

    /// Begins the next interest that waits.
    pub(super) fn begin_history(&mut self, ctx: &mut Ctx<'_>) -> Option<HistoryId> {
        let interest = self.waiting.pop_front()?;
        self.forget_gaps(&FilterKey::of(interest.filter()));
        self.stale.remove(&interest);
        let id = ctx.tickets.next_history();
        let (todo, method) = self.todo(&interest, ctx);
        self.polled.remove(&interest);
        let options = RelayOptions { method, ..self.options };
        let parts = HistoryParts { id, interest, relay: self.url.clone(), options, todo, now_secs: ctx.now.unix_secs };
        let history = History::new(parts, ctx.config);
        self.histories.insert(id, history);
        Some(id)
    }

    /// What is left to fetch of an interest, and how. After a short absence of a live relay that is what it may have
    /// got meanwhile, and REQ with `since` costs less than a comparison of everything.
    fn todo(&self, interest: &Interest, ctx: &Ctx<'_>) -> (Todo, Option<Method>) {
        let filter = interest.filter();
        let window = Window::of(filter);
        // What the relay lacks shows only when all that it has is known.
        let proofs = match self.coverage.get(&FilterKey::of(filter)) {
            Some(coverage) if !self.options.direction.is_up() => coverage.windows.as_slice(),
            _ => &[],
        };
        let valid_for = match self.polled.contains(interest) {
            true => ctx.config.live_retry_proofs,
            false => ctx.config.quick_reconnect_max,
        };
        let carried = self.carried_until_secs.get(&FilterKey::of(filter)).copied().unwrap_or(0);
        let todo = windows_to_fetch(window, proofs, carried, ctx.now.unix_secs, valid_for, ctx.config.overlap_secs);
        let quick = self.live_until_secs.is_some() && !todo.kept.is_empty();
        let method = self.options.method.or(quick.then_some(Method::Req));
        (todo, method)
    }

    fn wants_connection(&self) -> bool {
        !self.given_up && !self.is_done() && !self.interests.target().is_empty()
    }

    /// Connects if that is wanted and allowed now.
    pub(super) fn connect_if_due(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now.instant;
        if !self.wants_connection() {
            self.connect_at = None;
            return;
        }
        if self.session.link != Link::Down || self.health.blocked_until(now).is_some() {
            return;
        }
        if *self.connect_at.get_or_insert_with(|| ctx.pace.reserve(now, ctx.config)) > now {
            return;
        }
        self.connect_at = None;
        let conn = ctx.tickets.next_conn();
        self.session.link = Link::Connecting { conn, give_up_at: now + ctx.config.connect_timeout };
        ctx.out.push_back(Effect::Connect { conn, dial: self.dial(ctx.config) });
    }

    pub(in crate::engine) fn handle_connected(&mut self, ctx: &mut Ctx<'_>) {
        let Link::Connecting { conn, .. } = self.session.link else { return };
        self.session.link = Link::Up { conn };
        self.session.last_frame_at = ctx.now.instant;
        self.health.record_connected();
        self.counters.connections += 1;
        // A hint that may be late, wrong or never come: nothing waits for it.
        ctx.out.push_back(Effect::FetchInfo { dial: self.dial(ctx.config) });
        self.renew_after_absence(ctx);
        self.pump(ctx);
    }

    /// What was confirmed before the link was lost is fetched again, as far as it may have changed.
    fn renew_after_absence(&mut self, ctx: &mut Ctx<'_>) {
        let Some(lost_at) = self.disconnected_at.take() else { return };
        let long = ctx.now.instant - lost_at > ctx.config.quick_reconnect_max;
        if long {
            self.negentropy_refused = None;
        }
        if !self.options.live {
            return;
        }
        if long {
            self.histories.clear();
            self.waiting.clear();
            self.interests.clear();
        } else {
            self.interests.unconfirm_all();
        }
        self.waiting.extend(self.interests.begin_new());
    }

    pub(in crate::engine) fn handle_info(&mut self, text: &str) {
        if let Some(info) = RelayInfo::parse(text) {
            self.budget.apply_info(&info);
        }
    }

    /// The link is down: everything under way is to be asked again.
    pub(super) fn lose_connection(&mut self, now: Now) {
        if self.session.conn().is_some() {
            self.disconnected_at = Some(now.instant);
            self.bump_proofs(now);
        }
        self.session.reset();
        self.live_due = true;
        self.live_retry_at = None;
        self.polled.clear();
        self.auth_wait_until = None;
        for live in self.live.values_mut() {
            live.subscription = None;
            live.refused = None;
        }
        for history in self.histories.values_mut() {
            history.handle_connection_lost(&self.budget);
        }
    }

    /// Up to its last frame, a relay has sent all that was new for the live subscriptions that it serves. What was
    /// proven since one of them is open holds until then; what was proven before is at least carried on.
    pub(super) fn bump_proofs(&mut self, now: Now) {
        if !self.options.live {
            return;
        }
        let silent_secs = (now.instant - self.session.last_frame_at).as_secs();
        let until = now.unix_secs.saturating_sub(silent_secs);
        self.live_until_secs = Some(until);
        let served: Vec<(FilterKey, u64)> = self
            .interests
            .confirmed()
            .iter()
            .filter(|interest| !self.stale.contains(interest) && self.is_served_live(interest))
            .filter_map(|interest| Some((FilterKey::of(interest.filter()), self.live.get(interest)?.opened_secs)))
            .collect();
        for (key, opened_secs) in served {
            let windows = self.coverage.get_mut(&key).into_iter().flat_map(|coverage| &mut coverage.windows);
            for proof in windows.filter(|proof| proof.asked_at_secs >= opened_secs) {
                proof.asked_at_secs = proof.asked_at_secs.max(until);
            }
            self.carried_until_secs.insert(key, until);
        }
    }

    fn is_served_live(&self, interest: &Interest) -> bool {
        let open = self.live.get(interest).and_then(|live| live.subscription);
        open.and_then(|id| self.session.subscription(id)).is_some_and(|open| open.answered)
    }

    pub(in crate::engine) fn handle_disconnected(&mut self, reason: &CloseReason, ctx: &mut Ctx<'_>) {
        self.last_error = Some(reason.to_string());
        if let CloseReason::Remote(words) = reason
            && Refusal::read(words) == Refusal::RateLimited
        {
            self.counters.rate_limits += 1;
            self.health.record_rate_limit(ctx.now.instant, ctx.config);
        }
        self.lose_connection(ctx.now);
        self.fail(reason, ctx);
    }

    fn fail(&mut self, reason: &CloseReason, ctx: &mut Ctx<'_>) {
        self.health.record_failure(ctx.now.instant, ctx.config, ctx.rng);
        self.fruitless += 1;
        // Who stays waits for a relay that is down for the moment.
        let never = self.counters.connections == 0 && !self.options.live;
        if ctx.config.one_shot && (self.fruitless >= ctx.config.attempts_max || never && is_final(reason)) {
            let why = reason.to_string();
            let reason = if self.counters.connections == 0 {
                GapReason::Unreachable(why)
            } else {
                GapReason::ConnectionLost(why)
            };
            self.give_up(&reason, ctx);
        }
        self.pump(ctx);
    }

    /// We close the connection for a fault of the relay, and try again by the backoff.
    pub(super) fn cut(&mut self, reason: CloseReason, ctx: &mut Ctx<'_>) {
        self.last_error = Some(reason.to_string());
        self.close(reason.clone(), ctx);
        self.fail(&reason, ctx);
    }

    pub(in crate::engine) fn give_up(&mut self, reason: &GapReason, ctx: &mut Ctx<'_>) {
        self.given_up = true;
        self.connect_at = None;
        self.give_up_histories(reason, ctx);
        self.close(CloseReason::Done, ctx);
        self.settle_histories(ctx);
        self.poll_needs(ctx);
    }

    /// Rests after the relay asked for less traffic. What is under way is asked again afterwards.
    pub(super) fn rest(&mut self, words: &str, ctx: &mut Ctx<'_>) {
        self.counters.rate_limits += 1;
        // Several refusals before the relay knows that we rest are one.
        self.cooldowns += u32::from(self.health.cooldown(ctx.now.instant).is_none());
        self.last_error = Some(format!("rate limited: {words}"));
        self.health.record_rate_limit(ctx.now.instant, ctx.config);
        if ctx.config.one_shot && self.cooldowns > ctx.config.attempts_max {
            self.give_up(&GapReason::Refused(words.to_owned()), ctx);
            return;
        }
        let open: Vec<u64> =
            self.session.subscriptions().filter(|(_, open)| open.purpose != Purpose::Live).map(|(id, _)| id).collect();
        for id in open {
            self.end_request(id, Answer::Again, true, ctx);
        }
    }

    /// Whatever is due at this moment.
    pub(in crate::engine) fn handle_tick(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now.instant;
        match self.session.link {
            Link::Connecting { give_up_at, .. } if give_up_at <= now => {
                self.cut(CloseReason::Connect(crate::runtime::ConnectError::TimedOut), ctx);
                return;
            }
            Link::Up { .. } => self.handle_stalls(ctx),
            _ => {}
        }
        if self.auth_wait_until.is_some_and(|until| until <= now) {
            self.fail_auth("no challenge, or no answer to ours, in time", ctx);
        }
        if self.live_retry_at.is_some_and(|at| at <= now) {
            self.retry_live();
        }
        self.pump(ctx);
    }

    fn handle_stalls(&mut self, ctx: &mut Ctx<'_>) {
        let (now, stall) = (ctx.now.instant, ctx.config.stall);
        if !self.session.reading {
            return;
        }
        let holding: BTreeSet<HistoryId> =
            self.histories.iter().filter(|(_, history)| history.holds_reply()).map(|(id, _)| *id).collect();
        let stalled: Vec<u64> = self
            .session
            .subscriptions()
            .filter(|(_, open)| open.progress_at + stall <= now && self.owes_answer(open))
            .filter(|(_, open)| open.purpose != Purpose::Negentropy || !holding.contains(&open.history))
            .map(|(id, _)| id)
            .collect();
        for id in stalled {
            let Some(open) = self.session.subscription_mut(id) else { continue };
            let (purpose, opened_at) = (open.purpose, open.opened_at);
            if purpose == Purpose::Live {
                self.refuse_live(id, "no answer to limit 0", ctx);
                continue;
            }
            self.end_request(id, Answer::Stalled, true, ctx);
            // Silence to NEG-OPEN is a refusal; silence to a REQ, with no frame at all since, is a dead link.
            if purpose != Purpose::Negentropy && self.session.last_frame_at < opened_at {
                self.cut(CloseReason::Silent, ctx);
                return;
            }
        }
        for history in self.histories.values_mut() {
            let publish = history.publish_mut();
            if publish.waiting_since().is_some_and(|at| at + stall <= now) {
                publish.handle_lost();
            }
        }
    }

    /// Is the relay to answer this subscription? A live one by `since` may be served without a word until something
    /// new comes.
    fn owes_answer(&self, open: &Subscription) -> bool {
        let by_since = || self.live.values().any(|live| live.id == open.history && live.by_since);
        open.purpose != Purpose::Live || !open.answered && !by_since()
    }

    /// When something is due next, and what.
    pub(in crate::engine) fn deadline(&mut self, ctx: &Ctx<'_>) -> Option<(Instant, &'static str)> {
        let (now, stall) = (ctx.now.instant, ctx.config.stall);
        match self.session.link {
            Link::Down if self.wants_connection() => {
                Some((self.health.blocked_until(now).max(self.connect_at).unwrap_or(now), "connect"))
            }
            Link::Down => None,
            Link::Connecting { give_up_at, .. } => Some((give_up_at, "connect timeout")),
            Link::Up { .. } => {
                let requests = self
                    .session
                    .subscriptions()
                    .filter(|(_, open)| self.owes_answer(open))
                    .filter(|(_, open)| {
                        open.purpose != Purpose::Negentropy
                            || !self.histories.get(&open.history).is_some_and(History::holds_reply)
                    })
                    .map(|(_, open)| open.progress_at + stall)
                    .min();
                let published =
                    self.histories.values_mut().filter_map(|history| history.publish_mut().waiting_since()).min();
                let due = [
                    requests.filter(|_| self.session.reading).map(|at| (at, "stall")),
                    published.filter(|_| self.session.reading).map(|at| (at + stall, "no OK")),
                    self.auth_wait_until.map(|at| (at, "authentication")),
                    self.health.cooldown(now).map(|at| (at, "cooldown")),
                    self.live_retry_at.map(|at| (at, "live retry")),
                ];
                due.into_iter().flatten().min()
            }
        }
    }
}

/// Will another try within seconds end the same way?
fn is_final(reason: &CloseReason) -> bool {
    use crate::runtime::ConnectError::{Dns, Handshake, Pin, Refused, Tls};
    matches!(reason, CloseReason::Connect(Dns(_) | Refused(_) | Tls(_) | Pin(_) | Handshake(_)))
}
