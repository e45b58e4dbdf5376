//! Deciding what to send: as much as the relay's limits, the pipeline and a cooldown allow.

use super::{Ctx, Pending, Relay, rights};
use crate::engine::items::{self, Wanted};
use crate::engine::{Effect, HistoryId};
use crate::fetch::{Answer, Ask, History, Need};
use crate::protocol::Event;
use crate::protocol::message::client;
use crate::relay::Purpose;
use crate::relay::session::{Subscription, wire_name};
use crate::runtime::CloseReason;
use crate::store::Record;

impl Relay {
    /// Goes on with everything, as far as possible now.
    pub(in crate::engine) fn pump(&mut self, ctx: &mut Ctx<'_>) {
        self.settle_histories(ctx);
        self.begin_again_if_due(ctx);
        self.retry_if_due(ctx);
        self.poll_needs(ctx);
        self.connect_if_due(ctx);
        let is_resting = self.health.cooldown(ctx.now.instant).is_some();
        if self.session.conn().is_some() && !is_resting && !self.awaits_auth(ctx) {
            self.begin_full_pass_if_due(ctx);
            self.consolidate_if_due(ctx);
            self.open_live(ctx);
            self.watch_live(ctx);
            self.renew_stale();
            self.begin_waiting(ctx);
            self.poll_needs(ctx);
            self.poll_asks(ctx);
            self.poll_outbox(ctx);
            self.poll_posts(ctx);
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
            Need::Items => {
                let choice = (history.key().clone(), self.rights.view.clone());
                match ctx.items.want(&choice, (relay, id), ctx.now.instant, ctx.tickets) {
                    Wanted::Ready(set) => history.handle_items(set, self.negentropy_refused.as_deref(), ctx.config),
                    Wanted::Load(ticket) => ctx.out.push_back(items::load(history.filter(), choice.1, ticket)),
                    Wanted::Waiting => {}
                }
            }
            Need::Known(ids) => {
                let ticket = ctx.tickets.next();
                ctx.pending.insert(ticket, Pending::Known { relay, history: id, ids: ids.clone() });
                let view = self.rights.view.clone();
                ctx.out.push_back(Effect::CheckKnown { ticket, ids, view });
            }
            Need::Events(ids) => {
                let ticket = ctx.tickets.next();
                ctx.pending.insert(ticket, Pending::Events { relay, history: id });
                ctx.out.push_back(Effect::LoadEvents { ticket, ids });
            }
            Need::Mark { coverage, last } => {
                self.note_mark(&coverage);
                self.coverage.insert(coverage.filter.clone(), coverage.clone());
                ctx.pipeline.push_mark(self.source(id), coverage, last);
            }
        }
    }

    /// Sends what histories want to send.
    fn poll_asks(&mut self, ctx: &mut Ctx<'_>) {
        let Some(conn) = self.session.conn() else { return };
        let principal = self.principal();
        let may_have = |record: &Record| rights::may_have(record, principal, ctx.access);
        let ids: Vec<HistoryId> = self.histories.keys().copied().collect();
        for id in ids {
            loop {
                // Nothing more is fetched while what came waits to be checked.
                let drained = ctx.pipeline.bytes_of(self.number) <= ctx.config.ingest_bytes_max / 2;
                let room = drained && self.session.open_reqs() < self.budget.subscriptions_max();
                let next = self.session.next_id();
                let Some(history) = self.histories.get_mut(&id) else { break };
                let bounds = (&self.budget, ctx.config);
                let Some(ask) = history.poll_ask(next, room, ctx.now.instant, bounds, may_have) else { break };
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
        drop_expired(&mut records, ctx.now.unix_secs);
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

/// No relay takes what has expired (NIP-40), and the store may not have swept it out yet.
pub(super) fn drop_expired(records: &mut [Option<Record>], now_secs: u64) {
    for record in records {
        record.take_if(|record| has_expired(record, now_secs));
    }
}

/// Must an event not be given on any more (NIP-40)?
fn has_expired(record: &Record, now_secs: u64) -> bool {
    const TAG: &[u8] = b"\"expiration\"";
    // Most events have no such tag, and need not be read for it.
    record.json.windows(TAG.len()).any(|part| part == TAG)
        && Event::parse(record.json.clone()).is_ok_and(|event| event.expires_at_secs().is_some_and(|at| at <= now_secs))
}
