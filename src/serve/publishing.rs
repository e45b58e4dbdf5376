//! EVENT: into the intake, out to the subscribers, and the OK in between.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::client::{Client, InFlight};
use super::config::ServeConfig;
use super::intake::{IntakeWork, Settled};
use super::io::{ClientId, ServeEffect, Ticket, WorkFault};
use super::server::Server;
use crate::ingest::{Admission, Invalid, Verdict, Verified};
use crate::peer::{AccessRules, Audience, Capability};
use crate::protocol::hex;
use crate::protocol::message::{event_of_frame, relay};
use crate::protocol::{Event, EventId, PublicKey, RelayUrl};
use crate::runtime::{Frame, Now};
use crate::store::Outcome;

/// Who waits for the OK of an event.
#[derive(Debug)]
pub(super) struct Publisher {
    client: ClientId,
    /// The keys that it had authenticated when it sent the event.
    keys: Arc<BTreeSet<PublicKey>>,
    event: EventId,
    /// The length of the event's JSON.
    bytes: usize,
}

/// What a stranger is told who writes what is protected.
const UNKNOWN: &str = "auth-required: this event is protected here, authenticate first (NIP-42)";
/// What others are told who may not write it.
const FORBIDDEN: &str = "restricted: this event is protected here, and your key may not write it";

impl Server {
    pub(super) fn event(&mut self, id: ClientId, frame: &Frame, json: &str, now: Now) {
        self.counters.events += 1;
        let event = match event_of_frame(frame.bytes(), json) {
            Ok(event) => event,
            Err(error) => return self.refuse(id, &claimed_id(json), &format!("invalid: {error}")),
        };
        if let Some(reason) = self.event_objection(id, &event, now) {
            return self.refuse(id, &event.id.to_hex(), reason);
        }
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.pending_bytes += json.len();
        self.pending_bytes += json.len();
        let is_ahead = client.pending_bytes > self.config.pending_bytes_max
            || self.pending_bytes > self.config.pending_total_bytes_max;
        if is_ahead && self.paused.insert(id) {
            self.counters.readings_paused += 1;
            self.out.effects.push_back(ServeEffect::SetReading { client: id, reading: false });
        }
        let publisher = Publisher { client: id, keys: client.keys.clone(), event: event.id, bytes: json.len() };
        self.intake.push(event, publisher);
    }

