//! One history: everything that one filter selects at one relay, fetched once, to a typed result.
//!
//! The stages: what is held is loaded, the relay's events are fetched (by reconciliation or by pages), seconds that
//! overflow a page are got in other ways, what the relay lacks is published, and the proof is committed behind the
//! last event. Every stage ends in bounded time, if need be with a gap.

mod coverage;
mod ends;
mod parts;
mod stages;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub use ends::Answer;
pub use parts::{Ask, HistoryParts, Need, Stage};

use super::{Arrival, FullSecond, IdFetch, Page, Publish, Reconcile, Seen, Split};
use crate::engine::{Config, Direction, Gap, GapReason, HistoryId, RelayOptions};
use crate::plan::Pack;
use crate::protocol::filter::matches;
use crate::protocol::{Event, Filter, FilterKey, Item, ItemSet, RelayUrl, Window};
use crate::relay::{Budget, Purpose};
use crate::runtime::Instant;
use crate::store::{Method, Record};

/// The state of one history.
#[derive(Debug)]
pub struct History {
    /// Its number.
    pub id: HistoryId,
    /// What it fetches.
    pub pack: Pack,
    /// The relay wants authentication before it goes on.
    pub waits_for_auth: bool,
    /// Events given to the pipeline and not settled yet.
    pub unsettled: usize,
    /// What could not be proven.
    pub gaps: Vec<Gap>,
    /// Why reconciliation was not used, or no longer.
    pub fallback: Option<String>,
    /// The methods that brought something.
    pub methods: BTreeSet<Method>,
    relay: RelayUrl,
    filter: Arc<Filter>,
    options: RelayOptions,
    rules: u64,
    stage: Stage,
    loading_asked: bool,
    set: Arc<ItemSet>,
    /// Windows to be paged.
    windows: VecDeque<Window>,
    /// Windows in which reconciliation finds no end, to be paged after it.
    unsettled_windows: VecDeque<Window>,
    page: Option<(Page, Window)>,
    reconcile: Option<Reconcile>,
    seconds: VecDeque<FullSecond>,
    split: Option<Split>,
    ids: IdFetch,
    unchecked: Vec<[u8; 32]>,
    checking: bool,
    /// Ids under which something came that is not genuine, and the number of the next attempt.
    forged: BTreeMap<[u8; 32], u8>,
    /// Ids of events that came and that nobody wants.
    unwanted: BTreeSet<[u8; 32]>,
    /// Has anything come that is not genuine?
    has_forged: bool,
    /// A negentropy reply that waits until downloads have caught up.
    held_reply: Option<(u64, Vec<u8>)>,
    close_reconciliation: Option<u64>,
    publish: Publish,
    /// What the relay has in the windows that were paged, gathered for `up`.
    relay_ids: Vec<[u8; 32]>,
    paged: Vec<Window>,
    proofs: coverage::Proofs,
    mark_due: bool,
    marks_on_the_way: u32,
    keeps_coverage: bool,
    /// The relay has refused reconciliation before, in these words.
    refused_before: Option<String>,
    /// How often a page had to be split because it came in no order.
    page_splits: usize,
    asked_at_secs: u64,
    stalls: u32,
    refusals: u32,
    changes: u32,
}

impl History {
    /// Begins.
    pub fn new(parts: HistoryParts, config: &Config) -> Self {
        Self {
            id: parts.id,
            waits_for_auth: false,
            unsettled: 0,
            gaps: Vec::new(),
            fallback: None,
            methods: BTreeSet::new(),
            relay: parts.relay,
            filter: parts.pack.filter(),
            pack: parts.pack,
            options: parts.options,
            rules: parts.rules,
            stage: Stage::Loading,
            loading_asked: false,
            set: Arc::default(),
            windows: parts.todo.windows.into(),
            unsettled_windows: VecDeque::new(),
            page: None,
            reconcile: None,
            seconds: VecDeque::new(),
            split: None,
            ids: IdFetch::new(config.ids_attempts_max),
            unchecked: Vec::new(),
            checking: false,
            forged: BTreeMap::new(),
            unwanted: BTreeSet::new(),
            has_forged: false,
            held_reply: None,
            close_reconciliation: None,
            publish: Publish::new(config.publish_attempts_max, config.publish_load_events),
            relay_ids: Vec::new(),
            paged: Vec::new(),
            proofs: coverage::Proofs::new(parts.todo.kept, parts.now_secs),
            mark_due: false,
            marks_on_the_way: 0,
            keeps_coverage: parts.options.direction.is_down() && !config.dry_run,
            refused_before: None,
            page_splits: 0,
            asked_at_secs: parts.now_secs,
            stalls: 0,
            refusals: 0,
            changes: 0,
        }
    }

