//! The queue between relays and the store.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::OnceLock;
use std::time::Duration;

use proptest::prelude::*;
use relaysync::engine::{Config, HistoryId, Ticket, Tickets};
use relaysync::ingest::{Admission, Invalid, Outcomes, Pipeline, Settled, Source, Verdict, Work, verify};
use relaysync::protocol::{Event, Filter, FilterKey, RelayUrl, Window};
use relaysync::runtime::{Instant, Now};
use relaysync::sim::NOW_SECS;
use relaysync::store::{Coverage, Method, Outcome, Proof};

use crate::{config, quiet, supply};

/// What a relay sends to the pipeline.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Genuine(usize),
    Forged(usize),
    Mark,
}

fn sent() -> impl Strategy<Value = Vec<(usize, Sent)>> {
    let one = prop_oneof![
        4 => (0_usize..12).prop_map(Sent::Genuine),
        2 => (0_usize..12).prop_map(Sent::Forged),
        1 => Just(Sent::Mark),
    ];
    proptest::collection::vec((0_usize..3, one), 0..60)
}

/// Verdicts without signatures: forged copies differ from genuine ones by their JSON alone.
struct Bench {
    pipeline: Pipeline,
    tickets: Tickets,
    config: Config,
    now: Instant,
    checks: VecDeque<(Ticket, Vec<Event>)>,
    commit: Option<(Ticket, relaysync::store::Batch)>,
    held: BTreeSet<[u8; 32]>,
    settled: Vec<(Source, Settled)>,
    /// For each mark: what was genuine and sent before it by its relay.
    promised: BTreeMap<u64, BTreeSet<[u8; 32]>>,
    marks_durable: usize,
}

impl Bench {
    fn new() -> Self {
        Self {
            pipeline: Pipeline::default(),
            tickets: Tickets::default(),
            config: Config {
                verify_events_max: 4,
                verify_in_flight_max: 3,
                commit_events_min: 3,
                commit_events_max: 5,
                ..quiet()
            },
            now: Instant::from_origin(Duration::from_secs(1)),
            checks: VecDeque::new(),
            commit: None,
            held: BTreeSet::new(),
            settled: Vec::new(),
            promised: BTreeMap::new(),
            marks_durable: 0,
        }
    }

    fn poll(&mut self) {
        let now = Now { instant: self.now, unix_secs: NOW_SECS };
        let admit = |source: Source, event: &Event| match may_write(source.relay, event) {
            true => Admission::Brought(source.relay.to_string().into()),
            false => Admission::Forbidden,
        };
        while let Some(work) = self.pipeline.poll(now, &self.config, &mut self.tickets, admit) {
            self.take(work);
        }
    }

    fn take(&mut self, work: Work) {
        match work {
            Work::Verify { ticket, events, .. } => self.checks.push_back((ticket, events)),
            Work::Commit(ticket, batch) => {
                assert!(self.commit.is_none(), "one commit at a time");
                let bringers = batch.events.iter().map(|event| batch.contexts[&event.id.to_bytes()].peer.parse());
                let mut pairs = batch.events.iter().zip(bringers);
                assert!(pairs.all(|(event, relay)| relay.is_ok_and(|relay| may_write(relay, event))));
                self.commit = Some((ticket, batch));
            }
            Work::Settled(outcomes) => self.note(outcomes),
        }
    }

    fn note(&mut self, outcomes: Outcomes) {
        self.settled.extend(outcomes.events);
        self.marks_durable += outcomes.marks.len();
    }

    fn check(&mut self, index: usize) {
        let Some((ticket, events)) = self.checks.remove(index) else { return };
        let verdict = |event: Event| {
            if self.held.contains(&event.id.to_bytes()) {
                return Verdict::Known;
            }
            verify(event).map_or(Verdict::Invalid(Invalid::Signature), Verdict::Valid)
        };
        let verdicts = events.into_iter().map(verdict).collect();
        let (outcomes, again) =
            self.pipeline.handle_verified(ticket, Ok(verdicts), self.now, &self.config, &mut self.tickets);
        again.into_iter().for_each(|work| self.take(work));
        self.note(outcomes);
    }

