//! A daemon that discovers, beside a few repositories.

use std::time::Duration;

use relaysync::discover::DiscoverConfig;
use relaysync::engine::{Config, RelayReport};
use relaysync::protocol::{Address, Event, RelayUrl};
use relaysync::sim::{EngineId, NOW_SECS, Remote, World, note};

pub(crate) const OURS: &str = "wss://ours.example";

/// A daemon whose service is at [`OURS`], with one bootstrap relay and others that it has to find.
pub(crate) struct Discovering {
    pub(crate) world: World,
    pub(crate) engine: EngineId,
}

pub(crate) fn url(name: &str) -> RelayUrl {
    RelayUrl::parse(&format!("wss://{name}.example")).expect("a host makes a URL")
}

pub(crate) fn config() -> Config {
    let service_urls = vec![RelayUrl::parse(OURS).expect("it is a URL")];
    let discovery = DiscoverConfig { service_urls, bootstrap: vec![url("first")], ..DiscoverConfig::default() };
    Config { discovery: Some(discovery), ..Config::default() }
}

impl Discovering {
    /// Relays by name, with what they hold; the first is the bootstrap relay.
    pub(crate) fn new(config: Config, relays: impl IntoIterator<Item = (&'static str, Remote)>) -> Self {
        let mut world = World::new();
        for (name, remote) in relays {
            world.add_relay(url(name).as_str(), remote);
        }
        let engine = world.add_engine(config);
        Self { world, engine }
    }

    pub(crate) fn secs(&mut self, secs: u64) {
        self.world.run(Duration::from_secs(secs));
    }

    pub(crate) fn holds(&self, event: &Event) -> bool {
        self.world.held(self.engine).items().iter().any(|item| item.id == event.id.to_bytes())
    }

    #[track_caller]
    pub(crate) fn holds_exactly(&self, events: &[&Event]) {
        let held: Vec<[u8; 32]> = self.world.held(self.engine).items().iter().map(|item| item.id).collect();
        for event in events {
            assert!(held.contains(&event.id.to_bytes()), "lacks {}\n{}", event.json_str(), self.world.trace());
        }
        assert_eq!(held.len(), events.len(), "{}", self.world.trace());
    }

    pub(crate) fn report(&self, name: &str) -> Option<RelayReport> {
        let reports = self.world.node(self.engine).reports();
        reports.into_iter().find(|report| report.relay == url(name))
    }
}

/// A repository of author 2, announced at these relays.
pub(crate) fn announcement(identifier: &str, relays: &[&str]) -> Event {
    let mut tags = vec!["relays".to_owned()];
    tags.extend(relays.iter().map(|relay| (*relay).to_owned()));
    note(NOW_SECS - 5_000).by(2).kind(30617).tag("d", identifier).tags(&tags).sign()
}

pub(crate) fn address(announcement: &Event) -> String {
    let identifier = announcement.tags.iter().find(|tag| tag.as_slice()[0] == "d").and_then(|tag| tag.content());
    Address::repository(announcement.pubkey.to_bytes(), identifier.unwrap_or_default()).to_string()
}
