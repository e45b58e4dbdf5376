//! The queue between what relays send and what is durable.
//!
//! Everything keeps its order: events are checked in several batches at a time, but taken on in the order in which
//! they came, so a coverage mark that was queued behind events is committed with the last of them or later, never
//! earlier. An id counts as known only once it is committed: while the copy of one relay is being checked, copies of
//! others wait, and take its place if it turns out to be forged.

mod commit;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{Invalid, Keep, Verdict, Verified};
use crate::engine::{Config, HistoryId, Planted, Ticket, Tickets};
use crate::protocol::Event;
use crate::runtime::{Instant, Now};
use crate::store::{Batch, Coverage, Outcome};

/// Where an event or mark came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The relay's number in the engine.
    pub relay: usize,
    /// The history that asked for it.
    pub history: HistoryId,
    /// How often the relay has become another peer, or none, before it brought this.
    pub era: u32,
}

/// May an event be stored, and who has brought it?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// It may, and no peer has brought it.
    Free,
    /// It may, and the peer of this name has brought it.
    Brought(Arc<str>),
    /// Whoever brought it may not write it.
    Forbidden,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The store has decided.
    Committed(Outcome),
    /// It was known before; its signature was not looked at.
    Known,
    /// In a dry run: genuine and new.
    WouldStore,
    /// What came under this id is not genuine.
    Invalid([u8; 32], Invalid),
    /// Who brought it may not write it (any more).
    Forbidden,
}

/// Results since the last call, in order.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// What became of events.
    pub events: Vec<(Source, Settled)>,
    /// Of these, events that are stored now and were to be [kept](Keep).
    pub stored: Vec<(Source, Event)>,
    /// Marks that are durable now.
    pub marks: Vec<Source>,
    /// The store failed; what it was given is not held.
    pub store_error: Option<String>,
}

/// Work to hand out.
#[derive(Debug)]
pub enum Work {
    /// Check these.
    Verify {
        /// For the answer.
        ticket: Ticket,
        /// The events.
        events: Vec<Event>,
        /// May the store know some of them already?
        look_up: bool,
    },
    /// Commit this.
    Commit(Ticket, Batch),
    /// Nothing: this has come to its end without the store.
    Settled(Outcomes),
}

enum Entry {
    Event { source: Source, event: Event, look_up: bool },
    Mark(Source, Coverage),
}

/// What is left of an entry while its event is away being checked.
enum Slip {
    Event { source: Source, id: [u8; 32], bytes: usize },
    Mark(Source, Coverage),
}

/// A batch that is being checked. Marks travel along, to keep their place.
struct Checking {
    ticket: Ticket,
    slips: Vec<Slip>,
    verdicts: Option<Vec<Verdict>>,
}

enum Ready {
    Event(Source, Verified<Event>, usize),
    Mark(Source, Coverage),
}

/// A commit under way: what it is about, in order.
struct Committing {
    ticket: Ticket,
    events: Vec<(Source, [u8; 32], usize)>,
    /// By their place among the events.
    kept: BTreeMap<usize, Event>,
    marks: Vec<Source>,
}

/// The pipeline. See the module.
#[derive(Default)]
pub struct Pipeline {
    /// Which events are given back once they are stored.
    pub keep: Keep,
    queue: VecDeque<Entry>,
    queued_events: usize,
    checking: VecDeque<Checking>,
    ready: VecDeque<Ready>,
    ready_events: usize,
    ready_since: Option<Instant>,
    committing: Option<Committing>,
    /// Copies that wait for the outcome of an earlier copy with the same id.
    copies: BTreeMap<[u8; 32], Vec<(Source, Event)>>,
    /// Bytes of events of each relay that are anywhere in here.
    bytes: BTreeMap<usize, usize>,
    /// Events that are anywhere in here.
    events: usize,
    /// Somebody waits for the last of what was pushed.
    hurry: bool,
    failed: bool,
    /// Work that is to be handed out next.
    at_hand: VecDeque<Work>,
    /// In a dry run: the events that would be stored, as no store tells which have been counted already.
    would_store: BTreeSet<[u8; 32]>,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline")
            .field("queued", &self.queued_events)
            .field("ready", &self.ready_events)
            .finish_non_exhaustive()
    }
}

