//! Discovery against a model that works out everything anew from all events that were observed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nostr::event::{EventId, Kind, Signature, Tag, Tags};
use nostr::key::PublicKey;
use nostr::types::Timestamp;
use proptest::prelude::*;
use relaysync::discover::{Accept, DiscoverConfig, Discovery};
use relaysync::plan::Interest;
use relaysync::protocol::{Address, Event, RelayUrl, hex};
use relaysync::runtime::Instant;

use crate::config as cases;

type Targets = BTreeMap<RelayUrl, BTreeSet<Interest>>;

const OURS: &str = "wss://ours.example";
const PRIVATE: &str = "ws://10.0.0.1";
const RELAYS: [&str; 6] = [OURS, "wss://a.example", "wss://b.example", "ws://c.example/x", PRIVATE, "nonsense"];
const IDENTIFIERS: [&str; 3] = ["x", "y:z", ""];
const AUTHORS: u8 = 4;
const KINDS: [u16; 3] = [1617, 1618, 1621];

/// An event without a signature: discovery is told only of events that have one.
fn event(author: u8, kind: u16, created_at: u64, tags: Vec<Vec<String>>, content: &str) -> Event {
    let author = PublicKey::from_byte_array([author + 1; 32]);
    let (created_at, kind) = (Timestamp::from(created_at), Kind::from_u16(kind));
    let tags = Tags::from_list(tags.iter().map(|tag| Tag::parse(tag).expect("it has a name")).collect());
    let id = EventId::compute(&author, &created_at, &kind, &tags, content);
    nostr::event::Event::new(id, author, created_at, kind, tags, content, Signature::from_byte_array([0; 64])).into()
}

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn address(author: u8, identifier: usize) -> Address {
    Address::repository([author + 1; 32], IDENTIFIERS[identifier])
}

/// What an event is to be, before it is known which others there are.
#[derive(Debug, Clone)]
enum Sketch {
    Announcement {
        author: u8,
        identifier: usize,
        relays: Vec<usize>,
        at: u64,
    },
    Root {
        author: u8,
        kind: usize,
        repositories: Vec<(u8, usize)>,
        at: u64,
    },
    DeletedAddress {
        author: u8,
        identifier: usize,
        at: u64,
    },
    /// Names an earlier event; sometimes by another author.
    DeletedId {
        of: usize,
        by_author: bool,
        at: u64,
    },
    Vanished {
        author: u8,
        relay: usize,
        at: u64,
    },
}

fn sketch() -> impl Strategy<Value = Sketch> {
    let (author, identifier, at) = (0..AUTHORS, 0..IDENTIFIERS.len(), 1..6_u64);
    let relays = proptest::collection::vec(0..RELAYS.len(), 0..5);
    let repositories = proptest::collection::vec((author.clone(), identifier.clone()), 0..4);
    prop_oneof![
        6 => (author.clone(), identifier.clone(), relays, at.clone())
            .prop_map(|(author, identifier, relays, at)| Sketch::Announcement { author, identifier, relays, at }),
        6 => (author.clone(), 0..KINDS.len(), repositories, at.clone())
            .prop_map(|(author, kind, repositories, at)| Sketch::Root { author, kind, repositories, at }),
        1 => (author.clone(), identifier, at.clone())
            .prop_map(|(author, identifier, at)| Sketch::DeletedAddress { author, identifier, at }),
        2 => (any::<usize>(), prop::bool::weighted(0.8), at.clone())
            .prop_map(|(of, by_author, at)| Sketch::DeletedId { of, by_author, at }),
        1 => (author, 0..3_usize, at).prop_map(|(author, relay, at)| Sketch::Vanished { author, relay, at }),
    ]
}

fn draw(sketches: &[Sketch]) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for sketch in sketches {
        let next = match sketch {
            Sketch::Announcement { author, identifier, relays, at } => {
                let mut listed = strings(&["relays"]);
                listed.extend(relays.iter().map(|relay| RELAYS[*relay].to_owned()));
                event(*author, 30617, *at, vec![strings(&["d", IDENTIFIERS[*identifier]]), listed], "")
            }
            Sketch::Root { author, kind, repositories, at } => {
                let tag =
                    |(author, identifier): &(u8, usize)| strings(&["a", &address(*author, *identifier).to_string()]);
                event(*author, KINDS[*kind], *at, repositories.iter().map(tag).collect(), "")
            }
            Sketch::DeletedAddress { author, identifier, at } => {
                let tag = strings(&["a", &address(*author, *identifier).to_string()]);
                event(*author, 5, *at, vec![tag], "")
            }
            Sketch::DeletedId { of, by_author, at } => {
                let Some(of) = (!events.is_empty()).then(|| &events[of % events.len()]) else { continue };
                let author = of.pubkey.to_bytes()[0] - 1;
                let author = if *by_author { author } else { (author + 1) % AUTHORS };
                event(author, 5, *at, vec![strings(&["e", &of.id.to_hex()])], "")
            }
            Sketch::Vanished { author, relay, at } => {
                let relay = ["ALL_RELAYS", OURS, "wss://elsewhere.example"][*relay];
                event(*author, 62, *at, vec![strings(&["relay", relay])], "")
            }
        };
        events.push(next);
    }
    events
}

