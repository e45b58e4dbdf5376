//! What is wanted of a relay; connecting, losing the connection, resting, trying again, giving up.

use std::collections::BTreeSet;

use super::{Ctx, Relay};
use crate::engine::{Effect, GapReason, Planted, RelayOptions};
use crate::fetch::{Answer, History};
use crate::plan::{Interest, Pack};
use crate::relay::session::Link;
use crate::relay::{Purpose, Refusal, clip};
use crate::runtime::{CloseReason, FailureKind};

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
        let has_other_options = options != std::mem::replace(&mut self.options, options);
        let was_given_up = std::mem::take(&mut self.given_up);
        self.live_due = true;
        let target = self.set_aside(target);
        self.packs.set(target);
        if !self.handle_rights(ctx) && is_other_way && (self.peering.is_none() || was_given_up) {
            self.begin_anew(|_| true, ctx);
        } else if has_other_options {
            self.review_lives(ctx);
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
        let has_other_options = options != std::mem::replace(&mut self.options, options);
        self.given_up = false;
        let (added, removed) = self.set_changes_aside(added, removed);
        removed.iter().for_each(|interest| self.packs.remove(interest));
        added.into_iter().for_each(|interest| self.packs.add(interest));
        if self.session.conn().is_some() || self.packs.is_empty() {
            self.absorb(ctx);
        }
        if !self.handle_rights(ctx) && has_other_options {
            self.review_lives(ctx);
        }
        self.pump(ctx);
    }

    pub(super) fn wants_connection(&self) -> bool {
        !self.given_up && !self.is_done() && (!self.packs.is_empty() || !self.posts.is_empty())
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
        self.health.record_connected();
        // Of any relay it is a hint that may be late, wrong or never come: nothing waits for it. A peer proves by it who
        // it is.
        let dial = self.dial(ctx);
        ctx.out.push_back(Effect::FetchInfo { conn, dial });
        if self.peering.is_some() {
            self.session.link = Link::Proving { conn, give_up_at: ctx.now.instant + ctx.config.identity_timeout };
            return;
        }
        self.open(conn, ctx);
        self.pump(ctx);
    }

    /// The link is down: everything under way is to be asked again.
    pub(super) fn lose_connection(&mut self, ctx: &Ctx<'_>) {
        if self.session.conn().is_some() {
            let from_connect = ctx.config.plants(Planted::QuickFromConnect);
            self.moments.disconnected_secs = Some(ctx.now.unix_secs);
            self.disconnected_at = Some(if from_connect { self.session.connected_at } else { ctx.now.instant });
            self.note_live(ctx);
        }
        self.counters.connections_failed +=
            u64::from(matches!(self.session.link, Link::Connecting { .. } | Link::Proving { .. }));
        self.session.reset();
        self.live_due = true;
        self.live_retry_at = None;
        self.polled.clear();
        self.auth_wait_until = None;
        self.lives.reset();
        // Who publishes to a relay looks at everything when it is back.
        self.outbox = self.outbox.emptied();
        self.renew_posts();
        // What is stored meanwhile, histories under way do not know of.
        let is_to_get_it = |history: &&History| history.direction().is_up() && self.options_of(&history.pack).live;
        let unaware: Vec<Pack> =
            self.histories.values().filter(is_to_get_it).map(|history| history.pack.clone()).collect();
        self.stale.extend(unaware);
        for history in self.histories.values_mut() {
            history.handle_connection_lost(&self.budget);
        }
    }

    pub(in crate::engine) fn handle_disconnected(&mut self, reason: &CloseReason, ctx: &mut Ctx<'_>) {
        self.note_error(&reason.to_string(), reason.kind(), ctx);
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
        self.failure = reason.kind().or(self.failure);
        // Who stays waits for a relay that is down for the moment.
        let never = self.counters.connections == 0 && !self.is_live();
        if self.fruitless >= ctx.config.attempts_max || is_final(reason) {
            self.fail_posts(reason, ctx);
        }
        if ctx.config.one_shot && (self.fruitless >= ctx.config.attempts_max || never && is_final(reason)) {
            let why = clip(&reason.to_string(), ctx.config.words_bytes_max).to_owned();
            let reason = match reason {
                CloseReason::AuthRefused(words) => GapReason::AuthRequired(words.clone()),
                _ if self.counters.connections == 0 => GapReason::Unreachable(why),
                _ => GapReason::ConnectionLost(why),
            };
            self.give_up(&reason, ctx);
        }
        self.pump(ctx);
    }

    /// We close the connection for a fault of the relay, and try again by the backoff.
    pub(super) fn cut(&mut self, reason: CloseReason, ctx: &mut Ctx<'_>) {
        self.note_error(&reason.to_string(), reason.kind(), ctx);
        self.close(reason.clone(), ctx);
        self.fail(&reason, ctx);
    }

    pub(in crate::engine) fn give_up(&mut self, reason: &GapReason, ctx: &mut Ctx<'_>) {
        self.given_up = true;
        self.retries.clear();
        self.connect_at = None;
        self.absorb(ctx);
        self.give_up_histories(reason, ctx);
        self.stop_posts(ctx);
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
        self.note_error(&format!("rate limited: {words}"), Some(FailureKind::RateLimited), ctx);
        self.failure = Some(FailureKind::RateLimited);
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
    use crate::runtime::ConnectError::{Dns, Expired, Handshake, HostName, Pin, Refused, Tls, Unencrypted};
    matches!(
        reason,
        CloseReason::Connect(
            Dns(_) | Refused(_) | Unencrypted(_) | Tls(_) | HostName(_) | Expired(_) | Pin(_) | Handshake(_)
        )
    )
}
