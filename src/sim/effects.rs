//! Carrying out what engines want done.

use std::collections::VecDeque;
use std::time::Duration;

use super::honest::at_once;
use super::node::{Conn, EngineId, StoreFaults};
use super::note;
use super::pool::check;
use super::remote::{Connects, Remote};
use super::wire::{LATENCY, happens, up_to};
use super::world::{Happening, World};
use crate::engine::{ConnId, Effect, Input, Notice, Ticket};
use crate::ingest::{Verdict, Verified};
use crate::peer::View;
use crate::protocol::{Event, RelayUrl};
use crate::runtime::{CloseReason, ConnectError, Dial, SignError};
use crate::serve::ClientId;
use crate::store::{Batch, Outcome, Store};

/// What a store says that fails.
const DISK_FAULT: &str = "the disk is on fire";

impl World {
    /// Carries effects out. If the engine is to crash now, only some of them.
    pub(super) fn perform_all(&mut self, engine: EngineId, effects: VecDeque<Effect>) {
        let crashes = match &mut self.nodes[engine.0].crash_in {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        let most = if crashes { (self.rng.bits() % (effects.len() as u64 + 1)) as usize } else { usize::MAX };
        for effect in effects.into_iter().take(most) {
            self.perform(engine, effect);
        }
        if crashes {
            self.crash_for_a_while(engine);
        }
    }

    fn perform(&mut self, engine: EngineId, effect: Effect) {
        match effect {
            Effect::Connect { conn, dial } => self.connect(engine, conn, &dial),
            Effect::Send { conn, frame } => {
                if let Some(open) = self.nodes[engine.0].conns.get(&conn) {
                    let (url, client) = (open.relay.clone(), open.client);
                    self.send_up(client, url, frame);
                }
            }
            Effect::SetReading { conn, reading } => self.set_reading(engine, conn, reading),
            Effect::Close { conn, reason } => {
                self.note(engine, "closes", &format!("{} {reason}", conn.0));
                self.nodes[engine.0].closed.push(reason);
                if let Some(open) = self.nodes[engine.0].conns.remove(&conn)
                    && self.wires.get(&open.client).is_some_and(|wire| !wire.is_dead)
                {
                    self.schedule(LATENCY, Happening::Left(open.relay, open.client));
                }
            }
            Effect::FetchInfo { conn, dial } => self.fetch_info(engine, conn, &dial),
            Effect::Sign { conn, relay, challenge } => {
                let result = self.sign(engine, &relay, &challenge);
                self.answer(engine, Input::Signed { conn, result });
            }
            Effect::Notify(notice) => self.take_notice(engine, notice),
            Effect::Verify { ticket, events, look_up } => self.verify(engine, ticket, events, look_up),
            Effect::Commit { ticket, batch } => self.commit(engine, ticket, batch),
            Effect::LoadItems { ticket, filter, window, view } => {
                self.nodes[engine.0].note_filter(&filter);
                let node = &mut self.nodes[engine.0];
                let fails = StoreFaults::fails(&mut node.faults.items) || self.fails_to_read(engine);
                let result = match fails {
                    true => Err(DISK_FAULT.to_owned()),
                    false => at_once(self.node(engine).store.items(&filter, window, &view))
                        .map_err(|error| error.to_string()),
                };
                self.answer(engine, Input::Items { ticket, result });
            }
            Effect::CheckKnown { ticket, ids, view } => {
                let result = self.known(engine, ids.clone(), &view);
                self.check_known(engine, &ids, &view, result.as_deref().unwrap_or_default());
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
        let takes = match (remote.connects.clone(), remote.network.connect(&mut self.rng)) {
            (Connects::Hangs, _) => return,
            (_, None) => return self.inject("connect hangs"),
            (Connects::Refused(error), _) => return self.answer(engine, refused(error)),
            (_, Some(Err(error))) => {
                self.inject("connect refused");
                return self.answer(engine, refused(error));
            }
            (Connects::Always, Some(Ok(takes))) => takes,
        };
        self.clients_made += 1;
        let (client, relay) = (ClientId(self.clients_made), dial.url.clone());
        let wire = self.relays[&relay].network.wire(engine, conn, relay.clone(), &mut self.rng);
        self.wires.insert(client, wire);
        let open = Conn { client, relay: relay.clone(), reading: true, backlog: VecDeque::new() };
        let node = &mut self.nodes[engine.0];
        node.conns.insert(conn, open);
        let life = node.life;
        self.schedule(takes, Happening::Open(engine, life, conn, relay, client));
    }

    fn take_notice(&mut self, engine: EngineId, notice: Notice) {
        let node = &mut self.nodes[engine.0];
        if let Notice::Finished(reports) | Notice::Stopped(reports) = &notice {
            node.ended = Some(reports.clone());
        }
        if let Notice::Judged { ticket, objections } = &notice {
            self.take_judgement(engine, *ticket, objections);
        }
        let node = &mut self.nodes[engine.0];
        if matches!(notice, Notice::StoreFailed(_)) && node.supervised {
            let life = node.life;
            self.schedule(LATENCY, Happening::Crash(engine, life));
        }
        self.nodes[engine.0].notices.push(notice);
    }

    fn set_reading(&mut self, engine: EngineId, conn: ConnId, reading: bool) {
        let node = &mut self.nodes[engine.0];
        node.reading.push(reading);
        let life = node.life;
        let Some(open) = node.conns.get_mut(&conn) else { return };
        open.reading = reading;
        if reading {
            for frame in std::mem::take(&mut open.backlog) {
                self.schedule(Duration::ZERO, Happening::ToEngine(engine, life, conn, frame));
            }
        }
    }

    fn fetch_info(&mut self, engine: EngineId, conn: ConnId, dial: &Dial) {
        if let Some(result) = self.relays.get(&dial.url).and_then(Remote::relay_info) {
            self.answer(engine, Input::RelayInfo { conn, result });
        }
    }

    fn sign(&self, engine: EngineId, relay: &RelayUrl, challenge: &str) -> Result<Verified<Event>, SignError> {
        let author = self.node(engine).signs_as.ok_or(SignError::NoKey)?;
        let draft = note(self.clocks(engine).unix_secs).by(author).kind(22_242);
        let event = draft.tag("relay", relay.as_str()).tag("challenge", challenge).sign();
        check(event).map_err(|why| SignError::Declined(format!("{why:?}")))
    }

    fn known(&mut self, engine: EngineId, ids: Vec<[u8; 32]>, view: &View) -> Result<Vec<bool>, String> {
        if StoreFaults::fails(&mut self.nodes[engine.0].faults.reads) || self.fails_to_read(engine) {
            return Err(DISK_FAULT.to_owned());
        }
        at_once(self.nodes[engine.0].store.known(ids, view)).map_err(|error| error.to_string())
    }

    fn verify(&mut self, engine: EngineId, ticket: Ticket, events: Vec<Event>, look_up: bool) {
        let known = match look_up {
            true => self.known(engine, events.iter().map(|event| event.id.to_bytes()).collect(), &View::all()),
            false => Ok(vec![false; events.len()]),
        };
        let verdict = |(event, known): (Event, bool)| match known {
            true => Verdict::Known,
            false => check(event).map_or_else(Verdict::Invalid, Verdict::Valid),
        };
        let result = known.map(|known| events.into_iter().zip(known).map(verdict).collect());
        self.answer(engine, Input::Verified { ticket, result });
    }

    fn fails_to_read(&mut self, engine: EngineId) -> bool {
        let fails = happens(&mut self.rng, self.nodes[engine.0].disk.read_errors, 1000);
        if fails {
            self.inject("store read error");
        }
        fails
    }

    /// The batch is written, which takes its time: until then it is not durable.
    fn commit(&mut self, engine: EngineId, ticket: Ticket, batch: Batch) {
        let node = &mut self.nodes[engine.0];
        node.commits.push(batch.events.len());
        let is_full = node.disk.full && !batch.events.is_empty();
        let fails = StoreFaults::fails(&mut node.faults.commits) || is_full;
        let by_chance = happens(&mut self.rng, node.disk.commit_errors, 1000);
        let takes = node.work_takes + up_to(&mut self.rng, node.disk.slow_max);
        let life = node.life;
        if by_chance || is_full {
            self.inject(if is_full { "store full" } else { "store commit error" });
        }
        let result = if fails || by_chance { Err(DISK_FAULT.to_owned()) } else { Ok(()) };
        let text = format!("{} events, {} marks", batch.events.len(), batch.coverage.len());
        self.note(engine, "commits", &text);
        self.schedule(takes, Happening::Durable(engine, life, ticket, batch, result));
    }

    pub(super) fn make_durable(&mut self, engine: EngineId, ticket: Ticket, batch: Batch, result: Result<(), String>) {
        let result = result.and_then(|()| self.apply(engine, batch));
        let later = if self.nodes[engine.0].disk.slow_max.is_zero() { Duration::ZERO } else { LATENCY };
        self.answer_in(engine, later, Input::Committed { ticket, result });
    }

    /// Makes a batch durable, and checks what its marks say.
    pub(super) fn apply(&mut self, engine: EngineId, batch: Batch) -> Result<Vec<Outcome>, String> {
        let marks = batch.coverage.clone();
        let discovers = self.nodes[engine.0].config.discovery.is_some();
        let events: Vec<Event> =
            batch.events.iter().filter(|_| discovers).map(|event| event.clone().into_inner()).collect();
        let now_secs = self.now().unix_secs;
        let result = at_once(self.nodes[engine.0].store.commit(batch)).map_err(|error| error.to_string());
        if let Ok(outcomes) = &result {
            self.nodes[engine.0].note_stored(&events, outcomes, now_secs);
            marks.iter().for_each(|mark| self.check_mark(engine, mark));
        }
        result
    }
}
