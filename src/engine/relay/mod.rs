//! One relay inside the engine: it owns the session, the health, the limits and the histories, and routes what comes.
//!
//! `frames` reads what the relay sends, `auth` who we are to it, `peering` who it is, `rights` what it may do,
//! `requests` decides what to send, `passes` what to look at again, `lifecycle`
//! connects and gives up, `posting` publishes what has an answer of its own, `standing` says how things are, `probe` finds out whether the relay is still there, `timers` knows what is due when.

mod again;
mod auth;
mod following;
mod frames;
mod lifecycle;
mod live;
mod outbox;
mod packing;
mod passes;
mod peering;
mod posting;
mod probe;
mod requests;
mod rights;
mod standing;
mod timers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::items::ItemCache;
use super::pace::Pace;
use super::refused::Refused;
use super::{
    Config, ConnId, Counters, Effect, Gap, GapReason, HistoryId, Moments, Now, Phase, RelayOptions, RelayReport, Rng,
    Sizes, Ticket, Tickets,
};
use crate::discover::{Discovery, Rules};
use crate::fetch::{History, Publish, Stage};
use crate::ingest::{Pipeline, Settled, Source};
use crate::peer::{AccessRules, Peering};
use crate::plan::{Interest, Pack, Packs, Progress};
use crate::protocol::{FilterKey, RelayUrl};
use crate::relay::{Budget, Health, Session, clip};
use crate::runtime::{CloseReason, Dial, FailureKind, Instant};
use crate::store::{Coverage, Method, Outcome};
use again::Again;
use live::{Live, Lives};
use passes::Retry;
use posting::Posts;
use rights::{Denied, Rights};

/// What a relay works with while it handles one thing.
pub(super) struct Ctx<'a> {
    pub now: Now,
    pub config: &'a Config,
    pub out: &'a mut VecDeque<Effect>,
    pub tickets: &'a mut Tickets,
    pub pending: &'a mut BTreeMap<Ticket, Pending>,
    pub pipeline: &'a mut Pipeline,
    pub items: &'a mut ItemCache,
    pub rng: &'a mut Rng,
    pub pace: &'a mut Pace,
    pub discovery: &'a mut Option<Discovery>,
    pub rules: Rules,
    pub refused: &'a mut Refused,
    pub access: &'a AccessRules,
}

/// Work handed to the store for a history: whose it is, and what was asked.
#[derive(Debug)]
pub(super) enum Pending {
    Known { relay: usize, history: HistoryId, ids: Vec<[u8; 32]> },
    Events { relay: usize, history: HistoryId },
    Outbox { relay: usize },
}

/// The last failure of a link.
#[derive(Debug)]
struct LastError {
    words: String,
    /// When it happened, in seconds since 1970.
    at_secs: u64,
    kind: Option<FailureKind>,
}

/// One relay.
pub(super) struct Relay {
    pub url: RelayUrl,
    number: usize,
    options: RelayOptions,
    /// Somebody has said how it is to be synced; discovery does not change that.
    pub is_configured: bool,
    /// On which terms it is a peer, if it is one.
    peering: Option<Box<Peering>>,
    /// How often it has become another peer, or none.
    era: u32,
    /// What others than discovery want of it, and get once it is no peer any more.
    beside: BTreeSet<Interest>,
    rights: Rights,
    /// By what number of rights marks of others were dropped last.
    dropped_by: Option<u64>,
    /// What the access rules keep from being synced.
    denied: BTreeMap<Pack, Denied>,
    packs: Packs,
    progress: Progress,
    session: Session,
    health: Health,
    budget: Budget,
    histories: BTreeMap<HistoryId, History>,
    /// Interests begun that wait for room among the active histories.
    waiting: VecDeque<Pack>,
    lives: Lives,
    /// Some live subscription is to be opened.
    live_due: bool,
    /// There may be more small packs by now than should be, or more that can be put together.
    consolidation_due: bool,
    /// When what the relay does not serve live is asked for next.
    live_retry_at: Option<Instant>,
    /// Interests whose history is to be fetched once more: their live subscription was opened after it had begun, or is
    /// not served. Nothing is proven of them by what comes live until then.
    stale: BTreeSet<Pack>,
    /// Of the stale ones, those whose history was begun on an earlier connection, on which the relay may have shown us less:
    /// what it proves does not count.
    doubted: BTreeSet<Pack>,
    again: Again,
    /// Filters whose last pass has left gaps.
    retries: BTreeMap<Pack, Retry>,
    /// When everything is to be begun anew.
    full_pass_at: Option<Instant>,
    /// Of the stale ones, those that are not served live: their next pass fetches only what is new.
    polled: BTreeSet<Pack>,
    negentropy_refused: Option<String>,
    coverage: BTreeMap<FilterKey, Coverage>,
    /// The filters of all marks that are stored, or about to be.
    marked: BTreeSet<FilterKey>,
    counters: Counters,
    gaps: Vec<Gap>,
    /// Gaps beyond the number kept.
    gaps_dropped: BTreeMap<FilterKey, u64>,
    methods: BTreeSet<Method>,
    fallbacks: BTreeMap<String, String>,
    relied_on_secs: Option<u64>,
    last_error: Option<LastError>,
    failure: Option<FailureKind>,
    /// The words in which it has refused our authentication.
    auth_refused: Option<String>,
    /// How often all was asked again as the relay has accepted us once more, and since when that is counted.
    auth_renewals: (u32, Instant),
    moments: Moments,
    disconnected_at: Option<Instant>,
    /// Since the last full pass, live subscriptions were served: what is dated newer than that was not missed.
    was_live: bool,
    /// The moment that the next connection attempt was given.
    connect_at: Option<Instant>,
    given_up: bool,
    /// Rests after rate limits, since a request was brought to its end.
    cooldowns: u32,
    /// Connections that failed or were lost, since a request was brought to its end.
    fruitless: u32,
    auth_wait_until: Option<Instant>,
    /// Events that others brought, on their way to this relay.
    outbox: Publish,
    /// Single events that the embedder publishes.
    posts: Posts,
    /// Events that this relay's sync has stored, for others to publish.
    pub stored: u64,
}

