//! What the access rules let a relay do. What comes from it is written by the key that it has proven to be, and what is
//! published to it that key reads; a relay that is no peer is nobody.

use bitcoin_hashes::sha256;

use super::{Ctx, Relay};
use crate::engine::Bringer;
use crate::engine::Direction;
use crate::ingest::{Admission, Source};
use crate::peer::{AccessRules, Capability, View};
use crate::plan::Pack;
use crate::protocol::{Event, Filter, PublicKey};
use crate::store::Record;

/// The rules, as far as they are about one relay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rights {
    /// Who it is, as the rules know it.
    principal: Option<PublicKey>,
    /// Of what it may write; zero if that is everything.
    number: u64,
    /// What it may read.
    pub view: View,
}

/// Which ways a filter is not synced, since the rules do not let it be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Denied {
    down: bool,
    up: bool,
}

impl Relay {
    /// May this event be stored now, and who has brought it?
    pub(in crate::engine) fn admit(&self, source: Source, event: &Event, access: &AccessRules) -> Admission {
        let is_of_now = source.era == self.era;
        match &self.peering {
            _ if !is_of_now && access.protects(event) => Admission::Forbidden,
            _ if !is_of_now => Admission::Free,
            _ if !self.may_write(event, access) => Admission::Forbidden,
            Some(peering) => Admission::Brought(peering.terms.id.clone()),
            None => Admission::Free,
        }
    }

    /// Is the relay the peer of this name?
    pub(in crate::engine) fn is_bringer(&self, bringer: &Bringer) -> bool {
        match bringer {
            Bringer::Peer(id) => self.peering.as_ref().is_some_and(|peering| peering.terms.id == *id),
            Bringer::Relay(url) => self.url == *url,
        }
    }

    /// May the relay write this event?
    pub(super) fn may_write(&self, event: &Event, access: &AccessRules) -> bool {
        self.may_write_all() || access.allows(&self.principal(), Capability::SyncWrite, event)
    }

    /// Is it taken at its word, whatever it brings?
    fn may_write_all(&self) -> bool {
        self.peering.is_none() && self.options.trusted
    }

    /// May the relay have this event?
    pub(super) fn may_read(&self, event: &Event, access: &AccessRules) -> bool {
        access.allows(&self.principal(), Capability::SyncRead, event)
    }

    /// Which way events go for this, as far as the rules let them.
    pub(super) fn direction_of(&self, pack: &Pack) -> Option<Direction> {
        let (wanted, denied) = (self.options_of(pack).direction, self.denied.get(pack).copied().unwrap_or_default());
        Direction::of(wanted.is_down() && !denied.down, wanted.is_up() && !denied.up)
    }

    /// Finds out what of a caller's filter the rules deny. What discovery wants is looked at event by event alone.
    pub(super) fn judge(&mut self, pack: &Pack, access: &AccessRules) {
        self.denied.remove(pack);
        if access.is_open() || !pack.is_opaque() {
            return;
        }
        let (filter, principal) = (pack.filter(), self.principal());
        let lacks = |capability| access.names(&filter) && !access.covers(&principal, capability, &filter);
        let direction = self.options_of(pack).direction;
        let down = direction.is_down() && !self.may_write_all() && lacks(Capability::SyncWrite);
        let up = direction.is_up() && lacks(Capability::SyncRead);
        if down || up {
            self.denied.insert(pack.clone(), Denied { down, up });
        }
    }

    /// What is denied, in words.
    pub(super) fn denied_in_words(&self) -> Vec<String> {
        let principal = self.principal();
        let ways = |(pack, denied): (&Pack, &Denied)| {
            let filter = pack.filter();
            let down = denied.down.then(|| in_words("fetched", "sync_write", &filter, principal));
            let up = denied.up.then(|| in_words("published", "sync_read", &filter, principal));
            down.into_iter().chain(up)
        };
        self.denied.iter().flat_map(ways).collect()
    }

    /// Other rules hold, or they are about somebody else. If that changes anything here, what was proven by the old ones, or
    /// by what somebody else had, is worth nothing: everything is begun anew.
    pub(in crate::engine) fn handle_rights(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let principal = self.principal();
        let number = if self.may_write_all() { 0 } else { ctx.access.digest(principal) };
        let rights = Rights { principal, number, view: ctx.access.view(&principal) };
        if rights == self.rights {
            return false;
        }
        self.rights = rights;
        // What was proven before a restart says itself by which rules.
        if self.counters.connections > 0 {
            self.void_proofs(ctx);
        }
        self.begin_anew(|_| true, ctx);
        true
    }

    /// Nothing that was proven counts any more, nor after a restart.
    pub(super) fn void_proofs(&mut self, ctx: &mut Ctx<'_>) {
        ctx.pipeline.void_marks(self.number);
        self.remove_marks(ctx);
    }

    /// A peer asks on a new connection who we are: it has access rules, and may have let us see more while the link was down,
    /// without a word. What is wanted of it by its filters is looked at whole once more. What is under way goes on, so
    /// that something comes of it however often the link breaks, and is looked at again after that.
    pub(super) fn doubt_proofs(&mut self) {
        for pack in self.packs.iter().filter(|pack| pack.is_opaque()) {
            self.coverage.remove(pack.key());
        }
        let under_way = self.histories.values().map(|history| &history.pack).filter(|pack| pack.is_opaque());
        let under_way: Vec<Pack> = under_way.cloned().collect();
        self.doubted.extend(under_way.iter().cloned());
        self.stale.extend(under_way);
    }

    /// The number of the rules by which is decided what may be written, of who the relay is, and of whom it takes us for;
    /// zero if it may write all, is nobody and takes us for nobody.
    pub(super) fn number_of_rights(&self) -> u64 {
        let auth = &self.session.auth;
        let known_as = auth.key.filter(|_| self.peering.is_some() && auth.accepted);
        let part = |what: &str, key: Option<PublicKey>| key.map_or(0, |key| hash(format!("{what} {key}").as_bytes()));
        self.rights.number ^ part("it is", self.principal()) ^ part("we are", known_as)
    }
}

/// May whoever this is have a record?
pub(super) fn may_have(record: &Record, principal: Option<PublicKey>, access: &AccessRules) -> bool {
    let is_allowed = |event: Event| access.allows(&principal, Capability::SyncRead, &event);
    access.is_open() || Event::parse(record.json.clone()).is_ok_and(is_allowed)
}

fn in_words(what: &str, capability: &str, filter: &Filter, principal: Option<PublicKey>) -> String {
    let filter = serde_json::to_string(filter).unwrap_or_default();
    match principal {
        Some(key) => {
            format!(
                "{filter} is protected, and is not {what}: {key} lacks {capability} for it; grant it {capability} for {filter}"
            )
        }
        None => format!(
            "{filter} is protected, and is not {what}: the relay is no peer, so nothing can be granted to it; make it one, and \
             grant its key {capability} for {filter}"
        ),
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let hash = sha256::Hash::hash(bytes).to_byte_array();
    u64::from_be_bytes(std::array::from_fn(|place| hash[place]))
}
