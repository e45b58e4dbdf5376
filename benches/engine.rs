//! What the engine itself costs an event: everything between a frame and the batch for the store, without sockets,
//! signatures and store; and how much of it is reading JSON.
//!
//! `cargo bench --bench engine -- [EVENTS]`; 100,000 events by default, paged by 500.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use relaysync::engine::{Command, Config, ConnId, Effect, Engine, Input, Notice, RelayOptions, RelayReport};
use relaysync::ingest::{Verdict, Verified, verify};
use relaysync::plan::Interest;
use relaysync::protocol::message::{self, relay};
use relaysync::protocol::{ClientMessage, Event, Filter, RelayMessage, RelayUrl};
use relaysync::runtime::{Frame, Now};
use relaysync::sample::{SampleConfig, SampleKinds, generate};
use relaysync::store::{Method, Outcome, Snapshot};

const CHECKS: usize = 2_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let whole = arguments.iter().any(|argument| argument == "--bench");
    let count =
        arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(if whole { 100_000 } else { 2_000 });
    let config = SampleConfig { events: count, authors: 2_000, kinds: SampleKinds::Regular, ..SampleConfig::default() };
    let mut events = generate(&config);
    events.sort_unstable_by_key(|event| (std::cmp::Reverse(event.created_at_secs()), event.id));

    let check = timed(|| events.iter().take(CHECKS).cloned().for_each(|event| assert!(verify(event).is_ok())));
    let frames: Vec<Frame> = events.iter().map(|event| relay::event("s1", event.json_str()).into()).collect();
    let parse = timed(|| frames.iter().for_each(|frame| assert!(parse(frame).is_some())));
    let report = |name: &str, time: Duration, events: usize| {
        println!("{name:<34}{:>8.2} µs an event", time.as_secs_f64() * 1e6 / events as f64);
    };
    report("signature check", check, count.min(CHECKS));
    report("reading a frame's JSON", parse, count);
    let mut world = World::new(events);
    let engine = world.run();
    report("engine, with reading JSON", engine, count);
    report("engine, without", engine.saturating_sub(parse), count);
    let checks = check.as_secs_f64() / count.min(CHECKS) as f64;
    println!("{:<34}{:>8.3}", "engine / signature check", engine.as_secs_f64() / count as f64 / checks);
}

fn parse(frame: &Frame) -> Option<Event> {
    match RelayMessage::parse(frame.as_str()).ok()? {
        RelayMessage::Event { json, .. } => message::event_of_frame(frame.bytes(), json).ok(),
        _ => None,
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// An engine between a relay that answers at once and a store that takes everything.
struct World {
    engine: Engine,
    /// Newest first.
    events: Vec<Event>,
    spent: Duration,
    report: Option<RelayReport>,
}

impl World {
    fn new(events: Vec<Event>) -> Self {
        let engine = Engine::new(Config::one_shot(), Snapshot::default(), 1, Now::default());
        Self { engine, events, spent: Duration::ZERO, report: None }
    }

    fn run(&mut self) -> Duration {
        let options = RelayOptions { method: Some(Method::Req), ..RelayOptions::default() };
        let interests = [Interest::Opaque(Arc::new(Filter::new()))].into();
        let relay = RelayUrl::parse("ws://relay.example").expect("it is a URL");
        let mut inputs = vec![Input::Command(Command::SetInterests { relay, interests, options })];
        while self.report.is_none() {
            if inputs.is_empty() {
                inputs.push(Input::Tick);
            }
            let now = Now {
                unix_secs: 1_800_000_000,
                instant: self.engine.deadline().map_or_else(Default::default, |(at, _)| at),
            };
            let engine = &mut self.engine;
            self.spent += timed(|| inputs.drain(..).for_each(|input| engine.handle(input, now)));
            inputs = self.answer();
        }
        let report = self.report.take().expect("it has finished");
        assert!(report.complete, "{report:?}");
        assert_eq!(report.counters.stored, self.events.len() as u64);
        self.spent
    }

    fn answer(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        while let Some(effect) = self.engine.poll_effect() {
            match effect {
                Effect::Connect { conn, .. } => inputs.push(Input::Connected { conn }),
                Effect::Send { conn, frame } => inputs.extend(self.answer_frame(conn, &frame)),
                Effect::LoadItems { ticket, .. } => inputs.push(Input::Items { ticket, result: Ok(Arc::default()) }),
                Effect::Verify { ticket, events, .. } => {
                    let verdicts = events.into_iter().map(|event| Verdict::Valid(Verified::trust(event))).collect();
                    inputs.push(Input::Verified { ticket, result: Ok(verdicts) });
                }
                Effect::Commit { ticket, batch } => {
                    inputs.push(Input::Committed { ticket, result: Ok(vec![Outcome::Stored; batch.events.len()]) });
                }
                Effect::Notify(Notice::Finished(mut reports)) => self.report = reports.pop(),
                _ => {}
            }
        }
        inputs
    }

    fn answer_frame(&self, conn: ConnId, frame: &str) -> Option<Input> {
        let Ok(ClientMessage::Req { subscription, filters }) = ClientMessage::parse(frame) else { return None };
        let filter = filters.first()?;
        let until = filter.until.map_or(u64::MAX, |at| at.as_secs());
        let begin = self.events.partition_point(|event| event.created_at_secs() > until);
        let page = self.events[begin..].iter().take(filter.limit.unwrap_or(usize::MAX));
        let mut frames: Vec<Frame> =
            page.map(|event| received(&relay::event(&subscription, event.json_str()))).collect();
        frames.push(received(&relay::eose(&subscription, message::EoseHint::None)));
        Some(Input::Frames { conn, frames })
    }
}

fn received(text: &str) -> Frame {
    Frame::new(Bytes::copy_from_slice(text.as_bytes())).expect("it is text")
}
