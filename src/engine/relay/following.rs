//! Following what is new: opening live subscriptions, making do with few of them, and with refusals.

use super::{Ctx, Live, Relay};
use crate::engine::{Direction, HistoryId};
use crate::plan::Pack;
use crate::protocol::Filter;
use crate::protocol::message::client;
use crate::relay::session::wire_name;
use crate::relay::{Purpose, Refusal};

impl Relay {
    /// Subscribes to what is new, before any history: so no gap opens between them.
    pub(super) fn open_live(&mut self, ctx: &mut Ctx<'_>) {
        self.suspend_live(ctx);
        self.end_handover_if_served(ctx);
        if !self.live_due {
            return;
        }
        // Where there are more than the relay allows, they are not gone through for nothing with every frame.
        if self.lives.waits_for_room && !self.make_room_for_live(ctx) {
            return;
        }
        (self.live_due, self.lives.waits_for_room) = (false, false);
        self.lives.group(&self.budget, ctx.tickets);
        for id in self.lives.in_order() {
            let Some(live) = self.lives.get(id).filter(|live| live.refused.is_none()) else { continue };
            match (live.subscription, live.is_changed) {
                (Some(subscription), true) => self.send_live(id, subscription, ctx),
                (Some(_), false) => {}
                (None, _) if self.make_room_for_live(ctx) => self.open_one_live(id, ctx),
                (None, _) => {
                    self.note_error("too few subscriptions allowed for all to be live", None, ctx);
                    (self.live_due, self.lives.waits_for_room) = (true, true);
                    break;
                }
            }
        }
    }

    /// Is what is new of this to be heard of at once?
    pub(super) fn is_to_follow(&self, pack: &Pack) -> bool {
        self.options_of(pack).live && self.direction_of(pack).is_some_and(Direction::is_down)
    }

    fn open_one_live(&mut self, id: HistoryId, ctx: &mut Ctx<'_>) {
        let subscription = self.session.open(id, Purpose::Live, ctx.now);
        let is_only = self.budget.subscriptions_max() == 1;
        self.counters.subscription_restarts += u64::from(self.lives.note_opened(id));
        let (continued, since_secs) = &self.lives.continued;
        let (continued, since_secs) = (continued.clone(), *since_secs);
        let Some(live) = self.lives.get_mut(id) else { return };
        (live.subscription, live.is_dated) = (Some(subscription), false);
        live.since_secs = live.packs.iter().all(|pack| continued.contains(pack)).then_some(since_secs);
        if live.since_secs.is_none() && !is_only {
            let begun = |pack: &Pack| self.histories.values().any(|history| history.pack == *pack);
            let is_late = |pack: &&Pack| begun(pack) || self.progress.confirmed().contains(*pack);
            self.stale.extend(live.packs.iter().filter(is_late).cloned());
        }
        self.send_live(id, subscription, ctx);
    }

    fn send_live(&mut self, id: HistoryId, subscription: u64, ctx: &mut Ctx<'_>) {
        let (Some(conn), Some(frame)) = (self.session.conn(), self.live_request(id, subscription, ctx)) else { return };
        self.send(ctx, conn, frame);
    }

    /// How a live subscription is asked for. The only one that a relay allows follows its history: it asks for what came
    /// meanwhile, too.
    pub(super) fn live_request(&mut self, id: HistoryId, subscription: u64, ctx: &Ctx<'_>) -> Option<String> {
        let first = self.lives.get(id)?.packs.first()?;
        let since_secs = ctx.now.unix_secs.saturating_sub(self.overlap_secs(first, ctx));
        let is_only = self.budget.subscriptions_max() == 1;
        let live = self.lives.get_mut(id)?;
        let by_since = is_only || live.by_since;
        live.is_dated |= by_since;
        live.is_changed = false;
        let filters: Vec<Filter> =
            live.packs.iter().map(|pack| live_filter(&pack.filter(), by_since, since_secs)).collect();
        Some(client::req(&wire_name(subscription), &filters))
    }

    /// Where live holds what histories need, as a lower limit has shown, it makes room for one of them.
    fn suspend_live(&mut self, ctx: &mut Ctx<'_>) {
        if self.histories.is_empty() && self.waiting.is_empty() {
            return;
        }
        let most = self.budget.subscriptions_max().saturating_sub(1);
        if self.session.open_reqs() <= most {
            return;
        }
        let mut open = 0;
        for id in self.lives.in_order() {
            let Some(live) = self.lives.get_mut(id).filter(|live| live.subscription.is_some()) else { continue };
            open += 1;
            if open > most
                && let Some(subscription) = live.subscription.take()
            {
                self.live_due = true;
                self.close_subscription(subscription, ctx);
            }
        }
    }

    /// One subscription is left for histories; where there is but one, they go first. What others replace by and by ends
    /// at once if it is in the way.
    fn make_room_for_live(&mut self, ctx: &mut Ctx<'_>) -> bool {
        if !self.has_room_for_live() && !self.lives.retiring.is_empty() {
            self.end_handover(ctx);
        }
        self.has_room_for_live()
    }

    fn has_room_for_live(&self) -> bool {
        match self.budget.subscriptions_max() {
            1 => self.session.open_reqs() == 0 && self.histories.is_empty() && self.waiting.is_empty(),
            most => self.session.open_reqs() + 1 < most,
        }
    }

