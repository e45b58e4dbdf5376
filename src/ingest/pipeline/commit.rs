//! Batches: made of what is ready, judged once more, committed one at a time.

use std::collections::BTreeMap;

use super::{Admission, Checking, Committing, Outcomes, Pipeline, Ready, Settled, Slip, Source, Work};
use crate::engine::{Config, Ticket, Tickets};
use crate::ingest::Verdict;
use crate::protocol::Event;
use crate::runtime::Now;
use crate::store::{Batch, Coverage, Outcome, RequestContext};

impl Pipeline {
    pub(super) fn poll_commit(
        &mut self,
        now: Now,
        config: &Config,
        tickets: &mut Tickets,
        admit: impl Fn(Source, &Event) -> Admission,
    ) -> Option<Work> {
        if self.committing.is_some() || self.ready.is_empty() {
            return None;
        }
        let since = *self.ready_since.get_or_insert(now.instant);
        let hurry = self.hurry && self.queue.is_empty() && self.checking.is_empty();
        if !hurry && self.ready_events < config.commit_events_min && now.instant < since + config.commit_delay {
            return None;
        }
        let (batch, committing) = self.take_ready(now, config, tickets, admit);
        self.ready_since = if self.ready.is_empty() { None } else { Some(now.instant) };
        self.hurry &= !hurry;
        if committing.events.is_empty() && committing.marks.is_empty() {
            return self.at_hand.pop_front();
        }
        let ticket = committing.ticket;
        self.committing = Some(committing);
        Some(Work::Commit(ticket, batch))
    }

    /// Takes as much of what is ready as goes into a batch.
    fn take_ready(
        &mut self,
        now: Now,
        config: &Config,
        tickets: &mut Tickets,
        admit: impl Fn(Source, &Event) -> Admission,
    ) -> (Batch, Committing) {
        let mut batch = Batch { now_secs: now.unix_secs, ..Batch::default() };
        let (mut events, mut marks, mut kept) = (Vec::new(), Vec::new(), BTreeMap::new());
        while batch.events.len() < config.commit_events_max.max(1) {
            match self.ready.pop_front() {
                Some(Ready::Event(source, event, bytes)) => {
                    self.ready_events -= 1;
                    let id = event.id.to_bytes();
                    match admit(source, &event) {
                        Admission::Forbidden if self.forbid(source, id, bytes, tickets) => break,
                        Admission::Forbidden => continue,
                        Admission::Brought(peer) => {
                            batch.contexts.insert(id, RequestContext { peer, at_secs: now.unix_secs });
                        }
                        Admission::Free => {}
                    }
                    if self.keep.wants(&event) {
                        kept.insert(events.len(), event.clone().into_inner());
                    }
                    events.push((source, id, bytes));
                    batch.events.push(event);
                }
                Some(Ready::Mark(source, mark)) => {
                    // A later mark of the same relay and filter says all that an earlier one does.
                    batch
                        .coverage
                        .retain(|earlier: &Coverage| earlier.relay != mark.relay || earlier.filter != mark.filter);
                    batch.coverage.push(mark);
                    marks.push(source);
                }
                None => break,
            }
        }
        (batch, Committing { ticket: tickets.next(), events, kept, marks })
    }

    /// Who brought this may not write it. Copies of it that others brought are checked in its place: then everything
    /// that is ready stays behind them, and the answer is yes.
    fn forbid(&mut self, source: Source, id: [u8; 32], bytes: usize, tickets: &mut Tickets) -> bool {
        self.settle(source, bytes);
        let outcomes = Outcomes { events: vec![(source, Settled::Forbidden)], ..Outcomes::default() };
        self.at_hand.push_back(Work::Settled(outcomes));
        let copies = self.next_copies(id);
        if copies.is_empty() {
            return false;
        }
        let rest = self.uncheck_ready(tickets);
        self.checking.push_front(rest);
        let work = self.check_first(copies, tickets);
        self.at_hand.push_back(work);
        true
    }

    /// All that is ready, as a batch that has been checked.
    fn uncheck_ready(&mut self, tickets: &mut Tickets) -> Checking {
        let (mut slips, mut verdicts) = (Vec::new(), Vec::new());
        for ready in self.ready.drain(..) {
            match ready {
                Ready::Event(source, event, bytes) => {
                    slips.push(Slip::Event { source, id: event.id.to_bytes(), bytes });
                    verdicts.push(Verdict::Valid(event));
                }
                Ready::Mark(source, mark) => slips.push(Slip::Mark(source, mark)),
            }
        }
        self.ready_events = 0;
        Checking { ticket: tickets.next(), slips, verdicts: Some(verdicts) }
    }

    /// Takes in the result of a commit.
    pub fn handle_committed(&mut self, ticket: Ticket, result: Result<Vec<Outcome>, String>) -> Outcomes {
        let mut outcomes = Outcomes::default();
        let Some(done) = self.committing.take_if(|commit| commit.ticket == ticket) else { return outcomes };
        match result {
            Ok(results) => {
                let mut kept = done.kept;
                for (place, ((source, id, bytes), outcome)) in done.events.into_iter().zip(results).enumerate() {
                    let event = kept.remove(&place).filter(|_| outcome == Outcome::Stored);
                    outcomes.stored.extend(event.map(|event| (source, event)));
                    outcomes.events.push((source, Settled::Committed(outcome)));
                    self.settle(source, bytes);
                    self.settle_copies(id, &mut outcomes);
                }
                outcomes.marks = done.marks;
            }
            Err(error) => {
                self.failed = true;
                outcomes.store_error = Some(error);
            }
        }
        outcomes
    }
}
