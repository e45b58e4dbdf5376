//! Which signed calls are let in: each once, and not too many.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use hyper::StatusCode;

use super::RpcConfig;
use super::body::Refusal;
use crate::protocol::{Event, EventId};
use crate::runtime::{Instant, Now};
use crate::serve::Bucket;

/// What was let in lately.
#[derive(Debug)]
pub(super) struct Admission {
    /// Nothing that was signed before counts: what was let in then is forgotten.
    began_secs: u64,
    /// In the order in which they are forgotten.
    order: VecDeque<(Instant, EventId)>,
    ids: BTreeSet<EventId>,
    calls: Bucket,
}

impl Admission {
    pub(super) fn new(began_secs: u64) -> Self {
        Self { began_secs, order: VecDeque::new(), ids: BTreeSet::new(), calls: Bucket::default() }
    }

    /// Was this signed lately, and not used yet?
    pub(super) fn check(&self, event: &Event, config: &RpcConfig, now: Now) -> Result<(), Refusal> {
        let (signed_secs, max) = (event.created_at_secs(), config.auth_age_max);
        let off = Duration::from_secs(signed_secs.abs_diff(now.unix_secs));
        if off > max {
            let (how, secs) = (if signed_secs < now.unix_secs { "behind" } else { "ahead" }, off.as_secs());
            let words = format!("the signature is {secs} s {how} of our clock, and {} s are allowed", max.as_secs());
            return Err(Refusal::unproven(words));
        }
        if signed_secs < self.began_secs {
            return Err(Refusal::unproven("the signature is from before this daemon was started; sign again"));
        }
        if self.ids.contains(&event.id) {
            return Err(Refusal::unproven(
                "the signature was used already; sign each call, and tell two of one second apart by a tag",
            ));
        }
        Ok(())
    }

    /// Lets it in, if nothing is against it; once.
    pub(super) fn admit(&mut self, event: &Event, config: &RpcConfig, now: Now) -> Result<(), Refusal> {
        while self.order.front().is_some_and(|(at, _)| *at <= now.instant) {
            if let Some((_, id)) = self.order.pop_front() {
                self.ids.remove(&id);
            }
        }
        self.check(event, config, now)?;
        let too_many = |words: &str| Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, words));
        if self.ids.len() >= config.auth_ids_max {
            return too_many("too many calls were signed lately");
        }
        if !self.calls.take(1, config.calls_per_minute_max, now.instant) {
            return too_many("too many calls in this minute");
        }
        // One that is dated ahead of us is good for twice the time.
        self.order.push_back((now.instant + config.auth_age_max.saturating_mul(2) + Duration::from_secs(1), event.id));
        self.ids.insert(event.id);
        Ok(())
    }
}
