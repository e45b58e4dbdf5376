//! An honest relay: the relay service over a store in memory, carried out at once.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::pool::check;
use crate::ingest::Verdict;
use crate::peer::{AccessRules, View};
use crate::protocol::{Event, Filter, ItemSet, Window};
use crate::runtime::{Frame, Instant, Now};
use crate::serve::{ClientId, ServeConfig, ServeEffect, ServeInput, Server, WorkFault, reconcile};
use crate::store::{Batch, MemoryStore, Store};

/// Most relays: they do not say in EOSE whether they have more.
pub fn plain_relay() -> ServeConfig {
    ServeConfig { eose_hints: false, ..ServeConfig::default() }
}

/// What a relay says on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A frame.
    Frame(String),
    /// It closes the connection, with these words.
    Close(String),
}

/// The relay service of this crate and its store.
#[derive(Debug)]
pub struct Honest {
    server: Server,
    store: MemoryStore,
    /// When the relay got each event, in seconds since 1970.
    pub(super) got_at_secs: BTreeMap<[u8; 32], u64>,
}

impl Honest {
    /// An empty relay.
    pub fn new(config: ServeConfig) -> Self {
        Self { server: Server::new(config), store: MemoryStore::default(), got_at_secs: BTreeMap::new() }
    }

    /// What the relay holds.
    pub fn store(&self) -> &MemoryStore {
        &self.store
    }

    /// How it is configured.
    pub fn config(&self) -> &ServeConfig {
        self.server.config()
    }

    /// The relay information document that would be true of it.
    pub fn info(&self) -> String {
        serde_json::to_string(&self.server.config().relay_info()).expect("a document has only plain fields")
    }

    /// Puts events into the relay's store, as if others had published them. Subscribers get them.
    pub fn publish(&mut self, events: &[Event], now: Now) -> Vec<(ClientId, Said)> {
        let events: Vec<_> = events.iter().filter_map(|event| check(event.clone()).ok()).collect();
        for event in &events {
            self.got_at_secs.entry(event.id.to_bytes()).or_insert(now.unix_secs);
        }
        let batch = Batch { events: events.clone(), now_secs: now.unix_secs, ..Batch::default() };
        at_once(self.store.commit(batch)).expect("the store in memory does not fail");
        self.handle(ServeInput::Accepted { events: events.into() }, now)
    }

    /// Everything that the relay holds in `window` for `filter`.
    pub fn items(&self, filter: &Filter, window: Window, now_secs: u64) -> Arc<ItemSet> {
        let items = at_once(self.store.held_items(filter, window, &View::all(), now_secs));
        items.expect("the store in memory does not fail")
    }

    pub(super) fn open(&mut self, client: ClientId, now: Now) -> Vec<(ClientId, Said)> {
        self.handle(ServeInput::Opened { client, challenge: format!("challenge {}", client.0) }, now)
    }

    pub(super) fn close(&mut self, client: ClientId, now: Now) {
        self.handle(ServeInput::Closed { client }, now);
    }

    pub(super) fn receive(&mut self, client: ClientId, frame: String, now: Now) -> Vec<(ClientId, Said)> {
        self.handle(ServeInput::Frame { client, frame: Frame::from(frame) }, now)
    }

    /// Other access rules hold from now on.
    pub(super) fn set_access(&mut self, rules: Arc<AccessRules>, now: Now) -> Vec<(ClientId, Said)> {
        self.handle(ServeInput::Access(rules), now)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.server.deadline().map(|(at, _)| at)
    }

    pub(super) fn tick(&mut self, now: Now) -> Vec<(ClientId, Said)> {
        self.handle(ServeInput::Tick, now)
    }

    fn handle(&mut self, input: ServeInput, now: Now) -> Vec<(ClientId, Said)> {
        self.server.handle(input, now);
        let mut said = Vec::new();
        while let Some(effect) = self.server.poll_effect() {
            match effect {
                ServeEffect::Send { client, frame } => {
                    let bytes = frame.len();
                    said.push((client, Said::Frame(frame)));
                    self.server.handle(ServeInput::Written { client, bytes }, now);
                }
                ServeEffect::Close { client, reason } => said.push((client, Said::Close(reason.to_string()))),
                // Frames to the relay are few: it need not be protected from them here.
                ServeEffect::SetReading { .. } => {}
                work => {
                    let input = self.work(work, now);
                    self.server.handle(input, now);
                }
            }
        }
        said
    }

    fn work(&mut self, work: ServeEffect, now: Now) -> ServeInput {
        match work {
            ServeEffect::Query { ticket, query } => {
                ServeInput::Queried { ticket, page: checked(at_once(self.store.query(query))) }
            }
            ServeEffect::Count { ticket, filters, view, now_secs } => {
                ServeInput::Counted { ticket, count: checked(at_once(self.store.count(filters, &view, now_secs))) }
            }
            ServeEffect::Items { ticket, filter, window, view, now_secs } => ServeInput::Items {
                ticket,
                items: checked(at_once(self.store.held_items(&filter, window, &view, now_secs))),
            },
            ServeEffect::Reconcile { ticket, view, message, frame_bytes_max } => {
                ServeInput::Reconciled { ticket, answer: reconcile(view, &message, frame_bytes_max) }
            }
            ServeEffect::Verify { ticket, events } => {
                let verdict = |event| check(event).map_or_else(Verdict::Invalid, Verdict::Valid);
                ServeInput::Verified { ticket, verdicts: Ok(events.into_iter().map(verdict).collect()) }
            }
            // It wants everything but what is protected, which is none of a judge's business.
            ServeEffect::Judge { ticket, events } => {
                let access = &self.server.config().access;
                let objection = |event| access.protects(event).then(|| "blocked: nobody has heard of this".to_owned());
                ServeInput::Judged { ticket, objections: Ok(events.iter().map(|event| objection(event)).collect()) }
            }
            ServeEffect::Commit { ticket, batch } => {
                for event in &batch.events {
                    self.got_at_secs.entry(event.id.to_bytes()).or_insert(now.unix_secs);
                }
                ServeInput::Committed { ticket, outcomes: checked(at_once(self.store.commit(batch))) }
            }
            ServeEffect::Send { .. } | ServeEffect::Close { .. } | ServeEffect::SetReading { .. } => {
                unreachable!("what concerns a connection is no work")
            }
        }
    }
}

fn checked<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, WorkFault> {
    result.map_err(|error| WorkFault(error.to_string()))
}

/// The result of a future that is ready at once, as those of the store in memory are.
pub(super) fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("the store in memory never waits"),
    }
}
