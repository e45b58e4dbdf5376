//! Whatever clients say, in whatever order work is done and fails: no panic, one OK an event, memory bounded.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use proptest::prelude::*;
use relaysync::protocol::message::client;
use relaysync::protocol::{Event, RelayMessage};
use relaysync::serve::{ClientId, ServeConfig, ServeInput};

use crate::events::{Draft, note};
use crate::world::World;

const CLIENTS: u64 = 3;

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    Say {
        client: u64,
        frame: usize,
    },
    /// Does the piece of work at this place, or fails to.
    Work {
        place: usize,
        fails: bool,
    },
    Pass {
        secs: u64,
    },
    Leave {
        client: u64,
    },
    Elsewhere {
        event: usize,
    },
    Miss,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..CLIENTS, 0..frames().len()).prop_map(|(client, frame)| Step::Say { client, frame }),
        8 => (0..8_usize, prop::bool::weighted(0.1)).prop_map(|(place, fails)| Step::Work { place, fails }),
        1 => (0..40_u64).prop_map(|secs| Step::Pass { secs }),
        1 => (0..CLIENTS).prop_map(|client| Step::Leave { client }),
        1 => (0..events().len()).prop_map(|event| Step::Elsewhere { event }),
        1 => Just(Step::Miss),
    ]
}

fn events() -> &'static [(Draft, Event)] {
    static EVENTS: OnceLock<Vec<(Draft, Event)>> = OnceLock::new();
    EVENTS.get_or_init(|| {
        let drafts = [
            note(1),
            note(2).content("unwanted"),
            note(3).kind(0),
            note(4).kind(0),
            note(5).kind(20_001),
            note(6).kind(5).tag("e", &note(1).sign().id.to_hex()),
            note(7).bare_tag("-"),
            note(8).kind(62).tag("relay", "ALL_RELAYS"),
            note(9).by(2).content("x".repeat(900)),
        ];
        drafts.map(|draft| (draft.clone(), draft.sign())).into()
    })
}

