//! `relaysync demo`: a sync with relays of four sorts, all on this machine, before the eyes of who tries the program.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::numbers::{count, counted};
use super::report::Report;
use super::sync_run::{Job, print};
use super::{Exit, Failure, interrupted, store};
use crate::ingest::Verified;
use crate::native::serve::RelayService;
use crate::native::{NativeRuntime, SocketConfig};
use crate::protocol::{Event, Filter, Window};
use crate::runtime::{Clock, Runtime};
use crate::sample::{Burst, SampleConfig, generate};
use crate::serve::ServeConfig;
use crate::store::{Batch, MemoryStore, Store, StoreConfig};

/// How many events are generated.
const EVENTS: usize = 6_000;
/// More than [`PAGE_EVENTS`], all in one second.
const BURST: Burst = Burst { second: 1_710_000_000, events: 700 };
/// What a relay gives at once, as many do.
const PAGE_EVENTS: usize = 500;
/// The page of a relay that gives little at once.
const SMALL_PAGE_EVENTS: usize = 100;
/// One in so many events is at all relays.
const SHARED_EVERY: usize = 10;
/// The kinds of the sample. As the filter lists them, it can be split where a second is too full.
const KINDS: &[u16] = &[0, 1, 3, 5, 6, 7, 1111, 1617, 1618, 1621, 10002, 30023, 30617, 30618];

/// Watch a sync: four small relays with generated events are started on this machine, one of them without NIP-77,
/// one that gives at most 100 events a page, one with more events in one second than fit in a page.
///
/// Nothing beyond this machine is contacted, and nothing is left behind.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DemoArguments {}

/// Runs the demo, to its end or until the operator ends it.
pub(super) async fn run(_arguments: DemoArguments) -> Result<Exit, Failure> {
    let folder = Folder::new()?;
    tokio::select! {
        result = show(&folder.0) => result,
        signal = interrupted() => Err(Failure::new(format!("{}; the demo's store is removed", signal?))),
    }
}

async fn show(folder: &Path) -> Result<Exit, Failure> {
    let events = tokio::task::spawn_blocking(sample).await.map_err(Failure::new)?;
    let relays = start_relays(&events).await?;
    print(&introduction(&relays, events.len()))?;

    let store = store::open(&folder.join("store")).await?;
    let runtime = Arc::new(NativeRuntime::new(store, SocketConfig::default(), None).map_err(Failure::new)?);
    let now_secs = runtime.clock().now().unix_secs;
    let older_half = relays[0].events.iter().take(relays[0].events.len() / 2).cloned().collect();
    put(runtime.store(), older_half, now_secs).await?;
    print("The store already has the older half of the first relay's events. Syncing all four:\n\n")?;
    let first = sync(&relays, &runtime).await?;

    let held = check(&relays, &runtime, now_secs).await?;
    print(&format!("\nChecked: the store holds {}, exactly what the relays hold together.\n", counted(held, "event")))?;

    print("\nOnce more, with nothing new anywhere:\n\n")?;
    let second = sync(&relays, &runtime).await?;
    let received: u64 = second.relays.iter().map(|relay| relay.received).sum();
    check(&relays, &runtime, now_secs).await?;
    let exit = if first.complete { second.exit() } else { first.exit() };
    if exit == Exit::Complete && received == 0 {
        print(
            "\nThe second sync received no event. Now try your own: relaysync sync wss://some.relay --filter '{\"kinds\":[1]}'\n",
        )?;
    } else {
        print(&format!("\nThat is not as it should be: {} came again.\n", counted(received, "event")))?;
    }
    for relay in relays {
        relay.service.shutdown().await;
    }
    Ok(if received == 0 { exit } else { Exit::Failed })
}

fn sample() -> Vec<Event> {
    generate(&SampleConfig { events: EVENTS, burst: Some(BURST), ..SampleConfig::default() })
}

/// One of the relays.
struct DemoRelay {
    service: RelayService,
    events: Vec<Event>,
    description: String,
}