    /// Where it stands.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The filter.
    pub fn filter(&self) -> &Arc<Filter> {
        &self.filter
    }

    /// Which way events go.
    pub fn direction(&self) -> Direction {
        self.options.direction
    }

    /// The number of the rules by which is decided what is wanted.
    pub fn rules(&self) -> u64 {
        self.rules
    }

    /// The filter's key.
    pub fn key(&self) -> &FilterKey {
        self.pack.key()
    }

    /// What the history needs of the store next, if anything.
    pub fn poll_need(&mut self, config: &Config) -> Option<Need> {
        match self.stage {
            Stage::Loading if !self.loading_asked => {
                self.loading_asked = true;
                return Some(Need::Items);
            }
            Stage::Done | Stage::Loading => return None,
            _ => {}
        }
        if !self.checking && !self.unchecked.is_empty() {
            self.checking = true;
            return Some(Need::Known(std::mem::take(&mut self.unchecked)));
        }
        if self.may_publish()
            && let Some(ids) = self.publish.poll_load(config.publish_in_flight_max)
        {
            return Some(Need::Events(ids));
        }
        if std::mem::take(&mut self.mark_due) {
            self.marks_on_the_way += 1;
            return Some(Need::Mark { coverage: self.coverage(), last: self.stage == Stage::Settling });
        }
        None
    }

    /// Takes in what is held, and decides on the method.
    pub fn handle_items(&mut self, set: Arc<ItemSet>, negentropy_refused: Option<&str>, config: &Config) {
        if self.stage != Stage::Loading {
            return;
        }
        self.stage = Stage::Fetching;
        self.set = set;
        self.refused_before = negentropy_refused.map(str::to_owned);
        let nothing_to_send = self.options.direction == Direction::Up && self.set.is_empty();
        if nothing_to_send || Window::of(self.filter()).is_empty() {
            self.windows.clear();
            return;
        }
        let wanted = match self.options.method {
            Some(method) => method == Method::Negentropy,
            // Nothing held, nothing to compare: paging brings every event without naming its id twice. With a tenth held,
            // comparing costs about as much CPU and a sixth more bytes, with half held a seventh less CPU and a quarter
            // less bytes, with all held next to nothing (`benches/sync` prints the table). How much the relay has is
            // not known beforehand, so as soon as anything is held, it is compared.
            None => !self.set.is_empty(),
        };
        match negentropy_refused {
            Some(words) if wanted && self.options.method.is_none() => self.fallback = Some(words.to_owned()),
            // Comparing is cheap: it covers all of the filter, proven lately or not. The windows that are left to be
            // paged are kept in case the relay refuses.
            _ if wanted => {
                let window = Window::of(self.filter());
                self.reconcile = Some(Reconcile::new(self.set.clone(), window, config.negentropy_window_items));
            }
            _ => {}
        }
    }

    /// Where events come down, too, those that go up are loaded once all others are stored: what the relay's events
    /// supersede or delete is then held no more, and no relay takes it.
    fn may_publish(&self) -> bool {
        !self.options.direction.is_down() || self.stage >= Stage::Publishing && self.unsettled == 0
    }