fn frames() -> &'static [String] {
    static FRAMES: OnceLock<Vec<String>> = OnceLock::new();
    FRAMES.get_or_init(|| {
        let mut frames: Vec<String> = events().iter().map(|(_, event)| client::event(event.json_str())).collect();
        frames.push(client::event(&events()[0].1.json_str().replace("a note", "a nose")));
        frames.push(format!(r#"["EVENT",{{"id":"{}"}}]"#, "a".repeat(64)));
        frames.extend(
            [
                r#"["REQ","a",{}]"#,
                r#"["REQ","a",{"limit":0}]"#,
                r#"["REQ","b",{"kinds":[1]},{"since":2},{"until":5}]"#,
                r#"["REQ","c",{"cache":1}]"#,
                r#"["COUNT","c",{}]"#,
                r#"["CLOSE","a"]"#,
                r#"["NEG-OPEN","a",{},"6100000200"]"#,
                r#"["NEG-OPEN","b",{"kinds":[1]},"00"]"#,
                r#"["NEG-MSG","a","6100000200"]"#,
                r#"["NEG-MSG","b","zz"]"#,
                r#"["NEG-CLOSE","a"]"#,
                r#"["AUTH",{}]"#,
                r#"["EVENT"]"#,
                "[",
                "",
            ]
            .map(String::from),
        );
        frames
    })
}

fn config() -> ServeConfig {
    ServeConfig {
        judged: true,
        batch_events_max: 3,
        events_per_minute_max: 20,
        requests_per_minute_max: 20,
        bytes_per_minute_max: 20_000,
        auth_attempts_max: 3,
        subscriptions_max: 2,
        page_events_max: 4,
        read_bytes_max: 500,
        reads_max: 2,
        outbound_bytes_max: 6_000,
        outbound_total_bytes_max: 9_000,
        outbound_pause_bytes: 2_000,
        ..ServeConfig::default()
    }
}

/// The world, and what was said and heard by those who are there now.
struct Play {
    world: World,
    ids: BTreeMap<u64, ClientId>,
    next_id: u64,
    /// OKs that are owed, by client and event.
    owed: BTreeMap<(ClientId, String), i64>,
    unread_bytes: BTreeMap<ClientId, usize>,
}

impl Play {
    fn new(clients_read: bool) -> Self {
        let mut world = World::new(config());
        (world.works, world.clients_read) = (false, clients_read);
        let mut play =
            Self { world, ids: BTreeMap::new(), next_id: 10, owed: BTreeMap::new(), unread_bytes: BTreeMap::new() };
        (0..CLIENTS).for_each(|client| play.enter(client));
        play
    }

    fn enter(&mut self, client: u64) {
        let id = ClientId(self.next_id);
        self.next_id += 1;
        self.world.input(ServeInput::Opened { client: id, challenge: "c".into() });
        self.ids.insert(client, id);
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Say { client, frame } => self.say(self.ids[client], &frames()[*frame]),
            Step::Work { place, fails } => {
                if let Some(work) = self.world.waiting.remove(*place) {
                    self.world.waiting.push_front(work);
                    self.world.broken = *fails;
                    self.world.work_once();
                    self.world.broken = false;
                }
            }
            Step::Pass { secs } => self.world.pass(Duration::from_secs(*secs)),
            Step::Leave { client } => {
                self.world.input(ServeInput::Closed { client: self.ids[client] });
                self.enter(*client);
            }
            Step::Elsewhere { event } => {
                self.world.input(ServeInput::Elsewhere { begun: 1, over: 0 });
                let events = [events()[*event].0.verified()].into();
                self.world.input(ServeInput::Accepted { events });
                self.world.input(ServeInput::Elsewhere { begun: 1, over: 1 });
            }
            Step::Miss => self.world.input(ServeInput::Missed),
        }
        self.hear();
        let cut: Vec<u64> =
            self.ids.iter().filter(|(_, id)| self.world.cuts.contains_key(id)).map(|(&client, _)| client).collect();
        cut.into_iter().for_each(|client| self.enter(client));
    }

    fn say(&mut self, id: ClientId, frame: &str) {
        if let Some(json) = frame.strip_prefix(r#"["EVENT",{"id":""#) {
            *self.owed.entry((id, json[..64].to_owned())).or_default() += 1;
        }
        self.world.input(ServeInput::Frame { client: id, frame: frame.to_owned().into() });
    }

    fn hear(&mut self) {
        let ids: Vec<ClientId> = self.ids.values().copied().collect();
        for id in ids {
            for frame in self.world.heard(id) {
                *self.unread_bytes.entry(id).or_default() += frame.len();
                if let RelayMessage::Ok { id: event, .. } = RelayMessage::parse(&frame).unwrap() {
                    *self.owed.entry((id, event.into_owned())).or_default() -= 1;
                }
            }
        }
    }

    fn is_there(&self, id: ClientId) -> bool {
        self.ids.values().any(|there| *there == id) && !self.world.cuts.contains_key(&id)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_event_gets_one_ok(steps in prop::collection::vec(step(), 1..120)) {
        let mut play = Play::new(true);
        for step in &steps {
            play.take(step);
        }
        play.world.work();
        play.hear();
        prop_assert!(play.world.server.is_settled());
        for ((id, event), owed) in &play.owed {
            // AUTH without an id gets an OK for none.
            prop_assert!(*owed == 0 || !play.is_there(*id) || event.is_empty(), "{id:?} is owed {owed} OKs for {event}");
        }
    }

    #[test]
    fn what_waits_for_clients_that_do_not_read_is_bounded(steps in prop::collection::vec(step(), 1..120)) {
        let (mut play, config) = (Play::new(false), config());
        for step in &steps {
            play.take(step);
            let there = play.unread_bytes.iter().filter(|(id, _)| play.is_there(**id)).map(|(_, bytes)| *bytes);
            let unread: Vec<usize> = there.collect();
            prop_assert!(unread.iter().all(|bytes| *bytes <= config.outbound_bytes_max), "{unread:?}");
            prop_assert!(unread.iter().sum::<usize>() <= config.outbound_total_bytes_max, "{unread:?}");
        }
    }
}
