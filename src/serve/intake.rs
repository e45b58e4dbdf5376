//! The write path: verify → judge → commit, in order, grouped. Whoever wants events stored, a client or a sync, hands
//! them to an [`Intake`] with a note of where they came from, and gets that note back with the outcome.
//!
//! At most one batch is being verified and one being judged or committed; meanwhile the next one gathers. So the order
//! of arrival is the order of effect, all cores verify, and one transaction carries as many events as came meanwhile. A
//! batch is judged only when the one before it is committed: what an event says of those behind it is known by then.
//!
//! Who may write what can change while events are on their way, so it is asked again right before each step that takes
//! effect: nothing is committed that may not be written at that moment.

use std::collections::VecDeque;

use super::io::{Ticket, Tickets, WorkFault};
use crate::ingest::{Admission, Invalid, Verdict, Verified};
use crate::protocol::Event;
use crate::store::{Batch, Outcome, RequestContext};

/// Events on their way into the store; `O` says where each came from.
#[derive(Debug)]
pub struct Intake<O> {
    batch_events_max: usize,
    /// Is somebody to be asked whether events are wanted?
    is_judged: bool,
    waiting: VecDeque<(Event, O)>,
    verifying: Option<(Ticket, Vec<O>)>,
    verified: Genuine<O>,
    deciding: Deciding<O>,
}

/// The batch that is ahead of all others.
#[derive(Debug)]
enum Deciding<O> {
    Nothing,
    Judging(Ticket, Genuine<O>),
    /// Nobody objects, or is to be asked; to be committed.
    Cleared(Genuine<O>),
    Committing(Ticket, Genuine<O>),
}

type Genuine<O> = Vec<(Verified<Event>, O)>;

/// What an [`Intake`] needs done next.
#[derive(Debug)]
pub enum IntakeWork<O> {
    /// Check ids and signatures.
    Verify(Ticket, Vec<Event>),
    /// Ask whether they are wanted.
    Judge(Ticket, Vec<Verified<Event>>),
    /// Commit.
    Commit(Ticket, Batch),
    /// Nothing: the way of these has ended, as they may not be written any more.
    Settled(Vec<(O, Settled)>),
}

/// How the way of one event ended.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are of the large one (on 64 bits), and live for one pass of a loop"
)]
pub enum Settled {
    /// It went through the store.
    Committed(Verified<Event>, Outcome),
    /// It is not genuine.
    Invalid(Invalid),
    /// It was held, or remembered as gone, before its signature was looked at.
    Known,
    /// It is not wanted, in words that begin with a machine-readable prefix (NIP-01).
    Unwanted(String),
    /// Nobody could say whether it is wanted.
    Unjudged,
    /// Whoever sent it may not write it any more.
    Forbidden,
    /// It could not be checked or stored.
    Failed,
}

impl<O> Intake<O> {
    /// An intake that verifies and commits so many events at a time. With `is_judged`, each batch is judged in between.
    pub fn new(batch_events_max: usize, is_judged: bool) -> Self {
        Self {
            batch_events_max: batch_events_max.max(1),
            is_judged,
            waiting: VecDeque::new(),
            verifying: None,
            verified: Vec::new(),
            deciding: Deciding::Nothing,
        }
    }

    /// Takes an event.
    pub fn push(&mut self, event: Event, origin: O) {
        self.waiting.push_back((event, origin));
    }

