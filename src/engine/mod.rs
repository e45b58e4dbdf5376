//! The engine: a pure state machine that owns everything a sync knows.
//!
//! No clock, socket, store, task or lock is inside. The embedder mutates it with [`Engine::handle`], then drains
//! [`Engine::poll_effect`] until it is empty, then waits for [`Engine::deadline`] or something to happen. What a
//! remote does is never an error: it leads to effects, counters and gaps.

mod announcing;
mod config;
mod discovery;
mod io;
mod items;
mod pace;
mod peers;
mod planted;
mod publishing;
mod refused;
mod registry;
mod relay;
mod report;
mod sizes;
mod standing;
mod tickets;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub use config::{Config, Direction, RelayOptions};
pub use discovery::{Bringer, Origin};
pub use io::{Command, ConnId, Effect, Holdings, Input, Notice, Ticket};
#[cfg(not(feature = "testing"))]
pub(crate) use planted::Planted;
#[cfg(feature = "testing")]
pub use planted::Planted;
pub use publishing::PublishAnswer;
pub use report::{Counters, Gap, GapReason, Moments, Phase, RelayReport};
pub use sizes::Sizes;
pub use standing::{Brought, FilterStanding, Standing};
pub use tickets::{HistoryId, Rng, Tickets};

use crate::discover::{DiscoverConfig, Discovery, Rules};
use crate::ingest::{Admission, Keep, Outcomes, Pipeline, Source, Work};
use crate::peer::AccessRules;
use crate::plan::Pack;
use crate::protocol::{Event, FilterKey, RelayUrl};
use crate::runtime::{Instant, Now};
use crate::store::{Coverage, Snapshot};
use items::ItemCache;
use pace::Pace;
use refused::Refused;
use relay::{Ctx, Pending, Relay};
use standing::Sight;

