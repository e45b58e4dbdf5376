//! What discovery does with events, seen from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::draft::{announcement, draft, hex_id, issue, repo};
use super::*;

const OURS: &str = "wss://ours.example";
const NOW: Instant = Instant::ZERO;

fn url(text: &str) -> RelayUrl {
    RelayUrl::parse(text).unwrap()
}

fn config() -> DiscoverConfig {
    DiscoverConfig { service_urls: vec![url(OURS)], ..DiscoverConfig::default() }
}

/// A discovery, and the sum of what it has handed out.
struct World {
    discovery: Discovery,
    handed: BTreeMap<RelayUrl, BTreeSet<Interest>>,
}

impl World {
    fn new(config: DiscoverConfig) -> Self {
        Self { discovery: Discovery::new(config, NOW), handed: BTreeMap::new() }
    }

    fn observe(&mut self, events: &[&Event]) -> &mut Self {
        events.iter().for_each(|event| self.discovery.observe(event, NOW));
        self
    }

    /// What is wanted of each relay.
    fn targets(&mut self) -> BTreeMap<String, Vec<String>> {
        for change in self.discovery.flush() {
            let held = self.handed.entry(change.relay).or_default();
            change.removed.iter().for_each(|interest| assert!(held.remove(interest), "{interest:?} was not there"));
            change.added.into_iter().for_each(|interest| assert!(held.insert(interest), "it was there"));
        }
        self.handed.retain(|_, interests| !interests.is_empty());
        for (relay, interests) in &self.handed {
            assert_eq!(self.discovery.interests_of(relay).into_iter().collect::<BTreeSet<_>>(), *interests);
        }
        let all = self.handed.iter();
        all.map(|(url, interests)| (url.to_string(), interests.iter().map(word).collect())).collect()
    }

    fn wants(&mut self, event: &Event) -> bool {
        self.discovery.judge(event).is_ok()
    }
}

fn word(interest: &Interest) -> String {
    match interest {
        Interest::Announcements => "announcements".into(),
        Interest::Repo(address) => format!("repo {}", address.identifier),
        Interest::Root(id) => format!("root {:02x}{:02x}", id[0], id[1]),
        Interest::Opaque(filter) => format!("{filter:?}"),
    }
}

fn root(event: &Event) -> String {
    word(&Interest::Root(event.id.to_bytes()))
}

fn targets<const N: usize>(of: [(&str, Vec<String>); N]) -> BTreeMap<String, Vec<String>> {
    of.into_iter().map(|(url, words)| (url.into(), words)).collect()
}

fn words(of: &[&str]) -> Vec<String> {
    of.iter().map(|word| (*word).to_owned()).collect()
}

const A: &str = "wss://a.example";
const B: &str = "wss://b.example";

#[test]
fn relays_get_the_repositories_that_list_them_and_their_roots() {
    let mut world = World::new(config());
    let one = announcement(1, "one", &[OURS, A, B]).event();
    let two = announcement(2, "two", &[OURS, B]).event();
    let other = announcement(3, "other", &[A]).event();
    let shared = issue(1, &[&repo(1, "one"), &repo(2, "two")]).event();
    world.observe(&[&shared, &one, &two, &other]);
    let of_a = [words(&["announcements", "repo one"]), vec![root(&shared)]].concat();
    let of_b = [words(&["announcements", "repo one", "repo two"]), vec![root(&shared)]].concat();
    assert_eq!(world.targets(), targets([(A, of_a), (B, of_b)]));
    // The root stays where the other repository wants it.
    world.observe(&[&announcement(1, "one", &[A]).at(1_001).event()]);
    let of_b = [words(&["announcements", "repo two"]), vec![root(&shared)]].concat();
    assert_eq!(world.targets(), targets([(B, of_b)]));
    // A repository that comes back brings what was remembered.
    world.observe(&[&announcement(1, "one", &[OURS, A]).at(1_002).event()]);
    assert_eq!(world.targets()[A].len(), 3);
}

