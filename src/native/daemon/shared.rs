//! What the parts of the daemon know of each other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::mpsc;
use tokio::sync::{Notify, watch};

use super::disk::Disk;
use super::steward::Told;
use crate::discover::DiscoverConfig;
use crate::engine::{Command, Notice, Phase, RelayReport};
use crate::native::NativeClock;
use crate::native::admin::{DiscoveryReport, EngineReport, Stage};
use crate::native::control::Control;
use crate::native::serve::Case;
use crate::native::settings::Settings;
use crate::runtime::{Clock, Instant};

/// The way to the engine that runs.
pub(super) type Commands = mpsc::Sender<Command>;

#[derive(Debug)]
pub(super) struct Shared {
    /// The settings that hold.
    settings: Mutex<Arc<Settings>>,
    pub(super) clock: NativeClock,
    pub(super) disk: Arc<Disk>,
    /// Who we are, the peers, and the access rules.
    pub(super) control: Control,
    /// The engine, once it knows all that is held. `None` while there is none.
    pub(super) link: watch::Sender<Option<Commands>>,
    /// The rules of discovery that the engine goes by. Who tells it others holds this, so that the last ones win.
    pub(super) rules: tokio::sync::Mutex<Option<DiscoverConfig>>,
    /// What the engine was told of the control plane, and the way to it for that. Who tells it more holds this, so that the
    /// last word wins.
    pub(super) told: tokio::sync::Mutex<Told>,
    /// The engine does not know any more what is held.
    outdated: Notify,
    stopping: watch::Sender<bool>,
    /// What the engine was asked, by ticket.
    cases: Mutex<Cases>,
    news: Mutex<News>,
}

#[derive(Debug, Default)]
struct Cases {
    next_ticket: u64,
    open: BTreeMap<u64, Case>,
}

/// What was last heard of the engine.
#[derive(Debug, Clone)]
pub(super) struct News {
    pub(super) engine: EngineReport,
    pub(super) relays: Vec<RelayReport>,
    pub(super) discovery: Option<DiscoveryReport>,
    /// Can the store be used?
    pub(super) store: Stage,
    /// Is the index of repositories rebuilt?
    pub(super) index: Stage,
}

impl Shared {
    pub(super) fn new(settings: Settings, clock: NativeClock, disk: Arc<Disk>, control: Control) -> Self {
        let moved_at = clock.now().instant;
        let index =
            if settings.discovery.enabled { Stage::Pending("the store is read".to_owned()) } else { Stage::Off };
        let engine = EngineReport { moved_at, ..EngineReport::default() };
        Self {
            settings: Mutex::new(Arc::new(settings)),
            clock,
            disk,
            control,
            link: watch::Sender::new(None),
            rules: tokio::sync::Mutex::default(),
            told: tokio::sync::Mutex::default(),
            outdated: Notify::new(),
            stopping: watch::Sender::new(false),
            cases: Mutex::default(),
            news: Mutex::new(News { engine, relays: Vec::new(), discovery: None, store: Stage::Ready, index }),
        }
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        lock(&self.settings).clone()
    }

    pub(super) fn set_settings(&self, settings: Settings) {
        *lock(&self.settings) = Arc::new(settings);
    }

    /// The engine is to commit what it has, and to end.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Waits for [`Shared::stop`].
    pub(super) async fn stopped(&self) {
        // The sender is ours.
        let _ = self.stopping.subscribe().wait_for(|is_stopping| *is_stopping).await;
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// The engine has missed something and is to be replaced by one that reads all that is held. Whoever has to do with
    /// it waits for that one.
    pub(super) fn outdate(&self) {
        self.link.send_replace(None);
        self.outdated.notify_one();
    }

    /// Waits for [`Shared::outdate`].
    pub(super) async fn outdated(&self) {
        self.outdated.notified().await;
    }

    /// The engine, as soon as there is one that knows all that is held.
    pub(super) async fn linked(&self) -> Commands {
        let mut link = self.link.subscribe();
        loop {
            if let Some(commands) = link.borrow_and_update().clone() {
                return commands;
            }
            if link.changed().await.is_err() {
                // The sender is ours.
                return std::future::pending().await;
            }
        }
    }

    /// Takes a case down; the engine is to be asked under this ticket.
    pub(super) fn open_case(&self, case: Case) -> u64 {
        let mut cases = lock(&self.cases);
        cases.next_ticket += 1;
        let ticket = cases.next_ticket;
        cases.open.insert(ticket, case);
        ticket
    }

    /// The engine is gone, and answers no more. Who asked hears that nobody judges.
    pub(super) fn drop_cases(&self) {
        lock(&self.cases).open.clear();
    }

    pub(super) fn news(&self) -> News {
        lock(&self.news).clone()
    }

    pub(super) fn change_news(&self, change: impl FnOnce(&mut News)) {
        change(&mut lock(&self.news));
    }

    /// Hears what the engine has to say. Gives the failure of the store, if that is it.
    pub(super) fn hear(&self, notice: &Notice) -> Option<String> {
        match notice {
            Notice::Judged { ticket, objections } => {
                let case = lock(&self.cases).open.remove(ticket);
                if let Some(case) = case {
                    case.answer(objections.clone());
                }
            }
            Notice::Progress(relays) | Notice::Finished(relays) | Notice::Stopped(relays) => {
                let now = self.clock.now();
                self.control.hear(relays);
                self.change_news(|news| news.progress(relays, now.instant));
            }
            Notice::Holdings(holdings) => self.change_news(|news| {
                news.engine.sizes = holdings.sizes;
                news.discovery = holdings.discovery.map(|(sizes, counters)| DiscoveryReport { sizes, counters });
            }),
            Notice::StoreFailed(error) => return Some(error.clone()),
            // Asked for by nobody here.
            Notice::Standing(_)
            | Notice::Storing(_)
            | Notice::Stored(_)
            | Notice::Published { .. }
            | Notice::Proven { .. } => {}
        }
        None
    }
}

impl News {
    fn progress(&mut self, relays: &[RelayReport], now: Instant) {
        // What nothing is wanted of any more is neither complete nor lacking.
        let is_of_use = |relay: &&RelayReport| relay.connected || relay.phase != Phase::Done;
        self.relays = relays.iter().filter(is_of_use).cloned().collect();
        self.engine.moved_at = now;
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds one of these in a half-changed state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
