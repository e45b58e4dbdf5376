//! The daemon: engine, relay service, feed, hook and admin server over one store, and what keeps them going.
//!
//! ```text
//! relays ◀──▶ engine ──commit──▶ ┌ feed ┐ ──▶ hook ──▶ store on disk
//!               ▲                └──┬───┘               ▲
//!   what clients│have stored        ▼ subscribers       │
//!             court ◀──feed──── relay service ──commit──┘
//! ```
//!
//! The engine and the relay service write to the same store, each by a feed of its own that the other one hears. The
//! *court* tells the engine of what clients have published, and asks it whether what they publish is wanted. When the
//! store fails, it is opened again and a new engine is built over it, less and less often; the relay service goes on
//! meanwhile, and answers what it can. The *steward* brings what the control plane says to the engine and the relay
//! service. An engine that has missed too much of the feed makes way for a new one, too.

mod court;
mod disk;
mod engine;
mod error;
mod held;
mod hooked;
mod journal;
mod reload;
mod reporter;
mod shared;
mod steward;
#[cfg(test)]
mod tests;

pub use error::DaemonError;
pub use reload::Reloaded;

use std::net::SocketAddr;
use std::sync::Arc;

use nostr::key::Keys;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::disk::Disk;
use self::hooked::Hooked;
use self::reporter::Reporter;
use self::shared::Shared;
use super::admin::{AdminServer, DaemonReport};
use super::control::{Control, ControlConfig, Secret};
use super::feed::FedStore;
use super::rpc::Rpc;
#[cfg(unix)]
use super::rpc::RpcSocket;
use super::serve::{RelayService, Ties, docket};
use super::settings::Settings;
use super::{NativeClock, NativeRuntime};
use crate::protocol::RelayUrl;

/// A daemon that runs. [`Daemon::shutdown`] ends it in good order.
#[derive(Debug)]
pub struct Daemon {
    shared: Arc<Shared>,
    hooked: Arc<Hooked>,
    service: Option<Arc<RelayService>>,
    admin: Option<AdminServer>,
    #[cfg(unix)]
    socket: Option<RpcSocket>,
    reports: watch::Receiver<Arc<DaemonReport>>,
    engine: JoinHandle<()>,
    court: Option<JoinHandle<()>>,
    reporter: JoinHandle<()>,
    steward: JoinHandle<()>,
}

impl Daemon {
    /// Opens the store, listens, and begins to sync. `keys` are our identity, in place of what is configured or kept. Must
    /// be called in a tokio runtime.
    ///
    /// # Errors
    /// The store or the files of the control plane cannot be opened, an address cannot be listened on, or certificates cannot be read.
    pub async fn start(settings: Settings, keys: Option<Keys>) -> Result<Self, DaemonError> {
        let clock = NativeClock::new();
        let disk = Arc::new(Disk::open(settings.store.path.clone(), settings.store()).await?);
        tracing::info!("the store is {}", disk.file().display());
        let control = open_control(&settings, keys).await?;
        let hooked = Arc::new(Hooked::new(disk.clone()));
        hooked.set(settings.hook.hook(), settings.sockets()).await?;
        let shared = Arc::new(Shared::new(settings, clock, disk, control));
        let settings = shared.settings();

        let rpc = Rpc::new(shared.control.clone(), settings.rpc());
        let ours = FedStore::new(hooked.clone(), false);
        let mut feeds = vec![ours.feed().clone()];
        let (service, court) = match settings.relay.listen {
            Some(address) => {
                let theirs = Arc::new(FedStore::new(hooked.clone(), true));
                feeds.push(theirs.feed().clone());
                let (service, court) = serve(&shared, &ours, theirs, rpc.clone(), address).await?;
                (Some(Arc::new(service)), Some(court))
            }
            None => (None, None),
        };
        let runtime = Arc::new(NativeRuntime::with_signer(ours, settings.sockets(), shared.control.signer())?);
        let reporter = Reporter::new(shared.clone(), hooked.clone(), service.clone(), feeds);
        let reports = reporter.subscribe();
        let admin = match settings.http.listen {
            Some(address) => {
                let admin = settings.http.admin.clone();
                let (clock, reports) = (shared.clock.clone(), reports.clone());
                let server = AdminServer::bind_with(address, admin, clock, reports, Some(rpc.clone())).await?;
                tracing::info!("metrics and status are at http://{}", server.local_addr());
                Some(server)
            }
            None => None,
        };
        let reporter = tokio::spawn(reporter.run());
        let orders = shared.control.attach();
        let steward = tokio::spawn(steward::attend(shared.clone(), service.clone(), orders));
        #[cfg(unix)]
        let socket = listen_locally(&settings, rpc)?;
        let engine = tokio::spawn(engine::keep(shared.clone(), runtime));
        Ok(Self {
            shared,
            hooked,
            service,
            admin,
            #[cfg(unix)]
            socket,
            reports,
            engine,
            court,
            reporter,
            steward,
        })
    }

    /// The URL of the embedded relay for clients on this machine; `None` if there is none.
    pub fn relay_url(&self) -> Option<RelayUrl> {
        self.service.as_ref().map(|service| service.url())
    }

