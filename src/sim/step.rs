//! Letting time pass: the next thing that happens, and to whom.

use std::time::Duration;

use super::honest::Said;
use super::node::EngineId;
use super::remote::{Delivery, Remote};
use super::wire::{LATENCY, Passage, up_to};
use super::world::{Ending, Happening, World};
use crate::engine::{Command, ConnId, Input};
use crate::protocol::RelayUrl;
use crate::runtime::{CloseReason, Frame, Instant};
use crate::serve::ClientId;

/// Things that may happen at one moment before it counts as a live-lock.
const STEPS_AT_ONCE_MAX: u64 = 200_000;

impl World {
    /// Gives an engine an input, as it is.
    pub fn input(&mut self, engine: EngineId, input: Input) {
        let now = self.clocks(engine);
        let node = &mut self.nodes[engine.0];
        if node.is_down {
            return;
        }
        node.handles += 1;
        if matches!(input, Input::Command(Command::Accepted { .. })) {
            node.note_told();
        }
        node.engine.handle(input, now);
        let effects = node.effects();
        self.check_effects(engine, effects.iter());
        self.check_sizes(engine);
        self.perform_all(engine, effects);
        self.nodes[engine.0].settle_ledger();
    }

    /// Runs for so long.
    pub fn run(&mut self, duration: Duration) {
        self.run_until(duration, |_| false);
    }

    /// Runs until `condition` holds, at most so long. Does it hold?
    pub fn run_until(&mut self, at_most: Duration, condition: impl Fn(&Self) -> bool) -> bool {
        let end = self.instant + at_most;
        while !condition(self) {
            if !self.step(end) {
                return condition(self);
            }
        }
        true
    }

    /// Lets the next thing happen, if it does before `end`; else it is `end`.
    fn step(&mut self, end: Instant) -> bool {
        let heap = self.heap.keys().next().map(|(at, _)| *at);
        let engines = self.nodes.iter().filter_map(|node| node.deadline(self.instant)).min();
        let relays = self.relays.values().filter_map(Remote::deadline).min();
        let Some(at) = [heap, engines, relays].into_iter().flatten().min().filter(|at| *at <= end) else {
            self.advance_to(end);
            return false;
        };
        self.advance_to(at);
        if heap == Some(at) {
            if let Some((_, happening)) = self.heap.pop_first() {
                self.happen(happening);
            }
        } else if engines == Some(at) {
            self.tick_engines(at);
        } else {
            self.tick_relays();
        }
        true
    }

    fn advance_to(&mut self, at: Instant) {
        if at > self.instant {
            self.instant = at;
            self.steps_at_once = 0;
        }
        self.steps_at_once += 1;
        assert!(self.steps_at_once < STEPS_AT_ONCE_MAX, "live-lock:\n{}", self.trace());
    }

    fn tick_engines(&mut self, at: Instant) {
        for number in 0..self.nodes.len() {
            let engine = EngineId(number);
            if self.nodes[number].deadline(self.instant).is_some_and(|due| due <= at) {
                let why = self.nodes[number].engine.deadline().map_or("", |(_, why)| why);
                self.note(engine, "tick", why);
                self.nodes[number].lateness = up_to(&mut self.rng, self.nodes[number].late_max);
                self.check_tick(engine);
                self.input(engine, Input::Tick);
            }
        }
    }

    fn tick_relays(&mut self) {
        let now = self.now();
        let due = |relay: &Remote| relay.deadline().is_some_and(|at| at <= now.instant);
        let urls: Vec<RelayUrl> =
            self.relays.iter().filter(|(_, relay)| due(relay)).map(|(url, _)| url.clone()).collect();
        for url in urls {
            let deliveries = self.relay_mut(&url).tick(now);
            self.deliver(deliveries);
        }
    }

    fn happen(&mut self, happening: Happening) {
        let now = self.now();
        let Some(happening) = self.reach(happening) else { return };
        match happening {
            Happening::Input(engine, _, input) => {
                self.note_info(engine, &input);
                self.note_identity(engine, &input);
                self.input(engine, input);
            }
            Happening::Durable(engine, _, ticket, batch, result) => self.make_durable(engine, ticket, batch, result),
            Happening::FromClients(engine, _, events) => self.store_from_clients(engine, events),
            Happening::ToEngine(engine, _, conn, frame) => self.arrive(engine, conn, frame),
            Happening::Cut(engine, _, conn, ending) => self.end(engine, conn, ending),
            Happening::Open(engine, _, conn, url, client) => {
                if self.nodes[engine.0].conns.contains_key(&conn) {
                    self.note(&url, "opens", &format!("{engine}, client {}", client.0));
                    self.note_open(engine, &url);
                    self.input(engine, Input::Connected { conn });
                    let deliveries = self.relay_mut(&url).open(client, now);
                    self.deliver(deliveries);
                }
            }
            Happening::ToRelay(url, client, frame) => {
                self.note(&url, "<-", &frame);
                if let Some(wire) = self.wires.get_mut(&client) {
                    wire.bytes_up = wire.bytes_up.saturating_sub(frame.len());
                }
                let deliveries = self.relay_mut(&url).receive(client, frame, now);
                self.deliver(deliveries);
            }
            Happening::Left(url, client) => {
                self.wires.remove(&client);
                self.relay_mut(&url).close(client, now);
            }
            Happening::Crash(engine, _) => self.crash_for_a_while(engine),
            Happening::Start(engine) => self.start(engine),
            Happening::Wake(engine) => self.wake(engine),
        }
    }

