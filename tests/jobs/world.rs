//! Relays on loopback, and jobs over a store in memory that try again quickly.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use relaysync::engine::{Config, Direction};
use relaysync::ingest::verify;
use relaysync::job::{JobSpec, Jobs, JobsConfig, What};
use relaysync::native::serve::RelayService;
use relaysync::native::{NativeRuntime, SocketConfig};
use relaysync::protocol::{Event, Filter, RelayUrl};
use relaysync::serve::ServeConfig;
use relaysync::store::{Batch, MemoryStore, Store};

/// Nothing here takes so long on a machine that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// More than any test has.
const BYTES: usize = 1 << 20;

pub(crate) type TestJobs<S = MemoryStore> = Jobs<NativeRuntime<S>>;

/// A relay, and what it holds.
pub(crate) struct Relay {
    pub(crate) service: RelayService,
    pub(crate) store: MemoryStore,
}

impl Relay {
    pub(crate) async fn with(events: &[Event]) -> Self {
        Self::at(ANY_PORT, ServeConfig::default(), events).await
    }

    pub(crate) async fn at(address: SocketAddr, config: ServeConfig, events: &[Event]) -> Self {
        let store = MemoryStore::default();
        put(&store, events).await;
        let service = RelayService::bind(address, config, Arc::new(store.clone())).await.unwrap();
        Self { service, store }
    }

    pub(crate) fn url(&self) -> RelayUrl {
        self.service.url()
    }

    /// Publishes to it, as one of its clients would.
    pub(crate) async fn publish(&self, events: &[Event]) {
        let client = jobs(MemoryStore::default());
        for event in events {
            let report = client.publish(event.clone(), vec![self.url()], PATIENCE).await.unwrap();
            assert!(report.relays[0].answer.is_accepted(), "{report:?}");
        }
        client.close().await;
    }

    pub(crate) async fn ids(&self) -> BTreeSet<String> {
        held(&self.store).await
    }

    pub(crate) async fn connections(&self) -> u64 {
        self.service.standing().await.clients_connected
    }
}

/// A relay URL at which nobody listens, and the address to listen on later.
pub(crate) fn nowhere() -> (RelayUrl, SocketAddr) {
    let listener = std::net::TcpListener::bind(ANY_PORT).unwrap();
    let address = listener.local_addr().unwrap();
    (RelayUrl::parse(&format!("ws://{address}")).unwrap(), address)
}

pub(crate) async fn put(store: &impl Store, events: &[Event]) {
    let events = events.iter().map(|event| verify(event.clone()).unwrap()).collect();
    store.commit(Batch { events, ..Batch::default() }).await.unwrap();
}

pub(crate) async fn held(store: &impl Store) -> BTreeSet<String> {
    let arrivals = store.arrivals(0, usize::MAX, usize::MAX).await.unwrap();
    arrivals.records.iter().map(|(_, record)| relaysync::protocol::hex::encode(&record.id)).collect()
}

fn quick(config: Config) -> Config {
    Config {
        backoff_base: Duration::from_millis(50),
        backoff_floor: Duration::from_millis(20),
        backoff_max: Duration::from_millis(200),
        connect_spacing: Duration::from_millis(1),
        commit_delay: Duration::from_millis(5),
        ..config
    }
}

pub(crate) fn quick_config() -> JobsConfig {
    let config = JobsConfig::default();
    let mut discovery = config.discovery.clone();
    (discovery.private_relays, discovery.batch_window) = (true, Duration::from_millis(50));
    JobsConfig {
        live: quick(config.live),
        once: quick(config.once),
        discovery,
        store_retry_base: Duration::from_millis(20),
        store_retry_max: Duration::from_millis(100),
        ..config
    }
}

pub(crate) fn jobs<S: Store>(store: S) -> TestJobs<S> {
    jobs_with(store, quick_config())
}

pub(crate) fn jobs_with<S: Store>(store: S, config: JobsConfig) -> TestJobs<S> {
    let runtime = NativeRuntime::new(store, SocketConfig::default(), None).unwrap();
    Jobs::new(Arc::new(runtime), config, 7)
}

/// Notes, all of them.
pub(crate) fn all_notes() -> Filter {
    Filter::new().kind(1.into())
}

/// Fetches notes from these relays, and ends.
pub(crate) fn once(relays: &[RelayUrl]) -> JobSpec {
    JobSpec { what: What::Filters(vec![all_notes()]), relays: relays.to_vec(), ..JobSpec::default() }
}

/// Follows notes of these relays.
pub(crate) fn live(relays: &[RelayUrl]) -> JobSpec {
    JobSpec { live: true, ..once(relays) }
}

/// Publishes our notes to these relays, and goes on.
pub(crate) fn live_up(relays: &[RelayUrl]) -> JobSpec {
    JobSpec { direction: Direction::Up, ..live(relays) }
}

pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("within the bound")
}

/// Waits for a condition that something else brings about.
pub(crate) async fn until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    patiently(async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

pub(crate) fn ids<'e>(events: impl IntoIterator<Item = &'e Event>) -> BTreeSet<String> {
    events.into_iter().map(|event| event.id.to_hex()).collect()
}

/// Takes so many events of a job; each id once, or the test fails.
pub(crate) async fn take<S: Store>(jobs: &TestJobs<S>, id: &str, count: usize) -> BTreeSet<String> {
    let mut taken = BTreeSet::new();
    while taken.len() < count {
        let batch = patiently(jobs.take(id, count - taken.len(), BYTES)).await.unwrap();
        let batch = batch.unwrap_or_else(|| panic!("{id} ended after {} of {count}", taken.len()));
        for record in &batch.records {
            assert!(taken.insert(relaysync::protocol::hex::encode(&record.id)), "given out twice");
        }
    }
    taken
}

/// Takes everything until the job is over.
pub(crate) async fn take_all<S: Store>(jobs: &TestJobs<S>, id: &str) -> BTreeSet<String> {
    let mut taken = BTreeSet::new();
    while let Some(batch) = patiently(jobs.take(id, 100, BYTES)).await.unwrap() {
        for record in &batch.records {
            assert!(taken.insert(relaysync::protocol::hex::encode(&record.id)), "given out twice");
        }
    }
    taken
}

/// Is nothing there to be taken now?
pub(crate) async fn has_nothing<S: Store>(jobs: &TestJobs<S>, id: &str) -> bool {
    let take = jobs.take(id, 1, BYTES);
    futures_util::future::poll_immediate(std::pin::pin!(take)).await.is_none()
}
