//! The settings of a daemon.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::value::Text;
use crate::discover::DiscoverConfig;
use crate::engine::Config;
use crate::native::SocketConfig;
use crate::native::admin::AdminConfig;
use crate::native::control::{ControlBounds, ControlConfig};
use crate::native::feed::FeedBounds;
use crate::native::hook::{HookConfig, HookTarget, HookUrl};
use crate::native::rpc::RpcConfig;
use crate::native::serve::{ServiceConfig, TlsFiles};
use crate::native::store::{NativeStore, NativeStoreConfig};
use crate::protocol::{Filter, PublicKey, RelayUrl};
use crate::store::StoreConfig;

/// Everything that can be set. What is not is as in the defaults.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the events are held.
    pub store: StoreSettings,
    /// Who we are.
    pub identity: IdentitySettings,
    /// What is protected.
    pub access: AccessSettings,
    /// Who may govern the daemon, and how.
    pub control: ControlSettings,
    /// Our own relay.
    pub relay: RelaySettings,
    /// Which relays and repositories are found and followed.
    pub discovery: DiscoverySettings,
    /// How relays are synced with; its `discovery` is in `discovery`: see [`Settings::engine`].
    pub sync: Config,
    /// Sockets to relays. What the engine bounds too is as in `sync`: see [`Settings::sockets`].
    pub sockets: SocketConfig,
    /// Who is told of events of repositories.
    pub hook: HookSettings,
    /// Metrics, health and status.
    pub http: HttpSettings,
    /// Logs.
    pub log: LogSettings,
    /// The daemon as a whole.
    pub daemon: DaemonSettings,
}

/// How often the daemon wants to know how far things are.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// What is behind the store's name, for the socket beside it.
const SOCKET_ENDING: &str = ".socket";

impl Default for Settings {
    fn default() -> Self {
        Self {
            store: StoreSettings::default(),
            identity: IdentitySettings::default(),
            access: AccessSettings::default(),
            control: ControlSettings::default(),
            relay: RelaySettings::default(),
            discovery: DiscoverySettings::default(),
            sync: Config { progress_interval: PROGRESS_INTERVAL, ..Config::default() },
            sockets: SocketConfig::default(),
            hook: HookSettings::default(),
            http: HttpSettings::default(),
            log: LogSettings::default(),
            daemon: DaemonSettings::default(),
        }
    }
}

impl Settings {
    /// How sockets to relays are to be set up.
    pub fn sockets(&self) -> SocketConfig {
        SocketConfig {
            connect_timeout: self.sync.connect_timeout,
            frame_bytes_max: self.sync.frame_bytes_max,
            ..self.sockets.clone()
        }
    }

    /// How the embedded relay is to serve.
    pub fn service(&self) -> ServiceConfig {
        let mut service = self.relay.service.clone();
        service.serve.urls.clone_from(&self.relay.urls);
        service.tls = self.relay.tls();
        service
    }

    /// How the store is to be opened.
    pub fn store(&self) -> NativeStoreConfig {
        NativeStoreConfig {
            store: StoreConfig { own_urls: self.relay.urls.clone() },
            cache_bytes_max: self.store.cache_bytes_max,
        }
    }

    /// How the engine is to work, discovery included.
    pub fn engine(&self) -> Config {
        Config { discovery: self.discover(), awaits_held: self.discovery.enabled, ..self.sync.clone() }
    }

    /// Is there neither a relay to sync with nor one to be, nor anybody who could name one? `has_peers`: are peers known,
    /// which no setting is about?
    pub fn is_idle(&self, has_peers: bool) -> bool {
        let begins = self.discovery.enabled && !self.discovery.config.bootstrap.is_empty();
        let is_governed = self.control.socket.is_some() || !self.control.admins.is_empty();
        !begins && !has_peers && !is_governed && self.relay.listen.is_none() && self.relay.beside.is_none()
    }

    /// Where the control plane keeps what it is told, and its bounds.
    pub fn control(&self) -> ControlConfig {
        ControlConfig {
            store_file: NativeStore::file_at(&self.store.path),
            key_file: self.identity.key_file.clone(),
            key: None,
            protected: self.access.protected.clone(),
            admins: self.control.admins.clone(),
            bounds: self.control.bounds.clone(),
        }
    }

