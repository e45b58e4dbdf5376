//! The same in the whole engine, with every relay connected: what is wanted is packed into filters, fetched from relays
//! that have nothing, and followed.

use std::time::Duration;

use relaysync::discover::{DiscoverConfig, service_url};
use relaysync::engine::{Command, Config, Effect, Engine, Input, Origin, Sizes};
use relaysync::protocol::Event;
use relaysync::runtime::{Frame, Instant, Now};
use relaysync::store::Snapshot;

use super::generator::Scale;
use super::{BATCH_EVENTS, resident_bytes, timed};

/// An engine and relays that answer at once that they have nothing.
pub(crate) struct Planned {
    scale: Scale,
    engine: Engine,
    now: Now,
    pub(crate) spent: Duration,
    pub(crate) requests: u64,
    pub(crate) memory_bytes: f64,
}

impl Planned {
    pub(crate) fn build(scale: Scale) -> Self {
        let before = resident_bytes();
        let ours = service_url("wss://ours.example").expect("it is a URL");
        let discovery =
            DiscoverConfig { service_urls: vec![ours], batch_window: Duration::ZERO, ..DiscoverConfig::default() };
        let config = Config { discovery: Some(discovery), connects_at_once_max: usize::MAX, ..Config::default() };
        let now = Now { instant: Instant::ZERO, unix_secs: 1_700_000_000 };
        let engine = Engine::new(config, Snapshot::default(), 7, now);
        let mut planned = Self { scale, engine, now, spent: Duration::ZERO, requests: 0, memory_bytes: 0.0 };
        planned.accept_all(scale.repositories, |n| scale.announcement(n));
        planned.accept_all(scale.roots, |n| scale.root(n));
        planned.memory_bytes = resident_bytes() - before;
        planned
    }

    fn accept_all(&mut self, count: u64, make: impl Fn(u64) -> Event) {
        for begin in (0..count).step_by(BATCH_EVENTS as usize) {
            let events: Vec<Event> = (begin..count.min(begin + BATCH_EVENTS)).map(&make).collect();
            let spent = self.accept(events) + self.settle();
            self.spent += spent;
        }
    }

    /// Lets one more root follow from what is held; everything that it costs until it is asked for and followed at each of
    /// its relays.
    pub(crate) fn one_more_root(&mut self, n: u64) -> Duration {
        let event = self.scale.root(self.scale.roots + n);
        let spent = self.accept(vec![event]);
        self.settle();
        spent
    }

    fn accept(&mut self, events: Vec<Event>) -> Duration {
        self.now.instant = self.now.instant + Duration::from_micros(1);
        let now = self.now;
        let engine = &mut self.engine;
        timed(|| {
            engine.handle(
                Input::Command(Command::Accepted { events, origin: Origin::Held, brought: Default::default() }),
                now,
            );
            engine.handle(Input::Tick, now);
        })
    }

    /// Answers until nothing is left to answer; gives back the engine's part of the time.
    fn settle(&mut self) -> Duration {
        let mut spent = Duration::ZERO;
        loop {
            let (mut inputs, now, engine) = (Vec::new(), self.now, &mut self.engine);
            while let Some(effect) = engine.poll_effect() {
                self.requests += u64::from(matches!(effect, Effect::Send { .. }));
                inputs.extend(answer(effect));
            }
            if inputs.is_empty() {
                return spent;
            }
            spent += timed(|| inputs.into_iter().for_each(|input| engine.handle(input, now)));
        }
    }

    pub(crate) fn sizes(&self) -> Sizes {
        self.engine.sizes()
    }
}

fn answer(effect: Effect) -> Option<Input> {
    match effect {
        Effect::Connect { conn, .. } => Some(Input::Connected { conn }),
        Effect::LoadItems { ticket, .. } => Some(Input::Items { ticket, result: Ok(Default::default()) }),
        Effect::Commit { ticket, batch } => {
            assert!(batch.events.is_empty(), "relays that have nothing send nothing");
            Some(Input::Committed { ticket, result: Ok(Vec::new()) })
        }
        Effect::Send { conn, frame } => {
            let subscription = frame.strip_prefix("[\"REQ\",\"")?.split('"').next()?;
            Some(Input::Frames { conn, frames: vec![Frame::from(format!("[\"EOSE\",\"{subscription}\"]"))] })
        }
        _ => None,
    }
}
