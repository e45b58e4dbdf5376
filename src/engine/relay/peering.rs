//! A relay that is a configured peer: its terms, how it proves who it is, and what is synced with it beside what
//! discovery wants of it.

use std::collections::BTreeSet;

use super::{Ctx, Relay};
use crate::engine::discovery::DISCOVERED;
use crate::engine::{ConnId, RelayOptions};
use crate::peer::{IdentityField, Peering, Terms};
use crate::plan::{Interest, Pack};
use crate::protocol::{PublicKey, RelayInfo, RelayMessage};
use crate::relay::clip;
use crate::relay::session::Link;
use crate::runtime::{CloseReason, ConnectError, Frame};

impl Relay {
    /// The relay is a peer on these terms from now on, or none.
    pub(in crate::engine) fn set_peering(&mut self, peering: Option<Box<Peering>>, ctx: &mut Ctx<'_>) {
        if self.peering == peering {
            return;
        }
        let before = std::mem::replace(&mut self.peering, peering);
        let opaque = match (&before, &self.peering) {
            (_, None) => std::mem::take(&mut self.beside),
            (_, Some(now)) => now.filters.iter().cloned().map(Interest::Opaque).collect(),
        };
        if before.is_none() {
            self.beside = self.packs.opaque().cloned().collect();
        }
        self.packs.set_opaque(&opaque);
        let was_given_up = std::mem::take(&mut self.given_up);
        self.live_due = true;
        let (old, new) = (before.as_deref(), self.peering.as_deref());
        let (was, is) = (old.map(|peering| &peering.terms), new.map(|peering| &peering.terms));
        let has_other_options = old.map(|peering| peering.options) != new.map(|peering| peering.options);
        self.era += u32::from(was.map(who) != is.map(who));
        if was.map(proof) != is.map(proof) {
            self.auth_refused = None;
            self.renew(ctx);
        }
        if !self.handle_rights(ctx) && (has_other_options || was_given_up) {
            self.begin_anew(|pack| was_given_up || pack.is_opaque(), ctx);
        }
        self.absorb(ctx);
        self.pump(ctx);
    }

    /// The connection ends, and is made anew at once: how the relay proves itself has changed, or who it is, or who we are.
    pub(super) fn renew(&mut self, ctx: &mut Ctx<'_>) {
        if self.session.any_conn().is_some() {
            self.close(CloseReason::Renewed, ctx);
            self.health.record_closed();
        }
        self.health.forget_backoff();
    }

    /// Everything is looked at again, whatever was proven, and at once.
    pub(in crate::engine) fn sync_now(&mut self, ctx: &mut Ctx<'_>) {
        self.given_up = false;
        self.health.forget_backoff();
        self.begin_full_pass(ctx);
        self.pump(ctx);
    }

    /// Whom its events are written by, and who reads what is published to it: nobody, if it is no peer.
    pub(in crate::engine) fn principal(&self) -> Option<PublicKey> {
        self.peering.as_ref().map(|peering| peering.terms.principal)
    }

    /// How this is synced: the filters of a peer by its options, and what discovery wants of it as of any other relay.
    pub(super) fn options_of(&self, pack: &Pack) -> RelayOptions {
        match &self.peering {
            None => self.options,
            Some(peering) if pack.is_opaque() => peering.options,
            Some(_) => DISCOVERED,
        }
    }

    /// Does it stay connected to hear what is new?
    pub(super) fn is_live(&self) -> bool {
        match &self.peering {
            None => self.options.live,
            Some(peering) => peering.options.live || self.packs.len() > self.packs.opaque().count(),
        }
    }

    /// Is it published to?
    pub(in crate::engine) fn is_up(&self) -> bool {
        self.peering.as_ref().map_or(self.options, |peering| peering.options).direction.is_up()
    }

    /// Is it to get at once what others bring?
    pub(in crate::engine) fn is_passed_on_to(&self) -> bool {
        self.is_up() && self.peering.as_ref().map_or(self.options, |peering| peering.options).live
    }

    /// What is asked for at once from before the last proven moment, in seconds.
    pub(super) fn overlap_secs(&self, pack: &Pack, ctx: &Ctx<'_>) -> u64 {
        match &self.peering {
            Some(peering) if pack.is_opaque() => peering.terms.overlap_secs,
            _ => ctx.config.overlap_secs,
        }
    }

    /// Takes from what others want of a peer its filters: they wait until it is none.
    pub(super) fn set_aside(&mut self, interests: BTreeSet<Interest>) -> BTreeSet<Interest> {
        let Some(peering) = &self.peering else { return interests };
        let (opaque, layered): (BTreeSet<Interest>, _) = interests.into_iter().partition(is_opaque);
        self.beside = opaque;
        peering.filters.iter().cloned().map(Interest::Opaque).chain(layered).collect()
    }

