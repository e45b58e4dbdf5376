//! How each filter stands at each relay, told whenever that changes, to embedders that want to know.

use super::{Effect, Engine, Gap, Notice, Phase, RelayReport, Ticket};
use crate::ingest::Source;
use crate::protocol::{FilterKey, RelayUrl};
use crate::store::{Coverage, Outcome};

/// How things stand at one relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// All of it.
    pub report: RelayReport,
    /// Has everything that is wanted come to its end, with or without gaps, and has discovery nothing more to hand out?
    pub settled: bool,
    /// Up to when, in seconds since 1970, all that is followed there was followed without a break, if it was.
    pub followed_secs: Option<u64>,
    /// The caller's filters, one by one; those that discovery makes are in the report alone.
    pub filters: Vec<FilterStanding>,
}

/// How one of the caller's filters stands at one relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterStanding {
    /// The filter.
    pub filter: FilterKey,
    /// It was fetched, or given up, and is not looked at again at the moment.
    pub settled: bool,
    /// What could not be proven complete.
    pub gaps: Vec<Gap>,
    /// Gaps beyond the number kept.
    pub gaps_dropped: u64,
    /// The access rules keep some of it from being synced.
    pub denied: bool,
    /// Up to when, in seconds since 1970, what is dated newest is proven: as of when the relay was asked, or up to when it
    /// was followed since. `None` while nothing is.
    pub followed_secs: Option<u64>,
}

impl FilterStanding {
    /// Is everything proven that the relay has?
    pub fn is_complete(&self) -> bool {
        self.settled && self.gaps.is_empty() && self.gaps_dropped == 0 && !self.denied
    }
}

/// An event that is about to be stored, or just was, and who has brought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// The event's id.
    pub id: [u8; 32],
    /// The relay.
    pub relay: RelayUrl,
    /// It came by a live subscription.
    pub live: bool,
}

/// What of a relay makes its standing be told anew when it changes. What changes with each frame is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sight {
    pub phase: Phase,
    pub connected: bool,
    pub failures: u32,
    pub refused: bool,
    /// Filters wanted, and those of them that have come to their end.
    pub filters: (usize, usize),
    pub gaps: (usize, u64),
    /// Events that have come to their end, whichever.
    pub events: u64,
    pub connections: u64,
    pub histories: u64,
    /// See [`Engine::has_found`].
    pub has_found: bool,
}

impl Engine {
    /// Tells of the relays whose standing has changed.
    pub(super) fn tell_standings(&mut self) {
        if !self.config.tells_standings {
            return;
        }
        let has_found = self.has_found();
        if std::mem::replace(&mut self.told_found, has_found) != has_found {
            self.touched.extend(0..self.relays.len());
        }
        for number in std::mem::take(&mut self.touched) {
            let Some(relay) = self.relays.get(number) else { continue };
            let sight = Sight { has_found, ..relay.sight(self.now.instant) };
            if self.sights.get(&number) == Some(&sight) {
                continue;
            }
            let mut standing = relay.standing(self.now.instant, &self.config);
            standing.settled &= !has_found;
            self.sights.insert(number, sight);
            self.out.push_back(Effect::Notify(Notice::Standing(Box::new(standing))));
        }
    }

    /// Has discovery found something that it has not handed out yet, or does it wait for what is held?
    pub(super) fn has_found(&self) -> bool {
        self.discovery.as_ref().is_some_and(|discovery| self.awaits_held || discovery.deadline().is_some())
    }

    /// Tells who has brought what is about to be stored.
    pub(super) fn tell_brought(&mut self) {
        let brought = self.pipeline.committing().filter_map(|(source, id)| self.brought(source, id));
        let brought: Vec<Brought> = brought.collect();
        if !brought.is_empty() {
            self.out.push_back(Effect::Notify(Notice::Storing(brought)));
        }
    }

    /// Tells what of the commit under this ticket is held now that was not before.
    pub(super) fn tell_stored(&mut self, ticket: Ticket, outcomes: &[Outcome]) {
        if !self.pipeline.is_committing(ticket) || outcomes.is_empty() {
            return;
        }
        let committed = self.pipeline.committing().zip(outcomes);
        let stored = committed.filter(|(_, outcome)| **outcome == Outcome::Stored);
        let stored = stored.filter_map(|((source, id), _)| self.brought(source, id)).collect();
        self.out.push_back(Effect::Notify(Notice::Stored(stored)));
    }

    fn brought(&self, source: Source, id: [u8; 32]) -> Option<Brought> {
        let relay = self.relays.get(source.relay)?;
        Some(Brought { id, relay: relay.url.clone(), live: relay.is_live_source(source.history) })
    }

    /// What is proven of a filter that is fetched by now, at each relay.
    pub(super) fn prove(&mut self, ticket: u64, filter: &FilterKey) {
        self.each_relay(|relay, ctx| relay.note_live(ctx));
        let marks: Vec<Coverage> = self.relays.iter().filter_map(|relay| relay.proven(filter)).collect();
        self.out.push_back(Effect::Notify(Notice::Proven { ticket, marks }));
    }
}
