//! A server, a store in memory, and clients: carries effects out one by one, at once or when told to.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use relaysync::ingest::{Verdict, verify};
use relaysync::protocol::message::client;
use relaysync::protocol::{Event, RelayMessage, RelayUrl};
use relaysync::runtime::{Frame, Instant, Now};
use relaysync::serve::{ClientId, Counters, Cut, ServeConfig, ServeEffect, ServeInput, Server, WorkFault, reconcile};
use relaysync::store::{Batch, MemoryStore, Store, StoreConfig};

use crate::events::NOW_SECS;

pub(crate) const ALICE: ClientId = ClientId(1);
pub(crate) const BOB: ClientId = ClientId(2);
pub(crate) const CHALLENGE: &str = "a challenge for this connection";

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) store: MemoryStore,
    pub(crate) now: Now,
    /// Clients take frames as they come; if not, they are never reported as written.
    pub(crate) clients_read: bool,
    /// Work that was asked for is done at once; if not, by [`World::work`].
    pub(crate) works: bool,
    /// All work fails.
    pub(crate) broken: bool,
    pub(crate) waiting: VecDeque<ServeEffect>,
    pub(crate) reading: BTreeMap<ClientId, bool>,
    pub(crate) cuts: BTreeMap<ClientId, Cut>,
    /// How many items, pages and batches the store was asked for.
    pub(crate) items_read: usize,
    pub(crate) pages_read: usize,
    pub(crate) commits: usize,
    received: BTreeMap<ClientId, Vec<String>>,
}

impl World {
    pub(crate) fn new(config: ServeConfig) -> Self {
        let own = RelayUrl::parse("wss://relay.example").unwrap();
        let config = ServeConfig { urls: vec![own.clone()], ..config };
        let mut world = Self {
            server: Server::new(config),
            store: MemoryStore::new(StoreConfig { own_urls: vec![own] }),
            now: Now { instant: Instant::ZERO, unix_secs: NOW_SECS },
            clients_read: true,
            works: true,
            broken: false,
            waiting: VecDeque::new(),
            reading: BTreeMap::new(),
            cuts: BTreeMap::new(),
            items_read: 0,
            pages_read: 0,
            commits: 0,
            received: BTreeMap::new(),
        };
        for client in [ALICE, BOB] {
            world.input(ServeInput::Opened { client, challenge: CHALLENGE.into() });
        }
        world
    }

    /// A world whose store has these events.
    pub(crate) fn with(config: ServeConfig, events: &[Event]) -> Self {
        // These look at what is refused, and the challenge that comes with it.
        let world = Self::new(ServeConfig { challenges_early: false, ..config });
        let events = events.iter().map(|event| verify(event.clone()).unwrap()).collect();
        at_once(world.store.commit(Batch { events, now_secs: NOW_SECS, ..Batch::default() })).unwrap();
        world
    }

    pub(crate) fn input(&mut self, input: ServeInput) {
        self.server.handle(input, self.now);
        self.carry_out();
    }

    /// Sends a frame and gives back what has come for the client since the last time.
    pub(crate) fn say(&mut self, client: ClientId, frame: impl Into<String>) -> Vec<String> {
        self.input(ServeInput::Frame { client, frame: Frame::from(frame.into()) });
        self.heard(client)
    }

    pub(crate) fn publish(&mut self, client: ClientId, event: &Event) -> Vec<String> {
        self.say(client, client::event(event.json_str()))
    }