    /// The same for changes.
    pub(super) fn set_changes_aside(
        &mut self,
        added: Vec<Interest>,
        removed: &[Interest],
    ) -> (Vec<Interest>, Vec<Interest>) {
        let removed = removed.to_vec();
        if self.peering.is_none() {
            return (added, removed);
        }
        let (opaque, added): (Vec<Interest>, _) = added.into_iter().partition(is_opaque);
        let (gone, removed): (Vec<Interest>, _) = removed.into_iter().partition(is_opaque);
        self.beside.retain(|interest| !gone.contains(interest));
        self.beside.extend(opaque);
        (added, removed)
    }

    /// The relay information document has come, or has not. It is a hint, but a peer proves by it who it is.
    pub(in crate::engine) fn handle_info(&mut self, result: Result<String, ConnectError>, ctx: &mut Ctx<'_>) {
        let info = match &result {
            Ok(text) => RelayInfo::parse(text),
            Err(error) => {
                tracing::debug!(relay = %self.url, %error, "no relay information document");
                None
            }
        };
        if let Link::Proving { conn, .. } = self.session.link {
            if let Err(why) = self.check_identity(&result, info.as_ref(), ctx.config.words_bytes_max) {
                return self.cut(CloseReason::Identity(why), ctx);
            }
            self.open(conn, ctx);
        }
        if let Some(info) = &info {
            self.budget.apply_info(info);
        }
        self.pump(ctx);
    }

    fn check_identity(
        &self,
        result: &Result<String, ConnectError>,
        info: Option<&RelayInfo>,
        words_bytes_max: usize,
    ) -> Result<(), String> {
        let Some(Peering { terms, .. }) = self.peering.as_deref() else { return Ok(()) };
        if let Err(error) = result {
            return Err(format!("its relay information document cannot be had: {error}"));
        }
        let Some(info) = info else { return Err("its relay information document is none".to_owned()) };
        let (named, field) = match terms.identity {
            IdentityField::OwnKey => (&info.relay_key, "\"self\""),
            IdentityField::AdministratorKey if info.relay_key.is_some() => (&info.relay_key, "\"self\""),
            IdentityField::AdministratorKey => (&info.pubkey, "\"self\" and no \"pubkey\""),
        };
        let Some(named) = named else { return Err(format!("its relay information document has no {field}")) };
        match PublicKey::from_hex(named) {
            Ok(key) if key == terms.principal => Ok(()),
            _ => {
                let named = clip(named, words_bytes_max);
                Err(format!("its relay information document names {named:?}, not {}", terms.principal))
            }
        }
    }

    /// The connection is open, and the relay is who it should be, as far as that is asked.
    pub(super) fn open(&mut self, conn: ConnId, ctx: &mut Ctx<'_>) {
        let challenge = self.session.auth.challenge.take();
        self.session.handle_connected(conn, ctx.now);
        self.counters.connections += 1;
        self.moments.connected_secs = Some(ctx.now.unix_secs);
        self.absorb(ctx);
        self.renew_after_absence(ctx);
        self.plan_full_pass(ctx);
        challenge.into_iter().for_each(|challenge| self.handle_challenge(challenge, ctx));
    }

    /// Frames of a relay that has not proven yet who it is: of all that it says, only its challenge is remembered.
    pub(super) fn handle_unproven(&mut self, frames: &[Frame], ctx: &mut Ctx<'_>) {
        for frame in frames {
            self.counters.bytes_in += frame.len() as u64;
            match RelayMessage::parse(frame.as_str()) {
                Ok(RelayMessage::Auth { challenge }) if challenge.len() <= ctx.config.words_bytes_max => {
                    self.session.auth.challenge = Some(challenge.into_owned());
                }
                _ => {}
            }
            self.session.unsolicited_bytes += frame.len();
        }
        if self.session.unsolicited_bytes > ctx.config.unsolicited_bytes_max {
            self.cut(CloseReason::Flood, ctx);
        }
    }
}

fn is_opaque(interest: &Interest) -> bool {
    matches!(interest, Interest::Opaque(_))
}

/// Whose the events are that come.
fn who(terms: &Terms) -> PublicKey {
    terms.principal
}

/// What a connection is made on.
fn proof(terms: &Terms) -> (PublicKey, IdentityField, bool, &crate::peer::TlsTerms) {
    (terms.principal, terms.identity, terms.authenticates, &terms.tls)
}