    /// The next thing to send, if there is one. A subscription that is opened will be `subscription`; `room` says
    /// whether one may be, `may_have` whether the relay may have an event.
    pub fn poll_ask(
        &mut self,
        subscription: u64,
        room: bool,
        now: Instant,
        (budget, config): (&Budget, &Config),
        may_have: impl Fn(&Record) -> bool,
    ) -> Option<Ask> {
        if let Some(closing) = self.close_reconciliation.take() {
            return Some(Ask::NegClose(closing));
        }
        if self.ids.waiting() + self.unchecked.len() < config.ids_waiting_max
            && let Some((session, reply)) = self.held_reply.take()
        {
            return Some(Ask::NegMsg(session, reply));
        }
        if self.waits_for_auth {
            return None;
        }
        if let Some(record) = self.publish.poll_send(now, config.publish_in_flight_max, may_have) {
            return Some(Ask::Event(record));
        }
        if !room {
            return None;
        }
        if let Some(ids) = self.ids.poll_ask(subscription, budget, config.ids_in_flight_max) {
            return Some(Ask::Ids(ids));
        }
        match self.stage {
            Stage::Fetching | Stage::Seconds => self.poll_fetch(budget, config),
            _ => None,
        }
    }

    fn poll_fetch(&mut self, budget: &Budget, config: &Config) -> Option<Ask> {
        let filter = self.filter.clone();
        if let Some(reconcile) = &mut self.reconcile {
            let (filter, message) = reconcile.poll_ask(&filter, budget.negentropy_frame_bytes_max())?;
            return Some(Ask::NegOpen(filter, message));
        }
        if let Some(split) = &mut self.split {
            return split.poll_ask(&filter).map(|filter| Ask::Req(Purpose::Split, filter));
        }
        if self.stage == Stage::Seconds {
            let full = self.seconds.pop_front()?;
            let mut split = Split::new(full, config.page_events_raised, config.split_requests_max);
            // A relay that gave less than was asked has a cap: a higher limit is no use.
            if split.seen().len() < budget.page_events() {
                self.split = Some(split);
                self.after_raise(None);
                return self.poll_fetch(budget, config);
            }
            let ask = split.poll_ask(&filter).map(|filter| Ask::Req(Purpose::Split, filter));
            self.split = Some(split);
            return ask;
        }
        if self.page.is_none() {
            let window = self.windows.pop_front()?;
            self.paged.push(window);
            let news_since_secs = self.asked_at_secs.saturating_sub(config.overlap_secs);
            self.page = Some((Page::new(window).with_news_since(news_since_secs), window));
        }
        let (page, _) = self.page.as_mut()?;
        page.poll_ask(&filter, budget).map(|filter| Ask::Req(Purpose::Page, filter))
    }

    /// An event that satisfies the filter came on a subscription of this history.
    pub fn handle_event(&mut self, subscription: u64, purpose: Purpose, event: &Event) -> Arrival {
        let seen = Seen::of(event);
        let arrival = match purpose {
            Purpose::Ids => {
                let arrival = self.ids.handle_event(subscription, &seen.id);
                if arrival != Arrival::Unasked
                    && arrival != Arrival::Copy
                    && let Some(reconcile) = &mut self.reconcile
                {
                    reconcile.handle_arrival(Item { created_at: seen.created_at, id: seen.id });
                }
                return arrival;
            }
            Purpose::Page => {
                if let Some(full) = self.seconds.back_mut().filter(|full| seen.created_at < full.second) {
                    full.below = full.below.max(Some(seen.created_at));
                }
                self.page.as_mut().map(|(page, _)| page.handle_event(seen))
            }
            Purpose::Split => self.split.as_mut().map(|split| split.handle_event(seen)),
            Purpose::Live | Purpose::Negentropy | Purpose::Probe => None,
        };
        if arrival == Some(Arrival::New) && self.options.direction.is_up() {
            self.relay_ids.push(seen.id);
        }
        arrival.unwrap_or(Arrival::Unasked)
    }

    /// An event that does not satisfy the filter came. If that is for its date alone, the relay ignores `until`.
    pub fn handle_mismatch(&mut self, purpose: Purpose, event: &Event) {
        if purpose == Purpose::Page
            && let Some((page, _)) = &mut self.page
            && matches(&Filter { until: None, ..Filter::clone(&self.filter) }, event)
        {
            page.handle_event(Seen::of(event));
        }
    }

    /// What came under this id is not wanted: it is not asked for again.
    pub fn handle_unwanted(&mut self, id: [u8; 32], config: &Config) {
        if self.unwanted.len() < config.answer_events_max {
            self.unwanted.insert(id);
        }
    }