    /// Subscriptions that others replace end once all of those are served.
    fn end_handover_if_served(&mut self, ctx: &mut Ctx<'_>) {
        let is_served = |live: &Live| {
            let open = live.subscription.and_then(|id| self.session.subscription(id));
            live.refused.is_some() || open.is_some_and(|open| open.answered)
        };
        if !self.lives.retiring.is_empty() && !self.live_due && self.lives.iter().all(|(_, live)| is_served(live)) {
            self.end_handover(ctx);
        }
    }

    fn end_handover(&mut self, ctx: &mut Ctx<'_>) {
        for subscription in self.lives.end_handover() {
            self.close_subscription(subscription, ctx);
        }
    }

    /// One of the subscriptions that others replace has ended before those are served: what comes between is to be fetched.
    fn break_handover(&mut self, words: &str, ctx: &mut Ctx<'_>) {
        self.end_handover(ctx);
        let session = &self.session;
        let is_served = |id| session.subscription(id).is_some_and(|open| open.answered);
        for live in self.lives.iter_mut().filter(|live| !live.subscription.is_some_and(is_served)) {
            live.since_secs = None;
            self.stale.extend(live.packs.iter().cloned());
        }
        if Refusal::read(words) == Refusal::RateLimited {
            self.rest(words, ctx);
        }
    }

    /// Is what is new of this followed by an open subscription?
    fn is_open_live(&self, pack: &Pack) -> bool {
        self.lives.of(pack).is_some_and(|live| live.subscription.is_some())
    }

    /// Is something that is wanted live not served so?
    pub(super) fn is_unserved(&self) -> bool {
        !self.lives.are_all_open()
    }

    /// Sees to it that what is not served live is asked for from time to time.
    pub(super) fn watch_live(&mut self, ctx: &Ctx<'_>) {
        if self.is_unserved() {
            self.live_retry_at.get_or_insert(ctx.now.instant + ctx.config.live_retry);
        } else {
            self.live_retry_at = None;
        }
    }

    /// Fetches what is not served live, and tries whether it is by now.
    pub(super) fn retry_live(&mut self, ctx: &mut Ctx<'_>) {
        self.live_retry_at = None;
        self.live_due = true;
        self.renew_auth(ctx);
        self.lives.iter_mut().for_each(|live| (live.refused, live.futile) = (None, 0));
        let wanted = self.progress.target().iter();
        self.polled = wanted.filter(|pack| self.is_to_follow(pack) && !self.is_open_live(pack)).cloned().collect();
        self.stale.extend(self.polled.iter().cloned());
    }

    /// Fetches what came between the beginning of a history and that of its live subscription.
    pub(super) fn renew_stale(&mut self) {
        let confirmed = self.progress.confirmed();
        let due: Vec<Pack> = self.stale.iter().filter(|pack| confirmed.contains(pack)).cloned().collect();
        for pack in due {
            self.progress.unconfirm(&pack);
        }
        self.waiting.extend(self.progress.begin_new());
    }

    /// Follows no more, until that is wanted again.
    pub(super) fn close_live(&mut self, ctx: &mut Ctx<'_>) {
        self.end_handover(ctx);
        let open: Vec<u64> = self.lives.iter_mut().filter_map(|live| live.subscription.take()).collect();
        for subscription in open {
            self.close_subscription(subscription, ctx);
        }
    }

    /// The relay does not serve a live subscription: first fewer filters are tried in one; as `limit: 0` is not
    /// understood everywhere, `since` is tried next; after that it shows as failing, and is tried again later.
    pub(super) fn refuse_live(&mut self, id: u64, words: &str, ctx: &mut Ctx<'_>) {
        let Some(open) = self.session.subscription_mut(id) else { return };
        let owner = open.history;
        let has_served = open.answered && open.opened_at + ctx.config.stall <= ctx.now.instant;
        self.note_live(ctx);
        self.close_subscription(id, ctx);
        let others = self.session.open_reqs();
        if self.lives.retiring.contains(&id) {
            self.break_handover(words, ctx);
            return;
        }
        if self.lives.get(owner).is_some() {
            self.note_error(&format!("live subscription refused: {words}"), None, ctx);
        }
        let Some(live) = self.lives.get_mut(owner) else { return };
        live.subscription = None;
        let before = live.last_refusal.replace(words.to_owned());
        self.live_due = true;
        match Refusal::read(words) {
            Refusal::AuthRequired => {
                live.refused = Some(words.to_owned());
                live.futile = if has_served { 0 } else { live.futile + u32::from(self.session.auth.accepted) };
                self.wait_for_auth(owner, words, ctx);
            }
            Refusal::RateLimited => self.rest(words, ctx),
            Refusal::TooManySubscriptions => {
                self.budget.learn_subscriptions(others + 1);
                if others == 0 {
                    self.rest_apart(words, ctx);
                }
            }
            // It is opened again as it was, once until it is served.
            Refusal::Changed if before.is_none_or(|words| Refusal::read(&words) != Refusal::Changed) => {}
            // It worked for a while: it is opened again as it was.
            _ if has_served => {}
            _ if live.packs.len() > 1 => {
                self.budget.learn_filters(live.packs.len());
                self.lives.split(owner);
            }
            _ if !live.by_since => self.lives.ask_by_since(owner),
            _ => live.refused = Some(words.to_owned()),
        }
    }
}

fn live_filter(filter: &Filter, by_since: bool, since_secs: u64) -> Filter {
    if by_since {
        Filter {
            since: Some(filter.since.map_or(since_secs, |at| at.as_secs().max(since_secs)).into()),
            limit: None,
            ..filter.clone()
        }
    } else {
        filter.clone().limit(0)
    }
}