impl Relay {
    pub(super) fn new(url: RelayUrl, number: usize, config: &Config, coverage: BTreeMap<FilterKey, Coverage>) -> Self {
        let packed = coverage.values().filter_map(|mark| mark.packed.as_deref());
        let packs = Packs::remembering(packed, config.values_per_filter_max);
        Self {
            url,
            number,
            options: RelayOptions::default(),
            is_configured: false,
            peering: None,
            era: 0,
            beside: BTreeSet::new(),
            rights: Rights::default(),
            dropped_by: None,
            denied: BTreeMap::new(),
            packs,
            progress: Progress::default(),
            session: Session::default(),
            health: Health::default(),
            budget: Budget::new(config),
            histories: BTreeMap::new(),
            waiting: VecDeque::new(),
            lives: Lives::default(),
            live_due: true,
            consolidation_due: false,
            live_retry_at: None,
            stale: BTreeSet::new(),
            doubted: BTreeSet::new(),
            again: Again::default(),
            retries: BTreeMap::new(),
            full_pass_at: None,
            polled: BTreeSet::new(),
            negentropy_refused: None,
            marked: coverage.keys().cloned().collect(),
            coverage,
            counters: Counters::default(),
            gaps: Vec::new(),
            gaps_dropped: BTreeMap::new(),
            methods: BTreeSet::new(),
            fallbacks: BTreeMap::new(),
            relied_on_secs: None,
            last_error: None,
            failure: None,
            auth_refused: None,
            auth_renewals: (0, Instant::ZERO),
            moments: Moments::default(),
            disconnected_at: None,
            was_live: false,
            connect_at: None,
            given_up: false,
            cooldowns: 0,
            fruitless: 0,
            auth_wait_until: None,
            outbox: Publish::new(config.publish_attempts_max, config.publish_load_events),
            posts: Posts::default(),
            stored: 0,
        }
    }