    /// Is nothing on its way?
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
            && self.verifying.is_none()
            && self.verified.is_empty()
            && matches!(self.deciding, Deciding::Nothing)
    }

    /// Is a batch being committed, so that readers of the store may see it before its outcomes are known here?
    pub fn is_committing(&self) -> bool {
        matches!(self.deciding, Deciding::Committing(..))
    }

    /// The next piece of work that can begin now. Call until `None`. `admit` is asked of each event before it is judged,
    /// and again before it is committed.
    pub fn next_work(
        &mut self,
        tickets: &mut Tickets,
        now_secs: u64,
        admit: impl Fn(&Event, &O) -> Admission,
    ) -> Option<IntakeWork<O>> {
        self.next_decision(tickets, now_secs, admit).or_else(|| self.next_check(tickets))
    }

    fn next_decision(
        &mut self,
        tickets: &mut Tickets,
        now_secs: u64,
        admit: impl Fn(&Event, &O) -> Admission,
    ) -> Option<IntakeWork<O>> {
        let (batch, is_cleared) = match std::mem::replace(&mut self.deciding, Deciding::Nothing) {
            Deciding::Cleared(batch) => (batch, true),
            Deciding::Nothing if self.verified.is_empty() => return None,
            Deciding::Nothing => (std::mem::take(&mut self.verified), !self.is_judged),
            busy => {
                self.deciding = busy;
                return None;
            }
        };
        let is_forbidden = |(event, origin): &(Verified<Event>, O)| admit(event, origin) == Admission::Forbidden;
        let (forbidden, batch): (Genuine<O>, Genuine<O>) = batch.into_iter().partition(is_forbidden);
        if !forbidden.is_empty() {
            match is_cleared {
                _ if batch.is_empty() => {}
                true => self.deciding = Deciding::Cleared(batch),
                false => self.verified = batch,
            }
            let settled = forbidden.into_iter().map(|(_, origin)| (origin, Settled::Forbidden)).collect();
            return Some(IntakeWork::Settled(settled));
        }
        let ticket = tickets.issue();
        let events = batch.iter().map(|(event, _)| event.clone()).collect();
        if !is_cleared {
            self.deciding = Deciding::Judging(ticket, batch);
            return Some(IntakeWork::Judge(ticket, events));
        }
        let context = |(event, origin): &(Verified<Event>, O)| match admit(event, origin) {
            Admission::Brought(peer) => Some((event.id.to_bytes(), RequestContext { peer, at_secs: now_secs })),
            Admission::Free | Admission::Forbidden => None,
        };
        let contexts = batch.iter().filter_map(context).collect();
        self.deciding = Deciding::Committing(ticket, batch);
        Some(IntakeWork::Commit(ticket, Batch { events, contexts, now_secs, ..Batch::default() }))
    }

    fn next_check(&mut self, tickets: &mut Tickets) -> Option<IntakeWork<O>> {
        let room = self.batch_events_max.saturating_sub(self.verified.len());
        if self.verifying.is_none() && !self.waiting.is_empty() && room > 0 {
            let ticket = tickets.issue();
            let (events, origins) = self.waiting.drain(..room.min(self.waiting.len())).unzip();
            self.verifying = Some((ticket, origins));
            return Some(IntakeWork::Verify(ticket, events));
        }
        None
    }

    /// Takes the verdicts of a batch; gives back those whose way has ended.
    pub fn verified(&mut self, ticket: Ticket, verdicts: Result<Vec<Verdict>, WorkFault>) -> Vec<(O, Settled)> {
        let Some((_, origins)) = self.verifying.take_if(|(awaited, _)| *awaited == ticket) else {
            return Vec::new();
        };
        let mut verdicts = verdicts.unwrap_or_default().into_iter();
        let mut settled = Vec::new();
        for origin in origins {
            match verdicts.next() {
                Some(Verdict::Valid(event)) => self.verified.push((event, origin)),
                Some(Verdict::Invalid(invalid)) => settled.push((origin, Settled::Invalid(invalid))),
                Some(Verdict::Known) => settled.push((origin, Settled::Known)),
                None => settled.push((origin, Settled::Failed)),
            }
        }
        settled
    }

    /// Takes the objections to the events of a batch, in order, each the reason to refuse one; gives back those whose
    /// way has ended. What is `beyond` judgement goes on all the same.
    pub fn judged(
        &mut self,
        ticket: Ticket,
        objections: Result<Vec<Option<String>>, WorkFault>,
        beyond: impl Fn(&Event) -> bool,
    ) -> Vec<(O, Settled)> {
        let batch = match std::mem::replace(&mut self.deciding, Deciding::Nothing) {
            Deciding::Judging(awaited, batch) if awaited == ticket => batch,
            other => {
                self.deciding = other;
                return Vec::new();
            }
        };
        let mut objections = objections.unwrap_or_default().into_iter();
        let (mut cleared, mut settled) = (Vec::with_capacity(batch.len()), Vec::new());
        for (event, origin) in batch {
            match objections.next() {
                _ if beyond(&event) => cleared.push((event, origin)),
                Some(None) => cleared.push((event, origin)),
                Some(Some(reason)) => settled.push((origin, Settled::Unwanted(reason))),
                None => settled.push((origin, Settled::Unjudged)),
            }
        }
        if !cleared.is_empty() {
            self.deciding = Deciding::Cleared(cleared);
        }
        settled
    }

    /// Takes the outcomes of a batch; gives back all of its events.
    pub fn committed(&mut self, ticket: Ticket, outcomes: Result<Vec<Outcome>, WorkFault>) -> Vec<(O, Settled)> {
        let batch = match std::mem::replace(&mut self.deciding, Deciding::Nothing) {
            Deciding::Committing(awaited, batch) if awaited == ticket => batch,
            other => {
                self.deciding = other;
                return Vec::new();
            }
        };
        let mut outcomes = outcomes.unwrap_or_default().into_iter();
        let settle = |(event, origin)| match outcomes.next() {
            Some(outcome) => (origin, Settled::Committed(event, outcome)),
            None => (origin, Settled::Failed),
        };
        batch.into_iter().map(settle).collect()
    }
}
