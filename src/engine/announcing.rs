//! Telling the embedder how far things are, and of the end.

use super::relay::Relay;
use super::{Effect, Engine, Holdings, Notice};

impl Engine {
    /// Tells the embedder how far things are, and of the end.
    pub(super) fn announce(&mut self) {
        if self.ended {
            return;
        }
        if let Some(at) = self.progress_at
            && at <= self.now.instant
        {
            self.progress_at = Some(self.now.instant + self.config.progress_interval);
            self.out.push_back(Effect::Notify(Notice::Progress(self.reports())));
            let discovery = self.discovery.as_ref().map(|discovery| (discovery.sizes(), discovery.counters()));
            let holdings = Holdings { sizes: self.sizes(), discovery };
            self.out.push_back(Effect::Notify(Notice::Holdings(Box::new(holdings))));
        }
        if !self.stopping && !self.config.one_shot {
            return;
        }
        let drained = self.pipeline.is_empty() || self.store_error.is_some();
        let has_found = !self.stopping && self.has_found();
        let settled = !has_found && self.relays.iter().all(Relay::is_done);
        let done = drained && (self.store_error.is_some() || settled);
        if self.stopping && done {
            self.ended = true;
            self.out.push_back(Effect::Notify(Notice::Stopped(self.reports())));
        } else if self.config.one_shot && done && !self.relays.is_empty() && !self.publish_again() {
            self.ended = true;
            self.out.push_back(Effect::Notify(Notice::Finished(self.reports())));
        }
    }

    /// Events that one relay brought are to get to the others that are published to: another pass, if there are any.
    fn publish_again(&mut self) -> bool {
        let stored: u64 = self.relays.iter().map(|relay| relay.stored).sum();
        let fresh = stored > std::mem::replace(&mut self.stored_before, stored);
        let ups: Vec<usize> = (0..self.relays.len()).filter(|number| self.relays[*number].is_up()).collect();
        let several = self.relays.len() > 1;
        if !fresh
            || !several
            || ups.is_empty()
            || self.config.dry_run
            || self.publish_passes >= self.config.publish_passes_max
            || self.store_error.is_some()
        {
            return false;
        }
        self.publish_passes += 1;
        for number in ups {
            self.with_relay(number, |relay, ctx| {
                relay.restart(ctx);
                relay.pump(ctx);
            });
        }
        !self.relays.iter().all(Relay::is_done)
    }
}
