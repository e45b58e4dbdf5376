//! The control plane: who we are, which peers we sync with, and who may read and write what is protected.
//!
//! A [`Control`] keeps all that in files beside the store, and hands it to whoever runs ([`Control::watch`]). Every
//! change is on disk before it is acknowledged, and takes effect after that. Its parts are [`Identity`], [`Access`] and
//! [`Peers`].
//!
//! | file, behind the store's name | what |
//! |---|---|
//! | `.control.json` | peers, rules, what is protected, and whose our secret key is |
//! | `.identity-key` | our secret key, if it is kept here; readable by its owner only |
//! | `.marks.json` | what happened last at each peer |
//! | `.control.lock` | locked while somebody uses the others |
//!
//! The first and the third say by a hash whether they are as they were written. If the first is not, nothing starts, and
//! it is kept for its owner to look at. If the third is not, which costs no more than the memory of the last error, it is
//! moved aside, and the log says so.

mod access;
mod board;
mod config;
mod desk;
mod durable;
mod error;
mod identity;
mod keys;
mod peers;
mod sealed;
mod secret;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

pub use self::access::{Access, GrantInfo, ProtectedInfo, Whose};
pub use self::config::{ControlBounds, ControlConfig};
pub use self::error::{ControlError, FileError, FileFault};
pub use self::identity::{Identity, IdentityInfo, IdentitySource};
pub use self::peers::{PeerInfo, Peers};
pub use self::secret::{Secret, Signer};

use self::board::{Board, Sight};
use self::desk::Desk;
use self::state::State;
use crate::engine::RelayReport;
use crate::peer::{AccessRules, Peering};
use crate::protocol::{Filter, PublicKey, RelayUrl};
use crate::store::RequestContext;

/// How often it is looked whether the files are free.
const LOCK_POLL: Duration = Duration::from_millis(20);

/// The control plane. Cheap to clone; as long as there is one, no other process has its files.
#[derive(Clone)]
pub struct Control {
    inner: Arc<Inner>,
}

struct Inner {
    /// Whoever changes something holds this until it is on disk.
    desk: Mutex<Desk>,
    desired: watch::Receiver<Arc<Desired>>,
    board: Mutex<Board>,
    signer: Signer,
    /// Nobody has used these files before.
    is_new: bool,
    bounds: ControlBounds,
    /// The way to the daemon that runs.
    orders: Mutex<Option<mpsc::Sender<Order>>>,
}

/// What a daemon is to go by: what it was told, and is on disk.
#[derive(Debug)]
pub struct Desired {
    /// Who we are.
    pub identity: Option<IdentityInfo>,
    /// Which events are protected, and from whom not.
    pub access: Arc<AccessRules>,
    /// The keys that may govern this daemon over HTTP (NIP-98).
    pub admins: Arc<BTreeSet<PublicKey>>,
    /// What is protected by configuration.
    protected: Arc<BTreeSet<Filter>>,
    state: Arc<State>,
}

impl Desired {
    /// The peers that are to be synced with.
    pub fn peerings(&self) -> impl Iterator<Item = (RelayUrl, Peering)> {
        let enabled = self.state.peers.iter().filter(|peer| peer.spec.enabled);
        enabled.map(|peer| (peer.spec.url.clone(), peer.spec.peering()))
    }

    /// The keys of all peers, and their names. Of several peers that have one key, the name of the last counts.
    pub fn peer_keys(&self) -> BTreeMap<PublicKey, Arc<str>> {
        self.state.peers.iter().map(|peer| (peer.spec.auth_pubkey, peer.spec.id.as_str().into())).collect()
    }

    /// The names of all peers, and their relays.
    pub fn peers(&self) -> impl Iterator<Item = (&str, &RelayUrl)> {
        self.state.peers.iter().map(|peer| (peer.spec.id.as_str(), &peer.spec.url))
    }
}

/// What somebody wants of the daemon that runs.
#[derive(Debug)]
pub(in crate::native) enum Order {
    /// Look at all of a peer again.
    SyncNow { relay: RelayUrl, done: oneshot::Sender<Result<(), String>> },
    /// Who has brought an event? The error is the store's.
    Brought { id: [u8; 32], answer: oneshot::Sender<Result<Option<RequestContext>, String>> },
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("bounds", &self.inner.bounds).finish_non_exhaustive()
    }
}

impl Control {
    /// Opens the control plane's files, or begins anew where there are none. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// Another process has them, one of them is not as it was written, or our secret key cannot be used.
    pub async fn open(config: ControlConfig) -> Result<Self, ControlError> {
        let given_up_at = Instant::now() + config.bounds.lock_wait;
        loop {
            let config = config.clone();
            match blocking(|| Self::open_now(config)).await {
                Err(ControlError::File(error))
                    if matches!(error.fault, FileFault::Locked) && Instant::now() < given_up_at =>
                {
                    tokio::time::sleep(LOCK_POLL).await;
                }
                result => return result,
            }
        }
    }

