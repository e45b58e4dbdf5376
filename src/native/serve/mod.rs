//! The relay service: a [`Server`](crate::serve::Server) bound to sockets.
//!
//! One task, the hub, owns the server. Each connection is a task of its own that hands frames to the hub and takes
//! frames from it; store work and signature checks run beside the hub and report back to it. The hub never waits for
//! any of them, so no client and no query delays another.

mod connection;
mod document;
mod elsewhere;
mod encryption;
mod http;
mod hub;
mod judge;
mod visitors;
mod work;

pub use encryption::{TlsFiles, TlsFilesError};
pub use judge::{Case, Docket, Judge, Matter, docket};

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::ingest::Verified;
use crate::native::feed::FeedReceiver;
use crate::native::rpc::Rpc;
use crate::peer::AccessRules;
use crate::protocol::{Event, PublicKey, RelayUrl};
use crate::serve::{Counters, ServeConfig};
use crate::store::Store;

/// Bounds of the binding to sockets, beside those of the server itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceConfig {
    /// Identity, rules and bounds of the server.
    pub serve: ServeConfig,
    /// Encrypts connections; then the service is reached by `wss`, and by nothing else. [`RelayService::set_tls`] reads
    /// the files again.
    pub tls: Option<TlsFiles>,
    /// TLS handshakes under way at once; beyond that, connections wait for their turn. More than one address may have
    /// open, so that nobody keeps all others waiting.
    pub handshakes_max: usize,
    /// Within this time a connection must be encrypted, if it is to be: its turn included.
    pub handshake_max: Duration,
    /// Connections open at once; beyond that a new one is answered with status 503.
    pub clients_max: usize,
    /// Connections open at once from one address; beyond that a new one is answered with status 429. The addresses of
    /// an IPv6 network (/64) count as one.
    pub clients_per_address_max: usize,
    /// Connections that one address may open in a minute, and at once.
    pub connects_per_address_per_minute_max: u64,
    /// Do both bounds hold for this machine, too? Where a proxy in front has the connections of all clients, they must
    /// not.
    pub bounds_loopback: bool,
    /// Addresses remembered for both; beyond that strangers are bounded only together.
    pub addresses_max: usize,
    /// Connections that are being turned away with a status; beyond that they are dropped without a word.
    pub turned_away_max: usize,
    /// Within this time a connection must have sent its HTTP request.
    pub request_max: Duration,
    /// The size of an HTTP request's head, in bytes; at least 8,192.
    pub request_bytes_max: usize,
    /// How long to wait after the system could not accept a connection, as when it is out of file descriptors.
    pub accept_retry: Duration,
    /// Read from a socket at a time, in bytes. Every connection holds so much.
    pub read_buffer_bytes: usize,
    /// Frames taken from one socket before other clients have their turn.
    pub frames_at_once_max: usize,
    /// Turns of frames waiting for the hub; beyond that sockets wait.
    pub arrivals_max: usize,
    /// Reads of the store in flight for all clients.
    pub store_reads_max: usize,
    /// How long a [`Judge`] may take for a batch of events; then they are refused.
    pub judge_max: Duration,
    /// How long a connection that is ended may take for what was sent to it before and for its goodbye.
    pub close_max: Duration,
    /// How long a shutdown may take: half of it for what has been received to be stored, the rest for goodbyes.
    pub shutdown_max: Duration,
}

impl From<ServeConfig> for ServiceConfig {
    fn from(serve: ServeConfig) -> Self {
        Self {
            serve,
            tls: None,
            handshakes_max: 256,
            handshake_max: Duration::from_secs(10),
            clients_max: 1_000,
            clients_per_address_max: 200,
            connects_per_address_per_minute_max: 600,
            bounds_loopback: false,
            addresses_max: 10_000,
            turned_away_max: 64,
            request_max: Duration::from_secs(10),
            request_bytes_max: 16 * 1024,
            accept_retry: Duration::from_millis(100),
            read_buffer_bytes: 16 * 1024,
            frames_at_once_max: 256,
            arrivals_max: 64,
            store_reads_max: 16,
            judge_max: Duration::from_secs(10),
            close_max: Duration::from_millis(500),
            shutdown_max: Duration::from_millis(1_500),
        }
    }
}

