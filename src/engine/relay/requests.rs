//! Deciding what to send: as much as the relay's limits, the pipeline and a cooldown allow.

use super::{Ctx, Live, Pending, Relay};
use crate::engine::items::{self, Wanted};
use crate::engine::{Effect, HistoryId};
use crate::fetch::{Answer, Ask, History, Need};
use crate::ingest::Source;
use crate::plan::Pack;
use crate::protocol::message::client;
use crate::protocol::{Event, Filter};
use crate::relay::session::{Subscription, wire_name};
use crate::relay::{Purpose, Refusal};
use crate::runtime::CloseReason;
use crate::store::Record;

impl Relay {
    /// Goes on with everything, as far as possible now.
    pub(in crate::engine) fn pump(&mut self, ctx: &mut Ctx<'_>) {
        self.settle_histories(ctx);
        self.retry_if_due(ctx);
        self.poll_needs(ctx);
        self.connect_if_due(ctx);
        if self.session.conn().is_some() && self.health.cooldown(ctx.now.instant).is_none() {
            self.begin_full_pass_if_due(ctx);
            self.open_live(ctx);
            self.watch_live(ctx);
            self.renew_stale();
            self.begin_waiting(ctx);
            self.poll_needs(ctx);
            self.poll_asks(ctx);
            self.settle_histories(ctx);
            self.poll_needs(ctx);
            self.probe_if_due(ctx);
        }
        if self.is_done() && self.session.any_conn().is_some() {
            self.close(CloseReason::Done, ctx);
            self.health.record_closed();
        }
    }

    fn begin_waiting(&mut self, ctx: &mut Ctx<'_>) {
        while self.histories.len() < ctx.config.histories_active_max.max(1) {
            if self.begin_history(ctx).is_none() {
                break;
            }
        }
    }

    /// Hands the store what histories need of it.
    pub(in crate::engine) fn poll_needs(&mut self, ctx: &mut Ctx<'_>) {
        if self.histories.values().any(History::waits_for_outcomes) {
            ctx.pipeline.hurry();
        }
        let ids: Vec<HistoryId> = self.histories.keys().copied().collect();
        for id in ids {
            while let Some(history) = self.histories.get_mut(&id)
                && let Some(need) = history.poll_need(ctx.config)
            {
                self.take_need(id, need, ctx);
            }
        }
    }

    fn take_need(&mut self, id: HistoryId, need: Need, ctx: &mut Ctx<'_>) {
        let relay = self.number;
        let Some(history) = self.histories.get_mut(&id) else { return };
        match need {
            Need::Items => match ctx.items.want(history.key(), (relay, id), ctx.now.instant, ctx.tickets) {
                Wanted::Ready(set) => history.handle_items(set, self.negentropy_refused.as_deref(), ctx.config),
                Wanted::Load(ticket) => ctx.out.push_back(items::load(history.filter(), ticket)),
                Wanted::Waiting => {}
            },
            Need::Known(ids) => {
                let ticket = ctx.tickets.next();
                ctx.pending.insert(ticket, Pending::Known { relay, history: id, ids: ids.clone() });
                ctx.out.push_back(Effect::CheckKnown { ticket, ids });
            }
            Need::Events(ids) => {
                let ticket = ctx.tickets.next();
                ctx.pending.insert(ticket, Pending::Events { relay, history: id });
                ctx.out.push_back(Effect::LoadEvents { ticket, ids });
            }
            Need::Mark { coverage, last } => {
                self.coverage.insert(coverage.filter.clone(), coverage.clone());
                ctx.pipeline.push_mark(Source { relay, history: id }, coverage, last);
            }
        }
    }

    /// Sends what histories want to send.
    fn poll_asks(&mut self, ctx: &mut Ctx<'_>) {
        let Some(conn) = self.session.conn() else { return };
        let ids: Vec<HistoryId> = self.histories.keys().copied().collect();
        for id in ids {
            loop {
                // Nothing more is fetched while what came waits to be checked.
                let drained = ctx.pipeline.bytes_of(self.number) <= ctx.config.ingest_bytes_max / 2;
                let room = drained && self.session.open_reqs() < self.budget.subscriptions_max();
                let next = self.session.next_id();
                let Some(history) = self.histories.get_mut(&id) else { break };
                let Some(ask) = history.poll_ask(next, room, ctx.now.instant, &self.budget, ctx.config) else { break };
                let frame = self.open_ask(id, ask, ctx);
                self.send(ctx, conn, frame);
            }
        }
    }

