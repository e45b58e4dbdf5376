//! Passing on what others have brought: events that are stored while the relay is connected are published to it at once,
//! if it is to have them. What is missed, for whatever reason, the next pass over the filter finds.

use super::requests::drop_expired;
use super::rights::may_have;
use super::{Ctx, Pending, Relay};
use crate::engine::{Direction, Effect, Gap, GapReason};
use crate::plan::Pack;
use crate::protocol::Event;
use crate::protocol::message::client;
use crate::relay::Refusal;
use crate::store::Record;

impl Relay {
    /// An event is held now that this relay has not brought.
    pub(in crate::engine) fn offer_stored(&mut self, event: &Event, ctx: &mut Ctx<'_>) {
        let is_meant = self.is_passed_on_to() && !self.given_up && !ctx.config.dry_run;
        if !is_meant || self.session.conn().is_none() || !self.is_to_have(event, ctx) {
            return;
        }
        if self.outbox.left() >= ctx.config.outbox_events_max {
            self.counters.outbox_overflows += 1;
            self.look_again(ctx);
            return;
        }
        self.outbox.offer(event.id.to_bytes());
    }

    /// Is this one of the events that are published to the relay, and may it have them?
    fn is_to_have(&self, event: &Event, ctx: &Ctx<'_>) -> bool {
        let is_wanted = match self.peering.is_none() && self.denied.is_empty() {
            true => self.packs.want(event),
            false => self
                .progress
                .target()
                .iter()
                .any(|pack| self.direction_of(pack).is_some_and(Direction::is_up) && pack.want(event)),
        };
        is_wanted && self.may_read(event, ctx.access)
    }

    /// What could not be passed on is found by another pass.
    pub(super) fn look_again(&mut self, ctx: &Ctx<'_>) {
        let packs: Vec<Pack> = self.progress.target().iter().cloned().collect();
        for pack in packs {
            self.plan_retry(pack, ctx);
        }
    }

    /// Loads and sends what there is room for.
    pub(super) fn poll_outbox(&mut self, ctx: &mut Ctx<'_>) {
        let Some(conn) = self.session.conn() else { return };
        let most = ctx.config.publish_in_flight_max;
        if let Some(ids) = self.outbox.poll_load(most) {
            let ticket = ctx.tickets.next();
            ctx.pending.insert(ticket, Pending::Outbox { relay: self.number });
            ctx.out.push_back(Effect::LoadEvents { ticket, ids });
        }
        let (access, principal) = (ctx.access, self.principal());
        let may_have = |record: &Record| may_have(record, principal, access);
        while let Some(record) = self.outbox.poll_send(ctx.now.instant, most, may_have) {
            self.send(ctx, conn, client::event(&String::from_utf8_lossy(&record.json)));
        }
    }

    /// Events to pass on have been loaded.
    pub(in crate::engine) fn handle_outbox_records(&mut self, mut records: Vec<Option<Record>>, ctx: &mut Ctx<'_>) {
        drop_expired(&mut records, ctx.now.unix_secs);
        if self.session.conn().is_some() {
            self.outbox.handle_loaded(records);
        }
        if self.outbox.is_idle() {
            // What was not there to be loaded would be remembered for ever.
            self.outbox = self.outbox.emptied();
        }
        self.pump(ctx);
    }

    /// The relay's word on an event that was passed on; `None` if it is for none.
    pub(super) fn handle_outbox_ok(&mut self, id: &str, refusal: Option<&str>, ctx: &mut Ctx<'_>) -> Option<()> {
        let record = self.outbox.handle_ok(id, ctx.now.instant)?;
        let Some(words) = refusal else {
            self.outbox.forget(&record.id);
            self.counters.published += 1;
            self.record_useful(ctx);
            return Some(());
        };
        match Refusal::read(words) {
            Refusal::RateLimited => {
                self.outbox.retry(record);
                self.rest(words, ctx);
            }
            // A pass waits for the authentication, and finds the event again.
            Refusal::AuthRequired => {
                self.outbox.forget(&record.id);
                self.look_again(ctx);
            }
            _ => {
                self.outbox.forget(&record.id);
                self.counters.refused += 1;
                self.note_refused(words, ctx);
                self.record_useful(ctx);
            }
        }
        Some(())
    }

    /// The relay does not want an event that it is to have: that is a gap until a pass finds otherwise.
    fn note_refused(&mut self, words: &str, ctx: &Ctx<'_>) {
        let Some(pack) = self.progress.target().first().cloned() else { return };
        let refused =
            self.gaps.iter_mut().filter(|gap| gap.filter == *pack.key()).find_map(|gap| match &mut gap.reason {
                GapReason::NotAccepted { events, .. } => Some(events),
                _ => None,
            });
        match refused {
            Some(events) => *events += 1,
            None => {
                let reason = GapReason::NotAccepted { events: 1, reason: words.to_owned() };
                self.add_gap(Gap { filter: pack.key().clone(), window: pack.window(), reason }, ctx.config);
                self.plan_retry(pack, ctx);
            }
        }
    }

    /// What is on its way may not have come: it is sent once more, and then left to the next pass.
    pub(super) fn renew_outbox(&mut self, ctx: &Ctx<'_>) {
        if self.outbox.waiting_since().is_none_or(|at| at + ctx.config.stall > ctx.now.instant) {
            return;
        }
        self.outbox.handle_lost();
        if std::mem::take(&mut self.outbox.unacknowledged) > 0 {
            self.look_again(ctx);
        }
    }
}
