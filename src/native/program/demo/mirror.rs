//! A copy of what the daemon holds, as a client of its relay sees it: made and kept in step by the same engine.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_channel::mpsc;
use futures_util::SinkExt;
use tokio::task::JoinHandle;

use super::super::Failure;
use super::view::REDRAW_INTERVAL;
use crate::drive::drive;
use crate::engine::{Command, Config, RelayOptions, RelayReport};
use crate::native::{NativeRuntime, SocketConfig};
use crate::peer::View;
use crate::plan::Interest;
use crate::protocol::{Filter, RelayUrl, Window};
use crate::runtime::{Clock, Instant, Runtime};
use crate::store::{MemoryStore, Store, StoreConfig};

type MirrorRuntime = NativeRuntime<MemoryStore>;
type Driving = JoinHandle<Result<Vec<RelayReport>, Failure>>;

/// Follows the daemon's relay.
pub(super) struct Mirror {
    runtime: Arc<MirrorRuntime>,
    commands: mpsc::Sender<Command>,
    driving: Driving,
    relay: RelayUrl,
}

impl Mirror {
    /// Begins to follow everything at `relay`.
    pub(super) fn follow(relay: RelayUrl) -> Result<Self, Failure> {
        let store = MemoryStore::new(StoreConfig::default());
        let runtime = Arc::new(NativeRuntime::new(store, SocketConfig::default(), None).map_err(Failure::new)?);
        let (mut commands, inbox) = mpsc::channel(1);
        let driven = runtime.clone();
        let driving: Driving = tokio::spawn(async move {
            let config = Config { progress_interval: Duration::ZERO, ..Config::default() };
            drive(driven, config, 1, inbox, |_| {}).await.map_err(Failure::new)
        });
        let everything = Command::SetInterests {
            relay: relay.clone(),
            interests: [Interest::Opaque(Arc::new(Filter::new()))].into(),
            options: RelayOptions { live: true, ..RelayOptions::default() },
        };
        commands.try_send(everything).map_err(Failure::new)?;
        Ok(Self { runtime, commands, driving, relay })
    }

    /// The clock by which the demo tells how long things took.
    pub(super) fn now(&self) -> Instant {
        self.runtime.clock().now().instant
    }

    /// The ids of what the daemon's relay has sent.
    pub(super) async fn held(&self) -> Result<BTreeSet<[u8; 32]>, Failure> {
        let now_secs = self.runtime.clock().now().unix_secs;
        let items = self
            .runtime
            .store()
            .held_items(&Filter::new(), Window::ALL, &View::all(), now_secs)
            .await
            .map_err(Failure::new)?;
        Ok(items.items().iter().map(|item| item.id).collect())
    }

    /// Waits until these are held.
    pub(super) async fn wait_for(&self, ids: &BTreeSet<[u8; 32]>, wait_max: Duration) -> Result<(), Failure> {
        let begun = self.now();
        while !ids.is_subset(&self.held().await?) {
            if self.now() - begun > wait_max {
                return Err(Failure::new(format!("what was posted did not arrive within {wait_max:?}")));
            }
            tokio::time::sleep(REDRAW_INTERVAL).await;
        }
        Ok(())
    }

    /// The relay that is followed.
    pub(super) fn relay(&self) -> &RelayUrl {
        &self.relay
    }

    /// Ends in good order.
    pub(super) async fn stop(mut self) -> Result<(), Failure> {
        self.commands.send(Command::Stop).await.map_err(Failure::new)?;
        self.driving.await.map_err(Failure::new)?.map(drop)
    }
}
