//! The server: routes inputs to clients and results to what waits for them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::client::{Client, Outbox};
use super::config::ServeConfig;
use super::counters::Counters;
use super::intake::Intake;
use super::io::{ClientId, Cut, ServeEffect, ServeInput, Ticket, Tickets, WorkFault};
use super::item_sets::{Bounds, ItemSets};
use super::publishing::Publisher;
use crate::protocol::message::{ClientMessage, MessageError, relay, sketch};
use crate::runtime::{Frame, Instant, Now};

/// The relay side of NIP-01, 11, 42, 45, 70 and 77, for any number of clients, without sockets, store or clock.
///
/// Feed it with [`handle`](Self::handle), then do what [`poll_effect`](Self::poll_effect) says until it has nothing
/// more to say, and hand in [`ServeInput::Tick`] when the [`deadline`](Self::deadline) has come.
#[derive(Debug)]
pub struct Server {
    pub(super) config: ServeConfig,
    pub(super) clients: BTreeMap<ClientId, Client>,
    pub(super) out: Outbox,
    pub(super) tickets: Tickets,
    pub(super) jobs: BTreeMap<Ticket, Job>,
    pub(super) intake: Intake<Publisher>,
    pub(super) sets: ItemSets,
    pub(super) counters: Counters,
    pub(super) sweep_at: Option<Instant>,
    /// Commits of somebody else: how many were begun, and how many of those are over.
    pub(super) elsewhere: (u64, u64),
    /// Bytes of events of all clients that are on their way into the store.
    pub(super) pending_bytes: usize,
    /// Clients that are not read from, because they or all together are ahead of the store.
    pub(super) paused: BTreeSet<ClientId>,
    /// How often the access rules have changed.
    pub(super) access_changes: u64,
    serials: u64,
}

/// Whom a result is for.
#[derive(Debug)]
pub(super) enum Job {
    Read {
        client: ClientId,
        subscription: String,
        serial: u64,
        stream: usize,
    },
    /// What was asked for after so many changes of the access rules.
    Count {
        client: ClientId,
        subscription: String,
        access_changes: u64,
    },
    Answer {
        client: ClientId,
        session: String,
        serial: u64,
    },
}

impl Server {
    /// A server without clients.
    pub fn new(config: ServeConfig) -> Self {
        let bounds = Bounds {
            sets_max: config.item_sets_max,
            records_max: config.item_sets_records_max,
            age_max: config.item_set_age_max,
        };
        Self {
            clients: BTreeMap::new(),
            out: Outbox { bytes_max: config.outbound_bytes_max, ..Outbox::default() },
            tickets: Tickets::default(),
            jobs: BTreeMap::new(),
            intake: Intake::new(config.batch_events_max, config.judged),
            sets: ItemSets::new(bounds),
            counters: Counters::default(),
            sweep_at: None,
            elsewhere: (0, 0),
            pending_bytes: 0,
            paused: BTreeSet::new(),
            access_changes: 0,
            serials: 0,
            config,
        }
    }

    /// Takes in what happened. Nothing that a client does is an error.
    pub fn handle(&mut self, input: ServeInput, now: Now) {
        match input {
            ServeInput::Access(rules) => self.access(rules, now),
            ServeInput::Renewed => self.cut_authenticated(),
            ServeInput::Peers(peers) => self.config.peers = peers,
            ServeInput::Opened { client, challenge } => self.opened(client, challenge),
            ServeInput::Closed { client } => drop(self.forget(client)),
            ServeInput::Frame { client, frame } => self.frame(client, &frame, now),
            ServeInput::Written { client, bytes } => self.written(client, bytes, now),
            ServeInput::Queried { ticket, page } => self.queried(ticket, page, now),
            ServeInput::Counted { ticket, count } => self.counted(ticket, count),
            ServeInput::Items { ticket, items } => self.items_read(ticket, items, now),
            ServeInput::Reconciled { ticket, answer } => self.reconciled(ticket, answer),
            ServeInput::Verified { ticket, verdicts } => self.verified(ticket, verdicts),
            ServeInput::Judged { ticket, objections } => self.judged(ticket, objections),
            ServeInput::Committed { ticket, outcomes } => self.committed(ticket, outcomes),
            ServeInput::Accepted { events } => self.accepted(&events),
            ServeInput::Elsewhere { begun, over } => self.elsewhere(begun, over),
            ServeInput::Missed => self.missed(),
            ServeInput::Tick => self.sweep(now),
        }
        self.advance_intake(now);
        self.resume_readings();
        self.cut_slow_readers();
    }

    /// The next thing to do; `None` when all is said.
    pub fn poll_effect(&mut self) -> Option<ServeEffect> {
        self.out.effects.pop_front()
    }

    /// When to hand in [`ServeInput::Tick`] at the latest, and why.
    pub fn deadline(&self) -> Option<(Instant, &'static str)> {
        self.sweep_at.map(|at| (at, "close idle reconciliations"))
    }

    /// What happened so far, in numbers.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The configuration.
    pub fn config(&self) -> &ServeConfig {
        &self.config
    }

    /// Has every event that was received been stored or refused?
    pub fn is_settled(&self) -> bool {
        self.intake.is_idle()
    }

    /// Ends all connections.
    pub fn close_all(&mut self, reason: &Cut) {
        while let Some((&client, _)) = self.clients.first_key_value() {
            self.forget(client);
            self.out.effects.push_back(ServeEffect::Close { client, reason: reason.clone() });
        }
    }