fn url(text: &str) -> RelayUrl {
    RelayUrl::parse(text).expect("it is a URL")
}

/// A configuration from a few choices. Bounds are never reached.
fn configuration(choices: u32) -> DiscoverConfig {
    let chosen = |bit: u32| choices & (1 << bit) != 0;
    let urls = |bit: u32, of: &str| if chosen(bit) { vec![url(of)] } else { vec![] };
    DiscoverConfig {
        service_urls: [vec![url(OURS)], urls(0, "wss://b.example")].concat(),
        accept: [Accept::Listed, Accept::Listed, Accept::Allowed, Accept::All][(choices >> 1) as usize % 4],
        allow_authors: if chosen(3) { [[1; 32]].into() } else { BTreeSet::new() },
        allow_repositories: if chosen(4) { [address(1, 1)].into() } else { BTreeSet::new() },
        block_authors: if chosen(5) { [[2; 32]].into() } else { BTreeSet::new() },
        block_repositories: if chosen(6) { [address(2, 0)].into() } else { BTreeSet::new() },
        block_relays: urls(7, "ws://c.example"),
        bootstrap: [urls(8, "wss://a.example"), urls(9, PRIVATE)].concat(),
        private_relays: chosen(10),
        batch_interests_max: if chosen(11) { 3 } else { 100_000 },
        ..DiscoverConfig::default()
    }
}

/// What is wanted of each relay, worked out from nothing.
fn model(config: &DiscoverConfig, observed: &[Event]) -> Targets {
    let mut targets = Targets::new();
    for relay in config.bootstrap.iter().filter(|relay| may_be_target(config, relay)) {
        targets.entry(relay.clone()).or_default().insert(Interest::Announcements);
    }
    for author in 0..AUTHORS {
        for identifier in 0..IDENTIFIERS.len() {
            let address = address(author, identifier);
            let Some(announcement) = standing(observed, &address) else { continue };
            let relays = listed(&announcement);
            let ours = relays.iter().any(|relay| config.service_urls.contains(relay));
            let allowed = config.allow_authors.contains(&address.author)
                || config.allow_repositories.contains(&address)
                || config.accept == Accept::All
                || config.accept == Accept::Listed && ours;
            let blocked =
                config.block_authors.contains(&address.author) || config.block_repositories.contains(&address);
            if !allowed || blocked {
                continue;
            }
            let roots = roots(config, observed, &address);
            for relay in relays.iter().filter(|relay| may_be_target(config, relay)) {
                let interests = targets.entry(relay.clone()).or_default();
                interests.extend([Interest::Announcements, Interest::Repo(address.clone())]);
                interests.extend(roots.iter().map(|id| Interest::Root(*id)));
            }
        }
    }
    targets
}

fn may_be_target(config: &DiscoverConfig, relay: &RelayUrl) -> bool {
    let is_blocked = config.block_relays.iter().any(|blocked| blocked.host() == relay.host());
    let is_private = relay.as_str() == PRIVATE && !config.private_relays && !config.bootstrap.contains(relay);
    !config.service_urls.contains(relay) && !is_blocked && !is_private
}

fn listed(announcement: &Event) -> BTreeSet<RelayUrl> {
    let tags = announcement.tags.iter().filter(|tag| tag.kind() == "relays");
    tags.flat_map(|tag| tag.as_slice()[1..].iter().filter_map(|text| RelayUrl::parse(text).ok())).collect()
}

fn has_tag(event: &Event, name: &str, value: &str) -> bool {
    event.tags.iter().any(|tag| tag.kind() == name && tag.content() == Some(value))
}