impl Pipeline {
    /// Takes an event in. With `look_up`, the store may know it already, and is asked before the signature is checked.
    pub fn push_event(&mut self, source: Source, event: Event, look_up: bool) {
        let (id, bytes) = (event.id.to_bytes(), event.json().len());
        *self.bytes.entry(source.relay).or_default() += bytes;
        self.events += 1;
        if let Some(waiting) = self.copies.get_mut(&id) {
            waiting.push((source, event));
            return;
        }
        self.copies.insert(id, Vec::new());
        self.queued_events += 1;
        self.queue.push_back(Entry::Event { source, event, look_up });
    }

    /// Takes a coverage mark in: it becomes durable with, or after, everything pushed before it.
    /// With `last`, nothing more will follow it, and a commit need not wait for more.
    pub fn push_mark(&mut self, source: Source, mark: Coverage, last: bool) {
        self.queue.push_back(Entry::Mark(source, mark));
        self.hurry |= last;
    }

    /// Somebody waits for the outcome of what was pushed: a commit need not wait for more.
    pub fn hurry(&mut self) {
        self.hurry = true;
    }

    /// Bytes of events of a relay that are not settled yet.
    pub fn bytes_of(&self, relay: usize) -> usize {
        self.bytes.get(&relay).copied().unwrap_or(0)
    }

    /// The events of the commit under way, and where they came from.
    pub fn committing(&self) -> impl Iterator<Item = (Source, [u8; 32])> {
        self.committing.iter().flat_map(|commit| commit.events.iter().map(|(source, id, _)| (*source, *id)))
    }

    /// Is this the commit under way?
    pub fn is_committing(&self, ticket: Ticket) -> bool {
        self.committing.as_ref().is_some_and(|commit| commit.ticket == ticket)
    }

    /// Events that are not settled yet.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Bytes of events that are not settled yet.
    pub fn bytes(&self) -> usize {
        self.bytes.values().sum()
    }

    /// Ids that are remembered: of events that are not settled yet, and in a dry run of those that were counted.
    pub fn ids(&self) -> usize {
        self.copies.len() + self.would_store.len()
    }

    /// Is everything settled?
    pub fn is_empty(&self) -> bool {
        let is_idle = self.at_hand.is_empty() && self.committing.is_none();
        is_idle && self.queue.is_empty() && self.checking.is_empty() && self.ready.is_empty()
    }

    /// When a batch that is not full is to be committed all the same.
    pub fn deadline(&self, config: &Config) -> Option<Instant> {
        self.ready_since.filter(|_| !self.failed && self.committing.is_none()).map(|since| since + config.commit_delay)
    }

    /// The next piece of work, if there is room for one. `admit` is asked for each event when its batch is made.
    pub fn poll(
        &mut self,
        now: Now,
        config: &Config,
        tickets: &mut Tickets,
        admit: impl Fn(Source, &Event) -> Admission,
    ) -> Option<Work> {
        if self.failed {
            return None;
        }
        if config.plants(Planted::CoverageFirst) {
            self.hasten_marks();
        }
        let at_hand = self.at_hand.pop_front();
        at_hand.or_else(|| self.poll_verify(config, tickets)).or_else(|| self.poll_commit(now, config, tickets, admit))
    }

    /// What marks of this relay that are on their way say does not hold any more.
    pub fn void_marks(&mut self, relay: usize) {
        let queued = self.queue.iter_mut().filter_map(|entry| match entry {
            Entry::Mark(source, mark) => Some((source, mark)),
            Entry::Event { .. } => None,
        });
        let slips = self.checking.iter_mut().flat_map(|checking| &mut checking.slips);
        let checking = slips.filter_map(|slip| match slip {
            Slip::Mark(source, mark) => Some((source, mark)),
            Slip::Event { .. } => None,
        });
        let ready = self.ready.iter_mut().filter_map(|ready| match ready {
            Ready::Mark(source, mark) => Some((source, mark)),
            Ready::Event(..) => None,
        });
        let all = queued.chain(checking).chain(ready);
        all.filter(|(source, _)| source.relay == relay).for_each(|(_, mark)| mark.windows.clear());
    }

    /// The fault of that name: marks overtake the events before them, and are committed at once.
    fn hasten_marks(&mut self) {
        for entry in std::mem::take(&mut self.queue) {
            match entry {
                Entry::Mark(source, mark) => {
                    self.ready.push_front(Ready::Mark(source, mark));
                    self.ready_since = Some(Instant::ZERO);
                }
                event => self.queue.push_back(event),
            }
        }
    }

