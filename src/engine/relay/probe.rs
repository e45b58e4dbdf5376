//! Is the relay still there? A connection can be dead without a word: after the machine slept, or when the network in
//! between forgot it. A relay that has answered nothing for a while is asked for an event that cannot be, which costs
//! it next to nothing. Whatever comes then, an end, a refusal or anything else, shows life; if nothing comes within the
//! stall time, the connection is cut. Where no other subscription may be opened beside the live ones, one of those is
//! sent again instead.

use super::{Ctx, Relay};
use crate::engine::HistoryId;
use crate::protocol::message::client;
use crate::relay::Purpose;
use crate::relay::session::{Link, wire_name};
use crate::runtime::Instant;

/// No event has this id.
const NO_EVENT: [u8; 32] = [0; 32];

impl Relay {
    /// The machine slept, or the network came back: the connection is probed, and a relay that is down may be tried at
    /// once. What became due during the sleep may still come: it is awaited once more.
    pub(in crate::engine) fn handle_wake(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now.instant;
        let put_off = |due: &mut Instant, by| *due = if *due <= now { now + by } else { *due };
        match &mut self.session.link {
            Link::Down => self.health.retry_soon(ctx.config),
            Link::Connecting { give_up_at, .. } => put_off(give_up_at, ctx.config.connect_timeout),
            Link::Proving { give_up_at, .. } => put_off(give_up_at, ctx.config.identity_timeout),
            Link::Up { .. } => {
                if self.next_stall(ctx).is_some_and(|(at, _)| at <= now) {
                    self.excuse_silence(now);
                }
                self.auth_wait_until.iter_mut().for_each(|until| put_off(until, ctx.config.stall));
                self.renew_probe(ctx);
            }
        }
        self.pump(ctx);
    }

    /// Has the connection probed at once, unless the answer to a probe is awaited already: whoever wakes us again and
    /// again must not put the end of a dead connection off. What came while the machine slept is handled at one moment:
    /// of it, nothing answers a probe of that moment, and one is enough.
    fn renew_probe(&mut self, ctx: &mut Ctx<'_>) {
        if self.session.probed_at == ctx.now.instant {
            return;
        }
        let before = self.session.probe().map(|(id, open)| (id, open.purpose, open.sent_at));
        if before.is_some_and(|(.., sent_at)| self.session.last_frame_at < sent_at) {
            return;
        }
        match before {
            Some((id, Purpose::Probe, _)) => {
                self.close_subscription(id, ctx);
            }
            Some((id, ..)) => self.session.subscription_mut(id).into_iter().for_each(|open| open.probes = false),
            None => {}
        }
        self.session.probe_due = true;
    }

    /// When the relay is to be probed, unless something comes before. What is awaited of it is a probe as well, and the
    /// only one if the relay allows no more subscriptions.
    pub(super) fn next_probe(&self, ctx: &Ctx<'_>) -> Option<Instant> {
        let is_open = self.session.conn().is_some() && self.health.cooldown(ctx.now.instant).is_none();
        if !is_open || !self.session.reading || self.session.probe().is_some() {
            return None;
        }
        if !self.has_room_for_probe() && self.next_stall(ctx).is_some() {
            return None;
        }
        let unproven = self.session.shown_alive_at() + ctx.config.probe_after;
        Some(if self.session.probe_due { ctx.now.instant } else { unproven })
    }

    /// Probes the relay once the moment has come.
    pub(super) fn probe_if_due(&mut self, ctx: &mut Ctx<'_>) {
        let Some(conn) = self.session.conn() else { return };
        if self.next_probe(ctx).is_none_or(|at| at > ctx.now.instant) {
            return;
        }
        self.session.probe_due = false;
        self.session.probed_at = ctx.now.instant;
        let again = if self.has_room_for_probe() { None } else { self.live_as_probe(ctx) };
        let frame = again.unwrap_or_else(|| {
            let owner = ctx.tickets.next_history();
            let probe = self.session.open(owner, Purpose::Probe, ctx.now);
            client::req_ids(&wire_name(probe), &[NO_EVENT])
        });
        self.send(ctx, conn, frame);
    }

    fn has_room_for_probe(&self) -> bool {
        self.session.open_reqs() < self.budget.subscriptions_max()
    }

    /// A live subscription, to be sent again.
    fn live_as_probe(&mut self, ctx: &Ctx<'_>) -> Option<String> {
        let open = |id: &HistoryId| Some((*id, self.lives.get(*id)?.subscription?));
        let (live, subscription) = self.lives.in_order().iter().find_map(open)?;
        let frame = self.live_request(live, subscription, ctx)?;
        self.session.note_sent_as_probe(subscription, ctx.now);
        Some(frame)
    }
}
