//! Which signed calls are let in: each once, and not too many.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use hyper::StatusCode;

use super::RpcConfig;
use super::body::Refusal;
use crate::protocol::{Event, EventId};
use crate::runtime::{Instant, Now};
use crate::serve::Bucket;

/// What was let in lately, and what was not.
#[derive(Debug)]
pub(super) struct Admission {
    /// What was let in before this is not known.
    began_secs: u64,
    /// Something may have been let in before.
    follows: bool,
    /// In the order in which they came.
    order: VecDeque<Admitted>,
    ids: BTreeSet<EventId>,
    calls: Bucket,
    refusals: Bucket,
    forgeries: Bucket,
    /// Calls that were refused since it began.
    refused: u64,
}

/// A signature that was let in. It is forgotten once both its time is up and its date is too old by our clock, which may
/// have been put back.
#[derive(Debug)]
struct Admitted {
    until: Instant,
    signed_secs: u64,
    id: EventId,
}

impl Admission {
    /// `follows`: calls may have been let in before, by somebody who does not run any more.
    pub(super) fn new(began_secs: u64, follows: bool) -> Self {
        Self {
            began_secs,
            follows,
            order: VecDeque::new(),
            ids: BTreeSet::new(),
            calls: Bucket::default(),
            refusals: Bucket::default(),
            forgeries: Bucket::default(),
            refused: 0,
        }
    }

    /// Is this dated now, and not used yet?
    pub(super) fn check(&self, event: &Event, config: &RpcConfig, now: Now) -> Result<(), Refusal> {
        let (signed_secs, now_secs) = (event.created_at_secs(), now.unix_secs);
        for (off, how, max) in [
            (now_secs.saturating_sub(signed_secs), "behind", config.auth_age_max),
            (signed_secs.saturating_sub(now_secs), "ahead of", config.auth_ahead_max),
        ] {
            if Duration::from_secs(off) > max {
                let max = max.as_secs();
                let words = format!("the signature is {off} s {how} our clock, and {max} s are allowed");
                return Err(Refusal::unproven(words));
            }
        }
        if signed_secs < self.first_secs(config) {
            let words = "the signature may have been used before this daemon was started; sign again in some seconds";
            return Err(Refusal::unproven(words));
        }
        if self.ids.contains(&event.id) {
            return Err(Refusal::unproven(
                "the signature was used already; sign each call, and tell two of one second apart by a tag",
            ));
        }
        Ok(())
    }

    /// Of an earlier date a call may have been let in by whoever ran before, who took some that were dated ahead.
    fn first_secs(&self, config: &RpcConfig) -> u64 {
        let ahead = if self.follows { config.auth_ahead_max.as_secs().saturating_add(1) } else { 0 };
        self.began_secs.saturating_add(ahead)
    }

    /// Lets it in, if nothing is against it; once.
    pub(super) fn admit(&mut self, event: &Event, config: &RpcConfig, now: Now) -> Result<(), Refusal> {
        self.forget(config, now);
        self.check(event, config, now)?;
        let too_many = |words: &str| Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, words));
        if self.ids.len() >= config.auth_ids_max {
            return too_many("too many calls were signed lately");
        }
        if !self.calls.take(1, config.calls_per_minute_max, now.instant) {
            return too_many("too many calls in this minute");
        }
        let window = config.auth_age_max.saturating_add(config.auth_ahead_max);
        let until = now.instant + window + Duration::from_secs(1);
        self.order.push_back(Admitted { until, signed_secs: event.created_at_secs(), id: event.id });
        self.ids.insert(event.id);
        Ok(())
    }

    fn forget(&mut self, config: &RpcConfig, now: Now) {
        let is_over = |admitted: &Admitted| {
            let too_old_secs = admitted.signed_secs.saturating_add(config.auth_age_max.as_secs());
            admitted.until <= now.instant && too_old_secs < now.unix_secs
        };
        while self.order.front().is_some_and(is_over) {
            if let Some(admitted) = self.order.pop_front() {
                self.ids.remove(&admitted.id);
            }
        }
    }

    /// May one more signature be checked? Those that are right do not count: see [`Admission::note_forgery`].
    pub(super) fn check_forgeries(&self, config: &RpcConfig, now: Now) -> Result<(), Refusal> {
        match self.forgeries.clone().take(1, config.refusals_per_minute_max, now.instant) {
            true => Ok(()),
            false => Err(too_many_refusals()),
        }
    }

    /// A signature was checked in vain.
    pub(super) fn note_forgery(&mut self, config: &RpcConfig, now: Now) {
        self.forgeries.take(1, config.refusals_per_minute_max, now.instant);
    }

    /// A call is refused. Whoever is refused too often hears no reason any more; those who may govern are let in all the
    /// same. Gives how many were refused so far, too.
    pub(super) fn refuse(&mut self, refusal: Refusal, config: &RpcConfig, now: Now) -> (Refusal, u64) {
        self.refused += 1;
        let is_told = self.refusals.take(1, config.refusals_per_minute_max, now.instant);
        (if is_told { refusal } else { too_many_refusals() }, self.refused)
    }
}

fn too_many_refusals() -> Refusal {
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too many calls were refused in this minute")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN_SECS: u64 = 1_700_000_000;

    fn signed(secs: u64) -> Event {
        let json = format!(
            r#"{{"id":"{0}","pubkey":"{0}","created_at":{secs},"kind":27235,"tags":[],"content":"","sig":"{0}{0}"}}"#,
            format!("{:02x}", secs % 100).repeat(32)
        );
        Event::parse(json.into()).unwrap()
    }

    /// So long after the beginning, by a clock that is off by `off_secs`.
    fn now(secs: u64, off_secs: i64) -> Now {
        Now {
            instant: Instant::ZERO + Duration::from_secs(secs),
            unix_secs: (BEGAN_SECS + secs).saturating_add_signed(off_secs),
        }
    }

    fn config() -> RpcConfig {
        RpcConfig { auth_ahead_max: Duration::from_secs(5), ..RpcConfig::default() }
    }

    #[test]
    fn what_may_have_been_used_before_a_restart_is_not_taken_after_it() {
        let (mut first, mut later) = (Admission::new(BEGAN_SECS, false), Admission::new(BEGAN_SECS, true));
        let ahead = signed(BEGAN_SECS + 5);
        first.admit(&ahead, &config(), now(0, 0)).unwrap();
        for secs in 0..70 {
            later.admit(&ahead, &config(), now(secs, 0)).unwrap_err();
        }
        later.admit(&signed(BEGAN_SECS + 6), &config(), now(6, 0)).unwrap();
        let far_ahead = first.admit(&signed(BEGAN_SECS + 6), &config(), now(0, 0)).unwrap_err();
        assert!(far_ahead.words.contains("ahead of our clock"), "{far_ahead:?}");
    }

    #[test]
    fn a_clock_that_is_put_back_does_not_bring_a_signature_back() {
        let mut admission = Admission::new(BEGAN_SECS, false);
        let call = signed(BEGAN_SECS + 100);
        admission.admit(&call, &config(), now(100, 0)).unwrap();
        for secs in 100..400 {
            assert!(admission.admit(&call, &config(), now(secs, -((secs - 100) as i64))).is_err(), "{secs}");
        }
        admission.admit(&signed(BEGAN_SECS + 500), &config(), now(500, 0)).unwrap();
        assert_eq!(admission.ids.len(), 1, "what is too old is forgotten");
    }
}
