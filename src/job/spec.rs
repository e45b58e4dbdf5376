//! What a job is to do.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use super::JobsConfig;
use crate::engine::Direction;
use crate::protocol::{Address, Filter, RelayUrl};
use crate::store::Method;
use crate::store::Sequence;

/// A job: what is to be held, of which relays, and how it is got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSpec {
    /// What is wanted.
    pub what: What,
    /// Of which relays; for repositories, where discovery begins.
    pub relays: Vec<RelayUrl>,
    /// Stay, and follow what is new, until the job is stopped.
    pub live: bool,
    /// Which way events go. Repositories are fetched only, whatever this says.
    pub direction: Direction,
    /// The method of histories; `None` decides by what is held and what the relay can do.
    pub method: Option<Method>,
    /// A job that ends is stopped after this. One that stays counts as caught up by then, with what is not fetched as gaps,
    /// and goes on. `None` for no such bound.
    pub timeout: Option<Duration>,
    /// Gives out what was stored after this number, as [`Taken::cursor`](super::Taken::cursor) says it; `None` for what is
    /// stored from now on.
    pub after: Option<Sequence>,
}

/// What a job wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// What satisfies one of these filters. A `limit` has no answer that could be complete, and is refused.
    Filters(Vec<Filter>),
    /// Repositories (NIP-34) and what belongs to them, from all relays that their announcements name.
    Repos {
        /// These repositories.
        addresses: BTreeSet<Address>,
        /// All repositories of these authors, public keys.
        authors: BTreeSet<[u8; 32]>,
    },
}

impl Default for JobSpec {
    fn default() -> Self {
        Self {
            what: What::Filters(Vec::new()),
            relays: Vec::new(),
            live: false,
            direction: Direction::Down,
            method: None,
            timeout: None,
            after: None,
        }
    }
}

/// Why a call came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobError {
    /// There is no job or watch of this id (any more).
    Unknown(String),
    /// There is a job or watch of this id already.
    IdInUse(String),
    /// It names no relay.
    NoRelays,
    /// It names no filter, and no repository or author.
    NoFilters,
    /// More than are taken: of what, and how many are.
    TooMany(&'static str, usize),
    /// This filter cannot be synced, and why.
    Filter(String),
    /// Everything was closed.
    Closed,
    /// The store failed, in its words.
    Store(String),
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(f, "there is no job {id:?}"),
            Self::IdInUse(id) => write!(f, "there is a job {id:?} already: stop it, or take another id"),
            Self::NoRelays => f.write_str("no relay is named: at least one is needed"),
            Self::NoFilters => f.write_str("nothing is asked for: name a filter, a repository or an author"),
            Self::TooMany(what, max) => write!(f, "too many {what}: at most {max} are taken"),
            Self::Filter(why) => write!(f, "this filter cannot be synced: {why}"),
            Self::Closed => f.write_str("closed: nothing can be done any more"),
            Self::Store(words) => write!(f, "the store failed: {words}"),
        }
    }
}

impl std::error::Error for JobError {}

impl JobError {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown-job",
            Self::IdInUse(_) => "id-in-use",
            Self::NoRelays => "no-relays",
            Self::NoFilters => "no-filters",
            Self::TooMany(..) => "too-many",
            Self::Filter(_) => "invalid-filter",
            Self::Closed => "closed",
            Self::Store(_) => "storage",
        }
    }

    /// May the same call succeed later?
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Store(_) | Self::TooMany("jobs", _))
    }

    pub(super) fn of_store(error: impl fmt::Display) -> Self {
        Self::Store(error.to_string())
    }
}

impl JobSpec {
    /// Can this be done?
    ///
    /// # Errors
    /// Says what is missing, or too much.
    pub(super) fn check(&self, config: &JobsConfig) -> Result<(), JobError> {
        check_relays(&self.relays, config)?;
        match &self.what {
            What::Filters(filters) => {
                check_filters(filters, config)?;
                match filters.iter().any(|filter| filter.limit.is_some()) {
                    true => Err(JobError::Filter(
                        "with \"limit\" no answer is complete; leave it out, and narrow the filter by \"since\"".into(),
                    )),
                    false => Ok(()),
                }
            }
            What::Repos { addresses, authors } if addresses.is_empty() && authors.is_empty() => {
                Err(JobError::NoFilters)
            }
            What::Repos { .. } => Ok(()),
        }
    }
}

pub(super) fn check_relays(relays: &[RelayUrl], config: &JobsConfig) -> Result<(), JobError> {
    match relays.len() {
        0 => Err(JobError::NoRelays),
        many if many > config.relays_per_job_max => Err(JobError::TooMany("relays", config.relays_per_job_max)),
        _ => Ok(()),
    }
}

pub(super) fn check_filters(filters: &[Filter], config: &JobsConfig) -> Result<(), JobError> {
    if filters.is_empty() {
        return Err(JobError::NoFilters);
    }
    if filters.len() > config.filters_per_job_max {
        return Err(JobError::TooMany("filters", config.filters_per_job_max));
    }
    match filters.iter().any(|filter| filter.search.is_some()) {
        true => Err(JobError::Filter("\"search\" (NIP-50) selects other events on each relay".into())),
        false => Ok(()),
    }
}
