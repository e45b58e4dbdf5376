//! The settings of a daemon.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nostr::nips::nip01::Coordinate;

use super::value::Text;
use crate::engine::Config;
use crate::native::SocketConfig;
use crate::native::serve::ServiceConfig;
use crate::native::store::NativeStoreConfig;
use crate::protocol::{Filter, PublicKey, RelayUrl};

/// Everything that can be set. What is not is as in the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where the events are held.
    pub store: StoreSettings,
    /// Who we are.
    pub identity: IdentitySettings,
    /// Our own relay.
    pub relay: RelaySettings,
    /// Which relays and repositories are found and followed.
    pub discovery: DiscoverySettings,
    /// How relays are synced with.
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

impl Default for Settings {
    fn default() -> Self {
        Self {
            store: StoreSettings::default(),
            identity: IdentitySettings::default(),
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
        service.serve.urls = self.relay.urls.iter().cloned().collect();
        service
    }

    /// All URLs under which others know our service.
    pub fn service_urls(&self) -> BTreeSet<RelayUrl> {
        self.discovery.service_urls.union(&self.relay.urls).cloned().collect()
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
    /// A file with the secret key, for relays that ask who we are (NIP-42).
    pub key_file: Option<PathBuf>,
}

/// Our own relay: embedded, beside, or none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RelaySettings {
    /// The URLs under which others know our service.
    pub urls: BTreeSet<RelayUrl>,
    /// Embedded: be the relay, on this address.
    pub listen: Option<SocketAddr>,
    /// Beside: an existing relay that holds our events.
    pub beside: Option<RelayUrl>,
    /// What is kept in step with the relay beside us; `None` for all events.
    pub beside_filter: Option<Arc<Filter>>,
    /// The embedded relay's identity and bounds, without its URLs.
    pub service: ServiceConfig,
}

/// Which announcements of repositories are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Acceptance {
    /// Those that list our service.
    #[default]
    Listed,
    /// Those of allowed authors and allowed repositories.
    Allowed,
    /// All.
    All,
}

impl Text for Acceptance {
    const FORM: &'static str = "\"listed\", \"allowed\" or \"all\"";
    const EXAMPLE: &'static str = "\"listed\"";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "listed" => Ok(Self::Listed),
            "allowed" => Ok(Self::Allowed),
            "all" => Ok(Self::All),
            _ => Err(format!("{text:?} is no way to accept announcements")),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Listed => "listed",
            Self::Allowed => "allowed",
            Self::All => "all",
        }
        .to_owned()
    }
}

/// Which relays and repositories are found and followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoverySettings {
    /// Find repositories and relays at all.
    pub enabled: bool,
    /// Relays to begin with; connections to them are never given up.
    pub bootstrap: BTreeSet<RelayUrl>,
    /// Further URLs of our service.
    pub service_urls: BTreeSet<RelayUrl>,
    /// Which announcements are accepted.
    pub accept: Acceptance,
    /// Authors whose announcements are accepted.
    pub allow_authors: BTreeSet<PublicKey>,
    /// Repositories whose announcements are accepted.
    pub allow_repositories: BTreeSet<Coordinate>,
    /// Authors whose announcements are never accepted.
    pub block_authors: BTreeSet<PublicKey>,
    /// Repositories whose announcements are never accepted.
    pub block_repositories: BTreeSet<Coordinate>,
    /// Relays that are never connected to.
    pub block_relays: BTreeSet<RelayUrl>,
    /// How long what is found is gathered before it is acted on.
    pub batch_window: Duration,
    /// Relays known at once.
    pub relays_max: usize,
    /// Relays that one repository may name.
    pub repository_relays_max: usize,
    /// Repositories followed.
    pub repositories_max: usize,
    /// Issues, patches and pull requests followed.
    pub roots_max: usize,
}

impl Default for DiscoverySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            bootstrap: BTreeSet::new(),
            service_urls: BTreeSet::new(),
            accept: Acceptance::default(),
            allow_authors: BTreeSet::new(),
            allow_repositories: BTreeSet::new(),
            block_authors: BTreeSet::new(),
            block_repositories: BTreeSet::new(),
            block_relays: BTreeSet::new(),
            batch_window: Duration::from_secs(5),
            relays_max: 1_000,
            repository_relays_max: 32,
            repositories_max: 100_000,
            roots_max: 1_000_000,
        }
    }
}

/// Who is told of events of repositories: a command or a URL, or nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSettings {
    /// A program with its arguments; empty for none.
    pub command: Vec<String>,
    /// A URL (http or https).
    pub url: Option<HookUrl>,
    /// How long events of one repository are gathered before they are handed on.
    pub batch: Duration,
    /// A delivery is given up after this, and made again later.
    pub timeout: Duration,
    /// The kinds of events that are handed on.
    pub kinds: BTreeSet<u16>,
    /// Deliveries under way at once.
    pub concurrent_max: usize,
}

impl Default for HookSettings {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            url: None,
            batch: Duration::from_millis(500),
            timeout: Duration::from_secs(60),
            kinds: [30617, 30618, 1617, 1618, 1619, 1621].into(),
            concurrent_max: 4,
        }
    }
}

/// A URL that is posted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookUrl(pub url::Url);

impl Text for HookUrl {
    const FORM: &'static str = "an http or https URL, like \"http://127.0.0.1:8080/hook\"";
    const EXAMPLE: &'static str = "\"http://127.0.0.1:8080/hook\"";

    fn parse(text: &str) -> Result<Self, String> {
        match url::Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Self(url)),
            Ok(url) => Err(format!("the scheme {:?} cannot be posted to", url.scheme())),
            Err(error) => Err(format!("{text:?} is no URL: {error}")),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Metrics, health and status, over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// The address to listen on; `None` for not at all.
    pub listen: Option<SocketAddr>,
    /// How the names of metrics begin.
    pub metrics_prefix: MetricsPrefix,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { listen: None, metrics_prefix: MetricsPrefix("relaysync".to_owned()) }
    }
}

/// How the names of metrics begin: letters, digits and underscores, not beginning with a digit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsPrefix(pub String);

impl Text for MetricsPrefix {
    const FORM: &'static str = "letters, digits and underscores, like \"relaysync\" or \"ngit_sync\"";
    const EXAMPLE: &'static str = "\"relaysync\"";

    fn parse(text: &str) -> Result<Self, String> {
        let fits = |(index, character): (usize, char)| match character {
            '_' => true,
            digit if digit.is_ascii_digit() => index > 0,
            other => other.is_ascii_alphabetic(),
        };
        if !text.is_empty() && text.chars().enumerate().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("{text:?} cannot begin the name of a metric"))
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }
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
}

impl Default for DaemonSettings {
    fn default() -> Self {
        Self {
            drain_max: Duration::from_secs(5),
            store_retry_base: Duration::from_secs(1),
            store_retry_max: Duration::from_secs(60),
            held_page_events: 500,
            held_page_bytes: 1 << 20,
        }
    }
}