/// The newest announcement, unless it was removed.
fn standing(observed: &[Event], address: &Address) -> Option<Event> {
    let mut versions: Vec<&Event> = observed
        .iter()
        .filter(|event| event.kind_number() == 30617 && event.pubkey.to_bytes() == address.author)
        .filter(|event| event.tags.identifier().unwrap_or_default() == *address.identifier)
        .collect();
    versions.sort_by_key(|event| (std::cmp::Reverse(event.created_at), event.id));
    let newest = versions.first()?;
    let by_address = observed.iter().any(|other| {
        other.kind_number() == 5
            && other.pubkey == newest.pubkey
            && has_tag(other, "a", &address.to_string())
            && other.created_at >= newest.created_at
    });
    (!by_address && !is_removed(observed, newest)).then(|| (*newest).clone())
}

fn is_removed(observed: &[Event], event: &Event) -> bool {
    observed.iter().filter(|other| other.pubkey == event.pubkey).any(|other| match other.kind_number() {
        5 => has_tag(other, "e", &event.id.to_hex()),
        62 => {
            let is_for_us = has_tag(other, "relay", "ALL_RELAYS") || has_tag(other, "relay", OURS);
            is_for_us && other.created_at >= event.created_at
        }
        _ => false,
    })
}

fn roots(config: &DiscoverConfig, observed: &[Event], address: &Address) -> BTreeSet<[u8; 32]> {
    let of = |event: &&Event| {
        KINDS.contains(&event.kind_number())
            && has_tag(event, "a", &address.to_string())
            && !config.block_authors.contains(&event.pubkey.to_bytes())
            && !is_removed(observed, event)
    };
    observed.iter().filter(of).map(|event| event.id.to_bytes()).collect()
}

/// Adds all batches that are due to what was handed out.
fn take(discovery: &mut Discovery, handed: &mut Targets) -> Result<(), TestCaseError> {
    while let Some(due) = discovery.deadline() {
        let batch = discovery.poll(due);
        prop_assert!(!batch.is_empty(), "due, and nothing comes");
        for change in batch {
            let interests = handed.entry(change.relay).or_default();
            for interest in change.removed {
                prop_assert!(interests.remove(&interest), "{interest:?} was not wanted before");
            }
            for interest in change.added {
                prop_assert!(interests.insert(interest), "it was wanted before");
            }
        }
    }
    handed.retain(|_, interests| !interests.is_empty());
    Ok(())
}

#[derive(Debug, Clone)]
enum Step {
    Observe(usize),
    Judge(usize),
    Reconfigure(u32),
    Take,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => any::<usize>().prop_map(Step::Observe),
        3 => any::<usize>().prop_map(Step::Judge),
        1 => any::<u32>().prop_map(Step::Reconfigure),
        3 => Just(Step::Take),
    ]
}

proptest! {
    #![proptest_config(cases(400))]

    /// After any steps, the sum of all changes is what follows from the events observed.
    #[test]
    fn changes_sum_up_to_what_is_wanted(
        sketches in proptest::collection::vec(sketch(), 1..40),
        steps in proptest::collection::vec(step(), 1..80),
        choices in any::<u32>(),
    ) {
        let events = draw(&sketches);
        prop_assume!(!events.is_empty());
        let now = Instant::from_origin(Duration::from_secs(1));
        let mut config = configuration(choices);
        let mut discovery = Discovery::new(config.clone(), now);
        let (mut observed, mut handed) = (Vec::new(), Targets::new());
        for step in steps.into_iter().chain([Step::Take]) {
            match step {
                Step::Observe(which) => {
                    let event = &events[which % events.len()];
                    discovery.observe(event, now);
                    observed.push(event.clone());
                }
                Step::Judge(which) => drop(discovery.judge(&events[which % events.len()])),
                Step::Reconfigure(choices) => {
                    config = configuration(choices);
                    discovery.reconfigure(config.clone(), now);
                }
                Step::Take => {
                    take(&mut discovery, &mut handed)?;
                    prop_assert_eq!(&handed, &model(&config, &observed));
                }
            }
        }
        for (relay, interests) in &handed {
            let now: BTreeSet<Interest> = discovery.interests_of(relay).into_iter().collect();
            prop_assert_eq!(&now, interests);
            let status = discovery.relay(relay).expect("it is a target");
            prop_assert_eq!(1 + status.repositories + status.roots, interests.len());
        }
        prop_assert_eq!(discovery.sizes().relays, handed.len());
    }

    /// The order in which events are observed decides nothing.
    #[test]
    fn the_order_of_events_decides_nothing(
        sketches in proptest::collection::vec(sketch(), 1..30),
        choices in any::<u32>(),
        order in any::<prop::sample::Selector>(),
    ) {
        let events = draw(&sketches);
        let shuffled = {
            let mut rest: Vec<Event> = events.clone();
            let mut picked = Vec::new();
            while !rest.is_empty() {
                picked.push(rest.swap_remove(order.select(0..rest.len())));
            }
            picked
        };
        let config = configuration(choices);
        let sum = |events: &[Event]| {
            let mut discovery = Discovery::new(config.clone(), Instant::ZERO);
            events.iter().for_each(|event| discovery.observe(event, Instant::ZERO));
            let mut handed = Targets::new();
            take(&mut discovery, &mut handed).map(|()| handed)
        };
        prop_assert_eq!(sum(&events)?, sum(&shuffled)?);
    }
}