    fn poll_verify(&mut self, config: &Config, tickets: &mut Tickets) -> Option<Work> {
        if self.queue.is_empty() || self.checking.len() >= config.verify_in_flight_max.max(1) {
            return None;
        }
        let (mut events, mut slips) =
            (Vec::with_capacity(self.queued_events.min(config.verify_events_max)), Vec::new());
        let mut looked_up = None;
        // A batch is looked up as a whole or not at all.
        let fits = |entry: &mut Entry, looked_up: Option<bool>| match entry {
            Entry::Event { look_up, .. } => looked_up.is_none_or(|before| before == *look_up),
            Entry::Mark(..) => true,
        };
        while events.len() < config.verify_events_max.max(1) {
            match self.queue.pop_front_if(|entry| fits(entry, looked_up)) {
                Some(Entry::Event { source, event, look_up }) => {
                    looked_up = Some(look_up);
                    self.queued_events -= 1;
                    slips.push(Slip::Event { source, id: event.id.to_bytes(), bytes: event.json().len() });
                    events.push(event);
                }
                Some(Entry::Mark(source, mark)) => slips.push(Slip::Mark(source, mark)),
                None => break,
            }
        }
        let ticket = tickets.next();
        let checked_already = events.is_empty();
        self.checking.push_back(Checking { ticket, slips, verdicts: checked_already.then(Vec::new) });
        if checked_already {
            // Only marks: nothing to check, but they keep their place behind the batches before them.
            let mut outcomes = Outcomes::default();
            self.take_on(None, config, &mut outcomes, tickets);
            debug_assert!(outcomes.events.is_empty());
            return None;
        }
        Some(Work::Verify { ticket, events, look_up: looked_up.unwrap_or(true) })
    }

    /// Takes in the result of a check.
    pub fn handle_verified(
        &mut self,
        ticket: Ticket,
        result: Result<Vec<Verdict>, String>,
        now: Instant,
        config: &Config,
        tickets: &mut Tickets,
    ) -> (Outcomes, Vec<Work>) {
        let mut outcomes = Outcomes::default();
        let Some(batch) = self.checking.iter_mut().find(|batch| batch.ticket == ticket) else {
            return (outcomes, Vec::new());
        };
        match result {
            Ok(verdicts) => batch.verdicts = Some(verdicts),
            Err(error) => {
                self.failed = true;
                outcomes.store_error = Some(error);
                return (outcomes, Vec::new());
            }
        }
        let again = self.take_on(Some(now), config, &mut outcomes, tickets);
        (outcomes, again)
    }

    /// Takes on checked batches from the front, as far as they are checked without a break.
    fn take_on(
        &mut self,
        now: Option<Instant>,
        config: &Config,
        outcomes: &mut Outcomes,
        tickets: &mut Tickets,
    ) -> Vec<Work> {
        let mut again = Vec::new();
        while self.checking.front().is_some_and(|batch| batch.verdicts.is_some()) {
            let Some(Checking { slips, verdicts: Some(verdicts), .. }) = self.checking.pop_front() else { break };
            let mut verdicts = verdicts.into_iter();
            let mut slips = VecDeque::from(slips);
            let mut taken = None;
            while let Some(slip) = slips.pop_front() {
                match slip {
                    Slip::Mark(source, mark) => self.ready.push_back(Ready::Mark(source, mark)),
                    Slip::Event { source, id, bytes } => {
                        let verdict = verdicts.next().unwrap_or(Verdict::Invalid(Invalid::Id));
                        let is_followed = matches!(slips.front(), Some(Slip::Event { id: next, .. }) if *next == id);
                        let is_taken = taken == Some(id);
                        let verdict = match (verdict, self.copies.get_mut(&id)) {
                            // Whoever brought the one that is taken may turn out not to be allowed to.
                            (Verdict::Valid(event), Some(waiting)) if is_taken => {
                                waiting.push((source, event.into_inner()));
                                continue;
                            }
                            (verdict, _) => verdict,
                        };
                        if let Some(settled) = settle_copy(id, &verdict, is_taken, is_followed) {
                            outcomes.events.push((source, settled));
                            self.settle(source, bytes);
                            continue;
                        }
                        taken = matches!(verdict, Verdict::Valid(_)).then_some(id);
                        let replacements = self.take_verdict(source, id, bytes, verdict, config, outcomes);
                        if !replacements.is_empty() {
                            // The rest of this batch must stay behind the copy that now takes the forged one's place.
                            let rest = Checking {
                                ticket: tickets.next(),
                                slips: slips.into(),
                                verdicts: Some(verdicts.collect()),
                            };
                            self.checking.push_front(rest);
                            again.push(self.check_first(replacements, tickets));
                            break;
                        }
                    }
                }
            }
        }
        if self.ready_since.is_none() && !self.ready.is_empty() {
            self.ready_since = now;
        }
        again
    }

