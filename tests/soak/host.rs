//! One of the relays, behind its gate.

use std::net::Ipv4Addr;
use std::sync::Arc;

use relaysync::ingest::Verified;
use relaysync::native::serve::RelayService;
use relaysync::protocol::{Event, RelayUrl};
use relaysync::serve::ServeConfig;
use relaysync::store::{Batch, MemoryStore, Store};

use crate::Fault;
use crate::gate::{Gate, Pace};

/// How many sorts of relays there are.
pub(crate) const SORTS: usize = 8;

pub(crate) struct Host {
    store: Arc<MemoryStore>,
    service: RelayService,
    gate: Gate,
    url: RelayUrl,
}

/// What is special about the relay of this number.
fn config(number: usize) -> ServeConfig {
    let usual = ServeConfig::default();
    match number {
        1 => ServeConfig { negentropy: false, page_events_max: 100, page_events_default: 100, ..usual },
        2 => ServeConfig { requests_per_minute_max: 60, ..usual },
        3 => ServeConfig { auth_required: true, ..usual },
        4 => ServeConfig { negentropy: false, page_events_max: 500, ..usual },
        5 => ServeConfig { subscriptions_max: 5, filters_max: 2, ..usual },
        6 => ServeConfig { negentropy_records_max: 200, eose_hints: false, ..usual },
        _ => usual,
    }
}

impl Host {
    pub(crate) async fn start(number: usize, pace: Pace) -> Result<Self, Fault> {
        // The gate's address comes first: it is the one that an answer to AUTH must name.
        let private = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let gate = Gate::before(private, number, pace).await?;
        let url = RelayUrl::parse(&format!("ws://{}", gate.addr()))?;
        let store = Arc::<MemoryStore>::default();
        let config = ServeConfig { urls: vec![url.clone()], ..config(number) };
        let service = RelayService::bind(private, config, store.clone()).await?;
        Ok(Self { store, service, gate, url })
    }

    pub(crate) fn url(&self) -> &RelayUrl {
        &self.url
    }

    /// Puts events, forged ones too, into its store, and tells its subscribers.
    pub(crate) async fn put(&self, events: Vec<Event>) -> Result<(), Fault> {
        let events: Vec<Verified<Event>> = events.into_iter().map(Verified::trust).collect();
        self.store.commit(Batch { events: events.clone(), ..Batch::default() }).await?;
        match self.service.accepted(events).await {
            true => Ok(()),
            false => Err(format!("the relay at {} has ended", self.url).into()),
        }
    }

    pub(crate) fn be_troubled(&self) {
        self.gate.set_troubled(true);
    }

    pub(crate) fn be_well(&self) {
        self.gate.set_troubled(false);
    }
}
