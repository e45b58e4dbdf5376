//! Carrying out what engines want done.

use std::collections::VecDeque;
use std::time::Duration;

use super::honest::at_once;
use super::node::{Conn, EngineId, StoreFaults};
use super::note;
use super::remote::{Connects, Remote};
use super::world::{Happening, LATENCY, World};
use crate::engine::{ConnId, Effect, Input, Notice, Ticket};
use crate::ingest::{Verdict, Verified, verify};
use crate::protocol::{Event, RelayUrl};
use crate::runtime::{CloseReason, ConnectError, Dial, SignError};
use crate::serve::ClientId;
use crate::store::{Batch, Coverage, Store};

impl World {
    pub(super) fn perform_all(&mut self, engine: EngineId) {
        for effect in self.nodes[engine.0].effects() {
            self.perform(engine, effect);
        }
    }

    fn perform(&mut self, engine: EngineId, effect: Effect) {
        match effect {
            Effect::Connect { conn, dial } => self.connect(engine, conn, &dial),
            Effect::Send { conn, frame } => {
                if let Some(open) = self.nodes[engine.0].conns.get(&conn) {
                    let (url, client) = (open.relay.clone(), open.client);
                    self.schedule(LATENCY, Happening::ToRelay(url, client, frame));
                }
            }
            Effect::SetReading { conn, reading } => self.set_reading(engine, conn, reading),
            Effect::Close { conn, reason } => {
                self.note(format!("engine {}: closes {conn:?}, {reason}", engine.0));
                self.nodes[engine.0].closed.push(reason);
                if let Some(open) = self.nodes[engine.0].conns.remove(&conn) {
                    self.schedule(LATENCY, Happening::Left(open.relay, open.client));
                }
            }
            Effect::FetchInfo { dial } => self.fetch_info(engine, dial),
            Effect::Sign { conn, relay, challenge } => {
                let result = self.sign(engine, &relay, &challenge);
                self.answer(engine, Input::Signed { conn, result });
            }
            Effect::Notify(notice) => {
                let node = &mut self.nodes[engine.0];
                if let Notice::Finished(reports) | Notice::Stopped(reports) = &notice {
                    node.ended = Some(reports.clone());
                }
                node.notices.push(notice);
            }
            Effect::Verify { ticket, events, look_up } => self.verify(engine, ticket, events, look_up),
            Effect::Commit { ticket, batch } => self.commit(engine, ticket, batch),
            Effect::LoadItems { ticket, filter, window } => {
                let node = &mut self.nodes[engine.0];
                let result = match StoreFaults::fails(&mut node.faults.items) {
                    true => Err("the disk is on fire".to_owned()),
                    false => at_once(node.store.items(&filter, window)).map_err(|error| error.to_string()),
                };
                self.answer(engine, Input::Items { ticket, result });
            }
            Effect::CheckKnown { ticket, ids } => {
                let result = self.known(engine, ids);
                self.answer(engine, Input::Known { ticket, result });
            }
            Effect::LoadEvents { ticket, ids } => {
                let result = at_once(self.nodes[engine.0].store.events(ids)).map_err(|error| error.to_string());
                self.answer(engine, Input::Events { ticket, result });
            }
        }
    }

    fn connect(&mut self, engine: EngineId, conn: ConnId, dial: &Dial) {
        let now = self.now();
        let refused = |error| Input::Disconnected { conn, reason: CloseReason::Connect(error) };
        let Some(remote) = self.relays.get_mut(&dial.url) else {
            return self.answer(engine, refused(ConnectError::Dns("no such relay".into())));
        };
        remote.attempts.push(now.instant);
        match remote.connects.clone() {
            Connects::Hangs => {}
            Connects::Refused(error) => self.answer(engine, refused(error)),
            Connects::Always => {
                self.clients_made += 1;
                let (client, relay) = (ClientId(self.clients_made), dial.url.clone());
                self.clients.insert(client, (engine, conn));
                let open = Conn { client, relay: relay.clone(), reading: true, backlog: VecDeque::new() };
                self.nodes[engine.0].conns.insert(conn, open);
                self.schedule(LATENCY, Happening::Open(engine, conn, relay, client));
            }
        }
    }

