//! Tells the host what changes by itself: how things are at relays, and whether the store fails.

use std::collections::BTreeMap;
use std::rc::Weak;

use super::Open;
use super::relay_view::RelayView;
use crate::browser::host::Status;
use crate::engine::Phase;
use crate::relay::HealthState;
use crate::runtime::{Clock, FailureKind, Runtime};

type Standing = (HealthState, Phase, bool, Option<FailureKind>);

/// What the host was told last.
#[derive(Default)]
struct Told {
    relays: BTreeMap<String, Standing>,
    storage: Option<(&'static str, Option<String>)>,
}

/// Tells of changes until the core is closed or gone.
pub(super) async fn watch(core: Weak<Open>) {
    let mut told = Told::default();
    let mut seen = 0;
    loop {
        let Some((jobs, runtime, pause)) =
            core.upgrade().map(|open| (open.jobs.clone(), open.runtime.clone(), open.config.status_interval))
        else {
            return;
        };
        seen = jobs.changed(seen).await;
        let Some(open) = core.upgrade() else { return };
        told.update(&open);
        if open.is_closed.get() {
            return;
        }
        drop(open);
        runtime.clock().sleep_until(runtime.clock().now().instant + pause).await;
    }
}

impl Told {
    fn update(&mut self, open: &Open) {
        for view in open.jobs.relays().iter().map(RelayView::of) {
            let standing = view.standing();
            if self.relays.insert(view.url().to_owned(), standing) != Some(standing) {
                open.host.tell(&Status::Relay(&view));
            }
        }
        let storage = open.condition();
        if self.storage.as_ref().is_none_or(|told| *told != storage) {
            // That all is well is news only after something else.
            if self.storage.is_some() || storage.0 != "ok" {
                open.host.tell(&Status::Storage { state: storage.0, message: storage.1.as_deref() });
            }
            self.storage = Some(storage);
        }
    }
}