    /// What this history got under this id is not genuine. Ids that were found by reconciliation are asked for again,
    /// unless a genuine copy has come from elsewhere; what came in a page has moved its cursor, and that is all.
    pub fn handle_invalid(&mut self, id: [u8; 32]) {
        self.has_forged = true;
        if let Some(reconcile) = &mut self.reconcile {
            reconcile.handle_invalid(id);
            *self.forged.entry(id).or_insert(1) += 1;
            self.unchecked.push(id);
        }
    }

    /// May a copy that came before the one at hand have been forged?
    pub fn may_have_forged(&self) -> bool {
        self.has_forged || self.unsettled > 0
    }

    /// Does it wait for the outcomes of events that it has handed over?
    pub fn waits_for_outcomes(&self) -> bool {
        self.unsettled > 0 && self.reconcile.as_ref().is_some_and(Reconcile::is_settling)
    }

    /// Events of the answer under way, as far as it is remembered.
    pub fn answer_events(&self, purpose: Purpose) -> usize {
        match purpose {
            Purpose::Page => self.page.as_ref().map_or(0, |(page, _)| page.answer_events()),
            Purpose::Split => self.split.as_ref().map_or(0, Split::answer_events),
            Purpose::Ids | Purpose::Live | Purpose::Negentropy | Purpose::Probe => 0,
        }
    }

    /// Ids that are remembered.
    pub fn ids(&self) -> usize {
        let page = self.page.as_ref().map_or(0, |(page, _)| page.ids());
        let seconds: usize = self.seconds.iter().map(|full| full.seen.len()).sum();
        let split = self.split.as_ref().map_or(0, Split::ids);
        let reconcile = self.reconcile.as_ref().map_or(0, Reconcile::ids);
        let downloads = self.unchecked.len() + self.ids.ids();
        page + seconds + split + reconcile + downloads + self.relay_ids.len() + self.publish.ids()
    }

    /// The answer to [`Need::Known`].
    pub fn handle_known(&mut self, ids: &[[u8; 32]], known: &[bool], config: &Config) -> u64 {
        self.checking = false;
        if self.stage >= Stage::Settling {
            return 0;
        }
        let unknown = ids.iter().zip(known).filter(|(_, known)| !**known).map(|(id, _)| *id);
        let unknown = unknown.filter(|id| !self.unwanted.contains(id));
        if config.dry_run {
            return unknown.count() as u64;
        }
        for id in unknown {
            match self.forged.get(&id) {
                Some(attempt) => self.ids.want_again(id, *attempt),
                None => self.ids.want(id),
            }
        }
        0
    }

    /// The answer to [`Need::Events`].
    pub fn handle_records(&mut self, records: Vec<Option<Record>>) {
        if self.stage < Stage::Settling {
            self.publish.handle_loaded(records);
        }
    }

    /// A mark of this history is durable.
    pub fn handle_marked(&mut self) {
        self.marks_on_the_way = self.marks_on_the_way.saturating_sub(1);
    }

    /// Are pages of it still to come?
    pub fn is_paging(&self) -> bool {
        self.page.is_some()
    }

    /// Is an event of this date one that the relay must have had when it was first asked?
    pub fn is_old_news(&self, created_at: u64, overlap_secs: u64) -> bool {
        created_at < self.asked_at_secs.saturating_sub(overlap_secs)
    }

    /// The relay has sent a stored event after it had said that this was all.
    pub fn note_early_eose(&mut self) {
        let window = Window::of(self.filter());
        if !self.gaps.iter().any(|gap| gap.reason == GapReason::EarlyEose) {
            self.gaps.push(Gap { filter: self.key().clone(), window, reason: GapReason::EarlyEose });
        }
    }

    /// The wall time, in seconds since 1970, as of which the oldest earlier proof holds that this history relies on for
    /// what it does not ask for again.
    pub fn relied_on_secs(&self) -> Option<u64> {
        self.proofs.relied_on_secs()
    }

    /// What this history sends.
    pub fn publish(&self) -> &Publish {
        &self.publish
    }

    /// What this history sends, to be changed.
    pub fn publish_mut(&mut self) -> &mut Publish {
        &mut self.publish
    }
}