    /// Puts copies in the front, to be checked before everything else goes on.
    fn check_first(&mut self, copies: Vec<(Source, Event)>, tickets: &mut Tickets) -> Work {
        let ticket = tickets.next();
        let slip = |(source, event): &(Source, Event)| Slip::Event {
            source: *source,
            id: event.id.to_bytes(),
            bytes: event.json().len(),
        };
        let slips = copies.iter().map(slip).collect();
        self.checking.push_front(Checking { ticket, slips, verdicts: None });
        Work::Verify { ticket, events: copies.into_iter().map(|(_, event)| event).collect(), look_up: true }
    }

    /// In a dry run: is this event new, and not counted before?
    fn is_first(&mut self, id: [u8; 32], config: &Config) -> bool {
        if self.would_store.len() < config.dry_run_ids_max {
            self.would_store.insert(id)
        } else {
            !self.would_store.contains(&id)
        }
    }

    /// Deals with one verdict. Gives back the copies that are to be checked instead, if the event was forged.
    fn take_verdict(
        &mut self,
        source: Source,
        id: [u8; 32],
        bytes: usize,
        verdict: Verdict,
        config: &Config,
        outcomes: &mut Outcomes,
    ) -> Vec<(Source, Event)> {
        match verdict {
            Verdict::Valid(_) if config.dry_run => {
                let settled = if self.is_first(id, config) { Settled::WouldStore } else { Settled::Known };
                outcomes.events.push((source, settled));
                self.settle(source, bytes);
                self.settle_copies(id, outcomes);
            }
            Verdict::Valid(event) => {
                self.ready_events += 1;
                self.ready.push_back(Ready::Event(source, event, bytes));
            }
            Verdict::Known => {
                outcomes.events.push((source, Settled::Known));
                self.settle(source, bytes);
                self.settle_copies(id, outcomes);
            }
            Verdict::Invalid(why) => {
                outcomes.events.push((source, Settled::Invalid(id, why)));
                self.settle(source, bytes);
                if config.plants(Planted::SeenBeforeCommit) {
                    self.settle_copies(id, outcomes);
                }
                return self.next_copies(id);
            }
        }
        Vec::new()
    }

    /// The copies to be checked in place of a forged one: all at once, for a relay can send thousands of forgeries
    /// under one id, and everybody waits while they are checked.
    fn next_copies(&mut self, id: [u8; 32]) -> Vec<(Source, Event)> {
        let waiting = self.copies.get_mut(&id).map(std::mem::take).unwrap_or_default();
        if waiting.is_empty() {
            self.copies.remove(&id);
        }
        waiting
    }

    fn settle(&mut self, source: Source, bytes: usize) {
        if let Some(held) = self.bytes.get_mut(&source.relay) {
            *held = held.saturating_sub(bytes);
        }
        self.events = self.events.saturating_sub(1);
    }

    /// The first copy is settled: those that waited for it are duplicates.
    fn settle_copies(&mut self, id: [u8; 32], outcomes: &mut Outcomes) {
        for (source, event) in self.copies.remove(&id).unwrap_or_default() {
            outcomes.events.push((source, Settled::Known));
            self.settle(source, event.json().len());
        }
    }
}

/// What becomes of a copy in a batch of copies of one event: one that is genuine is enough, and a forged one is made up
/// for by the next.
fn settle_copy(id: [u8; 32], verdict: &Verdict, is_taken: bool, is_followed: bool) -> Option<Settled> {
    match verdict {
        Verdict::Valid(_) if is_taken => Some(Settled::Known),
        Verdict::Invalid(why) if is_taken || is_followed => Some(Settled::Invalid(id, *why)),
        _ => None,
    }
}