    /// What is for an engine that is no more is dropped, and waits while it sleeps.
    fn reach(&mut self, happening: Happening) -> Option<Happening> {
        let (engine, life) = match &happening {
            Happening::Input(engine, life, _)
            | Happening::Durable(engine, life, ..)
            | Happening::FromClients(engine, life, ..)
            | Happening::ToEngine(engine, life, ..)
            | Happening::Cut(engine, life, ..)
            | Happening::Open(engine, life, ..)
            | Happening::Crash(engine, life) => (*engine, *life),
            _ => return Some(happening),
        };
        let node = &mut self.nodes[engine.0];
        if node.life != life || node.is_down {
            return None;
        }
        match &mut node.asleep {
            Some(waiting) => {
                waiting.push_back(happening);
                None
            }
            None => Some(happening),
        }
    }

    fn end(&mut self, engine: EngineId, conn: ConnId, ending: Ending) {
        let Some(open) = self.nodes[engine.0].conns.remove(&conn) else { return };
        let reason = match ending {
            Ending::Closed(words) => CloseReason::Remote(words),
            Ending::Broke => CloseReason::Io("connection reset".into()),
            Ending::Backlogged => CloseReason::Backlogged,
            Ending::TooLarge => CloseReason::FrameTooLarge,
        };
        self.note(&open.relay, "closed,", &format!("{engine} {}: {reason}", conn.0));
        let now = self.instant;
        self.note_break(engine, &open.relay);
        let words = if let CloseReason::Remote(words) = &reason { words } else { "" };
        self.nodes[engine.0].watches.entry(open.relay.clone()).or_default().handle_close(words, now);
        self.input(engine, Input::Disconnected { conn, reason });
    }

    fn arrive(&mut self, engine: EngineId, conn: ConnId, frame: Frame) {
        let now = self.instant;
        let node = &mut self.nodes[engine.0];
        let Some(open) = node.conns.get_mut(&conn) else { return };
        if !open.reading {
            open.backlog.push_back(frame);
            return;
        }
        let url = open.relay.clone();
        node.watches.entry(url.clone()).or_default().handle_frame(frame.as_str(), now);
        self.note(&url, "->", frame.as_str());
        self.note_bringer(engine, conn, &url, frame.as_str());
        self.input(engine, Input::Frames { conn, frames: vec![frame] });
    }

    pub(super) fn deliver(&mut self, deliveries: Vec<Delivery>) {
        for (client, said, delay) in deliveries {
            match said {
                Said::Frame(frame) => {
                    self.check_complaint(client, &frame);
                    self.send_down(client, frame, delay);
                }
                Said::Close(words) => self.end_wire(client, LATENCY + delay, Ending::Closed(words)),
            }
        }
    }

    fn send_down(&mut self, client: ClientId, frame: String, delay: Duration) {
        let Some((passage, engine, conn)) = self.pass(client, false, delay) else { return };
        let life = self.nodes[engine.0].life;
        match passage {
            Passage::Arrives(takes) if frame.len() > self.nodes[engine.0].config.frame_bytes_max => {
                self.sever(client, takes, takes, Ending::TooLarge);
            }
            Passage::Arrives(takes) => self.schedule(takes, Happening::ToEngine(engine, life, conn, frame.into())),
            Passage::Breaks => self.break_wire(client),
            Passage::Lost => {}
        }
    }

    pub(super) fn send_up(&mut self, client: ClientId, relay: RelayUrl, frame: String) {
        self.frames_up += 1;
        match self.pass(client, true, Duration::ZERO) {
            Some((Passage::Arrives(takes), ..)) => {
                if let Some(wire) = self.wires.get_mut(&client) {
                    wire.bytes_up += frame.len();
                    if wire.bytes_up > self.outbound_bytes_max {
                        self.inject("connection backlogged");
                        return self.sever(client, LATENCY, Duration::ZERO, Ending::Backlogged);
                    }
                }
                self.schedule(takes, Happening::ToRelay(relay, client, frame));
            }
            Some((Passage::Breaks, ..)) => self.break_wire(client),
            Some((Passage::Lost, ..)) | None => {}
        }
    }

    fn pass(&mut self, client: ClientId, up: bool, delay: Duration) -> Option<(Passage, EngineId, ConnId)> {
        let wire = self.wires.get_mut(&client)?;
        let faults = &self.relays[&wire.relay].network;
        let was_dead = wire.is_dead;
        let passage = wire.pass(up, self.instant, delay, faults, &mut self.rng);
        let (is_dead, engine, conn, is_tarpit) = (wire.is_dead, wire.engine, wire.conn, wire.is_tarpit);
        if is_dead && !was_dead {
            self.inject("connection half open");
            self.note(engine, "half open", &conn.0.to_string());
        }
        if is_tarpit {
            self.inject("tarpit");
        }
        Some((passage, engine, conn))
    }

    /// The link breaks: both ends learn of it.
    pub(super) fn break_wire(&mut self, client: ClientId) {
        self.inject("connection broken");
        self.sever(client, LATENCY, LATENCY, Ending::Broke);
    }

    /// A connection ends for both ends, each of which learns of it after a while.
    fn sever(&mut self, client: ClientId, relay_learns_in: Duration, engine_learns_in: Duration, ending: Ending) {
        if let Some(wire) = self.wires.get(&client) {
            let relay = wire.relay.clone();
            self.schedule(relay_learns_in, Happening::Left(relay, client));
        }
        self.end_wire(client, engine_learns_in, ending);
    }

    /// The engine's end learns that a connection is over.
    pub(super) fn end_wire(&mut self, client: ClientId, delay: Duration, ending: Ending) {
        let Some(wire) = self.wires.get(&client).filter(|wire| !wire.is_dead) else { return };
        let (engine, conn) = (wire.engine, wire.conn);
        let life = self.nodes[engine.0].life;
        self.schedule(delay, Happening::Cut(engine, life, conn, ending));
    }
}