    fn opened(&mut self, id: ClientId, challenge: String) {
        self.counters.clients += 1;
        let mut client = Client::new(id, challenge);
        if self.config.auth_required || self.config.challenges_early && !self.config.access.is_open() {
            client.challenge(&mut self.out);
        }
        self.clients.insert(id, client);
    }

    /// Ends one connection.
    pub(super) fn cut(&mut self, client: ClientId, reason: Cut) {
        if self.forget(client).is_some() {
            self.counters.clients_cut += 1;
            self.out.effects.push_back(ServeEffect::Close { client, reason });
        }
    }

    /// Ends the connections of those who have said who they are: they may have done so because of who we were.
    fn cut_authenticated(&mut self) {
        let has_key = |(id, client): (&ClientId, &Client)| (!client.keys.is_empty()).then_some(*id);
        let authenticated: Vec<ClientId> = self.clients.iter().filter_map(has_key).collect();
        authenticated.into_iter().for_each(|client| self.cut(client, Cut::Renewed));
    }

    fn forget(&mut self, id: ClientId) -> Option<Client> {
        let client = self.clients.remove(&id)?;
        self.out.total_bytes -= client.outbound_bytes;
        self.paused.remove(&id);
        Some(client)
    }

    fn frame(&mut self, id: ClientId, frame: &Frame, now: Now) {
        if !self.clients.contains_key(&id) {
            return;
        }
        self.counters.frames += 1;
        if frame.len() > self.config.frame_bytes_max {
            return self.cut(id, Cut::FrameTooLarge);
        }
        let message = ClientMessage::parse(frame.as_str());
        if let Some(reason) = self.rate_objection(id, message.as_ref().ok(), frame.len(), now) {
            return self.refuse_message(id, message.ok(), reason);
        }
        let Some(client) = self.clients.get_mut(&id) else { return };
        match message {
            Ok(ClientMessage::Event { json }) => self.event(id, frame, json, now),
            Ok(ClientMessage::Req { subscription, filters }) => self.req(id, &subscription, filters, now),
            Ok(ClientMessage::Close { subscription }) => client.unsubscribe(&mut self.out, &subscription),
            Ok(ClientMessage::Auth { json }) => self.auth(id, frame, json, now),
            Ok(ClientMessage::Count { subscription, filters }) => self.count(id, &subscription, filters, now),
            Ok(ClientMessage::NegOpen { subscription, filter, message }) => {
                self.neg_open(id, &subscription, *filter, &message, now);
            }
            Ok(ClientMessage::NegMsg { subscription, message }) => self.neg_msg(id, &subscription, &message, now),
            Ok(ClientMessage::NegClose { subscription }) => drop(client.sessions.remove(&*subscription)),
            Err(error) => self.malformed(id, frame.as_str(), &error),
        }
    }

    /// Answers what is no message, by the kind of answer that its type calls for where that can be made out.
    fn malformed(&mut self, id: ClientId, frame: &str, error: &MessageError) {
        self.counters.frames_malformed += 1;
        let Some(client) = self.clients.get_mut(&id) else { return };
        let reason = match error {
            MessageError::UnknownFilterField(_) => format!("unsupported: {error}"),
            _ => format!("invalid: {error}"),
        };
        let answer = match (error, sketch(frame)) {
            (MessageError::Malformed(_) | MessageError::UnknownFilterField(_), Some((kind, subscription))) => {
                match &*kind {
                    "REQ" | "COUNT" => relay::closed(&subscription, &reason),
                    "NEG-OPEN" | "NEG-MSG" if self.config.negentropy => {
                        client.sessions.remove(&*subscription);
                        relay::neg_err(&subscription, &reason, None)
                    }
                    _ => relay::notice(&reason),
                }
            }
            _ => relay::notice(&reason),
        };
        client.send(&mut self.out, answer);
    }

    fn written(&mut self, id: ClientId, bytes: usize, now: Now) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.discharge(&mut self.out, bytes);
        self.take_turns(id, now);
    }

    fn sweep(&mut self, now: Now) {
        if self.sweep_at.is_some_and(|at| at <= now.instant) {
            self.sweep_at = None;
            self.close_idle_sessions(now);
        }
    }

    /// A number that was not given out before.
    pub(super) fn serial(&mut self) -> u64 {
        self.serials += 1;
        self.serials
    }

    /// Why a subscription id or the client's standing forbids to go on; asks for authentication if that is missing.
    pub(super) fn objection(&mut self, id: ClientId, subscription: &str) -> Option<String> {
        let client = self.clients.get_mut(&id)?;
        if self.config.auth_required && client.keys.is_empty() {
            client.challenge(&mut self.out);
            return Some("auth-required: authenticate first (NIP-42)".into());
        }
        let chars_max = self.config.subscription_id_chars_max;
        let chars = subscription.chars().take(chars_max + 1).count();
        (chars == 0 || chars > chars_max).then(|| format!("invalid: a subscription id has 1 to {chars_max} characters"))
    }

    /// Counts and logs work that failed.
    pub(super) fn fault(&mut self, work: &str, fault: &WorkFault) {
        self.counters.faults += 1;
        tracing::error!("{work} failed: {fault}");
    }

    /// How often idle reconciliations are looked for.
    pub(super) fn sweep_every(&self) -> Duration {
        self.config.negentropy_idle_max / 4
    }
}
