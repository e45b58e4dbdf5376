//! The machine's clocks.

use std::time::{Duration, SystemTime};

use crate::runtime::{Clock, Instant, Now};

/// The machine's monotonic clock and its wall time. Its origin is the moment at which it was made.
#[derive(Debug, Clone)]
pub struct NativeClock {
    origin: tokio::time::Instant,
}

impl NativeClock {
    /// A clock whose origin is now.
    pub fn new() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }
}

impl Default for NativeClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for NativeClock {
    fn now(&self) -> Now {
        Now { instant: Instant::from_origin(self.origin.elapsed()), unix_secs: unix_secs() }
    }

    async fn sleep_until(&self, at: Instant) {
        // An instant at the end of time overflows tokio's: then the sleep never ends.
        match self.origin.checked_add(at.since_origin()) {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }
}

/// Wall time in seconds since 1970; 0 if the machine's date lies before that.
#[expect(clippy::disallowed_methods, reason = "this is where wall time enters")]
pub(crate) fn unix_secs() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::NativeClock;
    use crate::runtime::Clock;

    #[tokio::test]
    async fn sleeps_until_the_moment_and_not_shorter() {
        let clock = NativeClock::new();
        let at = clock.now().instant + Duration::from_millis(20);
        clock.sleep_until(at).await;
        assert!(clock.now().instant >= at);
        clock.sleep_until(at).await;
    }
}