#[test]
fn of_two_versions_the_newest_stands_and_of_equal_times_the_lowest_id() {
    let mut versions = [announcement(1, "x", &[OURS, A]).event(), announcement(1, "x", &[OURS, B]).event()];
    versions.sort_by_key(|event| event.id);
    let relay = versions[0].tags.get(1).unwrap().as_slice()[2].clone();
    for order in [[0, 1], [1, 0]] {
        let mut world = World::new(config());
        world.observe(&order.map(|at| &versions[at]));
        assert_eq!(world.targets().into_keys().collect::<Vec<_>>(), std::slice::from_ref(&relay));
    }
}

#[test]
fn our_own_service_private_and_blocked_relays_are_no_targets() {
    let listed = [
        OURS,
        "ws://ours.example/path",
        "ws://127.0.0.1:7777",
        "wss://192.168.1.1",
        "wss://localhost",
        A,
        "wss://bad.example:444/x",
    ];
    let event = announcement(1, "x", &listed).event();
    let blocked = vec![url("ws://bad.example:444")];
    let mut world = World::new(DiscoverConfig { block_relays: blocked, ..config() });
    world.observe(&[&event]);
    assert_eq!(world.targets().into_keys().collect::<Vec<_>>(), [A]);
    assert_eq!(world.discovery.counters().relays_private, 3);
    world.discovery.reconfigure(DiscoverConfig { private_relays: true, ..config() }, NOW);
    assert_eq!(world.targets().len(), 5);
}

#[test]
fn bootstrap_relays_are_targets_without_repositories() {
    let mut world = World::new(DiscoverConfig { bootstrap: vec![url("ws://127.0.0.1:1"), url(A)], ..config() });
    assert_eq!(world.discovery.deadline(), Some(NOW));
    assert_eq!(world.targets().len(), 2);
    world.observe(&[&announcement(1, "x", &[OURS, A]).event()]);
    assert_eq!(world.targets()[A], words(&["announcements", "repo x"]));
    world.observe(&[&draft(1, 5).tag(&["a", &repo(1, "x").to_string()]).event()]);
    assert_eq!(world.targets()[A], words(&["announcements"]));
    world.discovery.reconfigure(config(), NOW);
    assert!(world.targets().is_empty());
}

#[test]
fn the_window_begins_with_the_first_change_and_does_not_begin_again() {
    let at = |secs| Instant::from_origin(Duration::from_secs(secs));
    let mut discovery = Discovery::new(config(), at(0));
    assert_eq!(discovery.deadline(), None);
    discovery.observe(&announcement(1, "x", &[OURS, A]).event(), at(10));
    discovery.observe(&announcement(2, "y", &[OURS, A]).event(), at(14));
    assert_eq!(discovery.deadline(), Some(at(15)));
    assert_eq!(discovery.poll(at(14)), []);
    assert_eq!(discovery.poll(at(15))[0].added.len(), 3);
    assert_eq!((discovery.deadline(), discovery.poll(at(99))), (None, vec![]));
    // What is undone within the window leaves no trace.
    discovery.observe(&announcement(3, "z", &[OURS, B]).event(), at(20));
    discovery.observe(&draft(3, 62).tag(&["relay", "ALL_RELAYS"]).event(), at(21));
    assert_eq!(discovery.deadline(), None);
}

#[test]
fn a_large_batch_is_handed_out_in_parts() {
    let mut discovery = Discovery::new(DiscoverConfig { batch_interests_max: 2, ..config() }, NOW);
    discovery.observe(&announcement(1, "x", &[OURS, A, B]).event(), NOW);
    let later = NOW + Duration::from_secs(5);
    let parts: Vec<_> =
        std::iter::from_fn(|| Some(discovery.poll(later))).take_while(|part| !part.is_empty()).collect();
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(discovery.deadline(), None);
}