    fn open_ask(&mut self, id: HistoryId, ask: Ask, ctx: &mut Ctx<'_>) -> String {
        let now = ctx.now.instant;
        match ask {
            Ask::Req(purpose, filter) => {
                self.counters.pages += 1;
                let name = wire_name(self.session.open(id, purpose, ctx.now));
                client::req(&name, [&filter])
            }
            Ask::Ids(ids) => {
                self.counters.id_requests += 1;
                let name = wire_name(self.session.open(id, Purpose::Ids, ctx.now));
                client::req_ids(&name, &ids)
            }
            Ask::NegOpen(filter, message) => {
                let name = wire_name(self.session.open(id, Purpose::Negentropy, ctx.now));
                client::neg_open(&name, &filter, &message)
            }
            Ask::NegMsg(session, message) => {
                if let Some(open) = self.session.subscription_mut(session) {
                    open.progress_at = now;
                }
                client::neg_msg(&wire_name(session), &message)
            }
            Ask::NegClose(session) => {
                self.session.close(session);
                client::neg_close(&wire_name(session))
            }
            Ask::Event(record) => client::event(&String::from_utf8_lossy(&record.json)),
        }
    }

    /// A request has ended; `close` tells the relay so, unless it was the relay that closed it.
    pub(super) fn end_request(&mut self, id: u64, answer: Answer, close: bool, ctx: &mut Ctx<'_>) {
        let open = if close { self.close_subscription(id, ctx) } else { self.session.close(id) };
        let Some(open) = open else { return };
        let Some(history) = self.histories.get_mut(&open.history) else { return };
        let could = history.fallback.is_none();
        history.handle_end(id, open.purpose, answer, &mut self.budget, ctx.config, ctx.now.unix_secs);
        if could && let Some(words) = history.fallback.clone() {
            tracing::info!(relay = %self.url, reason = words, "no reconciliation, paging instead");
            self.fallbacks.insert("negentropy".to_owned(), words.clone());
            self.negentropy_refused = Some(words);
        }
    }

    /// A request needs nothing more: the relay is told so.
    pub(super) fn close_subscription(&mut self, id: u64, ctx: &mut Ctx<'_>) -> Option<Subscription> {
        let open = self.session.close(id)?;
        if let Some(conn) = self.session.conn() {
            let name = wire_name(id);
            let frame =
                if open.purpose == Purpose::Negentropy { client::neg_close(&name) } else { client::close(&name) };
            self.send(ctx, conn, frame);
        }
        Some(open)
    }

    /// Whatever a history that is over has still open is closed.
    pub(super) fn close_requests_of(&mut self, history: HistoryId, ctx: &mut Ctx<'_>) {
        let open: Vec<u64> =
            self.session.subscriptions().filter(|(_, open)| open.history == history).map(|(id, _)| id).collect();
        for id in open {
            self.close_subscription(id, ctx);
        }
    }

    /// Subscribes to what is new, before any history: so no gap opens between them.
    fn open_live(&mut self, ctx: &mut Ctx<'_>) {
        self.suspend_live(ctx);
        if !self.live_due || !self.options.live || !self.options.direction.is_down() {
            return;
        }
        self.live_due = false;
        let Some(conn) = self.session.conn() else { return };
        let interests: Vec<Pack> = self.interests.target().iter().cloned().collect();
        for pack in interests {
            if self.live.get(&pack).is_some_and(|live| live.subscription.is_some() || live.refused.is_some()) {
                continue;
            }
            if !self.has_room_for_live() {
                self.last_error = Some("too few subscriptions allowed for all to be live".to_owned());
                self.live_due = true;
                break;
            }
            let is_dated = self.is_dated(&pack);
            let live = self.live.entry(pack.clone()).or_insert_with(|| Live {
                id: ctx.tickets.next_history(),
                subscription: None,
                by_since: false,
                is_dated: false,
                refused: None,
                futile: 0,
                last_refusal: None,
            });
            let subscription = self.session.open(live.id, Purpose::Live, ctx.now);
            live.subscription = Some(subscription);
            live.is_dated = is_dated;
            let filter = self.live_filter(&pack, ctx);
            let begun = self.histories.values().any(|history| history.pack == pack);
            let is_only = self.budget.subscriptions_max() == 1;
            if !is_only && (begun || self.interests.confirmed().contains(&pack)) {
                self.stale.insert(pack);
            }
            let frame = client::req(&wire_name(subscription), [&filter]);
            self.send(ctx, conn, frame);
        }
    }

    /// How a live subscription is asked for. The only one that a relay allows follows its history: it asks for what came
    /// meanwhile, too.
    pub(super) fn live_filter(&self, pack: &Pack, ctx: &Ctx<'_>) -> Filter {
        let since_secs = ctx.now.unix_secs.saturating_sub(ctx.config.overlap_secs);
        live_filter(&pack.filter(), self.is_dated(pack), since_secs)
    }

    /// Is a live subscription asked for by `since`? Then what is dated back does not come.
    pub(super) fn is_dated(&self, pack: &Pack) -> bool {
        self.budget.subscriptions_max() == 1 || self.live.get(pack).is_some_and(|live| live.by_since)
    }

