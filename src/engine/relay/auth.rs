//! Authentication (NIP-42): challenges, whichever of them and the refusals that ask for it comes first.

use std::collections::BTreeSet;

use super::{Ctx, Relay};
use crate::engine::{Effect, Gap, GapReason, HistoryId};
use crate::fetch::{Answer, History};
use crate::ingest::Verified;
use crate::plan::Pack;
use crate::protocol::Event;
use crate::protocol::message::client;
use crate::relay::session::Auth;
use crate::relay::{Purpose, Refusal};
use crate::runtime::{CloseReason, Instant, SignError};

impl Relay {
    pub(super) fn handle_challenge(&mut self, challenge: String, ctx: &mut Ctx<'_>) {
        if !std::mem::replace(&mut self.session.auth.was_asked, true) && self.peering.is_some() {
            self.doubt_proofs();
        }
        if !self.authenticates() {
            return;
        }
        let is_to_wait = self.peering.is_some() && !self.session.auth.accepted;
        let auth = &mut self.session.auth;
        auth.challenge = Some(challenge);
        auth.refused = None;
        self.sign_challenge(ctx);
        if is_to_wait && self.session.conn().is_some() {
            self.auth_wait_until.get_or_insert(ctx.now.instant + ctx.config.stall);
        }
    }

    /// Are challenges of this relay answered?
    pub(super) fn authenticates(&self) -> bool {
        self.peering.as_ref().is_none_or(|peering| peering.terms.authenticates)
    }

    /// A peer is not asked anything while it is still to accept us: it may show less to somebody that it does not know,
    /// and not say so.
    pub(super) fn awaits_auth(&self, ctx: &Ctx<'_>) -> bool {
        let auth = &self.session.auth;
        let is_under_way = auth.challenge.is_some() || auth.signing.is_some() || auth.awaiting.is_some();
        let is_early = || self.challenge_due(ctx).is_some_and(|at| ctx.now.instant < at);
        self.peering.is_some() && !auth.accepted && (is_under_way || is_early())
    }

    /// Until when a challenge is awaited, if it is.
    pub(super) fn challenge_due(&self, ctx: &Ctx<'_>) -> Option<Instant> {
        let is_strange = self.session.auth == Auth::default() && self.session.conn().is_some();
        let is_awaited = self.peering.is_some() && self.authenticates() && is_strange;
        is_awaited.then_some(self.session.connected_at + ctx.config.challenge_wait)
    }

    /// A peer has answered a request. If it does not know us by then, it may have left out what it shows to us.
    pub(super) fn note_answer(&mut self) {
        self.session.auth.answered_before |= !self.session.auth.accepted;
    }

    /// We are somebody else by now: a relay that knows us, or has refused us, is connected to anew.
    pub(in crate::engine) fn handle_new_key(&mut self, ctx: &mut Ctx<'_>) {
        let auth = &self.session.auth;
        let is_known = auth.accepted || auth.refused.is_some() || auth.awaiting.is_some() || auth.signing.is_some();
        if is_known || self.auth_refused.is_some() {
            self.renew(ctx);
            self.pump(ctx);
        }
    }

    /// Connects anew where authentication was in vain: our clock may have been wrong, or our key not known yet, or the
    /// challenge was lost on its way. Many relays send but one on a connection.
    pub(super) fn renew_auth(&mut self, ctx: &mut Ctx<'_>) {
        let was_tried = self.session.auth.accepted || self.session.auth.refused.is_some();
        let is_demanded = |words: &String| Refusal::read(words) == Refusal::AuthRequired;
        let is_of_auth = |gap: &Gap| match &gap.reason {
            GapReason::AuthRequired(_) => true,
            GapReason::NotAccepted { reason, .. } => is_demanded(reason),
            _ => false,
        };
        let is_lacking = self.gaps.iter().any(is_of_auth) || self.lives.iter().any(|(_, live)| live.lacks_auth());
        if was_tried && is_lacking && self.authenticates() {
            self.close(CloseReason::Done, ctx);
            self.health.record_closed();
        }
    }

    /// Connects anew to a peer that does not know us, though it would be told: its challenge may have been lost, and it
    /// may hide things from strangers without a word.
    pub(super) fn introduce_anew(&mut self, ctx: &mut Ctx<'_>) {
        let is_strange = self.session.conn().is_some() && !self.session.auth.accepted;
        if is_strange && self.peering.is_some() && self.authenticates() {
            self.renew(ctx);
        }
    }

    /// Has the challenge that came last signed, unless a signature is under way: then when that is here.
    pub(super) fn sign_challenge(&mut self, ctx: &mut Ctx<'_>) {
        let Some(conn) = self.session.conn() else { return };
        let auth = &mut self.session.auth;
        if auth.signing.is_none()
            && let Some(challenge) = auth.challenge.take()
        {
            auth.signing = Some(challenge.clone());
            ctx.out.push_back(Effect::Sign { conn, relay: self.url.clone(), challenge });
        }
    }

    pub(in crate::engine) fn handle_signed(&mut self, result: Result<Verified<Event>, SignError>, ctx: &mut Ctx<'_>) {
        let Some(conn) = self.session.conn() else { return };
        if self.session.auth.signing.take().is_none() {
            return;
        }
        if self.session.auth.challenge.is_some() {
            // The relay has another challenge by now: this answer is worth nothing.
            self.sign_challenge(ctx);
            return;
        }
        match result {
            Ok(event) => {
                self.session.auth.awaiting = Some(event.id.to_hex());
                self.session.auth.key = Some(event.pubkey);
                self.send(ctx, conn, client::auth(event.json_str()));
            }
            Err(SignError::NoKey) => self.fail_auth("no key is configured to authenticate with", ctx),
            Err(SignError::Declined(why)) => self.fail_auth(&why, ctx),
        }
        self.pump(ctx);
    }