    pub(super) fn conn(&self) -> Option<ConnId> {
        self.session.any_conn()
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn options(&self) -> RelayOptions {
        self.options
    }

    fn dial(&self, ctx: &Ctx<'_>) -> Dial {
        let is_confined = |discovery: &Discovery| discovery.config().is_confined(&self.url);
        let is_ours = self.is_configured || self.peering.is_some() || !self.posts.is_empty();
        let public_only = !is_ours && ctx.discovery.as_ref().is_some_and(is_confined);
        let tls = self.peering.as_ref().map(|peering| peering.terms.tls.clone());
        Dial { url: self.url.clone(), frame_bytes_max: ctx.config.frame_bytes_max, public_only, tls }
    }

    /// Whose an event is that comes for this.
    fn source(&self, history: HistoryId) -> Source {
        Source { relay: self.number, history, era: self.era }
    }

    fn send(&mut self, ctx: &mut Ctx<'_>, conn: ConnId, frame: String) {
        self.counters.bytes_out += frame.len() as u64;
        ctx.out.push_back(Effect::Send { conn, frame });
    }

    fn note_error(&mut self, words: &str, kind: Option<FailureKind>, ctx: &Ctx<'_>) {
        let words = clip(words, ctx.config.words_bytes_max).to_owned();
        self.last_error = Some(LastError { words, at_secs: ctx.now.unix_secs, kind });
    }

    /// Something useful came.
    fn record_useful(&mut self, ctx: &Ctx<'_>) {
        self.session.unsolicited_bytes = 0;
        if self.is_refusing(ctx) {
            return;
        }
        self.health.record_useful(ctx.now.instant);
        self.failure = None;
    }

    /// Has a peer refused our authentication, and not accepted it since? Whatever else it does, it is failing then, until
    /// it has gone on for long enough without asking for it.
    fn is_refusing(&mut self, ctx: &Ctx<'_>) -> bool {
        if self.peering.is_none() || self.auth_refused.is_none() {
            return false;
        }
        if self.session.connected_at + ctx.config.stable_after <= ctx.now.instant {
            self.auth_refused = None;
        }
        self.auth_refused.is_some()
    }

    /// Something was brought to its end, and will not have to be asked for again. Events alone are no progress: a
    /// relay that always breaks off inside a page would be asked for that page for ever.
    fn record_progress(&mut self) {
        self.cooldowns = 0;
        self.fruitless = 0;
    }

    /// The relay has served a request, or taken an event: it lets us. That it answers in a reconciliation shows less, as
    /// one that it breaks off is begun anew.
    fn record_served(&mut self) {
        self.record_progress();
        self.session.auth.futile = 0;
    }

    /// What became of an event of this relay.
    pub(super) fn handle_settled(&mut self, source: Source, settled: Settled) {
        if let Some(history) = self.histories.get_mut(&source.history) {
            history.unsettled = history.unsettled.saturating_sub(1);
        }
        match settled {
            Settled::Committed(Outcome::Stored) => {
                self.counters.stored += 1;
                self.stored += 1;
            }
            Settled::Committed(Outcome::Duplicate) | Settled::Known => self.counters.duplicate += 1,
            Settled::Committed(_) => self.counters.unwanted += 1,
            Settled::WouldStore => self.counters.would_store += 1,
            Settled::Forbidden => self.counters.forbidden += 1,
            Settled::Invalid(id, _) => {
                self.counters.invalid += 1;
                self.budget.doubt_pages();
                if let Some(history) = self.histories.get_mut(&source.history) {
                    history.handle_invalid(id);
                }
            }
        }
    }

    /// A coverage mark of this relay is durable.
    pub(super) fn handle_marked(&mut self, source: Source) {
        if let Some(history) = self.histories.get_mut(&source.history) {
            history.handle_marked();
        }
    }

    /// Ends histories that are through, and begins those that waited for room.
    fn settle_histories(&mut self, ctx: &mut Ctx<'_>) {
        for history in self.histories.values_mut() {
            history.advance(&self.budget, ctx.config);
        }
        let done: Vec<HistoryId> =
            self.histories.iter().filter(|(_, history)| history.stage() == Stage::Done).map(|(id, _)| *id).collect();
        let is_some_done = !done.is_empty();
        for id in done {
            let Some(history) = self.histories.remove(&id) else { continue };
            self.close_requests_of(id, ctx);
            self.methods.extend(&history.methods);
            self.relied_on_secs = [self.relied_on_secs, history.relied_on_secs()].into_iter().flatten().min();
            self.progress.confirm(&history.pack);
            self.consolidation_due = true;
            self.plan_after(&history, ctx);
            for gap in history.gaps {
                self.add_gap(gap, ctx.config);
            }
            ctx.items.prune(ctx.now.instant);
        }
        if is_some_done && self.is_settled() {
            self.moments.sync_completed_secs = Some(ctx.now.unix_secs);
        }
    }

    fn add_gap(&mut self, gap: Gap, config: &Config) {
        if self.gaps.len() < config.gaps_max {
            self.gaps.push(gap);
        } else {
            *self.gaps_dropped.entry(gap.filter).or_default() += 1;
        }
    }

    /// Forgets what was found lacking of a filter, as it is looked at again or not wanted any more.
    fn forget_gaps(&mut self, key: &FilterKey) {
        self.gaps.retain(|gap| gap.filter != *key);
        self.gaps_dropped.remove(key);
    }

    /// Everything under way becomes a gap.
    pub(super) fn give_up_histories(&mut self, reason: &GapReason, ctx: &mut Ctx<'_>) {
        while !self.waiting.is_empty() {
            self.begin_history(ctx);
        }
        for history in self.histories.values_mut() {
            history.give_up(reason);
        }
    }

    /// Is nothing wanted here, and nothing under way, so that the relay can be forgotten?
    pub(super) fn is_forgettable(&self, now: Instant, config: &Config) -> bool {
        let is_long_gone = self.disconnected_at.is_none_or(|at| now - at > config.quick_reconnect_max);
        !self.is_configured
            && self.peering.is_none()
            && self.packs.is_empty()
            && self.is_done()
            && self.conn().is_none()
            && is_long_gone
    }

    /// Has every history come to its end?
    fn is_settled(&self) -> bool {
        self.packs.unpacked() == 0 && self.progress.is_settled() && self.histories.is_empty() && self.waiting.is_empty()
    }

    /// Is nothing left to do here, for good?
    pub(super) fn is_done(&self) -> bool {
        let is_over = self.given_up || !self.is_live() || self.packs.is_empty();
        self.is_settled() && is_over && !self.posts.need_connection()
    }

    fn phase(&self, ctx_now: Instant) -> Phase {
        use crate::relay::session::Link;
        let is_settled = self.is_settled();
        match self.session.link {
            _ if self.is_done() => Phase::Done,
            _ if self.health.cooldown(ctx_now).is_some() => Phase::Cooldown,
            Link::Down => Phase::Waiting,
            Link::Connecting { .. } | Link::Proving { .. } => Phase::Connecting,
            Link::Up { .. } if is_settled && self.is_unserved() => Phase::Polling,
            Link::Up { .. } if is_settled => Phase::Live,
            Link::Up { .. } => Phase::Syncing,
        }
    }

    pub(super) fn report(&self, now: Instant, config: &Config) -> RelayReport {
        let open_gaps = self.histories.values().flat_map(|history| &history.gaps);
        let gaps: Vec<Gap> = self.gaps.iter().chain(open_gaps).cloned().collect();
        let methods = self.methods.iter().chain(self.histories.values().flat_map(|history| &history.methods));
        RelayReport {
            relay: self.url.clone(),
            phase: self.phase(now),
            health: self.health.state(now, config),
            connected: self.session.conn().is_some(),
            failures: self.health.failures(),
            next_try_secs: self.health.blocked_until(now).map(|at| (at - now).as_secs()),
            live_refused: self.lives.iter().find_map(|(_, live)| live.last_refusal.clone()),
            methods: methods.copied().collect::<BTreeSet<_>>().into_iter().collect(),
            fallbacks: self.fallbacks.clone(),
            relied_on_secs: self.relied_on_secs,
            counters: self.counters.clone(),
            complete: self.is_settled() && gaps.is_empty() && self.gaps_dropped.is_empty() && self.denied.is_empty(),
            gaps,
            gaps_dropped: self.gaps_dropped.values().sum(),
            last_error: self.last_error.as_ref().map(|error| error.words.clone()),
            last_error_secs: self.last_error.as_ref().map(|error| error.at_secs),
            last_error_kind: self.last_error.as_ref().and_then(|error| error.kind),
            failure: self.failure,
            auth_refused: self.auth_refused.clone(),
            denied: self.denied_in_words(),
            moments: self.moments,
        }
    }

    /// What this relay holds.
    pub(super) fn add_sizes(&self, sizes: &mut Sizes) {
        sizes.history_ids += self.histories.values().map(History::ids).sum::<usize>();
        sizes.outbox_events += self.outbox.left() + self.posts.len();
        sizes.histories += self.histories.len();
        sizes.histories_waiting += self.waiting.len();
        sizes.subscriptions += self.session.subscriptions().count();
        sizes.gaps += self.gaps.len() + self.histories.values().map(|history| history.gaps.len()).sum::<usize>();
    }

    /// Begins all interests anew, for a full pass or after events came from elsewhere that this relay is to get.
    pub(super) fn restart(&mut self, ctx: &mut Ctx<'_>) {
        if self.given_up {
            return;
        }
        self.progress.clear();
        for pack in self.progress.target() {
            ctx.items.forget(pack.key());
        }
        self.waiting.extend(self.progress.begin_new());
    }

    /// Stops reading from a relay whose events come faster than they are checked, and resumes.
    pub(super) fn apply_backpressure(&mut self, ctx: &mut Ctx<'_>) {
        let Some(conn) = self.session.conn() else { return };
        let held = ctx.pipeline.bytes_of(self.number);
        let reading = if self.session.reading {
            held <= ctx.config.ingest_bytes_max
        } else {
            held <= ctx.config.ingest_bytes_max / 2
        };
        if reading != self.session.reading {
            self.session.reading = reading;
            if reading {
                self.excuse_silence(ctx.now.instant);
            }
            ctx.out.push_back(Effect::SetReading { conn, reading });
        }
    }

    /// Nothing could be heard for a while: whatever the relay owes is awaited from now on.
    fn excuse_silence(&mut self, now: Instant) {
        self.session.excuse_silence(now);
        self.histories.values_mut().for_each(|history| history.publish_mut().excuse_silence(now));
        self.outbox.excuse_silence(now);
    }

    fn close(&mut self, reason: CloseReason, ctx: &mut Ctx<'_>) {
        if let Some(conn) = self.session.any_conn() {
            ctx.out.push_back(Effect::Close { conn, reason });
        }
        self.lose_connection(ctx);
    }
}
