//! What the server knows of one client.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::io::{ClientId, ServeEffect};
use super::merge::Merge;
use super::rates::Rates;
use crate::peer::{Audience, View};
use crate::protocol::message::relay;
use crate::protocol::{Event, Filter, ItemView, PublicKey, Window, filter};
use crate::runtime::Instant;

/// The effects not yet taken, and the clients that have more waiting for them than they may.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub(super) effects: VecDeque<ServeEffect>,
    /// Bytes that may wait for one client.
    pub(super) bytes_max: usize,
    /// Bytes that wait for all clients.
    pub(super) total_bytes: usize,
    pub(super) overflowed: BTreeSet<ClientId>,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: ClientId,
    pub(super) challenge: String,
    pub(super) is_challenged: bool,
    pub(super) auth_attempts: usize,
    /// The keys that it has authenticated. Its events on their way share them.
    pub(super) keys: Arc<BTreeSet<PublicKey>>,
    pub(super) subscriptions: BTreeMap<String, Subscription>,
    /// Subscriptions, with their serials, whose turn to read from the store comes in this order.
    pub(super) turns: VecDeque<(String, u64)>,
    pub(super) reads: usize,
    pub(super) counts: usize,
    pub(super) sessions: BTreeMap<String, Session>,
    /// Bytes sent and not reported as written, and those held back for subscriptions.
    pub(super) outbound_bytes: usize,
    /// Bytes of its events that are on their way into the store.
    pub(super) pending_bytes: usize,
    pub(super) rates: Rates,
}

impl Client {
    pub(super) fn new(id: ClientId, challenge: String) -> Self {
        Self {
            id,
            challenge,
            is_challenged: false,
            auth_attempts: 0,
            keys: Arc::default(),
            subscriptions: BTreeMap::new(),
            turns: VecDeque::new(),
            reads: 0,
            counts: 0,
            sessions: BTreeMap::new(),
            outbound_bytes: 0,
            pending_bytes: 0,
            rates: Rates::default(),
        }
    }

    /// Sends `frame`, unless the client has too much waiting already and is about to be cut.
    pub(super) fn send(&mut self, out: &mut Outbox, frame: String) {
        if self.charge(out, frame.len()) {
            out.effects.push_back(ServeEffect::Send { client: self.id, frame });
        }
    }

    /// Counts `bytes` as waiting for the client; `false` if that is more than it may have.
    fn charge(&mut self, out: &mut Outbox, bytes: usize) -> bool {
        self.outbound_bytes += bytes;
        out.total_bytes += bytes;
        let fits = self.outbound_bytes <= out.bytes_max;
        if !fits {
            out.overflowed.insert(self.id);
        }
        fits
    }

    /// Counts `bytes` as no longer waiting.
    pub(super) fn discharge(&mut self, out: &mut Outbox, bytes: usize) {
        let bytes = bytes.min(self.outbound_bytes);
        self.outbound_bytes -= bytes;
        out.total_bytes -= bytes;
    }

    /// Sends the NIP-42 challenge, once.
    pub(super) fn challenge(&mut self, out: &mut Outbox) {
        if !std::mem::replace(&mut self.is_challenged, true) {
            self.send(out, relay::auth(&self.challenge));
        }
    }

    /// Offers an event that was accepted just now to all subscriptions. A protected one comes with its audience.
    pub(super) fn offer(&mut self, out: &mut Outbox, event: &Event, audience: Option<&mut Audience<'_>>) {
        if audience.is_some_and(|audience| !audience.has(&self.keys)) {
            return;
        }
        let mut subscriptions = std::mem::take(&mut self.subscriptions);
        for (id, subscription) in &mut subscriptions {
            if subscription.filters.iter().any(|filter| filter::matches(filter, event)) {
                self.offer_to(out, id, subscription, event);
            }
        }
        self.subscriptions = subscriptions;
    }