    /// How calls over HTTP are to be taken.
    pub fn rpc(&self) -> RpcConfig {
        self.control.rpc.clone().at(&self.relay.urls)
    }

    /// Where commands on this machine find the daemon that runs with these settings.
    pub fn control_socket(&self) -> PathBuf {
        self.control.socket.clone().unwrap_or_else(|| {
            let mut path = NativeStore::file_at(&self.store.path).into_os_string();
            path.push(SOCKET_ENDING);
            path.into()
        })
    }

    /// How relays are to be discovered; `None` for not at all.
    pub fn discover(&self) -> Option<DiscoverConfig> {
        let mut config = self.discovery.config.clone();
        config.service_urls.extend(self.relay.urls.iter().cloned());
        self.discovery.enabled.then_some(config)
    }
}

/// Where the events are held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// A file, or a directory to have it in.
    pub path: PathBuf,
    /// So much of the file is cached in memory, in bytes.
    pub cache_bytes_max: usize,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self { path: "relaysync.db".into(), cache_bytes_max: NativeStoreConfig::default().cache_bytes_max }
    }
}

/// Who we are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdentitySettings {
    /// A file with the secret key, for relays that ask who we are (NIP-42); without, one is generated and kept beside the
    /// store.
    pub key_file: Option<PathBuf>,
}

/// What is protected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessSettings {
    /// Events that satisfy one of these are for those only to whom a rule grants them.
    pub protected: Vec<Filter>,
}

/// Who may govern the daemon, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ControlSettings {
    /// A unix socket for commands on this machine; `None` for one beside the store: see [`Settings::control_socket`].
    pub socket: Option<PathBuf>,
    /// The keys that may govern over HTTP (NIP-98).
    pub admins: BTreeSet<PublicKey>,
    /// Every bound.
    pub bounds: ControlBounds,
    /// How calls over HTTP are taken. Its URLs are those beside [`RelaySettings::urls`]: see [`Settings::rpc`].
    pub rpc: RpcConfig,
}

/// Our own relay: embedded, beside, or none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RelaySettings {
    /// The URLs under which others know our service.
    pub urls: Vec<RelayUrl>,
    /// Embedded: be the relay, on this address.
    pub listen: Option<SocketAddr>,
    /// Embedded: its certificate chain, in PEM, for encryption; together with the key or not at all.
    pub tls_cert_file: Option<PathBuf>,
    /// The certificate's key, in PEM.
    pub tls_key_file: Option<PathBuf>,
    /// Beside: an existing relay that holds our events.
    pub beside: Option<RelayUrl>,
    /// What is kept in step with the relay beside us; `None` for all events.
    pub beside_filter: Option<Arc<Filter>>,
    /// The embedded relay's identity and bounds, without its URLs.
    pub service: ServiceConfig,
}

impl RelaySettings {
    /// By what the embedded relay proves itself; `None` without encryption.
    pub fn tls(&self) -> Option<TlsFiles> {
        let (cert_file, key_file) = self.tls_cert_file.clone().zip(self.tls_key_file.clone())?;
        Some(TlsFiles { cert_file, key_file })
    }
}

/// Which relays and repositories are found and followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoverySettings {
    /// Find repositories and relays at all.
    pub enabled: bool,
    /// How. Its service URLs are those beside [`RelaySettings::urls`].
    pub config: DiscoverConfig,
}

impl Default for DiscoverySettings {
    fn default() -> Self {
        Self { enabled: true, config: DiscoverConfig::default() }
    }
}

/// Who is told of events of repositories: a command or a URL, or nobody.
#[derive(Debug, Clone)]
pub struct HookSettings {
    /// A program with its arguments; empty for none.
    pub command: Vec<String>,
    /// A URL (http or https).
    pub url: Option<PostUrl>,
    /// When, of what, and every bound; its target is that of the command or URL: see [`HookSettings::hook`].
    pub config: HookConfig,
}

