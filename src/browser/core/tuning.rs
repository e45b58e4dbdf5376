//! Bounds and timeouts that a page may set: `config` of the options.

use std::time::Duration;

use wasm_bindgen::JsValue;

use super::params::Params;
use crate::browser::failure::Failure;
use crate::engine::Config;
use crate::job::JobsConfig;

/// Signatures that are checked at a time, at most: many at once cost far less than one by one.
const VERIFY_EVENTS_MAX: usize = 512;

/// The bounds of jobs in a browser. Frames come one by one there, so batches of signatures gather only while others are
/// checked: as few are under way as keep everybody busy, one here or `verifies_elsewhere` one there as well.
pub(super) fn defaults(verifies_elsewhere: bool) -> JobsConfig {
    let mut jobs = JobsConfig::default();
    each(&mut jobs, |config| {
        config.verify_events_max = VERIFY_EVENTS_MAX;
        config.verify_in_flight_max = if verifies_elsewhere { 2 } else { 1 };
    });
    jobs
}

/// Sets what `config` names.
///
/// # Errors
/// Names what is unknown or wrong.
pub(super) fn apply(config: &JsValue, jobs: &mut JobsConfig) -> Result<(), Failure> {
    let mut params = Params::of(config, "config")?;
    let mut time = |name| Ok::<_, Failure>(params.optional_number(name)?.map(Duration::from_millis));
    let (base, most, floor) = (time("backoffBaseMs")?, time("backoffMaxMs")?, time("backoffFloorMs")?);
    let (connect, stall, probe) = (time("connectTimeoutMs")?, time("stallMs")?, time("probeAfterMs")?);
    let (store_base, store_most) = (time("storeRetryBaseMs")?, time("storeRetryMaxMs")?);
    let (page, subscriptions) = (params.size("pageEvents")?, params.size("subscriptionsMax")?);
    let attempts = params.size("attemptsMax")?.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    params.finish("config")?;
    each(jobs, |config| {
        set(&mut config.backoff_base, base);
        set(&mut config.backoff_max, most);
        set(&mut config.backoff_floor, floor);
        set(&mut config.connect_timeout, connect);
        set(&mut config.stall, stall);
        set(&mut config.probe_after, probe);
        set(&mut config.page_events, page);
        set(&mut config.subscriptions_max, subscriptions);
        set(&mut config.attempts_max, attempts);
    });
    set(&mut jobs.failures_max, attempts);
    set(&mut jobs.store_retry_base, store_base);
    set(&mut jobs.store_retry_max, store_most);
    Ok(())
}

fn each(jobs: &mut JobsConfig, change: impl Fn(&mut Config)) {
    change(&mut jobs.live);
    change(&mut jobs.once);
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}
