//! Reading what a relay sends.

use super::{Ctx, Relay};
use crate::engine::HistoryId;
use crate::fetch::{Answer, Arrival, History};
use crate::plan::ANNOUNCEMENT_KINDS;
use crate::protocol::filter::matches;
use crate::protocol::message::{self, EoseHint, MessageError};
use crate::protocol::{Event, RelayMessage, hex};
use crate::relay::session::{Link, parse_wire_name};
use crate::relay::{Purpose, Refusal, clip};
use crate::runtime::{CloseReason, Frame};

impl Relay {
    pub(in crate::engine) fn handle_frames(&mut self, frames: &[Frame], ctx: &mut Ctx<'_>) {
        self.session.last_frame_at = ctx.now.instant;
        if matches!(self.session.link, Link::Proving { .. }) {
            return self.handle_unproven(frames, ctx);
        }
        let conn = self.session.conn();
        for frame in frames {
            self.counters.bytes_in += frame.len() as u64;
            self.handle_frame(frame, ctx);
            if self.session.conn() != conn {
                return;
            }
        }
        if self.session.unsolicited_bytes > ctx.config.unsolicited_bytes_max {
            self.cut(CloseReason::Flood, ctx);
            return;
        }
        self.apply_backpressure(ctx);
        self.pump(ctx);
    }

    fn handle_frame(&mut self, frame: &Frame, ctx: &mut Ctx<'_>) {
        let words_bytes_max = ctx.config.words_bytes_max;
        match RelayMessage::parse(frame.as_str()) {
            Ok(RelayMessage::Event { subscription, json }) => self.handle_event(frame, &subscription, json, ctx),
            Ok(RelayMessage::Eose { subscription, hint }) => self.handle_eose(subscription.as_deref(), hint, ctx),
            Ok(RelayMessage::Closed { subscription, reason }) => {
                self.handle_closed(&subscription, clip(&reason, words_bytes_max), ctx);
            }
            Ok(RelayMessage::Ok { id, accepted, reason }) => {
                self.handle_ok(&id, accepted, clip(&reason, words_bytes_max), ctx);
            }
            Ok(RelayMessage::Notice { text }) => {
                self.session.unsolicited_bytes += frame.len();
                self.handle_notice(clip(&text, words_bytes_max), ctx);
            }
            Ok(RelayMessage::Auth { challenge }) if challenge.len() <= words_bytes_max => {
                self.session.unsolicited_bytes += frame.len();
                self.handle_challenge(challenge.into_owned(), ctx);
            }
            Ok(RelayMessage::NegMsg { subscription, message }) => self.handle_neg_msg(&subscription, &message, ctx),
            Ok(RelayMessage::NegErr { subscription, reason, records_max }) => {
                if let Some(id) = self.open_reconciliation(&subscription) {
                    self.refuse_reconciliation(id, clip(&reason, words_bytes_max), records_max, ctx);
                }
            }
            Ok(RelayMessage::Count { .. }) => {}
            Err(MessageError::TooDeep) => self.cut(CloseReason::TooDeep, ctx),
            Ok(RelayMessage::Auth { .. }) | Err(_) => {
                self.counters.malformed += 1;
                self.session.unsolicited_bytes += frame.len();
            }
        }
    }

    fn handle_event(&mut self, frame: &Frame, name: &str, json: &str, ctx: &mut Ctx<'_>) {
        let open = parse_wire_name(name).and_then(|id| Some((id, self.session.subscription_mut(id)?)));
        let Some((id, open)) = open else {
            self.handle_late_event(frame, name, json, ctx);
            return;
        };
        let Ok(event) = message::event_of_frame(frame.bytes(), json) else {
            self.counters.malformed += 1;
            self.session.unsolicited_bytes += frame.len();
            return;
        };
        let (purpose, owner) = (open.purpose, open.history);
        let arrival = self.offer_event(id, purpose, owner, &event);
        match arrival {
            Arrival::Unasked => return self.count_unsolicited(frame),
            Arrival::Copy => {
                self.count_unsolicited(frame);
                return self.ingest(owner, event, true, ctx);
            }
            _ => {}
        }
        if let Some(open) = self.session.subscription_mut(id) {
            open.progress_at = ctx.now.instant;
            open.answered = true;
        }
        self.record_useful(ctx);
        self.note_answer();
        self.counters.received += 1;
        self.moments.event_secs = Some(ctx.now.unix_secs);
        match purpose {
            Purpose::Ids => self.record_served(),
            Purpose::Live => self.note_served(owner),
            _ => {}
        }
        match arrival {
            Arrival::Repeated if self.may_have_forged(owner) => self.ingest(owner, event, true, ctx),
            Arrival::Repeated => self.counters.duplicate += 1,
            Arrival::Last => {
                self.close_subscription(id, ctx);
                self.ingest(owner, event, false, ctx);
            }
            Arrival::New | Arrival::Copy | Arrival::Unasked => self.ingest(owner, event, purpose != Purpose::Ids, ctx),
        }
        let remembered = self.histories.get(&owner).map_or(0, |history| history.answer_events(purpose));
        if remembered >= ctx.config.answer_events_max {
            self.end_request(id, Answer::Endless, true, ctx);
        }
    }

