//! Every deadline of a relay, and what is done when it has come.

use super::{Ctx, Relay};
use crate::fetch::{Answer, History, Publish};
use crate::relay::Purpose;
use crate::relay::session::{Link, Subscription};
use crate::runtime::{CloseReason, Instant};

impl Relay {
    /// Whatever is due at this moment.
    pub(in crate::engine) fn handle_tick(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now.instant;
        match self.session.link {
            Link::Connecting { give_up_at, .. } if give_up_at <= now => {
                self.cut(CloseReason::Connect(crate::runtime::ConnectError::TimedOut), ctx);
                return;
            }
            Link::Proving { give_up_at, .. } if give_up_at <= now => {
                self.cut(CloseReason::Identity("its relay information document did not come in time".to_owned()), ctx);
                return;
            }
            Link::Up { .. } => self.handle_stalls(ctx),
            _ => {}
        }
        if self.auth_wait_until.is_some_and(|until| until <= now) {
            self.fail_auth("no challenge, or no answer to ours, in time", ctx);
        }
        self.expire_posts(ctx);
        if self.live_retry_at.is_some_and(|at| at <= now) {
            self.retry_live(ctx);
        }
        self.pump(ctx);
    }

    fn handle_stalls(&mut self, ctx: &mut Ctx<'_>) {
        let (now, stall) = (ctx.now.instant, ctx.config.stall);
        if !self.session.reading {
            return;
        }
        let stalled: Vec<u64> = self
            .session
            .subscriptions()
            .filter(|(_, open)| open.progress_at + stall <= now && self.owes_answer(open))
            .map(|(id, _)| id)
            .collect();
        for id in stalled {
            let Some(open) = self.session.subscription_mut(id) else { continue };
            let (purpose, sent_at) = (open.purpose, open.sent_at);
            // A relay that says anything is still there.
            let was_probe = std::mem::take(&mut open.probes);
            if purpose == Purpose::Live && !was_probe {
                self.refuse_live(id, "no answer to limit 0", ctx);
                continue;
            }
            if purpose != Purpose::Live {
                self.end_request(id, Answer::Stalled, true, ctx);
            }
            // Silence to NEG-OPEN is a refusal; silence to a REQ, with no frame at all since, is a dead link.
            if purpose != Purpose::Negentropy && self.session.last_frame_at < sent_at {
                self.cut(CloseReason::Silent, ctx);
                return;
            }
        }
        self.renew_outbox(ctx);
        for history in self.histories.values_mut() {
            let publish = history.publish_mut();
            if publish.waiting_since().is_some_and(|at| at + stall <= now) {
                publish.handle_lost();
            }
        }
    }

    /// Is the relay to answer this subscription? A live one by `since` may be served without a word until something
    /// new comes, and a reconciliation may wait for us.
    fn owes_answer(&self, open: &Subscription) -> bool {
        match open.purpose {
            Purpose::Live => {
                let by_since = || self.lives.get(open.history).is_some_and(|live| live.by_since);
                open.probes || !open.answered && !by_since()
            }
            Purpose::Negentropy => !self.histories.get(&open.history).is_some_and(History::holds_reply),
            Purpose::Page | Purpose::Split | Purpose::Ids | Purpose::Probe => true,
        }
    }

    /// When something that the relay owes will have stalled, and what.
    pub(super) fn next_stall(&self, ctx: &Ctx<'_>) -> Option<(Instant, &'static str)> {
        if !self.session.reading {
            return None;
        }
        let owed = self.session.subscriptions().filter(|(_, open)| self.owes_answer(open));
        let requests = owed.map(|(_, open)| (open.progress_at + ctx.config.stall, "stall"));
        let outboxes = self.histories.values().map(History::publish).chain([&self.outbox]);
        let published = outboxes.filter_map(Publish::waiting_since);
        requests.chain(published.map(|at| (at + ctx.config.stall, "no OK"))).min()
    }

    /// When something is due next, and what.
    pub(in crate::engine) fn deadline(&self, ctx: &Ctx<'_>) -> Option<(Instant, &'static str)> {
        let now = ctx.now.instant;
        let of_link = match self.session.link {
            Link::Down if self.wants_connection() => {
                Some((self.health.blocked_until(now).max(self.connect_at).unwrap_or(now), "connect"))
            }
            Link::Down => None,
            Link::Connecting { give_up_at, .. } => Some((give_up_at, "connect timeout")),
            Link::Proving { give_up_at, .. } => Some((give_up_at, "identity")),
            Link::Up { .. } => self.deadline_of_connection(ctx),
        };
        let retry = self.next_retry().map(|at| (at, "retry"));
        let post = self.posts.deadline().map(|at| (at, "publish timeout"));
        [of_link, retry, post].into_iter().flatten().min()
    }

    fn deadline_of_connection(&self, ctx: &Ctx<'_>) -> Option<(Instant, &'static str)> {
        let cooldown = self.health.cooldown(ctx.now.instant);
        if self.awaits_auth(ctx) {
            // Nothing else is done before.
            let until = [(self.auth_wait_until, "authentication"), (self.challenge_due(ctx), "challenge")];
            let waits = until.into_iter().filter_map(|(at, why)| Some((at?, why)));
            return waits.chain(self.next_stall(ctx)).min();
        }
        let due = [
            self.next_stall(ctx),
            self.auth_wait_until.map(|at| (at, "authentication")),
            cooldown.map(|at| (at, "cooldown")),
            self.next_probe(ctx).map(|at| (at, "probe")),
            self.live_retry_at.map(|at| (at, "live retry")),
            self.next_full_pass(ctx).filter(|_| cooldown.is_none()).map(|at| (at, "full pass")),
        ];
        due.into_iter().flatten().min()
    }
}
