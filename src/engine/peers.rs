//! Configured peers and access rules: what the embedder says about them.

use std::sync::Arc;

use super::Engine;
use super::relay::{Ctx, Relay};
use crate::peer::{AccessRules, Peering};
use crate::protocol::RelayUrl;

impl Engine {
    /// A relay is a peer on these terms from now on, or none.
    pub(super) fn set_peer(&mut self, relay: RelayUrl, peering: Option<Box<Peering>>) {
        if self.stopping || peering.is_none() && !self.by_url.contains_key(&relay) {
            return;
        }
        let number = self.register(relay);
        self.ended = false;
        self.with_relay(number, |relay, ctx| relay.set_peering(peering, ctx));
        self.note_ways(number);
    }

    /// These rules hold from now on, for everything that is under way, too.
    pub(super) fn set_access(&mut self, access: Arc<AccessRules>) {
        let before = std::mem::replace(&mut self.access, access);
        if before != self.access {
            if self.access.changes_since(&before).is_stricter {
                self.forget_observed();
            }
            self.each_relay(|relay, ctx| {
                relay.handle_rights(ctx);
                relay.pump(ctx);
            });
        }
    }

    /// All of a relay is looked at again.
    pub(super) fn sync_now(&mut self, relay: &RelayUrl) {
        if let Some(number) = self.by_url.get(relay).copied().filter(|_| !self.stopping) {
            self.ended = false;
            self.with_relay(number, |relay, ctx| relay.sync_now(ctx));
        }
    }

    pub(super) fn each_relay(&mut self, act: impl Fn(&mut Relay, &mut Ctx<'_>)) {
        (0..self.relays.len()).for_each(|number| self.with_relay(number, &act));
    }
}