    /// What speaks against an event before its signature is looked at.
    fn event_objection(&mut self, id: ClientId, event: &Event, now: Now) -> Option<&'static str> {
        let client = self.clients.get_mut(&id)?;
        let is_stranger = self.config.auth_required && client.keys.is_empty();
        if is_stranger || (event.is_protected() && client.keys.is_empty()) {
            client.challenge(&mut self.out);
            return Some(match is_stranger {
                true => "auth-required: authenticate first (NIP-42)",
                false => "auth-required: a protected event (NIP-70) is taken from its authenticated author only",
            });
        }
        if event.is_protected() && !client.keys.contains(&event.pubkey) {
            return Some("restricted: a protected event (NIP-70) is taken from its author only");
        }
        if event.expires_at_secs().is_some_and(|at| at <= now.unix_secs) {
            return Some("invalid: the event has expired (NIP-40)");
        }
        if embeds_protected(event) {
            return Some("blocked: a repost must not embed a protected event (NIP-70)");
        }
        if publishes_protected(event, &self.config.access) {
            return Some("blocked: a repost must not embed an event that is protected here");
        }
        if !self.config.access.allows(&*client.keys, Capability::SyncWrite, event) {
            self.counters.writes_forbidden += 1;
            if client.keys.is_empty() {
                client.challenge(&mut self.out);
                return Some(UNKNOWN);
            }
            return Some(FORBIDDEN);
        }
        // AUTH events are for one relay's eyes, never for its subscribers (NIP-42).
        (event.kind_number() == super::auth::KIND).then_some("invalid: send AUTH events by AUTH")
    }

    pub(super) fn refuse(&mut self, id: ClientId, event: &str, reason: &str) {
        self.counters.events_refused += 1;
        if let Some(client) = self.clients.get_mut(&id) {
            client.send(&mut self.out, relay::ok(event, false, reason));
        }
    }

    pub(super) fn advance_intake(&mut self, now: Now) {
        loop {
            let admit = |event: &Event, publisher: &Publisher| admission(&self.config, publisher, event);
            let Some(work) = self.intake.next_work(&mut self.tickets, now.unix_secs, admit) else { return };
            self.out.effects.push_back(match work {
                IntakeWork::Verify(ticket, events) => ServeEffect::Verify { ticket, events },
                IntakeWork::Judge(ticket, events) => ServeEffect::Judge { ticket, events },
                IntakeWork::Commit(ticket, batch) => ServeEffect::Commit { ticket, batch },
                IntakeWork::Settled(all) => {
                    all.into_iter().for_each(|(publisher, settled)| self.settle(publisher, settled));
                    continue;
                }
            });
        }
    }

    pub(super) fn verified(&mut self, ticket: Ticket, verdicts: Result<Vec<Verdict>, WorkFault>) {
        if let Err(fault) = &verdicts {
            self.fault("verifying events", fault);
        }
        for (publisher, settled) in self.intake.verified(ticket, verdicts) {
            self.settle(publisher, settled);
        }
    }

    pub(super) fn judged(&mut self, ticket: Ticket, objections: Result<Vec<Option<String>>, WorkFault>) {
        if let Err(fault) = &objections {
            self.fault("judging events", fault);
        }
        // Of what is protected, rules have let in what may be written, whatever else is held here.
        let is_beyond = |event: &Event| asks_to_vanish(event, &self.config.urls) || self.config.access.protects(event);
        for (publisher, settled) in self.intake.judged(ticket, objections, is_beyond) {
            self.settle(publisher, settled);
        }
    }

    pub(super) fn committed(&mut self, ticket: Ticket, outcomes: Result<Vec<Outcome>, WorkFault>) {
        if let Err(fault) = &outcomes {
            self.fault("storing events", fault);
        }
        for (publisher, settled) in self.intake.committed(ticket, outcomes) {
            self.settle(publisher, settled);
        }
        self.land(|in_flight| in_flight.here = false);
    }

    /// Takes in what somebody else has stored, or accepted.
    pub(super) fn accepted(&mut self, events: &[Verified<Event>]) {
        for event in events {
            self.fan_out(event, !event.kind.is_ephemeral());
        }
    }

    pub(super) fn elsewhere(&mut self, begun: u64, over: u64) {
        self.elsewhere = (begun, over);
        self.land(|in_flight| in_flight.elsewhere = in_flight.elsewhere.filter(|commit| *commit > over));
    }

    /// Commits are over, and subscribers have what they stored.
    fn land(&mut self, landed: impl Fn(&mut InFlight)) {
        for client in self.clients.values_mut() {
            client.subscriptions.values_mut().for_each(|subscription| subscription.land(&landed));
        }
    }

    /// Nobody knows what subscribers and item sets lack: all begin anew.
    pub(super) fn missed(&mut self) {
        self.sets.forget();
        for client in self.clients.values_mut() {
            while let Some((name, _)) = client.subscriptions.first_key_value() {
                let name = name.clone();
                self.counters.subscriptions_missed += 1;
                client.unsubscribe(&mut self.out, &name);
                client.send(&mut self.out, relay::closed(&name, "error: events were missed, subscribe again"));
            }
        }
    }

    fn settle(&mut self, publisher: Publisher, settled: Settled) {
        let (accepted, reason) =
            if self.is_untold(&publisher, &settled) { (true, "") } else { verdict(&settled, &publisher) };
        match &settled {
            Settled::Committed(event, outcome @ (Outcome::Stored | Outcome::Ephemeral)) => {
                self.counters.events_stored += u64::from(*outcome == Outcome::Stored);
                self.fan_out(event, *outcome == Outcome::Stored);
            }
            _ => self.counters.events_refused += u64::from(!accepted),
        }
        self.counters.events_unwanted += u64::from(matches!(settled, Settled::Unwanted(_)));
        self.counters.events_unjudged += u64::from(matches!(settled, Settled::Unjudged));
        self.counters.writes_forbidden += u64::from(matches!(settled, Settled::Forbidden));
        self.pending_bytes -= publisher.bytes;
        let Some(client) = self.clients.get_mut(&publisher.client) else { return };
        client.send(&mut self.out, relay::ok(&publisher.event.to_hex(), accepted, reason));
        client.pending_bytes -= publisher.bytes;
    }

    /// Is what became of an event not for its publisher to know, who may write what it may not read? That the event, or a
    /// newer one, is held already would tell of what others have written.
    fn is_untold(&self, publisher: &Publisher, settled: &Settled) -> bool {
        let Settled::Committed(event, outcome) = settled else { return false };
        let tells = matches!(outcome, Outcome::Duplicate | Outcome::Superseded | Outcome::Deleted | Outcome::Vanished);
        let may_read = |client: &Client| self.config.access.grants(&*client.keys, Capability::SyncRead, event);
        tells && self.config.access.protects(event) && !self.clients.get(&publisher.client).is_some_and(may_read)
    }

    /// Reads on from those that were ahead of the store, once it has caught up.
    pub(super) fn resume_readings(&mut self) {
        if self.pending_bytes > self.config.pending_total_bytes_max / 2 {
            return;
        }
        let pending_max = self.config.pending_bytes_max / 2;
        let is_ahead = |client: &ClientId| self.clients.get(client).is_some_and(|it| it.pending_bytes > pending_max);
        for client in std::mem::take(&mut self.paused) {
            if is_ahead(&client) {
                self.paused.insert(client);
            } else {
                self.out.effects.push_back(ServeEffect::SetReading { client, reading: true });
            }
        }
    }

    /// Hands an accepted event to the subscribers, and to the item sets if the store has it.
    fn fan_out(&mut self, event: &Event, is_stored: bool) {
        if is_stored {
            self.sets.stored(event);
        }
        let mut audience = Audience::of(&self.config.access, event);
        for client in self.clients.values_mut() {
            client.offer(&mut self.out, event, audience.as_mut());
        }
    }
}