/// Names and values of tags that somebody may send.
fn soup() -> impl Strategy<Value = Vec<String>> {
    let names = ["d", "relays", "clone", "maintainers", "a", "A", "e", "E", "q", "k", "g", "relay", "p", "", "-"];
    let key = |byte: u8| "0123456789abcdef".as_bytes()[usize::from(byte) % 16] as char;
    let value = prop_oneof![
        prop::sample::select(RELAYS.to_vec()).prop_map(str::to_owned),
        (0..AUTHORS, 0..IDENTIFIERS.len()).prop_map(|(author, identifier)| address(author, identifier).to_string()),
        any::<u8>().prop_map(move |byte| key(byte).to_string().repeat(64)),
        (0..AUTHORS).prop_map(|author| hex::encode(&[author + 1; 32])),
        prop::sample::select(vec![1_000_usize, 100_000]).prop_map(|len| format!(
            "30617:{}:{}",
            "01".repeat(32),
            "x".repeat(len)
        )),
        prop::sample::select(vec![
            "30617::",
            ":::",
            "wss://",
            "https://ours.example/npub1/x.git",
            "ws://[::1",
            "1111",
            "5"
        ])
        .prop_map(str::to_owned),
        "(wss?|https?)://[a-z.:/@?#\\[\\]%0-9ü]{0,20}",
        ".{0,12}",
    ];
    (prop::sample::select(names.to_vec()), proptest::collection::vec(value, 0..6))
        .prop_map(|(name, values)| [vec![name.to_owned()], values].concat())
}

proptest! {
    #![proptest_config(cases(300))]

    /// Whatever an event says: no panic, and no bound is passed.
    #[test]
    fn hostile_events_do_no_harm(
        events in proptest::collection::vec(
            (0..AUTHORS, prop::sample::select(vec![5_u16, 62, 1, 1111, 1617, 1618, 1621, 10317, 30617, 30618]), 0..5_u64,
                proptest::collection::vec(soup(), 0..8)),
            1..60,
        ),
        choices in any::<u32>(),
        bound in 0_usize..4,
    ) {
        let config = DiscoverConfig {
            batch_interests_max: bound,
            relays_max: bound,
            relay_urls_max: bound,
            relays_per_repository_max: bound + 1,
            maintainers_per_repository_max: bound,
            repositories_max: bound,
            dormant_repositories_max: bound,
            roots_max: bound * 2,
            roots_per_repository_max: bound,
            repositories_per_root_max: bound,
            orphans_max: bound,
            references_max: bound,
            references_per_event_max: bound,
            promises_max: bound,
            tombstones_max: bound,
            ..configuration(choices)
        };
        let mut discovery = Discovery::new(config.clone(), Instant::ZERO);
        let mut handed = Targets::new();
        for (at, (author, kind, created_at, tags)) in events.into_iter().enumerate() {
            let event = event(author, kind, created_at, tags, "");
            let judged = discovery.judge(&event).is_ok();
            discovery.repositories_of(&event);
            if judged || at % 3 == 0 {
                discovery.observe(&event, Instant::ZERO);
            }
            if at % 7 == 0 {
                take(&mut discovery, &mut handed)?;
            }
            let sizes = discovery.sizes();
            prop_assert!(sizes.repositories <= bound && sizes.roots <= bound * 2 && sizes.orphans <= bound);
            prop_assert!(sizes.dormant_repositories <= bound * 2, "those that left stay: {sizes:?}");
            prop_assert!(sizes.relays <= bound + config.bootstrap.len(), "{sizes:?}");
            prop_assert!(sizes.references <= bound * 2 && sizes.promises <= bound);
        }
        take(&mut discovery, &mut handed)?;
        for (relay, interests) in &handed {
            prop_assert_eq!(&discovery.interests_of(relay).into_iter().collect::<BTreeSet<_>>(), interests);
        }
        discovery.reconfigure(configuration(choices.rotate_left(7)), Instant::ZERO);
        take(&mut discovery, &mut handed)?;
        prop_assert_eq!(discovery.repositories().count(), discovery.sizes().repositories + discovery.sizes().dormant_repositories);
    }
}
