//! How often a client may ask for something.

use std::time::Duration;

use crate::runtime::Instant;

/// A token bucket that holds a minute's worth: that much at once, then as much again in each minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// When it will be full again.
    full_at: Instant,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Bucket {
    /// Takes `cost` of `per_minute_max`; `false`, and nothing is taken, if there is not so much in it.
    pub(crate) fn take(&mut self, cost: u64, per_minute_max: u64, now: Instant) -> bool {
        let nanos = u128::from(cost) * MINUTE.as_nanos() / u128::from(per_minute_max.max(1));
        let refill = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let full_at = self.full_at.max(now) + refill;
        let fits = full_at.since(now) <= MINUTE && per_minute_max > 0;
        if fits {
            self.full_at = full_at;
        }
        fits
    }

    /// Is it as good as new?
    #[cfg(any(feature = "native", test))]
    pub(crate) fn is_full(&self, now: Instant) -> bool {
        self.full_at <= now
    }
}

/// The buckets of one client.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub(super) events: Bucket,
    pub(super) requests: Bucket,
    pub(super) bytes: Bucket,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_a_minutes_worth_at_once_and_then_as_it_refills() {
        let (mut bucket, start) = (Bucket::default(), Instant::from_origin(Duration::from_secs(1_000)));
        assert!((0..60).all(|_| bucket.take(1, 60, start)));
        assert!(!bucket.take(1, 60, start));
        let later = start + Duration::from_secs(3);
        assert!(bucket.take(3, 60, later));
        assert!(!bucket.take(1, 60, later) && !bucket.is_full(later));
        assert!(bucket.take(60, 60, later + MINUTE), "no more than a minute's worth is gathered");
        assert!(!bucket.take(1, 60, later + MINUTE));
        assert!(bucket.is_full(later + MINUTE + MINUTE));
    }

    #[test]
    fn extreme_limits_are_no_trouble() {
        let (mut bucket, now) =
            (Bucket::default(), Instant::from_origin(Duration::from_secs(u64::MAX / 2_000_000_000)));
        assert!(!bucket.take(1, 0, now));
        assert!(bucket.take(u64::MAX, u64::MAX, now));
        assert!(!bucket.take(u64::MAX, 1, now));
    }
}
