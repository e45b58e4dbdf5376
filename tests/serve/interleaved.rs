//! Random inputs of clients, work that is done late and out of order, and rules that change at any point: no frame ever
//! has anything that the rules of that moment keep from the client that it goes to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use proptest::test_runner::FileFailurePersistence;
use relaysync::ingest::verify;
use relaysync::peer::{AccessRules, Capability, View};
use relaysync::protocol::message::client;
use relaysync::protocol::{Event, Filter, PublicKey, RelayMessage};
use relaysync::serve::{ClientId, ServeConfig, ServeInput};
use relaysync::store::Store;

use crate::access::{authenticate, filter, key, rule};
use crate::events::{NOW_SECS, note};
use crate::world::{ALICE, BOB, World, at_once};

/// Authors, whose keys clients have, too.
const KEYS: [u8; 3] = [1, 2, 3];

/// What is protected, what rules allow, and what clients ask for.
fn matches() -> Vec<Filter> {
    let author = key(1).to_hex();
    let texts = [
        r#"{"kinds":[5000]}"#.to_owned(),
        r#"{"kinds":[1,5000]}"#.into(),
        r##"{"kinds":[5000],"#r":["x"]}"##.into(),
        r##"{"#r":["y"]}"##.into(),
        r##"{"#r":["x","y"]}"##.into(),
        format!(r#"{{"authors":["{author}"]}}"#),
        format!(r#"{{"authors":["{author}"],"kinds":[5000]}}"#),
        "{}".into(),
    ];
    texts.iter().map(|text| filter(text)).collect()
}

fn pool() -> &'static [Event] {
    static EVENTS: OnceLock<Vec<Event>> = OnceLock::new();
    EVENTS.get_or_init(|| {
        let event = |n: u8| {
            let draft = note(100 + u64::from(n) / 3).by(1 + n % 2).kind(if n.is_multiple_of(3) { 1 } else { 5_000 });
            let draft = if n % 5 < 3 { draft.tag("r", "x") } else { draft };
            if n % 4 < 2 { draft.tag("r", "y") } else { draft }.content(format!("event {n}")).sign()
        };
        let mut events: Vec<Event> = (0..16).map(event).collect();
        let deletion = note(110).by(1).kind(5);
        let deletion = events.iter().step_by(3).fold(deletion, |draft, it| draft.tag("e", &it.id.to_hex()));
        events.push(deletion.sign());
        events.push(note(NOW_SECS).by(2).kind(20_000).tag("r", "x").sign());
        events
    })
}

#[derive(Debug, Clone)]
enum Step {
    Rules(Vec<Filter>, Vec<(u8, Capability, Filter)>),
    Authenticate(ClientId, u8),
    Req(ClientId, &'static str, Vec<Filter>),
    Close(ClientId, &'static str),
    Count(ClientId, Vec<Filter>),
    Open(ClientId, &'static str, Filter),
    Message(ClientId, &'static str),
    Publish(ClientId, Index),
    Elsewhere(Index),
    Work(Index),
}

fn a_step() -> impl Strategy<Value = Step> {
    let who = || select(vec![ALICE, BOB]);
    let name = || select(vec!["a", "b", "c"]);
    let capability = select(vec![Capability::SyncRead, Capability::SyncRead, Capability::SyncWrite]);
    let rule = (select(KEYS.to_vec()), capability, select(matches()));
    let narrowing = (prop::option::weighted(0.2, 99_u64..107), prop::option::weighted(0.2, 0_usize..9));
    let asked = || {
        (select(matches()), narrowing.clone()).prop_map(|(filter, (since, limit))| {
            let since = since.map(Into::into);
            Filter { since, limit, ..filter }
        })
    };
    prop_oneof![
        3 => (subsequence(matches(), 0..3), vec(rule, 0..4)).prop_map(|(protected, rules)| Step::Rules(protected, rules)),
        1 => (who(), select(KEYS.to_vec())).prop_map(|(who, key)| Step::Authenticate(who, key)),
        5 => (who(), name(), vec(asked(), 1..3)).prop_map(|(who, name, filters)| Step::Req(who, name, filters)),
        1 => (who(), name()).prop_map(|(who, name)| Step::Close(who, name)),
        2 => (who(), vec(asked(), 1..3)).prop_map(|(who, filters)| Step::Count(who, filters)),
        3 => (who(), name(), asked()).prop_map(|(who, name, filter)| Step::Open(who, name, filter)),
        2 => (who(), name()).prop_map(|(who, name)| Step::Message(who, name)),
        3 => (who(), any::<Index>()).prop_map(|(who, event)| Step::Publish(who, event)),
        2 => any::<Index>().prop_map(Step::Elsewhere),
        12 => any::<Index>().prop_map(Step::Work),
    ]
}

/// An empty set's first message: a range with no id, which is answered by all ids of a small set.
const NOTHING: &[u8] = &[0x61, 0, 0, 2, 0];

/// The filters of a COUNT, and the keys that the client had.
type Asked = (Vec<Filter>, BTreeSet<PublicKey>);

/// The server, and what is known of its clients.
struct Interleaving {
    world: World,
    keys: BTreeMap<ClientId, BTreeSet<PublicKey>>,
    asked: BTreeMap<ClientId, Vec<Asked>>,
    frames: usize,
}

impl Interleaving {
    fn new(read_bytes_max: usize, outbound_pause_bytes: usize) -> Self {
        let config = ServeConfig { read_bytes_max, outbound_pause_bytes, ..ServeConfig::default() };
        let mut world = World::with(config, &pool()[..6]);
        world.works = false;
        Self { world, keys: BTreeMap::new(), asked: BTreeMap::new(), frames: 0 }
    }

    fn take(&mut self, step: Step) {
        let world = &mut self.world;
        match step {
            Step::Rules(protected, rules) => {
                let rules = rules.into_iter().map(|(author, capability, events)| {
                    rule(author, capability, &serde_json::to_string(&events).unwrap())
                });
                world.input(ServeInput::Access(Arc::new(AccessRules::new(protected, rules))));
            }
            Step::Authenticate(client, author) => {
                self.check();
                authenticate(&mut self.world, client, author);
                self.keys.entry(client).or_default().insert(key(author));
            }
            Step::Req(client, name, filters) => self.tell(client, client::req(name, &filters)),
            Step::Close(client, name) => self.tell(client, client::close(name)),
            Step::Count(client, filters) => {
                let asked = self.asked.entry(client).or_default();
                asked.push((filters.clone(), self.keys.get(&client).cloned().unwrap_or_default()));
                let name = format!("count {}", asked.len() - 1);
                self.tell(client, client::req(&name, &filters).replacen("REQ", "COUNT", 1));
            }
            Step::Open(client, name, filter) => self.tell(client, client::neg_open(name, &filter, NOTHING)),
            Step::Message(client, name) => self.tell(client, client::neg_msg(name, NOTHING)),
            Step::Publish(client, event) => self.tell(client, client::event(event.get(pool()).json_str())),
            Step::Elsewhere(event) => {
                let event = verify(event.get(pool()).clone()).unwrap();
                let batch =
                    relaysync::store::Batch { events: vec![event.clone()], now_secs: NOW_SECS, ..Default::default() };
                if at_once(world.store.commit(batch)).unwrap() == [relaysync::store::Outcome::Stored] {
                    world.input(ServeInput::Accepted { events: [event].into() });
                }
            }
            Step::Work(index) if !world.waiting.is_empty() => {
                world.waiting.rotate_left(index.index(world.waiting.len()));
                world.work_once();
            }
            Step::Work(_) => {}
        }
        self.check();
    }

    fn tell(&mut self, client: ClientId, frame: String) {
        let heard = self.world.say(client, frame);
        heard.iter().for_each(|frame| self.check_frame(client, frame));
    }

    /// Looks at what was sent since the last step.
    fn check(&mut self) {
        for client in [ALICE, BOB] {
            for frame in self.world.heard(client) {
                self.check_frame(client, &frame);
            }
        }
    }

    fn check_frame(&mut self, client: ClientId, frame: &str) {
        self.frames += 1;
        let rules = self.world.server.config().access.clone();
        let keys = self.keys.get(&client).cloned().unwrap_or_default();
        let message = RelayMessage::parse(frame).unwrap();
        if let RelayMessage::Count { subscription, count } = &message {
            let (asked, keys) = self.asked[&client][subscription["count ".len()..].parse::<usize>().unwrap()].clone();
            // By a walk over all events: what the store has to say of views is checked elsewhere.
            let all = self.world.store.query(relaysync::store::Query {
                filter: Filter::new(),
                after: None,
                limit: usize::MAX,
                bytes_max: usize::MAX,
                now_secs: NOW_SECS,
                view: View::all(),
            });
            let events = at_once(all).unwrap().records.into_iter().map(|record| Event::parse(record.json).unwrap());
            let is_asked = |event: &Event| asked.iter().any(|it| relaysync::protocol::filter::matches(it, event));
            let is_seen = |event: &Event| rules.allows(&keys, Capability::SyncRead, event);
            assert_eq!(*count, events.filter(|event| is_asked(event) && is_seen(event)).count() as u64, "{frame}");
            return;
        }
        let is_hidden = |event: &&Event| !rules.allows(&keys, Capability::SyncRead, event);
        for event in pool().iter().filter(is_hidden) {
            let id = event.id.to_hex();
            let tells = match &message {
                // A deletion may be seen though what it names is hidden.
                RelayMessage::Event { json, .. } => Event::parse((*json).to_owned().into()).unwrap().id == event.id,
                // It names what the client itself has sent.
                RelayMessage::Ok { .. } => false,
                _ => frame.contains(&id),
            };
            assert!(!tells, "{client:?} may not see {id}: {frame}");
        }
    }
}

fn config(cases: u32) -> ProptestConfig {
    let persistence = FileFailurePersistence::Direct("tests/serve/regressions.txt");
    ProptestConfig { cases, failure_persistence: Some(Box::new(persistence)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn nothing_hidden_is_ever_in_a_frame(
        steps in vec(a_step(), 1..120),
        read_bytes_max in select(vec![1_usize, 700, 100_000]),
        outbound_pause_bytes in select(vec![1_usize, 100_000]),
    ) {
        let mut interleaving = Interleaving::new(read_bytes_max, outbound_pause_bytes);
        for step in steps {
            interleaving.take(step);
        }
        while !interleaving.world.waiting.is_empty() {
            interleaving.world.work_once();
            interleaving.check();
        }
    }
}
