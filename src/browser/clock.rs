//! The browser's clocks and timers.

use std::time::Duration;

use gloo_timers::future::TimeoutFuture;

use super::js;
use crate::runtime::{Clock, Instant, Now};

/// Longer timers end at once in browsers, which keep their time in 31 bits.
const TIMER_MS_MAX: f64 = 2_147_483_647.0;

/// The monotonic clock of the page, worker or process, and its wall time. Its origin is the moment at which it was
/// made.
#[derive(Debug, Clone)]
pub struct BrowserClock {
    origin_ms: f64,
}

impl BrowserClock {
    /// A clock whose origin is now.
    pub fn new() -> Self {
        Self { origin_ms: js::monotonic_ms() }
    }

    /// The time since the origin.
    pub(super) fn elapsed(&self) -> Duration {
        // Some browsers round their clocks, so that they may seem to step back a little.
        Duration::from_secs_f64((js::monotonic_ms() - self.origin_ms).max(0.0) / 1000.0)
    }
}

impl Default for BrowserClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for BrowserClock {
    fn now(&self) -> Now {
        Now { instant: Instant::from_origin(self.elapsed()), unix_secs: unix_secs() }
    }

    async fn sleep_until(&self, at: Instant) {
        // Timers may end early by the part of a millisecond, and have to be set again if the time is long.
        loop {
            let left = at.since_origin().saturating_sub(self.elapsed());
            if left.is_zero() {
                return;
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the bound")]
            let ms = (left.as_secs_f64() * 1000.0).ceil().clamp(1.0, TIMER_MS_MAX) as u32;
            TimeoutFuture::new(ms).await;
        }
    }
}

/// Wall time in seconds since 1970; 0 if the date lies before that.
pub(super) fn unix_secs() -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no date of a browser is that far away"
    )]
    let secs = (js_sys::Date::now() / 1000.0).max(0.0) as u64;
    secs
}
