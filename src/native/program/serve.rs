//! `relaysync serve`: a relay.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use crate::native::serve::{BindError, RelayService, ServiceConfig};
use crate::protocol::RelayUrl;
use crate::serve::ServeConfig;
use crate::store::Store;

/// Serve a store to Nostr clients: NIP-01, 09, 11, 40, 42, 45, 62, 70 and 77.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The address and port to listen on; port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 7777)))]
    pub listen: SocketAddr,

    /// Where the events are kept. Without it they are kept in memory, and gone when the program ends.
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,

    /// A URL under which clients know this relay, for authentication (NIP-42) and vanish requests (NIP-62).
    #[arg(long = "url", value_name = "URL")]
    pub urls: Vec<RelayUrl>,

    /// The relay's name, as clients show it.
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,

    /// Serve authenticated clients only (NIP-42).
    #[arg(long)]
    pub auth_required: bool,

    /// Do not answer set reconciliation (NIP-77).
    #[arg(long)]
    pub no_negentropy: bool,

    /// Connections open at once.
    #[arg(long, value_name = "COUNT", default_value_t = ServiceConfig::default().clients_max)]
    pub clients_max: usize,

    /// The largest frame taken from a client, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = ServeConfig::default().frame_bytes_max)]
    pub frame_bytes_max: usize,

    /// Open subscriptions a client.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().subscriptions_max)]
    pub subscriptions_max: usize,

    /// Filters a subscription.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().filters_max)]
    pub filters_max: usize,

    /// Stored events a filter, at most.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().page_events_max)]
    pub page_events_max: usize,

    /// Stored events for a filter without limit.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().page_events_default)]
    pub page_events_default: usize,

    /// Open reconciliations a client.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().negentropy_sessions_max)]
    pub negentropy_sessions_max: usize,

    /// Items of one reconciliation, at most.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().negentropy_records_max)]
    pub negentropy_records_max: usize,

    /// The largest reconciliation message sent, in bytes, at least 4096.
    #[arg(long, value_name = "BYTES", default_value_t = ServeConfig::default().negentropy_frame_bytes_max)]
    pub negentropy_frame_bytes_max: usize,
}

impl Args {
    /// The configuration that the arguments ask for.
    pub fn config(&self) -> ServiceConfig {
        let defaults = ServeConfig::default();
        let serve = ServeConfig {
            name: self.name.clone().or(defaults.name),
            urls: self.urls.clone(),
            auth_required: self.auth_required,
            negentropy: !self.no_negentropy,
            frame_bytes_max: self.frame_bytes_max,
            subscriptions_max: self.subscriptions_max,
            filters_max: self.filters_max,
            page_events_max: self.page_events_max,
            page_events_default: self.page_events_default,
            negentropy_sessions_max: self.negentropy_sessions_max,
            negentropy_records_max: self.negentropy_records_max,
            negentropy_frame_bytes_max: self.negentropy_frame_bytes_max,
            ..defaults
        };
        ServiceConfig { clients_max: self.clients_max, ..serve.into() }
    }
}

/// Why the relay could not serve.
#[derive(Debug)]
pub enum ServeError {
    /// It could not listen.
    Bind(BindError),
    /// The system does not let it listen for signals.
    Signals(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(error) => error.fmt(f),
            Self::Signals(error) => write!(f, "cannot wait for signals: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// Serves from `store` until Ctrl-C or SIGTERM, then ends within 2 s.
///
/// # Errors
/// The address cannot be listened on.
pub async fn run<S: Store>(args: &Args, store: Arc<S>) -> Result<(), ServeError> {
    // Before listening, so that a signal is never missed once somebody can connect.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signals)?;
    let service = RelayService::bind(args.listen, args.config(), store).await.map_err(ServeError::Bind)?;
    tracing::info!("listening on {}", service.url());
    tokio::select! {
        _ = interrupt.recv() => tracing::info!("interrupted: shutting down"),
        _ = terminate.recv() => tracing::info!("asked to end: shutting down"),
    }
    service.shutdown().await;
    Ok(())
}