    fn open_now(config: ControlConfig) -> Result<Self, ControlError> {
        let bounds = config.bounds.clone();
        let (desk, marks) = Desk::open(config)?;
        let peers = desk.state.peers.iter().map(|peer| (peer.spec.id.as_str(), &peer.spec.url));
        let board = Mutex::new(Board::new(peers, marks));
        let inner = Inner {
            desired: desk.watch(),
            signer: desk.signer(),
            is_new: desk.is_new,
            desk: Mutex::new(desk),
            board,
            bounds,
            orders: Mutex::new(None),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Who we are.
    pub fn identity(&self) -> Identity {
        Identity { control: self.clone() }
    }

    /// Who may read and write what is protected.
    pub fn access(&self) -> Access {
        Access { control: self.clone() }
    }

    /// The peers.
    pub fn peers(&self) -> Peers {
        Peers { control: self.clone() }
    }

    /// What is to be gone by now.
    pub fn desired(&self) -> Arc<Desired> {
        self.inner.desired.borrow().clone()
    }

    /// The same, and whatever it changes to: always what is on disk already. It may say at once that something has changed.
    pub fn watch(&self) -> watch::Receiver<Arc<Desired>> {
        self.inner.desired.clone()
    }

    /// Who signs as our identity, whoever that is at the moment.
    pub fn signer(&self) -> Signer {
        self.inner.signer.clone()
    }

    /// From now on this is protected by configuration, and these keys govern.
    pub async fn configure(&self, protected: Vec<Filter>, admins: BTreeSet<PublicKey>) -> Result<(), ControlError> {
        self.with_desk(|desk| {
            desk.configure(protected, admins);
            Ok(())
        })
        .await
    }

    /// Hears what an engine says of its relays.
    pub fn hear(&self, reports: &[RelayReport]) {
        self.board().hear(reports);
    }

    /// The engine was told other terms of this relay: what it has said of it before does not count any more.
    pub(in crate::native) fn outdate(&self, relay: &RelayUrl) {
        self.board().outdate(relay);
    }

    /// Has nobody used these files before?
    pub(in crate::native) fn is_new(&self) -> bool {
        self.inner.is_new
    }

    /// The engine has ended: a new one counts from nothing.
    pub fn end_engine(&self) {
        self.board().end_engine();
    }

    /// Writes down what happened last at peers, if it is not written yet.
    ///
    /// # Errors
    /// It cannot be written; the next call tries again.
    pub async fn save_marks(&self) -> Result<(), ControlError> {
        let control = self.clone();
        self.with_desk(move |desk| {
            let Some(marks) = control.board().take_marks() else { return Ok(()) };
            let written = desk.write_marks(&marks);
            if written.is_err() {
                control.board().untake_marks();
            }
            written
        })
        .await
    }

    /// Writes down what happened last at peers, and lets go of the files, whoever has this yet: nothing can be changed any
    /// more.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn close(&self) -> Result<(), ControlError> {
        let saved = self.save_marks().await;
        *lock(&self.inner.orders) = None;
        self.with_desk(|desk| {
            desk.lock = None;
            Ok(())
        })
        .await?;
        saved
    }

    /// From now on orders are carried out by whoever has what this gives.
    pub(in crate::native) fn attach(&self) -> mpsc::Receiver<Order> {
        let (sender, orders) = mpsc::channel(self.inner.bounds.orders_max.max(1));
        *lock(&self.inner.orders) = Some(sender);
        orders
    }

    async fn order(&self, order: Order) -> Result<(), ControlError> {
        let orders = lock(&self.inner.orders).clone();
        let nobody = || ControlError::Refused("no daemon runs that could do it".to_owned());
        orders.ok_or_else(nobody)?.send(order).await.map_err(|_| nobody())
    }

    /// What is seen of a peer.
    fn sight(&self, id: &str) -> Sight {
        self.board().sight(id, self.inner.bounds.report_age_max)
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.inner.board)
    }

    /// Does something with all that is told, alone, and to its end, even if whoever asked for it is gone meanwhile.
    async fn with_desk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk) -> Result<T, ControlError> + Send + 'static,
    ) -> Result<T, ControlError> {
        let inner = self.inner.clone();
        blocking(move || {
            let mut desk = lock(&inner.desk);
            let result = work(&mut desk);
            desk.publish();
            result
        })
        .await
    }
}

/// Are there peers to sync with, as far as can be told without opening the control plane? If its file cannot be read,
/// there may be: whoever opens it says what is wrong.
pub fn has_peers(config: &ControlConfig) -> bool {
    let state = sealed::read::<State>(&desk::state_file(&config.store_file), config.bounds.file_bytes_max);
    state.map_or(true, |state| state.is_some_and(|state| state.peers.iter().any(|peer| peer.spec.enabled)))
}

/// Does what waits for the disk on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ControlError> + Send + 'static,
) -> Result<T, ControlError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ControlError::Stopped),
        },
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds one of these in a half-changed state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
