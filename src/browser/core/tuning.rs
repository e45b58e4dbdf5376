//! Bounds and timeouts that a page may set: `config` of the options.

use super::params::Params;
use crate::browser::BrowserConfig;
use crate::browser::failure::Failure;
use crate::engine::Config;
use crate::job::JobsConfig;

/// Signatures that are checked at a time, at most: many at once cost far less than one by one.
const VERIFY_EVENTS_MAX: usize = 512;

/// The bounds of jobs in a browser. Frames come one by one there, so batches of signatures gather only while others are
/// checked: as few are under way as keep everybody busy, one where they are checked here, two where workers do that.
pub(super) fn defaults(verifies_elsewhere: bool) -> JobsConfig {
    let mut jobs = JobsConfig::default();
    each(&mut jobs, |config| {
        config.verify_events_max = VERIFY_EVENTS_MAX;
        config.verify_in_flight_max = if verifies_elsewhere { 2 } else { 1 };
    });
    jobs
}

/// Sets what `params` name. Durations are in milliseconds.
///
/// # Errors
/// Names what is unknown or wrong.
pub(super) fn apply(mut params: Params, browser: &mut BrowserConfig, jobs: &mut JobsConfig) -> Result<(), Failure> {
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

fn each(jobs: &mut JobsConfig, change: impl Fn(&mut Config)) {
    change(&mut jobs.live);
    change(&mut jobs.once);
}