/// The engine. See the module.
pub struct Engine {
    config: Config,
    now: Now,
    relays: Vec<Relay>,
    by_url: BTreeMap<RelayUrl, usize>,
    by_conn: BTreeMap<ConnId, usize>,
    deadlines: BTreeSet<(Instant, usize, &'static str)>,
    deadline_of: Vec<Option<(Instant, &'static str)>>,
    coverage: BTreeMap<RelayUrl, BTreeMap<FilterKey, Coverage>>,
    out: VecDeque<Effect>,
    tickets: Tickets,
    pending: BTreeMap<Ticket, Pending>,
    pipeline: Pipeline,
    items: ItemCache,
    rng: Rng,
    pace: Pace,
    /// What follows from the announcements that are held.
    discovery: Option<Discovery>,
    rules: Rules,
    refused: Refused,
    access: Arc<AccessRules>,
    /// Discovery waits to be told of all that is held.
    awaits_held: bool,
    /// Relays that are published to.
    up: BTreeSet<usize>,
    stopping: bool,
    ended: bool,
    /// In words, and when that was, in seconds since 1970.
    store_error: Option<(String, u64)>,
    progress_at: Option<Instant>,
    publish_passes: u32,
    /// How many events each relay had stored when the last publishing pass began.
    stored_before: u64,
    /// Relays that may stand otherwise than was told last, if that is told.
    touched: BTreeSet<usize>,
    /// How relays stood when that was told last.
    sights: BTreeMap<usize, Sight>,
    /// Whether discovery had found something then.
    told_found: bool,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("relays", &self.by_url.keys())
            .field("pipeline", &self.pipeline)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine that knows what `snapshot` says. `seed` determines every chance that it takes.
    pub fn new(config: Config, snapshot: Snapshot, seed: u64, now: Now) -> Self {
        let mut coverage: BTreeMap<RelayUrl, BTreeMap<FilterKey, Coverage>> = BTreeMap::new();
        for mark in snapshot.coverage {
            coverage.entry(mark.relay.clone()).or_default().insert(mark.filter.clone(), mark);
        }
        if config.discovery.is_some() {
            // Which of the announcements were refused is not known any more, and they may be wanted later.
            coverage.values_mut().for_each(|marks| drop(marks.remove(Pack::announcements().key())));
        }
        let mut engine = Self {
            now,
            relays: Vec::new(),
            by_url: BTreeMap::new(),
            by_conn: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            deadline_of: Vec::new(),
            coverage,
            out: VecDeque::new(),
            tickets: Tickets::default(),
            pending: BTreeMap::new(),
            pipeline: Pipeline::default(),
            items: ItemCache::new(config.items_age_max),
            rng: Rng::new(seed),
            pace: Pace::default(),
            discovery: config.discovery.clone().map(|discovery| Discovery::new(discovery, now.instant)),
            rules: config.discovery.as_ref().map(DiscoverConfig::rules).unwrap_or_default(),
            refused: Refused::default(),
            access: config.access.clone(),
            awaits_held: config.awaits_held,
            up: BTreeSet::new(),
            stopping: false,
            ended: false,
            store_error: None,
            progress_at: (!config.progress_interval.is_zero()).then(|| now.instant + config.progress_interval),
            publish_passes: 0,
            stored_before: 0,
            touched: BTreeSet::new(),
            sights: BTreeMap::new(),
            told_found: false,
            config,
        };
        engine.pipeline.keep = engine.kept();
        engine
    }

    /// Takes in what happened. Drain [`Engine::poll_effect`] before the next call.
    pub fn handle(&mut self, input: Input, now: Now) {
        let before = std::mem::replace(&mut self.now, now);
        let was_set_back = before.unix_secs > now.unix_secs + self.config.clock_set_back_secs;
        let has_slept = self.deadline().is_some_and(|(due, _)| now.instant - due > self.config.suspend_gap);
        // Who may have what from now on is known before anything follows from the time that has passed.
        let input = match input {
            Input::Command(command) if command.is_about_trust() => {
                self.handle_command(command);
                None
            }
            input => Some(input),
        };
        if was_set_back {
            self.each_relay(Relay::handle_clock_set_back);
        }
        if has_slept {
            self.wake();
        }
        if let Some(input) = input {
            self.handle_input(input);
        }
        self.poll_discovery();
        self.poll_pipeline();
        self.tell_standings();
        self.announce();
    }

    fn handle_input(&mut self, input: Input) {
        let now = self.now;
        match input {
            Input::Tick => self.handle_tick(),
            Input::Command(command) => self.handle_command(command),
            Input::Connected { conn } => self.with_conn(conn, |relay, ctx| relay.handle_connected(ctx)),
            Input::Frames { conn, frames } => self.with_conn(conn, |relay, ctx| relay.handle_frames(&frames, ctx)),
            Input::Disconnected { conn, reason } => {
                self.with_conn(conn, |relay, ctx| relay.handle_disconnected(&reason, ctx))
            }
            Input::RelayInfo { conn, result } => self.with_conn(conn, |relay, ctx| relay.handle_info(result, ctx)),
            Input::Verified { ticket, result } => {
                let (outcomes, again) =
                    self.pipeline.handle_verified(ticket, result, now.instant, &self.config, &mut self.tickets);
                again.into_iter().for_each(|work| self.emit_work(work));
                self.handle_outcomes(outcomes);
            }
            Input::Committed { ticket, result } => {
                if let (true, Ok(results)) = (self.config.tells_standings, &result) {
                    self.tell_stored(ticket, results);
                }
                let outcomes = self.pipeline.handle_committed(ticket, result);
                self.handle_outcomes(outcomes);
            }
            Input::Items { ticket, result } => self.handle_items(ticket, result),
            Input::Known { ticket, result } => self.handle_known(ticket, result),
            Input::Events { ticket, result } => self.handle_events(ticket, result),
            Input::Signed { conn, result } => self.with_conn(conn, |relay, ctx| relay.handle_signed(result, ctx)),
        }
    }

    /// The next thing to do; `None` when there is nothing more until the next input.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.out.pop_front()
    }

    /// When to send [`Input::Tick`] at the latest, and why.
    pub fn deadline(&self) -> Option<(Instant, &'static str)> {
        if self.ended {
            return None;
        }
        let relay = self.deadlines.first().map(|(at, _, why)| (*at, *why));
        let commit = self.pipeline.deadline(&self.config).map(|at| (at, "commit"));
        let progress = self.progress_at.map(|at| (at, "progress"));
        let may_discover = !self.stopping && !self.awaits_held;
        let discovery = self.discovery.as_ref().and_then(Discovery::deadline).filter(|_| may_discover);
        [relay, commit, progress, discovery.map(|at| (at, "discovery"))].into_iter().flatten().min()
    }

    /// How things stand at every relay, as of the last call of [`Engine::handle`].
    pub fn reports(&self) -> Vec<RelayReport> {
        let report = |relay: &Relay| {
            let mut report = relay.report(self.now.instant, &self.config);
            if let Some((error, at_secs)) = &self.store_error {
                report.complete = false;
                report.last_error = Some(format!("the store failed: {error}"));
                (report.last_error_secs, report.last_error_kind) = (Some(*at_secs), None);
            }
            report
        };
        self.relays.iter().map(report).collect()
    }

    fn with_relay(&mut self, number: usize, act: impl FnOnce(&mut Relay, &mut Ctx<'_>)) {
        let Some(relay) = self.relays.get_mut(number) else { return };
        let before = relay.conn();
        let mut ctx = Ctx {
            now: self.now,
            config: &self.config,
            out: &mut self.out,
            tickets: &mut self.tickets,
            pending: &mut self.pending,
            pipeline: &mut self.pipeline,
            items: &mut self.items,
            rng: &mut self.rng,
            pace: &mut self.pace,
            discovery: &mut self.discovery,
            rules: self.rules,
            refused: &mut self.refused,
            access: &self.access,
        };
        act(relay, &mut ctx);
        if self.config.tells_standings {
            self.touched.insert(number);
        }
        let after = relay.conn();
        let deadline = relay.deadline(&ctx);
        if before != after {
            before.map(|conn| self.by_conn.remove(&conn));
            after.map(|conn| self.by_conn.insert(conn, number));
        }
        if let Some((at, why)) = std::mem::replace(&mut self.deadline_of[number], deadline) {
            self.deadlines.remove(&(at, number, why));
        }
        if let Some((at, why)) = deadline {
            self.deadlines.insert((at, number, why));
        }
    }

    /// What belongs to a connection that is no more is dropped here.
    fn with_conn(&mut self, conn: ConnId, act: impl FnOnce(&mut Relay, &mut Ctx<'_>)) {
        if let Some(number) = self.by_conn.get(&conn).copied() {
            self.with_relay(number, act);
        }
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::SetInterests { relay, interests, options } => {
                if self.stopping {
                    return;
                }
                let number = self.register(relay);
                self.ended = false;
                self.with_relay(number, |relay, ctx| {
                    relay.is_configured = !interests.is_empty();
                    relay.set_interests(interests, options, ctx);
                });
                self.note_ways(number);
            }
            Command::ChangeInterests { relay, added, removed, options } => {
                if !self.stopping {
                    let number = self.register(relay);
                    self.with_relay(number, |relay, ctx| {
                        relay.is_configured = true;
                        relay.change_interests(added, &removed, options, ctx);
                    });
                    self.note_ways(number);
                }
            }
            Command::SetPeer { relay, peering } => self.set_peer(relay, peering),
            Command::SetAccess(access) => self.set_access(access),
            Command::Renew => self.each_relay(|relay, ctx| relay.handle_new_key(ctx)),
            Command::SyncNow { relay } => self.sync_now(&relay),
            Command::Discover(config) => self.discover(*config),
            Command::Accepted { events, origin, brought } => self.accept(&events, origin, &brought),
            Command::AllHeld => self.awaits_held = false,
            Command::Judge { ticket, events } => self.judge(ticket, &events),
            Command::Wake => self.wake(),
            Command::Publish { ticket, relay, event, timeout } => self.publish(ticket, relay, event, timeout),
            Command::Prove { ticket, filter } => self.prove(ticket, &filter),
            Command::Stop => {
                self.stopping = true;
                self.give_all_up(&GapReason::Stopped);
            }
        }
    }

    /// Knows which relays are published to, and what of the events that are stored is to be seen again therefore.
    fn note_ways(&mut self, number: usize) {
        match self.relays.get(number).is_some_and(Relay::is_passed_on_to) {
            true => self.up.insert(number),
            false => self.up.remove(&number),
        };
        self.pipeline.keep = self.kept();
    }

    fn kept(&self) -> Keep {
        match (self.up.is_empty(), &self.discovery) {
            (false, _) => Keep::All,
            (true, Some(_)) => Keep::Observed,
            (true, None) => Keep::Nothing,
        }
    }

    fn give_all_up(&mut self, reason: &GapReason) {
        self.each_relay(|relay, ctx| relay.give_up(reason, ctx));
    }

    /// Each relay that is due is looked at once: one that is due again at once must not hold up the others.
    fn handle_tick(&mut self) {
        let now = self.now.instant;
        let due: Vec<usize> =
            self.deadlines.iter().take_while(|(at, ..)| *at <= now).map(|(_, number, _)| *number).collect();
        for number in due {
            self.with_relay(number, |relay, ctx| relay.handle_tick(ctx));
        }
        self.items.prune(self.now.instant);
    }

    /// What was known of connections may not hold any more.
    fn wake(&mut self) {
        self.each_relay(Relay::handle_wake);
    }

    fn handle_outcomes(&mut self, outcomes: Outcomes) {
        let mut touched = BTreeSet::new();
        for (source, settled) in outcomes.events {
            touched.insert(source.relay);
            if let Some(relay) = self.relays.get_mut(source.relay) {
                relay.handle_settled(source, settled);
            }
        }
        self.handle_stored(outcomes.stored);
        for source in outcomes.marks {
            touched.insert(source.relay);
            self.relays.get_mut(source.relay).into_iter().for_each(|relay| relay.handle_marked(source));
        }
        if let Some(error) = outcomes.store_error {
            self.fail_store(error);
        }
        for number in touched {
            self.with_relay(number, |relay, ctx| {
                relay.apply_backpressure(ctx);
                relay.pump(ctx);
            });
        }
    }

    fn fail_store(&mut self, error: String) {
        if self.store_error.is_some() {
            return;
        }
        self.store_error = Some((error.clone(), self.now.unix_secs));
        self.out.push_back(Effect::Notify(Notice::StoreFailed(error.clone())));
        self.give_all_up(&GapReason::Store(error));
    }

    fn handle_items(&mut self, ticket: Ticket, result: Result<Arc<crate::protocol::ItemSet>, String>) {
        let now = self.now.instant;
        let Some(waiters) = self.items.handle_loaded(ticket, result.as_ref().ok(), now) else { return };
        let set = match result {
            Ok(set) => set,
            Err(error) => return self.fail_store(error),
        };
        for (number, history) in waiters {
            let set = set.clone();
            self.with_relay(number, |relay, ctx| {
                let refused = relay.negentropy_refused();
                if let Some(history) = relay.history_mut(history) {
                    history.handle_items(set, refused.as_deref(), ctx.config);
                }
                relay.pump(ctx);
            });
        }
    }

    fn handle_known(&mut self, ticket: Ticket, result: Result<Vec<bool>, String>) {
        let Some(Pending::Known { relay, history, ids }) = self.pending.remove(&ticket) else { return };
        let mut known = match result {
            Ok(known) => known,
            Err(error) => return self.fail_store(error),
        };
        self.with_relay(relay, |relay, ctx| {
            if relay.history_mut(history).is_some_and(|history| history.pack.is_announcements()) {
                let number = relay.number();
                let pairs = ids.iter().zip(&mut known);
                pairs.for_each(|(id, known)| *known |= ctx.refused.is_known(id, number, ctx.config));
            }
            let would_store =
                relay.history_mut(history).map_or(0, |history| history.handle_known(&ids, &known, ctx.config));
            relay.count_would_store(would_store);
            relay.pump(ctx);
        });
    }

    fn handle_events(&mut self, ticket: Ticket, result: Result<Vec<Option<crate::store::Record>>, String>) {
        let Some(pending) = self.pending.remove(&ticket) else { return };
        let records = match result {
            Ok(records) => records,
            Err(error) => return self.fail_store(error),
        };
        match pending {
            Pending::Events { relay, history } => {
                self.with_relay(relay, |relay, ctx| relay.handle_records(history, records, ctx));
            }
            Pending::Outbox { relay } => {
                self.with_relay(relay, |relay, ctx| relay.handle_outbox_records(records, ctx));
            }
            Pending::Known { .. } => {}
        }
    }

    fn poll_pipeline(&mut self) {
        loop {
            let admit = |source: Source, event: &Event| match self.relays.get(source.relay) {
                Some(relay) => relay.admit(source, event, &self.access),
                None => Admission::Free,
            };
            let Some(work) = self.pipeline.poll(self.now, &self.config, &mut self.tickets, admit) else { return };
            self.emit_work(work);
        }
    }

    fn emit_work(&mut self, work: Work) {
        match work {
            Work::Verify { ticket, events, look_up } => self.out.push_back(Effect::Verify { ticket, events, look_up }),
            Work::Commit(ticket, batch) => {
                if self.config.tells_standings {
                    self.tell_brought();
                }
                self.out.push_back(Effect::Commit { ticket, batch });
            }
            Work::Settled(outcomes) => self.handle_outcomes(outcomes),
        }
    }
}
