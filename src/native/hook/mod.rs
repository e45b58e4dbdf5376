//! The git data hook: events that arrive for a repository are handed on, so that a git server fetches the data that
//! belongs to them.
//!
//! ```text
//! HookStore::commit ──▶ outbox (durable) ──▶ the store's commit ──▶ board ──500 ms──▶ courier ──▶ callback, command, URL
//!                          ▲                                                             │
//!                          └──────────────────────── removed once taken ◀────────────────┘
//! ```
//!
//! What is to be handed on is written into an outbox *before* its events are committed, and removed *after* it was
//! taken. So every event that is held is handed on at least once, whatever happens to the process in between; after a
//! restart, what is in the outbox and held is handed on. Commits wait for the outbox's file, never for a delivery: a
//! hook that hangs or fails is tried again, less and less often, and delays nobody but its own repository and, at most,
//! [`HookConfig::concurrent_max`] deliveries.
//!
//! An event is news of the repositories whose addresses are in its `a` and `A` tags; an announcement is of its own; a
//! state is of its author's repository of that name, and of every held one of that name whose announcement lists its
//! author as a maintainer (NIP-34).

mod board;
mod clerk;
mod command;
mod config;
mod counters;
mod courier;
mod outbox;
mod relevance;
mod states;
mod store;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::board::Board;
pub use self::config::{Delivering, Delivery, HookCallback, HookConfig, HookTarget, HookUrl};
pub use self::counters::Counters;
use self::courier::Courier;
use self::outbox::{Entries, Outbox};
pub use self::store::HookStore;
use super::http::HttpClient;
use super::store::StoreError;
use super::{ConfigError, SocketConfig};
use crate::store::Store;

/// Why the hook cannot begin.
#[derive(Debug)]
pub enum HookError {
    /// The outbox cannot be opened.
    Outbox(StoreError),
    /// Certificates for a URL cannot be read.
    Sockets(ConfigError),
    /// The command is empty.
    NoCommand,
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outbox(error) => write!(f, "the outbox of the hook: {error}"),
            Self::Sockets(error) => write!(f, "the hook: {error}"),
            Self::NoCommand => f.write_str("the hook's command names no program"),
        }
    }
}

impl std::error::Error for HookError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Outbox(error) => Some(error),
            Self::Sockets(error) => Some(error),
            Self::NoCommand => None,
        }
    }
}

/// What the store's side and the courier share.
struct Shared<S> {
    config: HookConfig,
    store: Arc<S>,
    /// On blocking threads only. Who holds it and needs the board takes that second.
    outbox: Mutex<Outbox>,
    board: Mutex<Board>,
    /// Something may be due.
    due: Notify,
    /// Something may be to be removed or looked up.
    chores: Notify,
}

/// A hook that runs. Dropping it ends it, too; what was not delivered is delivered by the next one with its outbox.
pub struct Hook<S> {
    shared: Arc<Shared<S>>,
    stopping: watch::Sender<bool>,
    courier: JoinHandle<()>,
}

impl<S: Store> Hook<S> {
    /// Opens the outbox at `outbox`, makes it if there is none, and begins to deliver what is left there. `sockets` are
    /// for a URL. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// The outbox cannot be opened or made, or another process has it; certificates cannot be read; an empty command.
    pub async fn open(
        outbox: PathBuf,
        config: HookConfig,
        sockets: SocketConfig,
        store: Arc<S>,
    ) -> Result<Self, HookError> {
        if matches!(&config.target, HookTarget::Command(argv) if argv.is_empty()) {
            return Err(HookError::NoCommand);
        }
        let client = HttpClient::new(sockets).map_err(HookError::Sockets)?;
        let opening = config.clone();
        let (outbox, left) = blocking(move || Outbox::open(&outbox, &opening)).await.map_err(HookError::Outbox)?;
        let mut board = Board::default();
        board.restore(left, Instant::now(), &config);
        let (outbox, board) = (Mutex::new(outbox), Mutex::new(board));
        let shared = Arc::new(Shared { config, store, outbox, board, due: Notify::new(), chores: Notify::new() });
        let (stopping, is_stopping) = watch::channel(false);
        let courier = tokio::spawn(Courier::new(shared.clone(), client).run(is_stopping));
        Ok(Self { shared, stopping, courier })
    }

    /// The store to commit by, so that what is stored is handed on.
    pub fn store(&self) -> HookStore<S> {
        HookStore::new(self.shared.clone())
    }

    /// What was done so far, and what waits.
    pub fn counters(&self) -> Counters {
        self.shared.board().counters()
    }

    /// Waits for deliveries under way, within [`HookConfig::shutdown_max`], and ends. What was not delivered stays in the
    /// outbox, which another hook may open then. What its stores commit after that is not handed on.
    pub async fn shutdown(self) {
        self.stopping.send_replace(true);
        if let Err(error) = self.courier.await {
            tracing::error!("the hook ended badly: {error}");
        }
        // Whatever was cut short may still be at work on it, and stores still refer to it.
        let shared = self.shared;
        blocking(move || shared.outbox().close()).await;
    }
}

impl<S> Shared<S> {
    fn board(&self) -> MutexGuard<'_, Board> {
        // No code panics while it holds the lock in a half-changed state.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something on the board has changed.
    fn notify(&self) {
        self.due.notify_one();
        self.chores.notify_one();
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        // A transaction that a panic has ended has changed nothing.
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store> Shared<S> {
    /// Writes `entries` into the outbox. If that fails, syncing goes on, and they are delivered from memory.
    async fn write(self: &Arc<Self>, entries: Entries) {
        let shared = self.clone();
        let written = blocking(move || shared.outbox().add(&entries)).await;
        self.note_failure(written);
    }

    /// Removes from the outbox what is needed no more.
    async fn remove(self: &Arc<Self>) {
        let shared = self.clone();
        let removed = blocking(move || {
            // Whoever needs an entry from now on writes it behind this.
            let outbox = shared.outbox();
            let (removals, is_last) = {
                let mut board = shared.board();
                (board.take_removals(), board.is_empty())
            };
            outbox.remove(&removals)?;
            if is_last { outbox.flush() } else { Ok(()) }
        })
        .await;
        self.note_failure(removed);
    }

    fn note_failure(&self, result: Result<(), StoreError>) {
        if let Err(error) = result {
            self.board().counters.outbox_failures += 1;
            tracing::error!("the outbox of the hook: {error}");
        }
    }
}

/// Does work that blocks, on a thread where that may be.
async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    joined(tokio::task::spawn_blocking(work)).await
}

/// What a task comes to. Its panic is ours.
async fn joined<R>(task: JoinHandle<R>) -> R {
    match task.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}