    /// Where live holds what histories need, as a lower limit has shown, it makes room for one of them.
    fn suspend_live(&mut self, ctx: &mut Ctx<'_>) {
        if self.histories.is_empty() && self.waiting.is_empty() {
            return;
        }
        let most = self.budget.subscriptions_max().saturating_sub(1);
        let open = self.live.values_mut().filter(|live| live.subscription.is_some());
        let surplus: Vec<u64> = open.skip(most).filter_map(|live| live.subscription.take()).collect();
        self.live_due |= !surplus.is_empty();
        for id in surplus {
            self.close_subscription(id, ctx);
        }
    }

    /// One subscription is left for histories; where there is but one, they go first.
    fn has_room_for_live(&self) -> bool {
        match self.budget.subscriptions_max() {
            1 => self.session.open_reqs() == 0 && self.histories.is_empty() && self.waiting.is_empty(),
            most => self.session.open_reqs() + 1 < most,
        }
    }

    /// Is a live subscription open for this?
    fn is_open_live(&self, pack: &Pack) -> bool {
        self.live.get(pack).is_some_and(|live| live.subscription.is_some())
    }

    /// Is something that is wanted live not served so?
    pub(super) fn is_unserved(&self) -> bool {
        let mut wanted = self.interests.target().iter();
        self.options.live && self.options.direction.is_down() && !wanted.all(|pack| self.is_open_live(pack))
    }

    /// Sees to it that what is not served live is asked for from time to time.
    fn watch_live(&mut self, ctx: &Ctx<'_>) {
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
        self.live.values_mut().for_each(|live| (live.refused, live.futile) = (None, 0));
        let wanted = self.interests.target().iter();
        self.polled = wanted.filter(|pack| !self.is_open_live(pack)).cloned().collect();
        self.stale.extend(self.polled.iter().cloned());
    }

    /// Fetches what came between the beginning of a history and that of its live subscription.
    fn renew_stale(&mut self) {
        let confirmed = self.interests.confirmed();
        let due: Vec<Pack> = self.stale.iter().filter(|pack| confirmed.contains(pack)).cloned().collect();
        for pack in due {
            self.interests.unconfirm(&pack);
        }
        self.waiting.extend(self.interests.begin_new());
    }

    pub(super) fn drop_live(&mut self, pack: &Pack, ctx: &mut Ctx<'_>) {
        if let Some(subscription) = self.live.remove(pack).and_then(|live| live.subscription) {
            self.close_subscription(subscription, ctx);
        }
    }

    /// The relay does not serve a live subscription: as `limit: 0` is not understood everywhere, `since` is tried
    /// next; after that it shows as failing, and is tried again later.
    pub(super) fn refuse_live(&mut self, id: u64, words: &str, ctx: &mut Ctx<'_>) {
        let Some(open) = self.session.subscription_mut(id) else { return };
        let owner = open.history;
        let has_served = open.answered && open.opened_at + ctx.config.stall <= ctx.now.instant;
        self.note_live(ctx.now);
        self.close_subscription(id, ctx);
        let others = self.session.open_reqs();
        let Some(live) = self.live.values_mut().find(|live| live.id == owner) else { return };
        live.subscription = None;
        live.last_refusal = Some(words.to_owned());
        self.live_due = true;
        self.last_error = Some(format!("live subscription refused: {words}"));
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
            // It worked for a while: it is opened again as it was.
            _ if has_served => {}
            _ if !live.by_since => live.by_since = true,
            _ => live.refused = Some(words.to_owned()),
        }
    }

    pub(in crate::engine) fn history_mut(&mut self, id: HistoryId) -> Option<&mut crate::fetch::History> {
        self.histories.get_mut(&id)
    }

    pub(in crate::engine) fn negentropy_refused(&self) -> Option<String> {
        self.negentropy_refused.clone()
    }

    pub(in crate::engine) fn count_would_store(&mut self, events: u64) {
        self.counters.would_store += events;
    }

    /// Events to publish have been loaded. A dry run only counts them.
    pub(in crate::engine) fn handle_records(
        &mut self,
        id: HistoryId,
        mut records: Vec<Option<Record>>,
        ctx: &mut Ctx<'_>,
    ) {
        // No relay takes what has expired (NIP-40), and the store may not have swept it out yet.
        for record in &mut records {
            record.take_if(|record| has_expired(record, ctx.now.unix_secs));
        }
        if ctx.config.dry_run {
            self.counters.would_publish += records.iter().flatten().count() as u64;
            records.clear();
        }
        if let Some(history) = self.histories.get_mut(&id) {
            history.handle_records(records);
        }
        self.pump(ctx);
    }
}

/// Must an event not be given on any more (NIP-40)?
fn has_expired(record: &Record, now_secs: u64) -> bool {
    const TAG: &[u8] = b"\"expiration\"";
    // Most events have no such tag, and need not be read for it.
    record.json.windows(TAG.len()).any(|part| part == TAG)
        && Event::parse(record.json.clone()).is_ok_and(|event| event.expires_at_secs().is_some_and(|at| at <= now_secs))
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