    fn offer_to(&mut self, out: &mut Outbox, id: &str, subscription: &mut Subscription, event: &Event) {
        let event_id = event.id.to_bytes();
        if subscription.stored.is_some() {
            let frame = relay::event(id, event.json_str());
            if self.charge(out, frame.len()) {
                subscription.held.push((event_id, frame));
            }
        } else if !subscription.sent.contains(&event_id) {
            self.send(out, relay::event(id, event.json_str()));
        }
    }

    /// Sends what came while stored events were sent, but for those that were among them.
    pub(super) fn release_held(&mut self, out: &mut Outbox, subscription: &mut Subscription) {
        for (id, frame) in std::mem::take(&mut subscription.held) {
            self.discharge(out, frame.len());
            if !subscription.sent.contains(&id) {
                self.send(out, frame);
            }
        }
    }

    /// The subscription whose turn to read it is. At most `begun_max` are read from at a time, page by page: what they
    /// have read and cannot send yet is memory that nobody sees.
    pub(super) fn next_turn(&mut self, begun_max: usize) -> Option<(String, u64)> {
        let subscriptions = &self.subscriptions;
        let stored = |name: &str, serial: u64| {
            subscriptions.get(name).filter(|it| it.serial == serial).and_then(|it| it.stored.as_ref())
        };
        self.turns.retain(|(name, serial)| stored(name, *serial).is_some());
        let is_begun = |it: &Subscription| it.stored.as_ref().is_some_and(Merge::is_begun);
        let may_begin = subscriptions.values().filter(|it| is_begun(it)).count() < begun_max;
        let may_read = |(name, serial): &(String, u64)| may_begin || stored(name, *serial).is_some_and(Merge::is_begun);
        let index = self.turns.iter().position(may_read)?;
        self.turns.remove(index)
    }

    /// Forgets a subscription.
    pub(super) fn unsubscribe(&mut self, out: &mut Outbox, id: &str) {
        if let Some(subscription) = self.subscriptions.remove(id) {
            self.discharge(out, subscription.held.iter().map(|(_, frame)| frame.len()).sum());
        }
    }
}

/// One REQ.
#[derive(Debug)]
pub(super) struct Subscription {
    /// Tells it from others that had or will have its id.
    pub(super) serial: u64,
    pub(super) filters: Vec<Filter>,
    /// Its stored events; `None` after EOSE.
    pub(super) stored: Option<Merge>,
    /// The stored events that were sent. A commit that is in flight at EOSE may hold some of them; then they are
    /// remembered until its outcome is known, so that none is sent twice.
    pub(super) sent: BTreeSet<[u8; 32]>,
    /// The commits that were in flight at EOSE.
    pub(super) in_flight: InFlight,
    /// Events that came before EOSE, as frames.
    pub(super) held: Vec<([u8; 32], String)>,
}

/// Commits of which stored events may have been read before they were offered to subscribers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct InFlight {
    /// One of our own.
    pub(super) here: bool,
    /// One of somebody else, by its number.
    pub(super) elsewhere: Option<u64>,
}

impl Subscription {
    /// Forgets what was sent once all that may repeat it is over.
    pub(super) fn land(&mut self, landed: impl FnOnce(&mut InFlight)) {
        landed(&mut self.in_flight);
        if self.stored.is_none() && self.in_flight == InFlight::default() {
            self.sent.clear();
        }
    }
}

/// One reconciliation (NIP-77).
#[derive(Debug)]
pub(super) struct Session {
    /// Tells it from others that had or will have its id.
    pub(super) serial: u64,
    /// What it is about, without its window and limit.
    pub(super) filter: Filter,
    pub(super) window: Window,
    /// What of it the client sees.
    pub(super) view: View,
    pub(super) state: SessionState,
    /// When the client last said something.
    pub(super) heard_at: Instant,
}

#[derive(Debug)]
pub(super) enum SessionState {
    /// The item set is being read; the client's first message waits.
    Loading { message: Vec<u8> },
    /// The client's message is being answered.
    Answering { view: ItemView },
    /// It is the client's turn.
    Listening { view: ItemView },
}