impl Default for ServiceConfig {
    fn default() -> Self {
        ServeConfig::default().into()
    }
}

/// What ties a relay service to others that use the same store.
#[derive(Debug, Default)]
pub struct Ties {
    /// Decides which events of clients are wanted. Without, all are.
    pub judge: Option<Judge>,
    /// Tells of what others put into the store, so that subscribers get it.
    pub feed: Option<FeedReceiver>,
    /// Answers calls to the control plane.
    pub rpc: Option<Rpc>,
}

/// The service could not start to listen.
#[derive(Debug)]
pub struct BindError {
    /// The address.
    pub addr: SocketAddr,
    /// What the system says.
    pub error: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: {}", self.addr, self.error)
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// A relay that listens. Dropping it shuts it down, too, but nobody learns when that is done.
#[derive(Debug)]
pub struct RelayService {
    local_addr: SocketAddr,
    /// How connections are encrypted that come from now on.
    tls: Option<watch::Sender<Arc<ServerConfig>>>,
    requests: mpsc::Sender<Request>,
    document: Arc<document::Document>,
    stopping: watch::Sender<bool>,
    shutdown_max: Duration,
    /// Connections that were turned away or dropped.
    turned_away: Arc<AtomicU64>,
    hub: JoinHandle<()>,
    doors: JoinHandle<()>,
}

/// How it stands with the service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Clients connected now.
    pub clients_connected: u64,
    /// What happened so far.
    pub counters: Counters,
}

/// What the owner of the service asks of the hub.
#[derive(Debug)]
enum Request {
    Standing(oneshot::Sender<Standing>),
    Accepted(Vec<Verified<Event>>),
    Access(Arc<AccessRules>, oneshot::Sender<()>),
    Peers(Arc<BTreeMap<PublicKey, Arc<str>>>),
    Renewed,
}

impl RelayService {
    /// Listens on `addr` (port 0 for any that is free) and serves from `store`. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// The address cannot be listened on, or the files for TLS cannot be used.
    pub async fn bind<S: Store>(
        addr: SocketAddr,
        config: impl Into<ServiceConfig>,
        store: Arc<S>,
    ) -> Result<Self, BindError> {
        Self::bind_with(addr, config, store, Ties::default()).await
    }