    fn may_have_forged(&self, owner: HistoryId) -> bool {
        self.histories.get(&owner).is_some_and(History::may_have_forged)
    }

    /// Shows an event to its owner. One that does not satisfy the filter was not asked for.
    fn offer_event(&mut self, id: u64, purpose: Purpose, owner: HistoryId, event: &Event) -> Arrival {
        if purpose == Purpose::Live {
            return if self.follows(owner, event) { Arrival::New } else { Arrival::Unasked };
        }
        match self.histories.get_mut(&owner) {
            Some(history) if matches(history.filter(), event) => history.handle_event(id, purpose, event),
            Some(history) => {
                history.handle_mismatch(purpose, event);
                Arrival::Unasked
            }
            None => Arrival::Unasked,
        }
    }

    /// Was this event asked for by a live subscription? One that is about to end may still bring what is wanted.
    fn follows(&self, owner: HistoryId, event: &Event) -> bool {
        match self.lives.get(owner).and_then(|live| live.packs.first()) {
            Some(pack) if pack.layer().is_none() => pack.want(event),
            _ => self.packs.want(event),
        }
    }

    /// Hands an event to the pipeline; `look_up` unless it was asked for because the store does not know it.
    fn ingest(&mut self, owner: HistoryId, event: Event, look_up: bool, ctx: &mut Ctx<'_>) {
        if !self.takes_events(owner) || self.is_forbidden(owner, &event, ctx) || self.is_unwanted(owner, &event, ctx) {
            return;
        }
        if let Some(history) = self.histories.get_mut(&owner) {
            history.unsettled += 1;
        }
        ctx.pipeline.push_event(self.source(owner), event, look_up);
    }

    /// Are events that come for this taken at all, or only looked at to know what the relay has?
    fn takes_events(&self, owner: HistoryId) -> bool {
        self.histories.get(&owner).is_none_or(|history| history.direction().is_down())
    }

    /// Is everything that comes for this wanted?
    fn is_trusted(&self, owner: HistoryId) -> bool {
        let of_history = self.histories.get(&owner).map(|history| &history.pack);
        let pack = of_history.or_else(|| self.lives.get(owner)?.packs.first());
        match pack {
            Some(pack) => self.options_of(pack).trusted,
            // Subscriptions that others replace have no packs of their own any more; they were for layers.
            None => self.peering.is_none() && self.options.trusted,
        }
    }

    /// Is this a protected event that the relay may not write? Its id has to be that of its contents: else it may
    /// suppress another.
    fn is_forbidden(&mut self, owner: HistoryId, event: &Event, ctx: &mut Ctx<'_>) -> bool {
        if self.may_write(event, ctx.access) || !event.verify_id() {
            return false;
        }
        self.counters.forbidden += 1;
        self.drop_outdated_marks(ctx);
        if let Some(history) = self.histories.get_mut(&owner) {
            history.handle_unwanted(event.id.to_bytes(), ctx.config);
        }
        true
    }

    /// Is this event one that nobody wants, as discovery says? Its id has to be that of its contents: else it may suppress
    /// one that is wanted.
    fn is_unwanted(&mut self, owner: HistoryId, event: &Event, ctx: &mut Ctx<'_>) -> bool {
        let Some(discovery) = ctx.discovery.as_mut().filter(|_| !self.is_trusted(owner)) else { return false };
        if discovery.consider(event).is_ok() || !event.verify_id() {
            return false;
        }
        self.counters.unwanted += 1;
        let id = event.id.to_bytes();
        if ANNOUNCEMENT_KINDS.contains(&event.kind_number()) {
            ctx.refused.insert(event, self.number, ctx.config);
        }
        if let Some(history) = self.histories.get_mut(&owner) {
            history.handle_unwanted(id, ctx.config);
        }
        true
    }