    /// The address of the admin server; `None` if there is none.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(AdminServer::local_addr)
    }

    /// Who we are, the peers, and the access rules: what is changed there holds at once.
    pub fn control(&self) -> Control {
        self.shared.control.clone()
    }

    /// What the daemon is at: a new report about every two seconds.
    pub fn reports(&self) -> watch::Receiver<Arc<DaemonReport>> {
        self.reports.clone()
    }

    /// Takes over from `settings` what can change while it runs, and says what was, and what needs a restart.
    pub async fn reload(&self, settings: &Settings) -> Reloaded {
        reload::reload(&self.shared, &self.hooked, self.service.as_deref(), settings).await
    }

    /// Waits until a part of the daemon ends by itself, which none should; says which.
    pub async fn failed(&mut self) -> &'static str {
        let court = async {
            match &mut self.court {
                Some(court) => drop(court.await),
                None => std::future::pending().await,
            }
        };
        // How it ended, a panic above all, was printed where it happened.
        tokio::select! {
            _ = &mut self.engine => "the engine",
            _ = &mut self.reporter => "the reporter",
            () = court => "the court",
            _ = &mut self.steward => "the steward",
        }
    }

    /// Commits what has arrived, says goodbye to clients and relays, and ends, within
    /// [`DaemonSettings::drain_max`](super::settings::DaemonSettings::drain_max). `false` if that was too short.
    pub async fn shutdown(self) -> bool {
        let drain_max = self.shared.settings().daemon.drain_max;
        let engine = self.engine.abort_handle();
        let drained = tokio::time::timeout(drain_max, self.drain()).await.is_ok();
        engine.abort();
        drained
    }

    async fn drain(self) {
        #[cfg(unix)]
        drop(self.socket);
        let Self { shared, hooked, service, admin, engine, court, reporter, steward, .. } = self;
        for (part, task) in [("the reporter", reporter), ("the steward", steward)] {
            task.abort();
            ended(part, task.await);
        }
        drop(admin);
        // Clients first: what they have published is still to be judged by the engine.
        if let Some(service) = service.and_then(Arc::into_inner) {
            service.shutdown().await;
        }
        shared.stop();
        ended("the engine", engine.await);
        if let Some(court) = court {
            court.abort();
            ended("the court", court.await);
        }
        hooked.close().await;
        if let Err(error) = shared.control.close().await {
            tracing::warn!("what happened last at peers is not written down: {error}");
        }
        shared.disk.close().await;
    }
}

/// Opens the control plane, with an identity: peers and clients may ask for it at any time.
async fn open_control(settings: &Settings, keys: Option<Keys>) -> Result<Control, DaemonError> {
    let config = ControlConfig { key: keys.map(Secret::from), ..settings.control() };
    let control = Control::open(config).await?;
    let identity = control.identity().ensure().await?;
    tracing::info!("we are {}", identity.pubkey.to_hex());
    Ok(control)
}

/// Takes calls on this machine. Where nobody has said where, a place that will not do is no reason not to start.
#[cfg(unix)]
fn listen_locally(settings: &Settings, rpc: Rpc) -> Result<Option<RpcSocket>, DaemonError> {
    match RpcSocket::bind(&settings.control_socket(), rpc) {
        Ok(socket) => {
            tracing::info!("commands are taken at the socket {}", settings.control_socket().display());
            Ok(Some(socket))
        }
        Err(error) if settings.control.socket.is_some() => Err(error.into()),
        Err(error) => {
            tracing::warn!("`relaysync peer` and its like find nobody: {error}");
            Ok(None)
        }
    }
}

/// Says how a part of the daemon has ended, if not as it should.
fn ended(part: &str, result: Result<(), tokio::task::JoinError>) {
    if let Err(error) = result
        && !error.is_cancelled()
    {
        tracing::error!("{part} ended badly: {error}");
    }
}

/// The embedded relay, and the court that hears what its clients publish, and judges it where anything is to be judged.
async fn serve(
    shared: &Arc<Shared>,
    ours: &FedStore<Hooked>,
    theirs: Arc<FedStore<Hooked>>,
    rpc: Rpc,
    address: SocketAddr,
) -> Result<(RelayService, JoinHandle<()>), DaemonError> {
    let settings = shared.settings();
    let feed = Some(ours.feed().subscribe(settings.daemon.feed));
    let mut ties = Ties { feed, rpc: Some(rpc), ..Ties::default() };
    let (judge, docket) = docket(theirs.feed().subscribe(settings.daemon.feed));
    // Without discovery nobody judges, but what clients publish is still news for the engine.
    let idle_judge = match settings.discovery.enabled {
        true => {
            ties.judge = Some(judge);
            None
        }
        false => Some(judge),
    };
    let court = tokio::spawn(court::hold(shared.clone(), docket, idle_judge));
    let mut config = settings.service();
    let desired = shared.control.desired();
    config.serve.access = desired.access.clone();
    config.serve.peers = desired.peer_keys().into();
    config.serve.identity = desired.identity.as_ref().map(|identity| identity.pubkey);
    let service = RelayService::bind_with(address, config, theirs, ties).await?;
    tracing::info!("the relay listens at {}", service.url());
    Ok((service, court))
}
