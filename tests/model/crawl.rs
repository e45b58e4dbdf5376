//! Discovery in a world of git hosting that knows the answer: whoever follows what is handed out, and keeps what is
//! judged good, holds in the end exactly what a complete daemon holds.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt;
use relaysync::discover::{DiscoverConfig, Discovery};
use relaysync::ingest::Verified;
use relaysync::peer::View;
use relaysync::plan::{Interest, Pack};
use relaysync::protocol::{Event, Filter, RelayUrl, Window, filter};
use relaysync::runtime::Instant;
use relaysync::sample::world::{World, WorldConfig};
use relaysync::store::{Batch, MemoryStore, Outcome, Store};

const NOW: Instant = Instant::ZERO;

/// Follows discovery through a world, without limits, caps or failures.
struct Crawler {
    discovery: Discovery,
    store: MemoryStore,
    wanted: BTreeMap<RelayUrl, BTreeSet<Interest>>,
}

impl Crawler {
    fn new(world: &World) -> Self {
        let config = DiscoverConfig {
            service_urls: vec![world.config().service_url.clone()],
            bootstrap: vec![world.relays()[0].clone()],
            private_relays: true,
            ..DiscoverConfig::default()
        };
        Self { discovery: Discovery::new(config, NOW), store: MemoryStore::default(), wanted: BTreeMap::new() }
    }

    /// Until nothing new comes.
    fn run(&mut self, world: &World) {
        while self.take_changes() || self.fetch_all(world) {}
    }

    fn take_changes(&mut self) -> bool {
        let changes = self.discovery.flush();
        for change in &changes {
            let wanted = self.wanted.entry(change.relay.clone()).or_default();
            change.removed.iter().for_each(|interest| assert!(wanted.remove(interest)));
            change.added.iter().for_each(|interest| assert!(wanted.insert(interest.clone())));
        }
        !changes.is_empty()
    }

    fn fetch_all(&mut self, world: &World) -> bool {
        let mut news = false;
        for (relay, url) in world.relays().iter().enumerate() {
            let packs = self.wanted.get(url).map(packs).unwrap_or_default();
            let filters: Vec<_> = packs.iter().map(Pack::filter).collect();
            for event in world.held_by(relay) {
                let selected = filters.iter().any(|filter| filter::matches(filter, event));
                news |= selected && self.take(event);
            }
        }
        news
    }

    fn take(&mut self, event: &Event) -> bool {
        if event.verify().is_err() || self.discovery.judge(event).is_err() {
            return false;
        }
        let batch = Batch { events: vec![Verified::trust(event.clone())], ..Batch::default() };
        let outcomes = self.store.commit(batch).now_or_never().expect("it is ready at once").expect("it does not fail");
        let stored = outcomes == [Outcome::Stored];
        if stored {
            self.discovery.observe(event, NOW);
        }
        stored
    }

    fn held(&self) -> BTreeSet<[u8; 32]> {
        let items = self
            .store
            .held_items(&Filter::new(), Window::ALL, &View::all(), 0)
            .now_or_never()
            .expect("it is ready at once");
        items.expect("it does not fail").items().iter().map(|item| item.id).collect()
    }
}

fn packs(interests: &BTreeSet<Interest>) -> Vec<Pack> {
    let (mut packs, mut repositories, mut roots) = (Vec::new(), Vec::new(), Vec::new());
    for interest in interests {
        match interest {
            Interest::Repo(address) => repositories.push(address.clone()),
            Interest::Root(id) => roots.push(*id),
            other => packs.extend(other.packs()),
        }
    }
    packs.extend(Pack::of_repositories(repositories));
    packs.extend(Pack::of_roots(roots));
    packs
}

#[test]
fn a_world_is_found_whole_and_nothing_else() {
    for seed in 0..12 {
        let relays = (0..8).map(|n| RelayUrl::parse(&format!("ws://127.0.0.1:{}", 7_000 + n)).expect("it is a URL"));
        let mut world = World::new(WorldConfig { seed, ..WorldConfig::small(relays.collect()) });
        let mut crawler = Crawler::new(&world);
        crawler.run(&world);
        assert_eq!(crawler.wanted.keys().cloned().collect::<BTreeSet<_>>(), world.relays().iter().cloned().collect());
        assert_same(&world, &crawler, seed);
        for relay in 0..8 {
            world.post(relay, 20, 1_736_000_000);
        }
        world.found(&[3, 5], 1_736_000_000);
        crawler.run(&world);
        assert_same(&world, &crawler, seed);
    }
}

fn assert_same(world: &World, crawler: &Crawler, seed: u64) {
    let (held, wanted) = (crawler.held(), world.wanted());
    let tell = |id: &[u8; 32]| {
        let event = world.events().iter().find(|held| held.event.id.to_bytes() == *id).expect("it is of this world");
        format!("{:?} {}", event.claim, event.event.json_str())
    };
    let missing: Vec<_> = wanted.difference(&held).map(tell).collect();
    let surplus: Vec<_> = held.difference(&wanted).map(tell).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "seed {seed}: missing {missing:#?}, too many {surplus:#?}");
}