#[test]
fn what_the_author_deletes_goes_in_whichever_order() {
    let announced = announcement(1, "x", &[OURS, A]).event();
    let rooted = issue(1, &[&repo(1, "x")]).event();
    let by_address = draft(1, 5).tag(&["a", &repo(1, "x").to_string()]).event();
    let by_id = draft(1, 5).tag(&["e", &hex_id(&announced)]).event();
    let of_root = draft(90, 5).tag(&["e", &hex_id(&rooted)]).event();
    let by_others = draft(2, 5).tag(&["e", &hex_id(&announced)]).tag(&["e", &hex_id(&rooted)]).event();
    let vanish = draft(1, 62).tag(&["relay", "wss://ours.example/"]).event();
    for gone in [&by_address, &by_id, &vanish] {
        for events in [[&announced, gone], [gone, &announced]] {
            assert!(World::new(config()).observe(&events).targets().is_empty());
        }
    }
    for events in [[&announced, &rooted, &of_root], [&of_root, &rooted, &announced]] {
        assert_eq!(World::new(config()).observe(&events).targets()[A].len(), 2);
    }
    let elsewhere = draft(1, 62).tag(&["relay", A]).event();
    let older = draft(1, 5).at(999).tag(&["a", &repo(1, "x").to_string()]).event();
    let mut world = World::new(config());
    world.observe(&[&announced, &rooted, &by_others, &elsewhere, &older]);
    assert_eq!(world.targets()[A].len(), 3);
    world.observe(&[&by_address, &announcement(1, "x", &[OURS, A]).at(1_001).event()]);
    assert_eq!(world.targets()[A].len(), 3);
}

#[test]
fn acceptance_follows_the_configuration() {
    let listed = announcement(1, "listed", &[OURS, A]).event();
    let by_clone = draft(2, 30617)
        .tag(&["d", "cloned"])
        .tag(&["clone", &format!("https://ours.example/npub1{}/x.git", "q".repeat(58))])
        .tag(&["relays", A])
        .event();
    let other = announcement(3, "other", &[A]).event();
    let mut world = World::new(config());
    world.observe(&[&listed, &by_clone, &other]);
    let mut accepted = |config: DiscoverConfig| {
        world.discovery.reconfigure(config, NOW);
        world.targets().remove(A).unwrap_or_default().into_iter().skip(1).collect::<Vec<_>>()
    };
    assert_eq!(accepted(config()), words(&["repo listed", "repo cloned"]));
    let all = DiscoverConfig { accept: Accept::All, ..config() };
    assert_eq!(accepted(all.clone()), words(&["repo listed", "repo cloned", "repo other"]));
    let blocked = DiscoverConfig {
        block_authors: [[1; 32]].into(),
        block_repositories: [repo(2, "cloned")].into(),
        ..all.clone()
    };
    assert_eq!(accepted(blocked), words(&["repo other"]));
    let allowed = DiscoverConfig { accept: Accept::Allowed, allow_authors: [[3; 32]].into(), ..config() };
    assert_eq!(accepted(allowed), words(&["repo other"]));
    let elsewhere = DiscoverConfig { service_urls: vec![url("wss://elsewhere.example")], ..config() };
    assert_eq!(accepted(elsewhere), words(&[]));
    let both = DiscoverConfig { allow_repositories: [repo(3, "other")].into(), ..config() };
    assert_eq!(accepted(both), words(&["repo listed", "repo cloned", "repo other"]));
}

#[test]
fn roots_of_blocked_authors_are_remembered_and_not_wanted() {
    let mut world = World::new(config());
    world.observe(&[&announcement(1, "x", &[OURS, A]).event(), &issue(1, &[&repo(1, "x")]).event()]);
    assert_eq!(world.targets()[A].len(), 3);
    world.discovery.reconfigure(DiscoverConfig { block_authors: [[90; 32]].into(), ..config() }, NOW);
    assert_eq!(world.targets()[A].len(), 2);
    assert!(!world.wants(&issue(2, &[&repo(1, "x")]).event()));
    world.discovery.reconfigure(config(), NOW);
    assert_eq!(world.targets()[A].len(), 3);
}