    fn commit(&mut self) {
        let Some((ticket, batch)) = self.commit.take() else { return };
        let stored = |event: &relaysync::ingest::Verified<Event>| match self.held.insert(event.id.to_bytes()) {
            true => Outcome::Stored,
            false => panic!("stored twice"),
        };
        let outcomes = batch.events.iter().map(stored).collect();
        for mark in &batch.coverage {
            let promised = &self.promised[&mark.windows[0].asked_at_secs];
            assert!(promised.is_subset(&self.held), "a mark before its events");
        }
        let outcomes = self.pipeline.handle_committed(ticket, Ok(outcomes));
        self.note(outcomes);
    }
}

/// The third relay may write every other event.
fn may_write(relay: usize, event: &Event) -> bool {
    relay < 2 || event.id.to_bytes()[31].is_multiple_of(2)
}

fn forged(number: usize) -> Event {
    static FORGED: OnceLock<Vec<Event>> = OnceLock::new();
    let forge = |event: &Event| {
        let mut json: serde_json::Value = serde_json::from_str(event.json_str()).expect("an event");
        json["sig"] = "00".repeat(64).into();
        Event::parse(json.to_string().into()).expect("an event")
    };
    FORGED.get_or_init(|| supply()[..12].iter().map(forge).collect())[number].clone()
}

proptest! {
    #![proptest_config(config(200))]

    /// Whatever the order of verdicts: marks stay behind their events, copies that are forged, or come from whoever may
    /// not write them, suppress nothing, and everything that was pushed is settled once.
    #[test]
    fn the_pipeline_keeps_order_and_loses_nothing(sent in sent(), mut choices in proptest::collection::vec(any::<u8>(), 200)) {
        let mut bench = Bench::new();
        let mut genuine: BTreeSet<[u8; 32]> = BTreeSet::new();
        let (mut events, mut marks) = (0, 0);
        let mut sent = VecDeque::from(sent);
        let mut steps = 0;
        loop {
            steps += 1;
            prop_assert!(steps < 5_000, "no end: {:?}", bench.pipeline);
            let choice = choices.pop().unwrap_or(steps as u8);
            match choice % 4 {
                0 | 1 if !sent.is_empty() => {
                    let Some((relay, what)) = sent.pop_front() else { continue };
                    let source = Source { relay, history: HistoryId(relay as u64), era: 0 };
                    match what {
                        Sent::Genuine(n) => {
                            if may_write(relay, &supply()[n]) {
                                genuine.insert(supply()[n].id.to_bytes());
                            }
                            bench.pipeline.push_event(source, supply()[n].clone(), true);
                            events += 1;
                        }
                        Sent::Forged(n) => {
                            bench.pipeline.push_event(source, forged(n), true);
                            events += 1;
                        }
                        Sent::Mark => {
                            marks += 1;
                            bench.promised.insert(marks, genuine.clone());
                            let proof = Proof::new(Window::ALL, Method::Req, marks);
                            let relay = RelayUrl::parse(&format!("wss://r{relay}.example")).expect("a URL");
                            let mark = Coverage { relay, filter: FilterKey::of(&Filter::new()), packed: None, rules: 0, windows: vec![proof] };
                            bench.pipeline.push_mark(source, mark, choice % 8 == 0);
                        }
                    }
                }
                2 => bench.commit(),
                _ if !bench.checks.is_empty() => bench.check(usize::from(choice / 4) % bench.checks.len()),
                _ => bench.now = bench.now + Duration::from_millis(20),
            }
            bench.poll();
            if sent.is_empty() && bench.pipeline.is_empty() {
                break;
            }
        }
        prop_assert_eq!(&bench.held, &genuine);
        prop_assert_eq!(bench.settled.len(), events);
        prop_assert_eq!(bench.marks_durable as u64, marks);
        prop_assert!((0..3).all(|relay| bench.pipeline.bytes_of(relay) == 0));
    }
}
