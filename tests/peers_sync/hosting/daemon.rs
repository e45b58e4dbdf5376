//! An engine that discovers, over a store of its own, as a daemon runs it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_channel::mpsc;
use futures_util::SinkExt;
use relaysync::discover::DiscoverConfig;
use relaysync::drive::drive;
use relaysync::engine::{Command, Config, Notice, Phase, RelayReport};
use relaysync::native::store::{NativeStore, NativeStoreConfig};
use relaysync::native::{NativeRuntime, SocketConfig};
use relaysync::peer::View;
use relaysync::protocol::{Filter, RelayUrl, Window, hex};
use relaysync::runtime::{Clock, Runtime};
use relaysync::sample::world::World;
use relaysync::store::Store;
use tokio::task::JoinHandle;

use super::clock::ShiftedRuntime;
use super::{FEW_MAX, some_of};

/// How often a condition is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The engine at work. What it stores goes with it.
pub(super) struct Daemon {
    runtime: Arc<ShiftedRuntime>,
    commands: mpsc::Sender<Command>,
    reports: Arc<Mutex<Vec<RelayReport>>>,
    task: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

/// Ids of events.
type Ids = BTreeSet<[u8; 32]>;

impl Daemon {
    pub(super) async fn start(discovery: DiscoverConfig) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = NativeStore::open(folder.path(), NativeStoreConfig::default()).expect("a new store");
        let native = NativeRuntime::new(store, SocketConfig::default(), None).expect("no certificates are wanted");
        let runtime = Arc::new(ShiftedRuntime::new(native));
        let config = Config {
            discovery: Some(discovery),
            backoff_base: Duration::from_millis(250),
            backoff_max: Duration::from_secs(2),
            // Other people's relays do not all serve live what is put into their databases.
            live_retry: Duration::from_secs(5),
            progress_interval: Duration::from_millis(250),
            ..Config::default()
        };
        let (commands, inbox) = mpsc::channel(16);
        let reports = Arc::<Mutex<Vec<RelayReport>>>::default();
        let (driven, told) = (runtime.clone(), reports.clone());
        let task = tokio::spawn(async move {
            let driving = drive(driven, config, 1, inbox, |notice| match notice {
                Notice::Progress(news) => *told.lock().unwrap_or_else(PoisonError::into_inner) = news.clone(),
                Notice::StoreFailed(error) => panic!("the store failed: {error}"),
                _ => {}
            });
            driving.await.expect("the store can be read");
        });
        Self { runtime, commands, reports, task, _folder: folder }
    }

    pub(super) fn reports(&self) -> Vec<RelayReport> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn held(&self) -> Ids {
        let now_secs = self.runtime.clock().now().unix_secs;
        let held = self.runtime.store().held_items(&Filter::new(), Window::ALL, &View::all(), now_secs).await;
        held.expect("the store can be read").items().iter().map(|item| item.id).collect()
    }

    /// Waits until this is held, maybe with more.
    pub(super) async fn wait_for_held(&self, expected: &Ids, wait_max: Duration) {
        let until = Instant::now() + wait_max;
        loop {
            let held = self.held().await;
            if expected.is_subset(&held) {
                return;
            }
            let lacking: Vec<_> = expected.difference(&held).collect();
            let some = some_of(lacking.iter().copied());
            assert!(
                Instant::now() < until,
                "{} of {} are lacking: {some:?}\n{}",
                lacking.len(),
                expected.len(),
                self.told()
            );
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Waits until exactly the wanted events are held, and no relay is in the middle of something.
    pub(super) async fn wait_for_exactly(&self, world: &World, wait_max: Duration) {
        let wanted = world.wanted();
        let begun = Instant::now();
        loop {
            let held = self.held().await;
            let is_idle =
                self.reports().iter().all(|report| !matches!(report.phase, Phase::Syncing | Phase::Connecting));
            if held == wanted && is_idle {
                return;
            }
            assert!(begun.elapsed() < wait_max, "{}\n{}", differences(world, &held), self.told());
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Waits until the relays' reports are as wanted.
    pub(super) async fn wait_for(&self, what: &str, wait_max: Duration, is_so: impl Fn(&[RelayReport]) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.reports()) {
            assert!(begun.elapsed() < wait_max, "waited in vain for {what}:\n{}", self.told());
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Waits until the loss of a relay is noticed.
    pub(super) async fn wait_until_lost(&self, relay: &RelayUrl) {
        let is_lost = |report: &RelayReport| report.relay != *relay || report.phase == Phase::Waiting;
        self.wait_for("a relay to be lost", FEW_MAX, |reports| reports.iter().all(is_lost)).await;
    }

    /// So much time passes: really, if it is little, else by the clock alone.
    pub(super) async fn let_pass(&self, time: Duration) {
        if time > FEW_MAX {
            self.runtime.clock().put_forward(time);
        } else {
            tokio::time::sleep(time).await;
        }
    }

    pub(super) async fn stop(mut self) {
        self.commands.send(Command::Stop).await.expect("it runs");
        tokio::time::timeout(FEW_MAX, self.task).await.expect("it ends in time").expect("it does not panic");
    }

    /// What the relays are at, for messages.
    fn told(&self) -> String {
        let tell = |report: &RelayReport| {
            let RelayReport { relay, phase, complete, gaps, last_error, counters, .. } = report;
            let gaps: Vec<String> = gaps.iter().take(3).map(ToString::to_string).collect();
            format!("{relay} {phase:?} complete: {complete} gaps: {gaps:?} error: {last_error:?} {counters:?}\n")
        };
        self.reports().iter().map(tell).collect()
    }
}

/// In which way what is held is not what is wanted, in words.
fn differences(world: &World, held: &Ids) -> String {
    let wanted = world.wanted();
    let tell = |id: &&[u8; 32]| {
        let of_id = world.events().iter().find(|event| event.event.id.to_bytes() == **id);
        match of_id {
            Some(event) => format!("{:?} at {:?}: {}", event.claim, event.relays, event.event.json_str()),
            None => hex::encode(*id),
        }
    };
    let list = |ids: Vec<&[u8; 32]>| {
        let some: Vec<String> = ids.iter().take(5).map(tell).collect();
        format!("{}, such as {some:#?}", ids.len())
    };
    format!(
        "{} wanted, {} held\nlacking {}\ntoo much {}",
        wanted.len(),
        held.len(),
        list(wanted.difference(held).collect()),
        list(held.difference(&wanted).collect())
    )
}
