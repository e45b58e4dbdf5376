//! The relays of the demo and the world that they hold.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::super::Failure;
use super::super::numbers::{count, counted};
use crate::ingest::Verified;
use crate::native::serve::RelayService;
use crate::protocol::{Event, RelayUrl};
use crate::sample::Burst;
use crate::sample::world::{World, WorldConfig, WorldEvent};
use crate::serve::ServeConfig;
use crate::store::{Batch, MemoryStore, Store};

const REPOSITORIES: usize = 40;
const EVENTS: usize = 3_000;
/// Many events in one second, more of them at the last relay than it gives at once.
const BURST: Burst = Burst { second: 1_710_000_000, events: 900 };
/// What a relay gives at once, as many do.
const PAGE_EVENTS: usize = 500;
/// The page of a relay that gives little at once.
const SMALL_PAGE_EVENTS: usize = 100;

/// The relays and their world.
pub(super) struct Stage {
    pub(super) world: World,
    relays: Vec<StageRelay>,
}

struct StageRelay {
    config: ServeConfig,
    store: Arc<MemoryStore>,
    addr: SocketAddr,
    service: Option<RelayService>,
    description: String,
}

impl Stage {
    /// Starts the relays and fills them.
    pub(super) async fn set() -> Result<Self, Failure> {
        let paging = |page_events| ServeConfig {
            negentropy: false,
            page_events_max: page_events,
            page_events_default: page_events,
            ..ServeConfig::default()
        };
        let many = format!("gives at most {SMALL_PAGE_EVENTS} events a page; hundreds are of one second");
        let sorts = [
            ("can compare sets (NIP-77)".to_owned(), ServeConfig::default()),
            ("cannot compare sets, so it is paged".to_owned(), paging(PAGE_EVENTS)),
            (many, paging(SMALL_PAGE_EVENTS)),
        ];
        let mut relays = Vec::new();
        for (description, config) in sorts {
            let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let mut relay = StageRelay { config, store: Arc::default(), addr, service: None, description };
            relay.bring_up().await?;
            relays.push(relay);
        }
        let urls = relays.iter().map(|relay| url_of(relay.addr)).collect();
        let config =
            WorldConfig { repositories: REPOSITORIES, events: EVENTS, burst: Some(BURST), ..WorldConfig::small(urls) };
        let world = tokio::task::spawn_blocking(|| World::new(config)).await.map_err(Failure::new)?;
        for (place, relay) in relays.iter().enumerate() {
            relay.put(world.held_by(place).cloned().collect()).await?;
        }
        Ok(Self { world, relays })
    }

    /// What there is to see.
    pub(super) fn introduction(&self) -> String {
        let (events, repositories) = (self.world.events().len(), self.world.repositories().len());
        let mut text = format!(
            "Three relays on this machine, with {} generated events around git repositories:\n\n",
            count(events as u64)
        );
        for (place, relay) in self.relays.iter().enumerate() {
            let events = counted(self.world.held_by(place).count() as u64, "event");
            text += &format!("  {}  {events:>12}, {}\n", url_of(relay.addr), relay.description);
        }
        text += &format!(
            "\n{} repositories list {} as their host, and {} belong to them. A daemon at that address is told of the first relay only.\n\n",
            count(repositories as u64),
            self.world.config().service_url,
            counted(self.world.wanted().len() as u64, "event"),
        );
        text
    }

    pub(super) fn url(&self, place: usize) -> RelayUrl {
        url_of(self.relays[place].addr)
    }

    /// A relay goes away, with all its connections.
    pub(super) async fn take_down(&mut self, place: usize) {
        if let Some(service) = self.relays[place].service.take() {
            service.shutdown().await;
        }
    }

    /// It comes back under its address.
    pub(super) async fn bring_up(&mut self, place: usize) -> Result<(), Failure> {
        self.relays[place].bring_up().await
    }

    /// New events, which a relay has in its store when it comes back.
    pub(super) async fn post_to_store(&mut self, place: usize, events: usize, now_secs: u64) -> Result<(), Failure> {
        let posted = self.world.post(place, events, now_secs);
        self.relays[place].put(events_of(&posted)).await
    }

    /// New events, of which a relay tells its subscribers. Gives their ids.
    pub(super) async fn post_live(
        &mut self,
        place: usize,
        events: usize,
        now_secs: u64,
    ) -> Result<BTreeSet<[u8; 32]>, Failure> {
        let posted = events_of(&self.world.post(place, events, now_secs));
        let relay = &self.relays[place];
        relay.put(posted.clone()).await?;
        let ids = posted.iter().map(|event| event.id.to_bytes()).collect();
        if let Some(service) = &relay.service {
            service.accepted(posted.into_iter().map(Verified::trust).collect()).await;
        }
        Ok(ids)
    }

    /// All relays end.
    pub(super) async fn clear(mut self) {
        for place in 0..self.relays.len() {
            self.take_down(place).await;
        }
    }
}

impl StageRelay {
    async fn bring_up(&mut self) -> Result<(), Failure> {
        let bound = RelayService::bind(self.addr, self.config.clone(), self.store.clone()).await;
        let service = bound.map_err(Failure::new)?;
        self.addr = service.local_addr();
        self.service = Some(service);
        Ok(())
    }

    async fn put(&self, events: Vec<Event>) -> Result<(), Failure> {
        // Made here a moment ago. Some are forged: a relay may hold what it likes.
        let events = events.into_iter().map(Verified::trust).collect();
        self.store.commit(Batch { events, ..Batch::default() }).await.map_err(Failure::new)?;
        Ok(())
    }
}

fn url_of(addr: SocketAddr) -> RelayUrl {
    RelayUrl::parse(&format!("ws://{addr}")).expect("an address and port make a URL")
}

fn events_of(posted: &[WorldEvent]) -> Vec<Event> {
    posted.iter().map(|posted| posted.event.clone()).collect()
}
