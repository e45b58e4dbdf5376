//! Time as an input. Nothing in the core reads a clock.

use std::future::Future;
use std::ops::{Add, Sub};
use std::time::Duration;

use super::{MaybeSend, MaybeSync};

/// A moment on a monotonic clock, in nanoseconds since an origin that only its runtime knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The moment that lies `since_origin` after the origin.
    pub fn from_origin(since_origin: Duration) -> Self {
        Self(u64::try_from(since_origin.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time since the origin.
    pub fn since_origin(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The time since `earlier`; zero if that lies in the future.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// The two clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// The monotonic clock: for every interval and deadline.
    pub instant: Instant,
    /// Wall time, in seconds since 1970: for what is compared with `created_at`. It may step back, jump or be wrong.
    pub unix_secs: u64,
}

/// The runtime's clock.
pub trait Clock: MaybeSend + MaybeSync + 'static {
    /// Both clocks, now.
    fn now(&self) -> Now;

    /// Ends at `at` or later; never before.
    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + MaybeSend;
}
