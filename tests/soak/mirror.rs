//! All that the daemon's relay gives, fetched by the same engine, whole and proven complete.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_channel::mpsc;
use relaysync::drive::drive;
use relaysync::engine::{Command, Config, RelayOptions};
use relaysync::native::{NativeRuntime, SocketConfig};
use relaysync::peer::View;
use relaysync::plan::Interest;
use relaysync::protocol::{Filter, RelayUrl, Window};
use relaysync::runtime::{Clock, Runtime};
use relaysync::store::{MemoryStore, Store};

use crate::Fault;

/// A copy of a relay that is brought up to date now and then.
pub(crate) struct Mirror {
    runtime: Arc<NativeRuntime<MemoryStore>>,
    relay: RelayUrl,
}

impl Mirror {
    pub(crate) fn of(relay: &RelayUrl) -> Result<Self, Fault> {
        let runtime = NativeRuntime::new(MemoryStore::default(), SocketConfig::default(), None)?;
        Ok(Self { runtime: Arc::new(runtime), relay: relay.clone() })
    }

    /// The ids of all that the relay holds now; or why that is not proven, as when it gets more events meanwhile.
    pub(crate) async fn look(&self) -> Result<Result<BTreeSet<[u8; 32]>, String>, Fault> {
        let (mut commands, inbox) = mpsc::channel(1);
        commands.try_send(Command::SetInterests {
            relay: self.relay.clone(),
            interests: [Interest::Opaque(Arc::new(Filter::new()))].into(),
            options: RelayOptions::default(),
        })?;
        let reports = drive(self.runtime.clone(), Config::one_shot(), 1, inbox, |_| {}).await?;
        if let Some(gap) = reports.iter().flat_map(|report| &report.gaps).next() {
            return Ok(Err(gap.to_string()));
        }
        let now_secs = self.runtime.clock().now().unix_secs;
        let held = self.runtime.store().held_items(&Filter::new(), Window::ALL, &View::all(), now_secs).await?;
        Ok(Ok(held.items().iter().map(|item| item.id).collect()))
    }
}
