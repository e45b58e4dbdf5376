//! How often connections are attempted, over all relays together.

use std::time::Duration;

use super::Config;
use crate::runtime::Instant;

/// Gives each connection attempt its moment: a few at once, the others one after the other, in the order of asking.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When everything given out so far would be through, had all of it been spaced.
    through_at: Instant,
}

impl Pace {
    /// The moment of one more attempt, which may be now.
    pub(super) fn reserve(&mut self, now: Instant, config: &Config) -> Instant {
        let at_once = u32::try_from(config.connects_at_once_max.max(1) - 1).unwrap_or(u32::MAX);
        let ahead: Duration = config.connect_spacing.saturating_mul(at_once);
        let due = Instant::from_origin(self.through_at.since_origin().saturating_sub(ahead));
        self.through_at = self.through_at.max(now) + config.connect_spacing;
        due.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(millis))
    }

    #[test]
    fn a_few_at_once_then_one_after_the_other() {
        let config =
            Config { connects_at_once_max: 3, connect_spacing: Duration::from_millis(100), ..Config::default() };
        let mut pace = Pace::default();
        let given: Vec<Instant> = (0..6).map(|_| pace.reserve(at(5_000), &config)).collect();
        assert_eq!(given, [at(5_000), at(5_000), at(5_000), at(5_100), at(5_200), at(5_300)]);
        // After a rest of a spacing there is room for one, after a long one for as many as before, and not for more.
        assert_eq!(pace.reserve(at(5_400), &config), at(5_400));
        assert_eq!(pace.reserve(at(5_400), &config), at(5_500));
        let given: Vec<Instant> = (0..4).map(|_| pace.reserve(at(60_000), &config)).collect();
        assert_eq!(given, [at(60_000), at(60_000), at(60_000), at(60_100)]);
    }
}