    /// The relay's word on our authentication.
    pub(super) fn handle_auth_ok(&mut self, accepted: bool, words: &str, ctx: &mut Ctx<'_>) {
        self.session.auth.awaiting = None;
        let has_another = self.session.auth.challenge.is_some() || self.session.auth.signing.is_some();
        // Of others, a refusal ends what waits for it, so that no relay can keep us going for ever.
        let is_outdated = has_another && self.peering.is_some();
        match accepted {
            true => self.complete_auth(ctx),
            // It was for a challenge that another has replaced by now.
            false if is_outdated => {}
            false => self.fail_auth(words, ctx),
        }
    }

    /// A request was refused until we authenticate: it waits for that, whichever of challenge and refusal came first.
    pub(super) fn require_auth(&mut self, id: u64, words: &str, ctx: &mut Ctx<'_>) {
        let Some(open) = self.session.subscription_mut(id) else { return };
        let (owner, purpose) = (open.history, open.purpose);
        if purpose == Purpose::Live {
            self.refuse_live(id, words, ctx);
            return;
        }
        self.end_request(id, Answer::Again, false, ctx);
        if purpose != Purpose::Probe {
            self.wait_for_auth(owner, words, ctx);
        }
    }

    pub(super) fn wait_for_auth(&mut self, owner: HistoryId, words: &str, ctx: &mut Ctx<'_>) {
        let never = !self.authenticates();
        let auth = &mut self.session.auth;
        auth.demanded = true;
        if auth.accepted {
            auth.futile += 1;
        }
        let hopeless = never || auth.refused.is_some() || auth.futile > ctx.config.auth_futile_max;
        if let Some(history) = self.histories.get_mut(&owner) {
            if hopeless {
                history.give_up(&GapReason::AuthRequired(words.to_owned()));
            } else if !auth.accepted || auth.signing.is_some() || auth.awaiting.is_some() {
                history.waits_for_auth = true;
                self.auth_wait_until.get_or_insert(ctx.now.instant + ctx.config.stall);
            }
        }
    }

    fn complete_auth(&mut self, ctx: &mut Ctx<'_>) {
        let was_accepted = std::mem::replace(&mut self.session.auth.accepted, true);
        self.session.auth.refused = None;
        self.auth_refused = None;
        self.auth_wait_until = None;
        self.record_useful(ctx);
        self.histories.values_mut().for_each(|history| history.waits_for_auth = false);
        if self.session.auth.futile > ctx.config.auth_futile_max {
            return;
        }
        for live in self.lives.iter_mut().filter(|live| live.futile <= ctx.config.auth_futile_max) {
            live.refused = None;
        }
        self.live_due = true;
        if self.peering.is_some() {
            self.ask_as_known(was_accepted, ctx);
        }
    }

    /// A peer knows us now, or knows us once more although it has demanded nothing, as it does when it shows more to us than
    /// before: what it has answered until now proves nothing, as it may have left things out.
    fn ask_as_known(&mut self, was_accepted: bool, ctx: &mut Ctx<'_>) {
        let was_demanded = std::mem::take(&mut self.session.auth.demanded);
        let is_outdated = std::mem::take(&mut self.session.auth.answered_before) || was_accepted;
        if was_accepted && was_demanded {
            return;
        }
        if was_accepted && self.renews_too_often(ctx) {
            self.void_proofs(ctx);
            self.look_again(ctx);
        } else if is_outdated {
            self.void_proofs(ctx);
            self.close_live(ctx);
            self.begin_anew(|_| true, ctx);
        } else {
            self.ask_again_as_known(ctx);
        }
    }

    fn renews_too_often(&mut self, ctx: &Ctx<'_>) -> bool {
        let (count, since) = self.auth_renewals;
        let is_recent = ctx.now.instant - since < ctx.config.live_retry;
        self.auth_renewals = if is_recent { (count + 1, since) } else { (1, ctx.now.instant) };
        self.auth_renewals.0 > ctx.config.auth_renewals_max
    }

    /// What was asked and not answered is asked again, and so is what was known to somebody that we are no more.
    fn ask_again_as_known(&mut self, ctx: &mut Ctx<'_>) {
        self.close_live(ctx);
        let open: Vec<u64> = self.session.subscriptions().map(|(id, _)| id).collect();
        for id in open {
            self.end_request(id, Answer::Again, true, ctx);
        }
        let others = |history: &History| history.rules() != self.rules_of(&history.pack, ctx);
        let outdated: BTreeSet<Pack> =
            self.histories.values().filter(|history| others(history)).map(|history| history.pack.clone()).collect();
        self.begin_anew(|pack| outdated.contains(pack), ctx);
    }

    pub(super) fn fail_auth(&mut self, why: &str, ctx: &mut Ctx<'_>) {
        self.auth_wait_until = None;
        self.session.auth.refused = Some(why.to_owned());
        tracing::warn!(relay = %self.url, why, "authentication failed");
        if self.authenticates() {
            self.auth_refused = Some(why.to_owned());
        }
        if self.peering.is_some() && self.authenticates() {
            self.cut(CloseReason::AuthRefused(why.to_owned()), ctx);
            return;
        }
        for history in self.histories.values_mut().filter(|history| history.waits_for_auth) {
            history.give_up(&GapReason::AuthRequired(why.to_owned()));
        }
        self.fail_posts_for_auth(why, ctx);
        self.settle_histories(ctx);
    }
}