    /// An event came for a request that is over. If a history that is being paged wants it, it is taken. If it is no
    /// news, then the relay said too early that this was all, and the history can prove nothing any more.
    fn handle_late_event(&mut self, frame: &Frame, name: &str, json: &str, ctx: &mut Ctx<'_>) {
        self.count_unsolicited(frame);
        let Some(owner) = parse_wire_name(name).and_then(|id| self.session.ended(id)) else { return };
        let Ok(event) = message::event_of_frame(frame.bytes(), json) else { return };
        let Some(history) = self.histories.get_mut(&owner).filter(|history| history.is_paging()) else { return };
        if !matches(history.filter(), &event) {
            return;
        }
        if history.is_old_news(event.created_at_secs(), ctx.config.overlap_secs) {
            history.note_early_eose();
        }
        self.counters.received += 1;
        self.ingest(owner, event, true, ctx);
    }

    fn count_unsolicited(&mut self, frame: &Frame) {
        self.counters.unsolicited += 1;
        self.session.unsolicited_bytes += frame.len();
    }

    fn handle_eose(&mut self, name: Option<&str>, hint: EoseHint, ctx: &mut Ctx<'_>) {
        let id = name.and_then(parse_wire_name);
        id.into_iter().for_each(|id| self.session.note_served(id));
        let open = id.and_then(|id| Some((id, self.session.subscription_mut(id)?)));
        match open {
            Some((_, open)) if open.purpose == Purpose::Live => {
                open.answered = true;
                let owner = open.history;
                self.note_served(owner);
                self.note_answer();
                self.moments.eose_secs = Some(ctx.now.unix_secs);
            }
            Some((id, open)) if open.purpose != Purpose::Negentropy => {
                let (purpose, owner) = (open.purpose, open.history);
                if purpose == Purpose::Page {
                    self.session.note_ended(id, owner, ctx.config.ended_pages_kept);
                }
                self.record_useful(ctx);
                if purpose != Purpose::Probe {
                    self.record_served();
                    self.note_answer();
                    self.moments.eose_secs = Some(ctx.now.unix_secs);
                }
                self.end_request(id, Answer::End(hint), true, ctx);
            }
            _ => self.counters.stray_eose += 1,
        }
    }

    /// A live subscription is served.
    fn note_served(&mut self, owner: HistoryId) {
        if let Some(live) = self.lives.get_mut(owner) {
            live.last_refusal = None;
        }
    }

    fn handle_closed(&mut self, name: &str, words: &str, ctx: &mut Ctx<'_>) {
        let open = parse_wire_name(name).and_then(|id| Some((id, self.session.subscription_mut(id)?)));
        let Some((id, open)) = open else { return };
        let purpose = open.purpose;
        self.session.note_served(id);
        match purpose {
            Purpose::Live => self.refuse_live(id, words, ctx),
            Purpose::Negentropy => self.refuse_reconciliation(id, words, None, ctx),
            _ => self.refuse_request(id, words, ctx),
        }
    }

    /// A REQ was refused.
    fn refuse_request(&mut self, id: u64, words: &str, ctx: &mut Ctx<'_>) {
        match Refusal::read(words) {
            Refusal::AuthRequired => self.require_auth(id, words, ctx),
            Refusal::RateLimited => {
                self.end_request(id, Answer::Again, false, ctx);
                self.rest(words, ctx);
            }
            Refusal::TooManySubscriptions => self.learn_subscriptions(id, false, words, ctx),
            Refusal::Changed => self.end_request(id, Answer::Changed(words.to_owned()), false, ctx),
            _ => self.end_request(id, Answer::Refused(words.to_owned()), false, ctx),
        }
    }

    /// One subscription too many: it waits until others are through. `close` tells the relay so.
    fn learn_subscriptions(&mut self, id: u64, close: bool, words: &str, ctx: &mut Ctx<'_>) {
        if self.session.subscription_mut(id).is_some_and(|open| open.purpose == Purpose::Live) {
            self.refuse_live(id, words, ctx);
            return;
        }
        let open = self.session.open_reqs();
        self.budget.learn_subscriptions(open);
        self.end_request(id, Answer::Again, close, ctx);
        if open <= 1 {
            self.rest_apart(words, ctx);
        }
    }

    fn refuse_reconciliation(&mut self, id: u64, words: &str, records_max: Option<u64>, ctx: &mut Ctx<'_>) {
        match Refusal::read_negentropy(words, records_max) {
            Refusal::AuthRequired => self.require_auth(id, words, ctx),
            Refusal::SetTooLarge => self.end_request(id, Answer::TooLarge(records_max), false, ctx),
            Refusal::Changed => self.end_request(id, Answer::Changed(words.to_owned()), false, ctx),
            _ => self.end_request(id, Answer::Refused(words.to_owned()), false, ctx),
        }
    }

