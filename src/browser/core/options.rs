//! What a core is opened with.

use wasm_bindgen::JsValue;

use super::params::{Params, fault};
use crate::browser::BrowserConfig;
use crate::browser::failure::Failure;
use crate::job::JobsConfig;

/// Where events are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// In the browser's database.
    IndexedDb,
    /// In memory.
    Memory,
}

/// What a core is opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// The name of the database.
    pub(super) name: String,
    /// Where events are held.
    pub(super) storage: Storage,
    /// Whether what is stored has to be on the disk before it counts as stored; in memory it makes no difference.
    pub(super) is_strict: bool,
    /// The most that is held, in bytes.
    pub(super) bytes_max: Option<u64>,
    /// How much is logged; nothing, if it is not said.
    pub(super) log: Option<String>,
    /// Bounds and timeouts of sockets and signatures.
    pub(super) browser: BrowserConfig,
    /// Bounds and timeouts of jobs.
    pub(super) jobs: JobsConfig,
}

impl Options {
    /// Reads `options`.
    ///
    /// # Errors
    /// Names what is unknown or wrong.
    pub(super) fn parse(options: &JsValue) -> Result<Self, Failure> {
        let mut params = Params::of(options, "options")?;
        let name = params.text("name")?;
        let storage = match &*params.text("storage")? {
            "indexeddb" => Storage::IndexedDb,
            "memory" => Storage::Memory,
            other => return Err(fault("storage", &format!("there is no {other:?}; there are indexeddb and memory"))),
        };
        let is_strict = match params.optional_text("durability")?.as_deref() {
            None | Some("relaxed") => false,
            Some("strict") => true,
            Some(other) => {
                return Err(fault("durability", &format!("there is no {other:?}; there are relaxed and strict")));
            }
        };
        let bytes_max = params.optional_number("bytesMax")?;
        let log = params.optional_text("log")?;
        let (mut browser, mut jobs) = (BrowserConfig::default(), JobsConfig::default());
        if let Some(config) = params.optional("config")? {
            configure(Params::of(&config, "config")?, &mut browser, &mut jobs)?;
        }
        params.finish("options")?;
        Ok(Self { name, storage, is_strict, bytes_max, log, browser, jobs })
    }
}

/// Durations are in milliseconds.
fn configure(mut params: Params, browser: &mut BrowserConfig, jobs: &mut JobsConfig) -> Result<(), Failure> {
    params.set_duration("connectTimeoutMs", [&mut browser.connect_timeout])?;
    params.set_duration("infoTimeoutMs", [&mut browser.info_timeout])?;
    params.set_duration("verifySliceMs", [&mut browser.verify_slice])?;
    params.set_duration("publishTimeoutMs", [&mut browser.publish_timeout])?;
    params.set_duration("statusIntervalMs", [&mut browser.status_interval])?;
    params.set_size("frameBytesMax", &mut browser.frame_bytes_max)?;
    params.set_size("outboundBytesMax", &mut browser.outbound_bytes_max)?;
    params.set_size("verifyAtOnceMax", &mut browser.verify_at_once_max)?;
    params.set_size("verifyHostEventsMin", &mut browser.verify_host_events_min)?;
    params.set_size("jobsMax", &mut jobs.jobs_max)?;
    params.set_size("onceAtATimeMax", &mut jobs.once_at_a_time_max)?;
    params.set_duration("storeRetryMinMs", [&mut jobs.store_retry_base])?;
    params.set_duration("storeRetryMaxMs", [&mut jobs.store_retry_max])?;
    params.set_duration("proofValidMs", [&mut jobs.proof_valid_for])?;
    let (live, once) = (&mut jobs.live, &mut jobs.once);
    params.set_duration("backoffMinMs", [&mut live.backoff_base, &mut once.backoff_base])?;
    params.set_duration("backoffMaxMs", [&mut live.backoff_max, &mut once.backoff_max])?;
    params.set_duration("probeAfterMs", [&mut live.probe_after, &mut once.probe_after])?;
    params.set_duration("answerTimeoutMs", [&mut live.stall, &mut once.stall])?;
    params.set_duration("gapRetryMs", [&mut live.gap_retry_base])?;
    params.set_duration("quickReconnectMaxMs", [&mut live.quick_reconnect_max])?;
    params.finish("config")
}
