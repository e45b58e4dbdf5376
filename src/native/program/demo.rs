//! `relaysync demo`: relays of every trying kind on this machine, and a sync that gets everything from them.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use clap::Args;

use super::progress::ProgressView;
use super::selection::Selection;
use super::sync_run::{Job, progress_of};
use super::{Exit, Failure, lines, numbers};
use crate::ingest::Verified;
use crate::native::clock::unix_secs;
use crate::native::serve::RelayService;
use crate::native::{NativeRuntime, SocketConfig};
use crate::protocol::{Event, Filter};
use crate::sample::{Burst, SampleConfig, generate};
use crate::serve::ServeConfig;
use crate::store::{Batch, MemoryStore, Store};

/// All events of the demo.
const EVENTS: usize = 6_000;
/// Events of one relay; each shares half of them with the next.
const RELAY_EVENTS: usize = 3_000;
/// Events in one second, more than a page of the relay that has them.
const BURST_EVENTS: usize = 700;
/// The past that the events lie in, in seconds.
const PAST_SECS: u64 = 30 * 24 * 3600;

/// Show a sync at work: start three difficult relays on this machine, fetch everything from them, and compare.
///
/// Nothing is left behind: relays and store live in memory and end with the program.
#[derive(Debug, Clone, Args)]
pub(super) struct DemoArguments {
    /// What the generated events depend on.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

pub(super) async fn run(arguments: DemoArguments) -> Result<Exit, Failure> {
    let events = tokio::task::spawn_blocking(move || generate(&sample(arguments.seed))).await.map_err(Failure::new)?;
    let expected = MemoryStore::default();
    let mut relays = Vec::new();
    for (config, trouble, events) in parts(&events) {
        relays.push(DemoRelay::start(config, trouble, events, &expected).await?);
    }
    lines::write(introduction(&relays).into_bytes()).await?;

    let store = MemoryStore::default();
    let runtime = NativeRuntime::new(store.clone(), SocketConfig::default(), None).map_err(Failure::new)?;
    let mut view = ProgressView::new();
    let job = Job::of(relays.iter().map(|relay| relay.service.url()).collect(), vec![Filter::new()]);
    let report = job
        .run(Arc::new(runtime), |progress, now| {
            progress.iter().for_each(|relay| view.update(&progress_of(relay), now.instant));
        })
        .await?;
    view.finish();
    for relay in relays {
        relay.service.shutdown().await;
    }
    let verdict = compare(&held(&expected).await?, &held(&store).await?);
    let text = format!("{}{}\n", report.to_text(), verdict.as_ref().unwrap_or_else(|lacking| lacking));
    lines::write(text.into_bytes()).await?;
    Ok(if verdict.is_ok() { report.exit() } else { Exit::Failed })
}

fn sample(seed: u64) -> SampleConfig {
    let now_secs = unix_secs();
    SampleConfig {
        seed,
        events: EVENTS,
        from_secs: now_secs.saturating_sub(PAST_SECS),
        to_secs: now_secs,
        // Late enough that the last relay has all of it.
        burst: Some(Burst { second: now_secs.saturating_sub(PAST_SECS / 10), events: BURST_EVENTS }),
        ..SampleConfig::default()
    }
}

/// One relay of each difficult kind, and its share of the events.
fn parts(events: &[Event]) -> [(ServeConfig, &'static str, &[Event]); 3] {
    let share = |index: usize| {
        let begin = (events.len() - RELAY_EVENTS) * index / 2;
        &events[begin..begin + RELAY_EVENTS]
    };
    let plain = ServeConfig { page_events_max: 500, ..ServeConfig::default() };
    let unable = ServeConfig { negentropy: false, ..plain.clone() };
    let small = ServeConfig { page_events_max: 100, page_events_default: 100, ..unable.clone() };
    [
        (unable, "no set reconciliation (NIP-77)", share(0)),
        (small, "no more than 100 events a page", share(1)),
        (plain, "700 events in one second, more than its page of 500", share(2)),
    ]
}

/// A relay on a free port of this machine.
struct DemoRelay {
    service: RelayService,
    trouble: &'static str,
    events: usize,
}

impl DemoRelay {
    /// Starts it with `events`. What it holds of them goes into `expected`, too.
    async fn start(
        config: ServeConfig,
        trouble: &'static str,
        events: &[Event],
        expected: &MemoryStore,
    ) -> Result<Self, Failure> {
        let store = MemoryStore::default();
        commit(&store, events).await?;
        let held = held(&store).await?;
        commit(expected, events).await?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let service = RelayService::bind(address, config, Arc::new(store)).await.map_err(Failure::new)?;
        Ok(Self { service, trouble, events: held.len() })
    }
}

async fn commit(store: &MemoryStore, events: &[Event]) -> Result<(), Failure> {
    // They were signed a moment ago by ourselves.
    let events = events.iter().cloned().map(Verified::trust).collect();
    let batch = Batch { events, coverage: Vec::new(), now_secs: unix_secs() };
    store.commit(batch).await.map(|_| ()).map_err(Failure::new)
}

/// The ids of all events that a store holds.
async fn held(store: &MemoryStore) -> Result<BTreeSet<[u8; 32]>, Failure> {
    let mut selection = Selection::new(store, vec![Filter::new()], unix_secs());
    let mut ids = BTreeSet::new();
    loop {
        let page = selection.next_page().await?;
        if page.is_empty() {
            return Ok(ids);
        }
        ids.extend(page.into_iter().map(|record| record.id));
    }
}

fn introduction(relays: &[DemoRelay]) -> String {
    let mut text = String::from("Three relays on this machine, each sharing events with the next:\n");
    for DemoRelay { service, trouble, events } in relays {
        text += &format!("  {}  {}; {trouble}\n", service.url(), numbers::counted(*events as u64, "event"));
    }
    text
}

/// What the store has, in words; an error if it is not what was to be expected.
fn compare(expected: &BTreeSet<[u8; 32]>, held: &BTreeSet<[u8; 32]>) -> Result<String, String> {
    if expected == held {
        let events = numbers::counted(held.len() as u64, "event");
        return Ok(format!("The store now holds exactly what the relays have together: {events}."));
    }
    let missing = numbers::counted(expected.difference(held).count() as u64, "event");
    let surplus = numbers::counted(held.difference(expected).count() as u64, "event");
    Err(format!("The store is not what the relays have together: {missing} missing, {surplus} too many."))
}