    /// The same, as one of several that use the store.
    ///
    /// # Errors
    /// The address cannot be listened on, or the files for TLS cannot be used.
    pub async fn bind_with<S: Store>(
        addr: SocketAddr,
        config: impl Into<ServiceConfig>,
        store: Arc<S>,
        ties: Ties,
    ) -> Result<Self, BindError> {
        let mut config = config.into();
        config.serve.judged = ties.judge.is_some();
        let fault = |error| BindError { addr, error };
        let tls =
            config.tls.as_ref().map(TlsFiles::read).transpose().map_err(|error| fault(io::Error::other(error)))?;
        let (tls, encrypting) = tls.map(watch::channel).unzip();
        let listener = TcpListener::bind(addr).await.map_err(fault)?;
        let local_addr = listener.local_addr().map_err(fault)?;
        config.serve.urls.push(url_at(local_addr, tls.is_some()));
        let config = Arc::new(config);

        let (stopping, is_stopping) = watch::channel(false);
        let (requests, requested) = mpsc::channel(16);
        let (arrivals, arrived) = mpsc::channel(config.arrivals_max.max(1));
        let (reports, reported) = mpsc::unbounded_channel();
        let links = connection::Links { arrivals, reports: reports.clone() };
        let elsewhere = elsewhere::Elsewhere::new(ties.feed, store.clone());
        let work = work::Work::new(store, ties.judge, &config, reports);
        let hub = hub::Hub::new(&config, work, elsewhere);
        let hub = tokio::spawn(hub.run(arrived, reported, requested, is_stopping.clone()));
        let shutdown_max = config.shutdown_max;
        let turned_away = Arc::<AtomicU64>::default();
        let document = Arc::new(document::Document::new(config.serve.clone()));
        let encryption = encryption::Encryption::new(encrypting, &config);
        let doors =
            http::Doors::new(config, document.clone(), links, encryption, ties.rpc, is_stopping, turned_away.clone());
        let doors = tokio::spawn(doors.run(listener));
        Ok(Self { local_addr, tls, requests, document, stopping, shutdown_max, turned_away, hub, doors })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The relay's URL for clients on this machine.
    pub fn url(&self) -> RelayUrl {
        url_at(self.local_addr, self.tls.is_some())
    }

    /// Reads certificate and key, for connections that come from now on; those that are open go on. `false`, and nothing
    /// is read, if the service was bound without encryption.
    ///
    /// # Errors
    /// The files cannot be used. Then everything stays as it was.
    pub fn set_tls(&self, files: &TlsFiles) -> Result<bool, TlsFilesError> {
        let Some(tls) = &self.tls else { return Ok(false) };
        tls.send_replace(files.read()?);
        Ok(true)
    }

    /// What happened so far, in numbers.
    pub async fn counters(&self) -> Counters {
        self.standing().await.counters
    }

    /// The same, and who is connected.
    pub async fn standing(&self) -> Standing {
        let (sender, receiver) = oneshot::channel();
        // Both fail only once the hub has ended, which takes a panic in it; then there is nothing to count.
        let mut standing = match self.requests.send(Request::Standing(sender)).await {
            Ok(()) => receiver.await.unwrap_or_default(),
            Err(_) => Standing::default(),
        };
        standing.counters.clients_turned_away = self.turned_away.load(Ordering::Relaxed);
        standing
    }

    /// Tells subscribers of events that somebody else has put into the same store. `false` if the service has ended.
    pub async fn accepted(&self, events: Vec<Verified<Event>>) -> bool {
        self.requests.send(Request::Accepted(events)).await.is_ok()
    }

    /// Has these access rules hold from now on, for what is under way, too, and for documents (NIP-11) served from now on.
    /// When this returns, nothing more is sent that was read under the old ones. `false` if the service has ended.
    pub async fn set_access(&self, rules: Arc<AccessRules>) -> bool {
        let (sender, receiver) = oneshot::channel();
        self.document.change(|config| config.access = rules.clone());
        self.requests.send(Request::Access(rules, sender)).await.is_ok() && receiver.await.is_ok()
    }

    /// Has the names of configured peers noted with what is published from now on by who has authenticated with one of these
    /// keys ([`RequestContext`](crate::store::RequestContext)). `false` if the service has ended.
    pub async fn set_peers(&self, peers: Arc<BTreeMap<PublicKey, Arc<str>>>) -> bool {
        self.requests.send(Request::Peers(peers)).await.is_ok()
    }

    /// Names the relay's own key, or none, in documents (NIP-11) served from now on. If it is another than before, the
    /// connections of clients that have authenticated end: who has authenticated may have done so because the relay was
    /// who it was. `false` if the service has ended.
    pub async fn set_identity(&self, identity: Option<PublicKey>) -> bool {
        let is_another = self.document.change(|config| std::mem::replace(&mut config.identity, identity) != identity);
        !is_another || self.requests.send(Request::Renewed).await.is_ok()
    }

    /// Stops listening, stores what has been received, says goodbye to all clients, and returns when all is closed or
    /// [`ServiceConfig::shutdown_max`] has passed.
    pub async fn shutdown(self) {
        self.stopping.send_replace(true);
        let Self { hub, mut doors, shutdown_max, .. } = self;
        let hub_stop = hub.abort_handle();
        let all = async {
            let hub = hub.await;
            hub.and((&mut doors).await)
        };
        match tokio::time::timeout(shutdown_max, all).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("the relay service ended badly: {error}"),
            Err(_) => {
                tracing::warn!("clients were cut off, as the shutdown took too long");
                hub_stop.abort();
                doors.abort();
            }
        }
    }
}

fn url_at(addr: SocketAddr, is_encrypted: bool) -> RelayUrl {
    let scheme = if is_encrypted { "wss" } else { "ws" };
    RelayUrl::parse(&format!("{scheme}://{addr}")).expect("an address and port make a URL")
}

/// Ends when the service is to stop; an owner that is gone without a word wants that, too.
async fn stopped(is_stopping: &mut watch::Receiver<bool>) {
    if is_stopping.wait_for(|is_stopping| *is_stopping).await.is_err() {
        tracing::debug!("the relay service was dropped");
    }
}