    fn set_reading(&mut self, engine: EngineId, conn: ConnId, reading: bool) {
        let node = &mut self.nodes[engine.0];
        node.reading.push(reading);
        let Some(open) = node.conns.get_mut(&conn) else { return };
        open.reading = reading;
        if reading {
            for frame in std::mem::take(&mut open.backlog) {
                self.schedule(Duration::ZERO, Happening::ToEngine(engine, conn, frame));
            }
        }
    }

    fn fetch_info(&mut self, engine: EngineId, dial: Dial) {
        if let Some(result) = self.relays.get(&dial.url).and_then(Remote::relay_info) {
            self.answer(engine, Input::RelayInfo { relay: dial.url, result });
        }
    }

    fn sign(&self, engine: EngineId, relay: &RelayUrl, challenge: &str) -> Result<Verified<Event>, SignError> {
        let author = self.node(engine).signs_as.ok_or(SignError::NoKey)?;
        let draft = note(self.now().unix_secs).by(author).kind(22_242);
        let event = draft.tag("relay", relay.as_str()).tag("challenge", challenge).sign();
        verify(event).map_err(|why| SignError::Declined(format!("{why:?}")))
    }

    fn known(&mut self, engine: EngineId, ids: Vec<[u8; 32]>) -> Result<Vec<bool>, String> {
        let node = &mut self.nodes[engine.0];
        if StoreFaults::fails(&mut node.faults.reads) {
            return Err("the disk is on fire".to_owned());
        }
        at_once(node.store.known(ids)).map_err(|error| error.to_string())
    }

    fn verify(&mut self, engine: EngineId, ticket: Ticket, events: Vec<Event>, look_up: bool) {
        let known = match look_up {
            true => self.known(engine, events.iter().map(|event| event.id.to_bytes()).collect()),
            false => Ok(vec![false; events.len()]),
        };
        let verdict = |(event, known): (Event, bool)| match known {
            true => Verdict::Known,
            false => verify(event).map_or_else(Verdict::Invalid, Verdict::Valid),
        };
        let result = known.map(|known| events.into_iter().zip(known).map(verdict).collect());
        self.answer(engine, Input::Verified { ticket, result });
    }

    fn commit(&mut self, engine: EngineId, ticket: Ticket, batch: Batch) {
        let node = &mut self.nodes[engine.0];
        node.commits.push(batch.events.len());
        let marks = batch.coverage.clone();
        let result = match StoreFaults::fails(&mut node.faults.commits) {
            true => Err("the disk is on fire".to_owned()),
            false => at_once(node.store.commit(batch)).map_err(|error| error.to_string()),
        };
        if result.is_ok() {
            marks.iter().for_each(|mark| self.check_mark(engine, mark));
        }
        self.answer(engine, Input::Committed { ticket, result });
    }

    /// Everything that the relay held when it was asked, and that a mark covers, is held here, or known to be gone.
    fn check_mark(&self, engine: EngineId, mark: &Coverage) {
        let (node, now_secs) = (self.node(engine), self.now().unix_secs);
        let (Some(filter), Some(remote)) = (node.filters.get(&mark.filter), self.relays.get(&mark.relay)) else {
            return;
        };
        if !remote.is_checked {
            return;
        }
        for proof in &mark.windows {
            let items = remote.honest().items(filter, proof.window, now_secs);
            let before = |id: &[u8; 32]| remote.honest().got_at_secs.get(id).is_none_or(|at| *at < proof.asked_at_secs);
            let ids: Vec<[u8; 32]> = items.items().iter().map(|item| item.id).filter(before).collect();
            let known = at_once(node.store.known(ids.clone())).expect("the store in memory does not fail");
            let missing = known.iter().filter(|known| !**known).count();
            assert_eq!(
                missing,
                0,
                "a mark of {} claims {} without having it\n{}",
                mark.relay,
                proof.window,
                self.trace()
            );
        }
    }
}