#[test]
fn one_relay_too_many_waits_until_another_goes() {
    let mut world = World::new(DiscoverConfig { relays_max: 1, bootstrap: vec![url(B)], ..config() });
    world.observe(&[
        &announcement(1, "x", &[OURS, A, B]).event(),
        &announcement(2, "y", &[OURS, "wss://c.example"]).event(),
    ]);
    assert_eq!(world.targets().into_keys().collect::<Vec<_>>(), [A, B]);
    assert_eq!(world.discovery.counters().relays_refused, 1);
    assert!(world.discovery.relay(&url("wss://c.example")).unwrap().waiting);
    world.observe(&[&draft(1, 62).tag(&["relay", "ALL_RELAYS"]).event()]);
    assert_eq!(world.targets().into_keys().collect::<Vec<_>>(), [B, "wss://c.example"]);
    world
        .discovery
        .reconfigure(DiscoverConfig { relays_max: 1, bootstrap: vec![url("wss://c.example")], ..config() }, NOW);
    assert_eq!(world.targets().into_keys().collect::<Vec<_>>(), ["wss://c.example"]);
    world.observe(&[&announcement(3, "z", &[OURS, A]).event()]);
    assert_eq!(world.targets().len(), 2);
}

#[test]
fn every_bound_is_counted_when_it_bites() {
    let mut world = World::new(DiscoverConfig {
        accept: Accept::Listed,
        repositories_max: 1,
        dormant_repositories_max: 1,
        relay_urls_max: 2,
        roots_max: 4,
        roots_per_repository_max: 2,
        repositories_per_root_max: 1,
        orphans_max: 1,
        identifier_bytes_max: 10,
        maintainers_per_repository_max: 1,
        ..config()
    });
    let maintainers = ["02".repeat(32), "03".repeat(32)];
    let first = announcement(1, "x", &[OURS, A, B]).tag(&["maintainers", &maintainers[0], &maintainers[1]]).event();
    // The second finds no room among those accepted, the third none at all.
    world.observe(&[&first, &announcement(2, "y", &[OURS, A]).event(), &announcement(3, "z", &[A]).event()]);
    assert!(!world.wants(&announcement(4, "w", &[OURS]).event()));
    world.observe(&[&announcement(1, "far too long", &[OURS]).event()]);
    let issues: Vec<Event> = (0..3).map(|n| issue(n, &[&repo(1, "x"), &repo(9, "?")]).event()).collect();
    world.observe(&issues.iter().collect::<Vec<_>>());
    let orphans: Vec<Event> = (5..8).map(|n| issue(n, &[&repo(n, "?")]).event()).collect();
    world.observe(&orphans.iter().collect::<Vec<_>>());
    let counters = world.discovery.counters();
    assert_eq!((counters.repositories_refused, counters.dormant_refused, counters.objections_full), (1, 1, 1));
    assert_eq!((counters.relay_urls_refused, counters.identifiers_too_long, counters.maintainers_skipped), (1, 1, 1));
    assert_eq!((counters.roots_refused_by_repository, counters.root_repositories_skipped), (1, 3));
    assert_eq!((counters.orphans_dropped, counters.roots_refused), (2, 0));
    world.observe(&[&issue(8, &[&repo(2, "y")]).event(), &issue(9, &[&repo(2, "y")]).event()]);
    assert_eq!(world.discovery.counters().roots_refused, 1);
    let sizes = world.discovery.sizes();
    assert_eq!((sizes.repositories, sizes.dormant_repositories, sizes.roots, sizes.orphans), (1, 1, 4, 1));
    assert_eq!(world.targets().into_keys().collect::<Vec<_>>(), [A]);
}
