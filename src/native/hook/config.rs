//! Whom to tell, of what, and every bound.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::native::http::HttpUrl;
use crate::protocol::{Address, hex};

/// News of one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The repository: the address of an announcement (NIP-34), held or not.
    pub repository: Address,
    /// The ids of the events that have arrived for it, and are held.
    pub ids: BTreeSet<[u8; 32]>,
    /// Are these all? Else there were too many to be listed, and anything of the repository may be new.
    pub complete: bool,
}

impl Delivery {
    /// The delivery as JSON: `{"repository":"30617:…","events":["…"],"complete":true}`.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Json {
            repository: String,
            events: Vec<String>,
            complete: bool,
        }
        let events = self.ids.iter().map(|id| hex::encode(id)).collect();
        let json = Json { repository: self.repository.to_string(), events, complete: self.complete };
        serde_json::to_string(&json).expect("it has only strings and a bool")
    }
}

/// What a [`HookCallback`] gives.
pub type Delivering = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Takes deliveries in this process. Any `Fn(Delivery) -> impl Future` is one.
pub trait HookCallback: Send + Sync {
    /// Takes a delivery. An error, in words, has it made again later; so has a panic.
    fn deliver(&self, delivery: Delivery) -> Delivering;
}

impl<F, T> HookCallback for F
where
    F: Fn(Delivery) -> T + Send + Sync,
    T: Future<Output = Result<(), String>> + Send + 'static,
{
    fn deliver(&self, delivery: Delivery) -> Delivering {
        Box::pin(self(delivery))
    }
}

/// Who is told.
#[derive(Clone)]
pub enum HookTarget {
    /// A callback.
    Callback(Arc<dyn HookCallback>),
    /// A program and its arguments. It gets the JSON of a delivery on its standard input, the repository as
    /// `RELAYSYNC_REPOSITORY`, and has taken the delivery if its exit status is 0.
    Command(Vec<String>),
    /// A URL that the JSON is posted to. It has taken the delivery if the answer's status is 2xx.
    Url(HookUrl),
}

impl fmt::Debug for HookTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Callback(_) => f.write_str("Callback"),
            Self::Command(argv) => f.debug_tuple("Command").field(argv).finish(),
            Self::Url(url) => f.debug_tuple("Url").field(url).finish(),
        }
    }
}

/// An `http` or `https` URL to post to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookUrl(pub(super) HttpUrl);

impl HookUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// What is wrong with it, in words: it is no `http` or `https` URL, or carries a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        HttpUrl::parse(text).map(Self)
    }
}

/// How the hook behaves, and its bounds.
#[derive(Debug, Clone)]
pub struct HookConfig {
    /// Who is told.
    pub target: HookTarget,
    /// The kinds of events that are news.
    pub kinds: BTreeSet<u16>,
    /// What arrives for a repository is gathered for so long after the first event.
    pub batch: Duration,
    /// A delivery that takes longer has failed; a command and what it has started are killed.
    pub timeout: Duration,
    /// The wait after a failure; it doubles with each further one of the same repository.
    pub retry_base: Duration,
    /// The longest such wait.
    pub retry_max: Duration,
    /// Deliveries under way at once; those of one repository follow each other.
    pub concurrent_max: usize,
    /// Repositories with something to deliver. Events for others are not handed on.
    pub repositories_max: usize,
    /// Ids that wait for delivery. Beyond that a repository is handed on alone.
    pub ids_max: usize,
    /// Ids of one repository that wait for delivery. Beyond that it is handed on alone.
    pub ids_per_repository_max: usize,
    /// Repositories that one event is handed on for.
    pub repositories_per_event_max: usize,
    /// The longest address of a repository, in bytes; others are no repositories.
    pub address_bytes_max: usize,
    /// Held announcements that are looked through for maintainers, for one state.
    pub announcements_max: usize,
    /// So much of the output of a command, or of an answer, is kept for the log, in bytes.
    pub output_bytes_max: usize,
    /// How long output is awaited from what a command has left running when it ended.
    pub output_grace: Duration,
    /// How long a shutdown waits for deliveries under way.
    pub shutdown_max: Duration,
    /// So much of the outbox's file is cached in memory, in bytes.
    pub cache_bytes_max: usize,
}

impl HookConfig {
    /// The usual bounds and kinds: announcements, states, patches, pull requests with their updates, and issues (NIP-34).
    pub fn new(target: HookTarget) -> Self {
        Self {
            target,
            kinds: [30617, 30618, 1617, 1618, 1619, 1621].into(),
            batch: Duration::from_millis(500),
            timeout: Duration::from_secs(60),
            retry_base: Duration::from_secs(1),
            retry_max: Duration::from_secs(300),
            concurrent_max: 4,
            repositories_max: 100_000,
            ids_max: 1_000_000,
            ids_per_repository_max: 1_000,
            repositories_per_event_max: 32,
            address_bytes_max: 1_024,
            announcements_max: 1_000,
            output_bytes_max: 4 << 10,
            output_grace: Duration::from_millis(100),
            shutdown_max: Duration::from_secs(1),
            cache_bytes_max: 4 << 20,
        }
    }
}
