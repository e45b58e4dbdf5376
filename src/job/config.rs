//! Every bound and timeout of jobs, named, with its unit.

use std::time::Duration;

use crate::discover::DiscoverConfig;
use crate::engine::Config;

/// Within which bounds jobs run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsConfig {
    /// The engines of jobs that stay: one for each direction and method, shared by all such jobs.
    pub live: Config,
    /// The engines of jobs that end: one a job.
    pub once: Config,
    /// How relays are discovered for jobs that follow repositories; which repositories, and where to begin, the job says.
    pub discovery: DiscoverConfig,
    /// Jobs and watches at a time, those that are over and still remembered not counted.
    pub jobs_max: usize,
    /// Jobs that are over and whose reports are remembered; beyond it, the one
    /// that ended first is forgotten, of those from which everything was taken, if there are any.
    pub ended_jobs_max: usize,
    /// Jobs that end which run at the same time; further ones wait for their turn.
    pub once_at_a_time_max: usize,
    /// Filters of one job.
    pub filters_per_job_max: usize,
    /// Relays of one job, or of one publishing.
    pub relays_per_job_max: usize,
    /// A relay that failed so often in a row counts as a gap of a job that stays, which is caught up without it. It is tried
    /// again all the same. For jobs that end, `once.attempts_max` says the same.
    pub failures_max: u32,
    /// Events of which is remembered which relay brought them, about 100 bytes each.
    pub origins_max: usize,
    /// Events of which a job that follows repositories remembers that they belong to nothing that it knows, as that may
    /// change; 32 bytes each, twice.
    pub passed_over_max: usize,
    /// Events read from the store at once, to find those of a job among them.
    pub arrivals_events_max: usize,
    /// Their JSON, in bytes.
    pub arrivals_bytes_max: usize,
    /// Events checked and committed at once, of those that the caller adds.
    pub add_events_max: usize,
    /// When the store fails, it is tried again after this; it doubles with each further failure.
    pub store_retry_base: Duration,
    /// The longest time between two tries of a store that fails.
    pub store_retry_max: Duration,
    /// A proof of completeness counts for this long after the last moment that it was followed to.
    pub proof_valid_for: Duration,
    /// An engine that is asked for what it has proven answers within this time, or what is stored is told instead.
    pub answer_timeout: Duration,
    /// [`Jobs::close`](super::Jobs::close) waits this long for connections to end and for what has arrived to be stored.
    pub close_timeout: Duration,
}

impl Default for JobsConfig {
    fn default() -> Self {
        let once = Config::one_shot();
        Self {
            live: Config { attempts_max: once.attempts_max, backoff_base: once.backoff_base, ..Config::default() },
            once: Config { progress_interval: Duration::ZERO, ..once },
            discovery: DiscoverConfig { batch_window: Duration::from_millis(500), ..DiscoverConfig::default() },
            jobs_max: 256,
            ended_jobs_max: 256,
            once_at_a_time_max: 8,
            filters_per_job_max: 64,
            relays_per_job_max: 256,
            failures_max: 3,
            origins_max: 50_000,
            passed_over_max: 10_000,
            arrivals_events_max: 1_000,
            arrivals_bytes_max: 1 << 20,
            add_events_max: 1_000,
            store_retry_base: Duration::from_secs(1),
            store_retry_max: Duration::from_secs(60),
            proof_valid_for: Duration::from_secs(15 * 60),
            answer_timeout: Duration::from_secs(2),
            close_timeout: Duration::from_secs(5),
        }
    }
}