    fn handle_notice(&mut self, words: &str, ctx: &mut Ctx<'_>) {
        tracing::debug!(relay = %self.url, notice = words);
        let reqs = |purpose| purpose != Purpose::Negentropy;
        match Refusal::read_notice(words) {
            Refusal::RateLimited => self.rest(words, ctx),
            Refusal::TooManySubscriptions => {
                if let Some(id) = self.session.newest_unanswered(ctx.now.instant, reqs) {
                    // It may have meant another one: then this one is open there.
                    self.learn_subscriptions(id, true, words, ctx);
                }
            }
            Refusal::NoNegentropy => {
                if let Some(id) =
                    self.session.newest_unanswered(ctx.now.instant, |purpose| purpose == Purpose::Negentropy)
                {
                    self.end_request(id, Answer::Refused(words.to_owned()), false, ctx);
                }
            }
            Refusal::AuthRequired => {
                if let Some(id) = self.session.newest_unanswered(ctx.now.instant, |_| true) {
                    self.require_auth(id, words, ctx);
                }
            }
            // Chatter. It feeds no watchdog, so a request that it may have meant ends all the same.
            Refusal::SetTooLarge | Refusal::Changed | Refusal::Other => {}
        }
    }

    fn open_reconciliation(&mut self, name: &str) -> Option<u64> {
        let id = parse_wire_name(name)?;
        self.session.subscription_mut(id).filter(|open| open.purpose == Purpose::Negentropy).map(|_| id)
    }

    fn handle_neg_msg(&mut self, name: &str, message: &str, ctx: &mut Ctx<'_>) {
        let Some(id) = self.open_reconciliation(name) else { return };
        let Some(open) = self.session.subscription_mut(id) else { return };
        open.progress_at = ctx.now.instant;
        open.answered = true;
        let owner = open.history;
        self.counters.rounds += 1;
        let Some(history) = self.histories.get_mut(&owner) else { return };
        let result = match hex::decode(message) {
            Some(message) => history.handle_neg_msg(id, &message, ctx.config),
            None => Err("NEG-MSG is not hexadecimal".to_owned()),
        };
        match result {
            Ok(()) => {
                self.record_useful(ctx);
                self.note_answer();
                self.record_progress();
            }
            Err(why) => self.end_request(id, Answer::Refused(why), true, ctx),
        }
    }

    fn handle_ok(&mut self, id: &str, accepted: bool, words: &str, ctx: &mut Ctx<'_>) {
        if self.session.auth.awaiting.as_deref() == Some(id) {
            self.handle_auth_ok(accepted, words, ctx);
            return;
        }
        let refusal = (!accepted && !is_held_there(words)).then_some(words);
        self.session.auth.demanded |= refusal.is_some_and(|words| Refusal::read(words) == Refusal::AuthRequired);
        let answered = self.handle_post_ok(id, accepted, words, ctx);
        if answered.is_some() || self.handle_outbox_ok(id, refusal, ctx).is_some() {
            return;
        }
        let Some(record_owner) = self
            .histories
            .iter_mut()
            .find_map(|(owner, history)| Some((*owner, history.publish_mut().handle_ok(id, ctx.now.instant)?)))
        else {
            return;
        };
        let (owner, record) = record_owner;
        let refusal = refusal.map(Refusal::read);
        let auth = &self.session.auth;
        let may_help = self.authenticates() && !auth.accepted && auth.refused.is_none();
        if !matches!(refusal, Some(Refusal::RateLimited | Refusal::AuthRequired)) {
            self.record_useful(ctx);
            self.record_served();
        }
        let Some(history) = self.histories.get_mut(&owner) else { return };
        match refusal {
            None => self.counters.published += 1,
            Some(Refusal::RateLimited) => {
                history.publish_mut().retry(record);
                self.rest(words, ctx);
            }
            Some(Refusal::AuthRequired) if may_help => {
                history.publish_mut().retry(record);
                self.wait_for_auth(owner, words, ctx);
            }
            Some(_) => {
                self.counters.refused += 1;
                history.publish_mut().refuse(words);
            }
        }
    }
}

/// Do these words of a refused EVENT say that the relay holds it, or a newer version of it?
fn is_held_there(words: &str) -> bool {
    ["duplicate", "replaced"].iter().any(|prefix| words.starts_with(prefix))
}