impl Default for HookSettings {
    fn default() -> Self {
        Self { command: Vec::new(), url: None, config: HookConfig::new(HookTarget::Command(Vec::new())) }
    }
}

impl HookSettings {
    /// The hook; `None` if nobody is to be told.
    pub fn hook(&self) -> Option<HookConfig> {
        let target = match &self.url {
            Some(url) => HookTarget::Url(url.url.clone()),
            None if self.command.is_empty() => return None,
            None => HookTarget::Command(self.command.clone()),
        };
        Some(HookConfig { target, ..self.config.clone() })
    }
}

/// A URL that is posted to, as it was written and as it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostUrl {
    text: String,
    url: HookUrl,
}

impl Text for PostUrl {
    const FORM: &'static str = "an http or https URL, like \"http://127.0.0.1:8080/hook\"";
    const EXAMPLE: &'static str = "\"http://127.0.0.1:8080/hook\"";

    fn parse(text: &str) -> Result<Self, String> {
        HookUrl::parse(text).map(|url| Self { text: text.to_owned(), url })
    }

    fn text(&self) -> String {
        self.text.clone()
    }
}

/// Metrics, health and status, over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpSettings {
    /// The address to listen on; `None` for not at all.
    pub listen: Option<SocketAddr>,
    /// The names of metrics, and every bound.
    pub admin: AdminConfig,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogSettings {
    /// What is logged.
    pub filter: LogFilter,
    /// The form of a line.
    pub format: LogFormat,
}

/// A level, or levels by part of the program, as for RUST_LOG.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(pub String);

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl Text for LogFilter {
    const FORM: &'static str = "\"error\", \"warn\", \"info\", \"debug\" or \"trace\", or levels by part of the program, \
        like \"warn,relaysync::native=debug\"";
    const EXAMPLE: &'static str = "\"info\"";

    fn parse(text: &str) -> Result<Self, String> {
        // Some of what is not ASCII makes the parser of tracing-subscriber 0.3.23 panic.
        let parsed = text.is_ascii().then(|| text.parse::<tracing_subscriber::EnvFilter>());
        match parsed {
            Some(Ok(_)) if !text.trim().is_empty() && !is_misspelt_level(text) => Ok(Self(text.to_owned())),
            _ => Err(format!("{text:?} is no level")),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// A lone word that is no level would be taken for a part of the program, and everything else be silent.
fn is_misspelt_level(text: &str) -> bool {
    let is_level = |part: &str| part.parse::<tracing_subscriber::filter::LevelFilter>().is_ok();
    text.split(',').map(str::trim).any(|part| part.chars().all(|c| c.is_ascii_alphanumeric()) && !is_level(part))
}

/// The form of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Text for LogFormat {
    const FORM: &'static str = "\"text\" or \"json\"";
    const EXAMPLE: &'static str = "\"text\"";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(format!("{text:?} is no form of a log")),
        }
    }

    fn text(&self) -> String {
        if *self == Self::Json { "json" } else { "text" }.to_owned()
    }
}

/// The daemon as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonSettings {
    /// How long the end may take: what has arrived is committed, connections are closed.
    pub drain_max: Duration,
    /// The wait before the engine is built anew after a failure of the store; it doubles with each further one.
    pub store_retry_base: Duration,
    /// The longest such wait.
    pub store_retry_max: Duration,
    /// Held events that are read at a time when the index is rebuilt.
    pub held_page_events: usize,
    /// Bytes of such a page, at most.
    pub held_page_bytes: usize,
    /// What may wait for each part that is told what was stored.
    pub feed: FeedBounds,
    /// Commands that wait for the engine.
    pub commands_max: usize,
    /// How often the log sums up how things are.
    pub summary_interval: Duration,
}

impl Default for DaemonSettings {
    fn default() -> Self {
        Self {
            drain_max: Duration::from_secs(5),
            store_retry_base: Duration::from_secs(1),
            store_retry_max: Duration::from_secs(60),
            held_page_events: 500,
            held_page_bytes: 1 << 20,
            feed: FeedBounds::default(),
            commands_max: 16,
            summary_interval: Duration::from_secs(600),
        }
    }
}