    /// The reason of the OK for an event that a client publishes, and whether it was accepted.
    pub(crate) fn ok(&mut self, client: ClientId, event: &Event) -> (bool, String) {
        let answers = self.publish(client, event);
        let found = answers.iter().find_map(|frame| match RelayMessage::parse(frame).unwrap() {
            RelayMessage::Ok { id, accepted, reason } if id == event.id.to_hex() => {
                Some((accepted, reason.into_owned()))
            }
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no OK in {answers:?}"))
    }

    /// What has come for the client since the last time.
    pub(crate) fn heard(&mut self, client: ClientId) -> Vec<String> {
        self.received.remove(&client).unwrap_or_default()
    }

    /// Does all work that waits.
    pub(crate) fn work(&mut self) {
        self.works = true;
        while let Some(effect) = self.waiting.pop_front() {
            self.perform(effect);
        }
        self.works = false;
    }

    /// Does the first piece of work that waits.
    pub(crate) fn work_once(&mut self) {
        let effect = self.waiting.pop_front().expect("work waits");
        self.perform(effect);
    }

    pub(crate) fn pass(&mut self, duration: Duration) {
        self.now.instant = self.now.instant + duration;
        self.now.unix_secs += duration.as_secs();
        if self.server.deadline().is_some_and(|(at, _)| at <= self.now.instant) {
            self.input(ServeInput::Tick);
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        self.server.counters()
    }

    fn carry_out(&mut self) {
        while let Some(effect) = self.server.poll_effect() {
            match effect {
                ServeEffect::Send { client, frame } => {
                    let bytes = frame.len();
                    self.received.entry(client).or_default().push(frame);
                    if self.clients_read {
                        self.server.handle(ServeInput::Written { client, bytes }, self.now);
                    }
                }
                ServeEffect::Close { client, reason } => drop(self.cuts.insert(client, reason)),
                ServeEffect::SetReading { client, reading } => drop(self.reading.insert(client, reading)),
                work if self.works => self.perform(work),
                work => self.waiting.push_back(work),
            }
        }
    }

    fn perform(&mut self, effect: ServeEffect) {
        let input = match effect {
            ServeEffect::Query { ticket, query } => {
                self.pages_read += 1;
                ServeInput::Queried { ticket, page: self.result(at_once(self.store.query(query))) }
            }
            ServeEffect::Count { ticket, filters, view, now_secs } => {
                ServeInput::Counted { ticket, count: self.result(at_once(self.store.count(filters, &view, now_secs))) }
            }
            ServeEffect::Items { ticket, filter, window, view, now_secs } => {
                self.items_read += 1;
                let items = at_once(self.store.held_items(&filter, window, &view, now_secs));
                ServeInput::Items { ticket, items: self.result(items) }
            }
            ServeEffect::Reconcile { ticket, view, message, frame_bytes_max } => {
                ServeInput::Reconciled { ticket, answer: reconcile(view, &message, frame_bytes_max) }
            }
            ServeEffect::Verify { ticket, events } => {
                let verdict = |event| verify(event).map_or_else(Verdict::Invalid, Verdict::Valid);
                ServeInput::Verified { ticket, verdicts: Ok(events.into_iter().map(verdict).collect()) }
            }
            ServeEffect::Judge { ticket, events } => {
                let objections = events.iter().map(|event| self.objection(event)).collect();
                ServeInput::Judged { ticket, objections: self.result(Ok::<_, WorkFault>(objections)) }
            }
            ServeEffect::Commit { ticket, batch } => {
                self.commits += 1;
                ServeInput::Committed { ticket, outcomes: self.result(at_once(self.store.commit(batch))) }
            }
            other => panic!("{other:?} is no work"),
        };
        self.input(input);
    }

    fn objection(&self, event: &Event) -> Option<String> {
        event.content.contains("unwanted").then(|| "blocked: nobody wants this".into())
    }

    fn result<T, E: std::fmt::Display>(&self, result: Result<T, E>) -> Result<T, WorkFault> {
        match self.broken {
            true => Err(WorkFault("the disk is on fire".into())),
            false => result.map_err(|error| WorkFault(error.to_string())),
        }
    }
}

/// The result of a future that is ready at once.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the store in memory never waits"),
    }
}

/// What a client was sent of one subscription: the ids of events in order, `EOSE`, `CLOSED …`; other frames as they are.
pub(crate) fn story(frames: &[String]) -> Vec<String> {
    let tell = |frame: &String| match RelayMessage::parse(frame).unwrap() {
        RelayMessage::Event { json, .. } => Event::parse(json.to_owned().into()).unwrap().id.to_hex(),
        RelayMessage::Eose { .. } => "EOSE".into(),
        RelayMessage::Closed { reason, .. } => format!("CLOSED {reason}"),
        _ => frame.clone(),
    };
    frames.iter().map(tell).collect()
}

/// The ids of events as [`story`] tells them.
pub(crate) fn ids<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<String> {
    events.into_iter().map(|event| event.id.to_hex()).collect()
}
