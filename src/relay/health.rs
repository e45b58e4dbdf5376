//! When a relay may be tried again. Health is about the link: rejected events are counters, not ill health.

use std::time::Duration;

use crate::engine::{Config, Rng};
use crate::runtime::Instant;

/// A relay's health, as operators see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// Connected, and stable since.
    Healthy,
    /// Not connected, or only just recovered; no failures.
    Disconnected,
    /// Failing, or recovered and not yet stable.
    Degraded,
    /// Failing for a day or more.
    Dead,
    /// Resting after a rate limit.
    RateLimited,
}

/// Failures, backoff and cooldown of one relay.
#[derive(Debug, Clone, Default)]
pub struct Health {
    failures: u32,
    failing_since: Option<Instant>,
    failed_at: Option<Instant>,
    retry_at: Option<Instant>,
    cooldown_until: Option<Instant>,
    recovered_at: Option<Instant>,
    connected: bool,
    /// This connection has brought something useful.
    useful: bool,
}

impl Health {
    /// Failures in a row without anything useful between them.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The connection stands. That alone is no success: see [`Health::record_useful`].
    pub fn record_connected(&mut self) {
        self.connected = true;
        self.useful = false;
    }

    /// Something useful arrived: what was asked for, or an answer to it.
    pub fn record_useful(&mut self, now: Instant) {
        if self.failing_since.take().is_some() || self.recovered_at.is_none() {
            self.recovered_at = Some(now);
        }
        self.useful = true;
        self.failures = 0;
        self.retry_at = None;
    }

    /// The link failed, or never came about. Sets when to try again: `base · 2^(n−1)` up to a cap, with full jitter
    /// above a floor. That a connection is lost that was of use is no ill health, unless the next attempt fails too.
    pub fn record_failure(&mut self, now: Instant, config: &Config, rng: &mut Rng) {
        let was_of_use = std::mem::take(&mut self.connected) && std::mem::take(&mut self.useful);
        self.recovered_at = None;
        self.failures = self.failures.saturating_add(1);
        self.failed_at = Some(now);
        if !was_of_use {
            self.failing_since.get_or_insert(now);
        }
        let is_dead = self.failing_since.is_some_and(|since| now - since >= config.dead_after);
        let wait = if is_dead { config.dead_retry } else { self.backoff(config, rng) };
        self.retry_at = Some(now + wait);
    }

    /// Whatever the last failure was due to may be over: the relay may be tried at once, though not sooner after the last
    /// attempt than ever. A cooldown stays.
    pub fn retry_soon(&mut self, config: &Config) {
        let soonest = self.failed_at.map(|at| at + config.backoff_floor);
        self.retry_at = self.retry_at.min(soonest);
    }

    /// What the last failures were due to is mended, as far as we know: the relay may be tried at once. A cooldown stays.
    pub fn forget_backoff(&mut self) {
        self.retry_at = None;
    }

    /// We closed the connection ourselves, for no fault.
    pub fn record_closed(&mut self) {
        self.connected = false;
        self.recovered_at = None;
    }

    /// The relay asked for less traffic.
    pub fn record_rate_limit(&mut self, now: Instant, config: &Config) {
        self.cooldown_until = Some(now + config.rate_limit_cooldown);
    }

    /// From when on the relay may be tried or asked again, if that is not now.
    pub fn blocked_until(&self, now: Instant) -> Option<Instant> {
        self.retry_at.max(self.cooldown_until).filter(|at| *at > now)
    }

    /// Until when the relay must not be asked anything, if it must not now.
    pub fn cooldown(&self, now: Instant) -> Option<Instant> {
        self.cooldown_until.filter(|at| *at > now)
    }

    /// The state as operators see it.
    pub fn state(&self, now: Instant, config: &Config) -> HealthState {
        if self.cooldown(now).is_some() {
            HealthState::RateLimited
        } else if let Some(since) = self.failing_since {
            if now - since >= config.dead_after { HealthState::Dead } else { HealthState::Degraded }
        } else {
            match self.recovered_at {
                Some(at) if self.connected && now - at >= config.stable_after => HealthState::Healthy,
                _ => HealthState::Disconnected,
            }
        }
    }

    fn backoff(&self, config: &Config, rng: &mut Rng) -> Duration {
        let doubled = 2_u32.saturating_pow(self.failures.saturating_sub(1).min(31));
        let most = config.backoff_base.saturating_mul(doubled).min(config.backoff_max);
        most.mul_f64(rng.fraction()).max(config.backoff_floor.min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(secs))
    }

    #[test]
    fn backoff_grows_is_jittered_and_capped() {
        let (config, mut rng) = (Config::default(), Rng::new(7));
        let mut health = Health::default();
        for n in 1..20_u32 {
            health.record_failure(at(1000), &config, &mut rng);
            let wait = health.blocked_until(at(1000)).unwrap() - at(1000);
            let most = Duration::from_secs(5).saturating_mul(2_u32.pow(n - 1)).min(config.backoff_max);
            assert!(wait >= config.backoff_floor && wait <= most, "failure {n}: {wait:?}");
        }
    }

    #[test]
    fn a_day_of_failures_makes_a_relay_dead_and_anything_useful_revives_it() {
        let (config, mut rng) = (Config::default(), Rng::new(7));
        let mut health = Health::default();
        health.record_failure(at(0), &config, &mut rng);
        assert_eq!(health.state(at(10), &config), HealthState::Degraded);
        health.record_failure(at(86_400), &config, &mut rng);
        assert_eq!(health.state(at(86_400), &config), HealthState::Dead);
        assert_eq!(health.blocked_until(at(86_400)), Some(at(2 * 86_400)));
        health.record_connected();
        assert_eq!(health.state(at(2 * 86_400), &config), HealthState::Dead, "a connect alone proves nothing");
        health.record_useful(at(2 * 86_400));
        assert_eq!(health.state(at(2 * 86_400), &config), HealthState::Disconnected);
        assert_eq!(health.state(at(2 * 86_400 + 300), &config), HealthState::Healthy);
        health.record_rate_limit(at(2 * 86_400 + 301), &config);
        assert_eq!(health.state(at(2 * 86_400 + 365), &config), HealthState::RateLimited);
        assert_eq!(health.state(at(2 * 86_400 + 366), &config), HealthState::Healthy);
    }
}
