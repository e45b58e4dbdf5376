//! `relaysync serve`: a relay.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use super::arguments::StoreArguments;
use super::{Exit, Failure, interrupted};
use crate::native::serve::{RelayService, ServiceConfig, TlsFiles};
use crate::native::store::{NativeStore, NativeStoreConfig};
use crate::protocol::RelayUrl;
use crate::serve::ServeConfig;
use crate::store::StoreConfig;

/// Serve a store to Nostr clients: NIP-01, 09, 11, 40, 42, 45, 62, 67, 70 and 77.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ServeArguments {
    /// The address and port to listen on; port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 7777)))]
    listen: SocketAddr,

    #[command(flatten)]
    store: StoreArguments,

    /// A URL under which clients know this relay, for authentication (NIP-42) and vanish requests (NIP-62).
    #[arg(long = "url", value_name = "URL")]
    urls: Vec<RelayUrl>,

    /// Be reached by wss, with the certificate chain in this PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The certificate's key, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// The relay's name, as clients show it.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// Serve authenticated clients only (NIP-42).
    #[arg(long)]
    auth_required: bool,

    /// Do not answer set reconciliation (NIP-77).
    #[arg(long)]
    no_negentropy: bool,

    /// Do not say in EOSE whether there is more (NIP-67).
    #[arg(long)]
    no_eose_hints: bool,

    /// Connections open at once.
    #[arg(long, value_name = "COUNT", default_value_t = ServiceConfig::default().clients_max)]
    clients_max: usize,

    /// Connections open at once from one address. This machine is exempt: a proxy has the connections of all clients.
    #[arg(long, value_name = "COUNT", default_value_t = ServiceConfig::default().clients_per_address_max)]
    clients_per_address_max: usize,

    /// Events a client may publish in a minute, and at once.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().events_per_minute_max)]
    events_per_minute_max: u64,

    /// Requests a client may make in a minute, and at once.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().requests_per_minute_max)]
    requests_per_minute_max: u64,

    /// The largest frame taken from a client, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = ServeConfig::default().frame_bytes_max)]
    frame_bytes_max: usize,

    /// Open subscriptions a client.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().subscriptions_max)]
    subscriptions_max: usize,

    /// Filters a subscription.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().filters_max)]
    filters_max: usize,

    /// Stored events a filter, at most.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().page_events_max)]
    page_events_max: usize,

    /// Stored events for a filter without limit.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().page_events_default)]
    page_events_default: usize,

    /// Open reconciliations a client.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().negentropy_sessions_max)]
    negentropy_sessions_max: usize,

    /// Items of one reconciliation, at most.
    #[arg(long, value_name = "COUNT", default_value_t = ServeConfig::default().negentropy_records_max)]
    negentropy_records_max: usize,

    /// The largest reconciliation message sent, in bytes, at least 4096.
    #[arg(long, value_name = "BYTES", default_value_t = ServeConfig::default().negentropy_frame_bytes_max,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(4096..))]
    negentropy_frame_bytes_max: usize,
}

impl ServeArguments {
    /// The configuration that the arguments ask for.
    fn config(&self) -> ServiceConfig {
        let defaults = ServeConfig::default();
        let serve = ServeConfig {
            name: self.name.clone().or(defaults.name),
            urls: self.urls.clone(),
            auth_required: self.auth_required,
            negentropy: !self.no_negentropy,
            eose_hints: !self.no_eose_hints,
            events_per_minute_max: self.events_per_minute_max,
            requests_per_minute_max: self.requests_per_minute_max,
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
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        ServiceConfig {
            tls: tls.map(|(cert_file, key_file)| TlsFiles { cert_file, key_file }),
            clients_max: self.clients_max,
            clients_per_address_max: self.clients_per_address_max,
            ..serve.into()
        }
    }
}

/// Serves until Ctrl-C or SIGTERM, then ends within 2 s, with all that was received in the store.
pub(super) async fn run(arguments: ServeArguments) -> Result<Exit, Failure> {
    let store = open_store(arguments.store.path.clone(), arguments.urls.clone()).await?;
    let bound = RelayService::bind(arguments.listen, arguments.config(), Arc::new(store)).await;
    let service = bound.map_err(Failure::new)?;
    eprintln!("listening on {}", service.url());
    let signal = interrupted().await;
    service.shutdown().await;
    eprintln!("{}, the relay has shut down", signal?);
    Ok(Exit::Complete)
}

async fn open_store(path: PathBuf, own_urls: Vec<RelayUrl>) -> Result<NativeStore, Failure> {
    let config = NativeStoreConfig { store: StoreConfig { own_urls }, ..NativeStoreConfig::default() };
    let opened = tokio::task::spawn_blocking(move || NativeStore::open(path, config)).await;
    opened.map_err(Failure::new)?.map_err(Failure::new)
}
