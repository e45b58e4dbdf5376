//! What is wanted of a relay; connecting, losing the connection, resting, trying again, giving up.

use std::collections::BTreeSet;

use super::{Ctx, Relay};
use crate::engine::{Effect, GapReason, Planted, RelayOptions};
use crate::fetch::Answer;
use crate::plan::Interest;
use crate::protocol::RelayInfo;
use crate::relay::session::Link;
use crate::relay::{Purpose, Refusal};
use crate::runtime::CloseReason;

impl Relay {
    /// All that is wanted of the relay, and how.
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
        self.packs.set(target);
        if is_other_way {
            self.retries.clear();
            self.waiting.clear();
            self.progress.clear();
            self.drop_histories(|_| true, ctx);
        }
        if !options.live {
            self.close_live(ctx);
        }
        self.absorb(ctx);
        self.pump(ctx);
    }

    /// What is wanted of the relay changes by this. What is new is packed once it is connected, when as much as possible
    /// of it is known.
    pub(in crate::engine) fn change_interests(
        &mut self,
        added: Vec<Interest>,
        removed: &[Interest],
        options: RelayOptions,
        ctx: &mut Ctx<'_>,
    ) {
        self.options = options;
        self.given_up = false;
        removed.iter().for_each(|interest| self.packs.remove(interest));
        added.into_iter().for_each(|interest| self.packs.add(interest));
        if self.session.conn().is_some() || self.packs.is_empty() {
            self.absorb(ctx);
        }
        self.pump(ctx);
    }

    pub(super) fn wants_connection(&self) -> bool {
        !self.given_up && !self.is_done() && !self.packs.is_empty()
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
        let dial = self.dial(ctx);
        ctx.out.push_back(Effect::Connect { conn, dial });
    }

    pub(in crate::engine) fn handle_connected(&mut self, ctx: &mut Ctx<'_>) {
        let Link::Connecting { conn, .. } = self.session.link else { return };
        self.session.handle_connected(conn, ctx.now);
        self.health.record_connected();
        self.counters.connections += 1;
        // A hint that may be late, wrong or never come: nothing waits for it.
        let dial = self.dial(ctx);
        ctx.out.push_back(Effect::FetchInfo { dial });
        self.absorb(ctx);
        self.renew_after_absence(ctx);
        self.plan_full_pass(ctx);
        self.pump(ctx);
    }

    pub(in crate::engine) fn handle_info(&mut self, text: &str) {
        if let Some(info) = RelayInfo::parse(text) {
            self.budget.apply_info(&info);
        }
    }

    /// The link is down: everything under way is to be asked again.
    pub(super) fn lose_connection(&mut self, ctx: &Ctx<'_>) {
        if self.session.conn().is_some() {
            let from_connect = ctx.config.plants(Planted::QuickFromConnect);
            self.disconnected_at = Some(if from_connect { self.session.connected_at } else { ctx.now.instant });
            self.note_live(ctx.now);
        }
        self.counters.connections_failed += u64::from(matches!(self.session.link, Link::Connecting { .. }));
        self.session.reset();
        self.live_due = true;
        self.live_retry_at = None;
        self.polled.clear();
        self.auth_wait_until = None;
        self.lives.reset();
        // Who publishes to a relay looks at everything when it is back.
        self.outbox = self.outbox.emptied();
        if self.options.live && self.options.direction.is_up() {
            // What is stored meanwhile, histories under way do not know of.
            self.stale.extend(self.histories.values().map(|history| history.pack.clone()));
        }
        for history in self.histories.values_mut() {
            history.handle_connection_lost(&self.budget);
        }
    }

    pub(in crate::engine) fn handle_disconnected(&mut self, reason: &CloseReason, ctx: &mut Ctx<'_>) {
        self.last_error = Some(reason.to_string());
        if let CloseReason::Remote(words) = reason
            && Refusal::read(words) == Refusal::RateLimited
        {
            self.counters.rate_limits += 1;
            self.health.record_rate_limit(ctx.now.instant, ctx.config);
        }
        self.lose_connection(ctx);
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
        self.retries.clear();
        self.connect_at = None;
        self.absorb(ctx);
        self.give_up_histories(reason, ctx);
        self.close(CloseReason::Done, ctx);
        self.settle_histories(ctx);
        self.poll_needs(ctx);
    }

    /// The relay allows not even one subscription: that is a rate limit in other words, unless it still counts what was
    /// closed long ago, as a new connection will show.
    pub(super) fn rest_apart(&mut self, words: &str, ctx: &mut Ctx<'_>) {
        self.rest(words, ctx);
        if !ctx.config.one_shot {
            self.cut(CloseReason::RateLimited, ctx);
        }
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
}

/// Will another try within seconds end the same way?
fn is_final(reason: &CloseReason) -> bool {
    use crate::runtime::ConnectError::{Dns, Handshake, Pin, Refused, Tls};
    matches!(reason, CloseReason::Connect(Dns(_) | Refused(_) | Tls(_) | Pin(_) | Handshake(_)))
}
