//! Engines as processes of a machine: they crash, start again, sleep, and have clocks that are wrong.

use std::collections::VecDeque;
use std::time::Duration;

use super::node::EngineId;
use super::wire::{LATENCY, happens, up_to};
use super::world::{Happening, World};
use crate::engine::Command;
use crate::runtime::Now;

/// How long an engine that has crashed, or whose store has failed, is down at most.
const DOWN_MAX: Duration = Duration::from_secs(120);

impl World {
    /// An engine crashes and starts again over its store. It has to be told what to sync.
    pub fn restart(&mut self, engine: EngineId) {
        self.crash(engine);
        let now = self.clocks(engine);
        self.begin_life(engine, now);
    }

    fn begin_life(&mut self, engine: EngineId, now: Now) {
        let world_secs = self.now().unix_secs;
        let node = &mut self.nodes[engine.0];
        node.start(now);
        node.begin_ledger(world_secs);
    }

    /// An engine crashes: what was not durable is gone, or became so at the last moment.
    pub fn crash(&mut self, engine: EngineId) {
        if self.nodes[engine.0].is_down {
            return;
        }
        self.note(engine, "crashes", "");
        self.settle_disk(engine);
        for conn in std::mem::take(&mut self.nodes[engine.0].conns).into_values() {
            if self.wires.get(&conn.client).is_some_and(|wire| !wire.is_dead) {
                self.schedule(LATENCY, Happening::Left(conn.relay, conn.client));
            }
        }
        // Nothing of the old connections may be taken for the new ones'.
        self.wires.retain(|_, wire| wire.engine != engine);
        self.nodes[engine.0].crash();
    }

    /// An engine crashes, and starts again after a while, with the wishes that it had.
    pub fn crash_for(&mut self, engine: EngineId, down: Duration) {
        if !self.nodes[engine.0].is_down {
            self.inject("crash");
            self.crash(engine);
            self.schedule(down, Happening::Start(engine));
        }
    }

    /// The same, for up to two minutes.
    pub(super) fn crash_for_a_while(&mut self, engine: EngineId) {
        let down = up_to(&mut self.rng, DOWN_MAX);
        self.crash_for(engine, down);
    }

    /// What was being written when the process died reached the disk as a whole, or not at all.
    fn settle_disk(&mut self, engine: EngineId) {
        let is_write = |happening: &Happening| matches!(happening, Happening::Durable(of, ..) if *of == engine);
        let mut writes: Vec<Happening> = Vec::new();
        let keys: Vec<_> = self.heap.iter().filter(|(_, happening)| is_write(happening)).map(|(key, _)| *key).collect();
        writes.extend(keys.into_iter().filter_map(|key| self.heap.remove(&key)));
        if let Some(waiting) = &mut self.nodes[engine.0].asleep {
            let (held, rest) = std::mem::take(waiting).into_iter().partition(|happening| is_write(happening));
            *waiting = rest;
            writes.extend::<VecDeque<Happening>>(held);
        }
        let life = self.nodes[engine.0].life;
        for write in writes {
            if let Happening::Durable(_, of, _, batch, Ok(())) = write
                && of == life
                && happens(&mut self.rng, 1, 2)
            {
                self.inject("crash after the commit was durable");
                self.apply(engine, batch).expect("the store in memory does not fail");
            }
        }
    }

    pub(super) fn start(&mut self, engine: EngineId) {
        if !self.nodes[engine.0].is_down {
            return;
        }
        self.note(engine, "starts", "");
        let now = self.clocks(engine);
        self.begin_life(engine, now);
        self.tell_wishes(engine);
        self.tell_held(engine);
    }

    /// Tells an engine everything that it is to sync.
    pub(super) fn tell_wishes(&mut self, engine: EngineId) {
        self.tell_peers(engine);
        for (relay, (interests, options)) in self.nodes[engine.0].wishes.clone() {
            self.command(engine, Command::SetInterests { relay, interests, options });
        }
    }

    /// An engine's machine goes to sleep. Its monotonic clock may stand still, too.
    pub fn suspend(&mut self, engine: EngineId, duration: Duration, clock_stands: bool) {
        let node = &mut self.nodes[engine.0];
        if !node.is_up() {
            return;
        }
        node.asleep = Some(VecDeque::new());
        node.watches.values_mut().for_each(|watch| watch.link.disturb());
        if clock_stands {
            node.lag += duration;
        }
        self.note(engine, "sleeps", &format!("{duration:?}"));
        self.inject(if clock_stands { "sleep with the clock" } else { "sleep" });
        self.schedule(duration, Happening::Wake(engine));
    }

    pub(super) fn wake(&mut self, engine: EngineId) {
        if let Some(waiting) = self.nodes[engine.0].asleep.take() {
            self.note(engine, "wakes", "");
            waiting.into_iter().for_each(|happening| self.schedule(Duration::ZERO, happening));
        }
    }

    /// An engine's wall clock is off by so much from now on, in seconds.
    pub fn set_wall_offset(&mut self, engine: EngineId, offset_secs: i64) {
        let until = self.now().unix_secs;
        let node = &mut self.nodes[engine.0];
        if node.wall_offset_secs != offset_secs {
            node.offsets.push((until, node.wall_offset_secs));
            node.wall_offset_secs = offset_secs;
            self.note(engine, "wall clock off by", &offset_secs.to_string());
            self.inject("wall clock stepped");
        }
    }
}