/// Starts the relays, each with its share of the events. The burst is at the last one.
async fn start_relays(events: &[Event]) -> Result<Vec<DemoRelay>, Failure> {
    let paging = |page_events| ServeConfig {
        negentropy: false,
        page_events_max: page_events,
        page_events_default: page_events,
        ..ServeConfig::default()
    };
    let sorts = [
        ("can compare sets (NIP-77)".to_owned(), ServeConfig::default()),
        ("cannot compare sets, so it is paged".to_owned(), paging(PAGE_EVENTS)),
        (format!("gives at most {SMALL_PAGE_EVENTS} events a page"), paging(SMALL_PAGE_EVENTS)),
        (format!("has {} events in one second, {PAGE_EVENTS} a page", BURST.events), paging(PAGE_EVENTS)),
    ];
    let (last, mut relays) = (sorts.len() - 1, Vec::new());
    for (number, (description, config)) in sorts.into_iter().enumerate() {
        let is_here = |(index, event): &(usize, &Event)| match event.created_at_secs() {
            second if second == BURST.second => number == last,
            _ => index.is_multiple_of(SHARED_EVERY) || index % (last + 1) == number,
        };
        let events: Vec<Event> = events.iter().enumerate().filter(is_here).map(|(_, event)| event.clone()).collect();
        let store = MemoryStore::new(StoreConfig::default());
        put(&store, events.clone(), 0).await?;
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let service = RelayService::bind(listen, config, Arc::new(store)).await.map_err(Failure::new)?;
        relays.push(DemoRelay { service, events, description });
    }
    Ok(relays)
}

fn introduction(relays: &[DemoRelay], events: usize) -> String {
    let mut text = format!("Four relays on this machine, with {} generated events:\n\n", count(events as u64));
    for relay in relays {
        let events = counted(relay.events.len() as u64, "event");
        text += &format!("  {}  {events:>12}, {}\n", relay.service.url(), relay.description);
    }
    text + "\n"
}

async fn sync<S: Store>(relays: &[DemoRelay], runtime: &Arc<NativeRuntime<S>>) -> Result<Report, Failure> {
    let urls = relays.iter().map(|relay| relay.service.url()).collect();
    let report = Job::of(urls, vec![filter()]).run_shown(runtime.clone()).await?;
    print(&report.to_text())?;
    Ok(report)
}

fn filter() -> Filter {
    Filter::new().kinds(KINDS.iter().map(|kind| (*kind).into()))
}

async fn put<S: Store>(store: &S, events: Vec<Event>, now_secs: u64) -> Result<(), Failure> {
    // We have signed them ourselves a moment ago.
    let events = events.into_iter().map(Verified::trust).collect();
    store.commit(Batch { events, coverage: Vec::new(), now_secs }).await.map_err(Failure::new)?;
    Ok(())
}

/// Compares the store with what another makes of all that the relays hold: how many events both have.
async fn check<S: Store>(relays: &[DemoRelay], runtime: &NativeRuntime<S>, now_secs: u64) -> Result<u64, Failure> {
    let expected = MemoryStore::new(StoreConfig::default());
    for relay in relays {
        put(&expected, relay.events.clone(), now_secs).await?;
    }
    let expected = expected.held_items(&Filter::new(), Window::ALL, now_secs).await.map_err(Failure::new)?;
    let held = runtime.store().held_items(&Filter::new(), Window::ALL, now_secs).await.map_err(Failure::new)?;
    if held.items() == expected.items() {
        Ok(held.len() as u64)
    } else {
        let (held, expected) = (count(held.len() as u64), count(expected.len() as u64));
        Err(Failure::new(format!(
            "the store differs from the relays: it holds {held} events, and should hold {expected}"
        )))
    }
}

/// A folder of our own for the demo's store, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("relaysync-demo-{}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(Failure::new(format!("cannot make the folder {}: {error}", path.display()))),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!("the folder {} could not be removed: {error}", self.0.display());
        }
    }
}