/// Does the event ask this relay to forget its author? That is to be followed whoever asks (NIP-62).
fn asks_to_vanish(event: &Event, urls: &[RelayUrl]) -> bool {
    let is_us = |url: &str| url == "ALL_RELAYS" || RelayUrl::parse(url).is_ok_and(|url| urls.contains(&url));
    let mut relays = event.tags.iter().filter(|tag| tag.kind() == "relay").filter_map(|tag| tag.content());
    event.kind_number() == 62 && relays.any(is_us)
}

/// Is it a repost (kinds 6 and 16) that has a protected event in it?
fn embeds_protected(event: &Event) -> bool {
    #[derive(serde::Deserialize)]
    struct Embedded {
        tags: Vec<Vec<String>>,
    }
    matches!(event.kind_number(), 6 | 16)
        && serde_json::from_str(&event.content)
            .is_ok_and(|Embedded { tags }| tags.iter().any(|tag| tag.first().is_some_and(|name| name == "-")))
}

/// Is it a repost that would show all what they may not read?
fn publishes_protected(event: &Event, rules: &AccessRules) -> bool {
    let is_repost = !rules.is_open() && matches!(event.kind_number(), 6 | 16);
    let embedded = || Event::parse(event.content.clone().into_bytes().into());
    is_repost && !rules.protects(event) && embedded().is_ok_and(|embedded| rules.protects(&embedded))
}

/// May an event be stored now, and which peer has brought it?
fn admission(config: &ServeConfig, publisher: &Publisher, event: &Event) -> Admission {
    if !config.access.allows(&*publisher.keys, Capability::SyncWrite, event) {
        return Admission::Forbidden;
    }
    match publisher.keys.iter().find_map(|key| config.peers.get(key)) {
        Some(peer) => Admission::Brought(peer.clone()),
        None => Admission::Free,
    }
}

/// What OK says of an event.
fn verdict<'s>(settled: &'s Settled, publisher: &Publisher) -> (bool, &'s str) {
    match settled {
        Settled::Committed(_, Outcome::Stored | Outcome::Ephemeral) => (true, ""),
        Settled::Committed(_, Outcome::Duplicate) => (true, "duplicate: already have this event"),
        Settled::Committed(_, Outcome::Superseded) => (false, "replaced: have a newer version"),
        Settled::Committed(_, Outcome::Deleted) => (false, "blocked: deleted by its author (NIP-09)"),
        Settled::Committed(_, Outcome::Vanished) => (false, "blocked: its author has asked to vanish (NIP-62)"),
        Settled::Committed(_, Outcome::Expired) => (false, "invalid: the event has expired (NIP-40)"),
        Settled::Committed(_, Outcome::Pruned) => (false, "blocked: older than what there is room for here"),
        Settled::Invalid(Invalid::Id) => (false, "invalid: the id is not the hash of the event"),
        Settled::Invalid(Invalid::Signature) => (false, "invalid: the signature is not the author's"),
        Settled::Known => (true, "duplicate: this event is known"),
        Settled::Unwanted(reason) => (false, reason),
        Settled::Forbidden => (false, if publisher.keys.is_empty() { UNKNOWN } else { FORBIDDEN }),
        Settled::Unjudged => (false, "error: whether the event is accepted here cannot be said at the moment"),
        Settled::Failed => (false, "error: the event cannot be stored at the moment"),
    }
}

/// The id that something which is no event gives itself; empty if it gives none that an OK could carry.
pub(super) fn claimed_id(json: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Claim {
        id: String,
    }
    match serde_json::from_str::<Claim>(json) {
        Ok(Claim { id }) if id.len() == 64 && hex::decode(&id).is_some() => id,
        _ => String::new(),
    }
}
