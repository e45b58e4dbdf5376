//! Configured peers and access rules: what engines are told of them, and what must hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::honest::at_once;
use super::node::{EngineId, Wish};
use super::world::World;
use crate::engine::{Command, ConnId, Gap, GapReason, Input};
use crate::peer::{AccessRules, Capability, IdentityField, Peering, View};
use crate::plan::Interest;
use crate::protocol::{ClientMessage, Event, Filter, FilterKey, PublicKey, RelayInfo, RelayMessage, RelayUrl};
use crate::sim::key_of;
use crate::store::{Batch, Store};

/// Who has sent an event: a relay, and the key that it had proven to be, if it was a peer.
type Bringer = (RelayUrl, Option<PublicKey>);

/// An engine's peers, as it was told, and what the checks remember.
#[derive(Debug, Default)]
pub(super) struct Peers {
    /// The peers.
    pub peerings: BTreeMap<RelayUrl, Peering>,
    /// Connections on which the relay has named a key as its own.
    proven: BTreeSet<(ConnId, PublicKey)>,
    /// Who has sent each event to the engine since it was started.
    brought: BTreeMap<[u8; 32], BTreeSet<Bringer>>,
    /// When anything of this changed last, in seconds since 1970.
    changed_secs: u64,
    /// When each relay became another one, or none, in seconds since 1970.
    principal_since: BTreeMap<RelayUrl, u64>,
    /// Are there, or were there, peers or access rules, so that all this is looked at?
    pub is_watched: bool,
}

impl Peers {
    /// A crashed engine remembers nothing.
    pub(super) fn handle_crash(&mut self) {
        self.proven.clear();
        self.brought.clear();
    }

    fn principal(&self, relay: &RelayUrl) -> Option<PublicKey> {
        self.peerings.get(relay).map(|peering| peering.terms.principal)
    }
}

impl World {
    /// Tells an engine that a relay is a peer from now on, or none.
    pub fn set_peer(&mut self, engine: EngineId, relay: &RelayUrl, peering: Option<Peering>) {
        self.command(engine, Command::SetPeer { relay: relay.clone(), peering: peering.map(Box::new) });
    }

    /// Tells an engine that these access rules hold from now on.
    pub fn set_access(&mut self, engine: EngineId, rules: impl Into<Arc<AccessRules>>) {
        self.command(engine, Command::SetAccess(rules.into()));
    }

    /// On which terms a relay is a peer of an engine, if it is one.
    pub fn peering(&self, engine: EngineId, relay: &RelayUrl) -> Option<Peering> {
        self.node(engine).peers.peerings.get(relay).cloned()
    }

    /// An engine answers challenges as another author from now on.
    pub fn renew(&mut self, engine: EngineId, signs_as: u8) {
        self.nodes[engine.0].signs_as = Some(signs_as);
        self.command(engine, Command::Renew);
    }

    /// These access rules hold at a relay from now on.
    pub fn set_relay_access(&mut self, relay: &RelayUrl, rules: impl Into<Arc<AccessRules>>) {
        let now = self.now();
        for node in &mut self.nodes {
            node.watches.entry(relay.clone()).or_default().forget_requests();
        }
        let deliveries = self.relay_mut(relay).set_access(rules.into(), now);
        self.deliver(deliveries);
    }

    /// Access rules that hold from the beginning are looked at from then on.
    pub(super) fn watch_peers(&mut self, engine: EngineId) {
        let node = &mut self.nodes[engine.0];
        node.peers.is_watched = !node.config.access.is_open();
    }

    /// What an engine is told of peers holds from then on, and after a restart.
    pub(super) fn note_peers(&mut self, engine: EngineId, command: &Command) {
        let now_secs = self.now().unix_secs;
        let node = &mut self.nodes[engine.0];
        if let Command::SetPeer { relay, peering } = command
            && node.peers.principal(relay) != peering.as_ref().map(|peering| peering.terms.principal)
        {
            node.peers.principal_since.insert(relay.clone(), now_secs);
        }
        match command {
            Command::SetPeer { relay, peering: Some(peering) } => {
                let filters = peering.filters.iter();
                node.filters.extend(filters.map(|filter| (FilterKey::of(filter), filter.as_ref().clone())));
                node.peers.peerings.insert(relay.clone(), (**peering).clone());
            }
            Command::SetPeer { relay, peering: None } => drop(node.peers.peerings.remove(relay)),
            Command::SetAccess(rules) => node.config.access = rules.clone(),
            Command::Renew | Command::SyncNow { .. } => {}
            _ => return,
        }
        node.peers.is_watched = true;
        node.peers.changed_secs = now_secs;
        for watch in node.watches.values_mut() {
            watch.forget_attempt();
            watch.forget_requests();
            watch.link.disturb();
        }
    }

    /// Tells an engine of its peers.
    pub(super) fn tell_peers(&mut self, engine: EngineId) {
        for (relay, peering) in self.nodes[engine.0].peers.peerings.clone() {
            self.set_peer(engine, &relay, Some(peering));
        }
    }

    /// An engine is about to learn what a relay says of itself.
    pub(super) fn note_identity(&mut self, engine: EngineId, input: &Input) {
        let Input::RelayInfo { conn, result: Ok(text) } = input else { return };
        let node = &mut self.nodes[engine.0];
        let Some(open) = node.conns.get(conn) else { return };
        let Some(terms) = node.peers.peerings.get(&open.relay).map(|peering| &peering.terms) else { return };
        let Some(info) = RelayInfo::parse(text) else { return };
        let named = match (info.relay_key, terms.identity) {
            (None, IdentityField::AdministratorKey) => info.pubkey,
            (named, _) => named,
        };
        if named == Some(terms.principal.to_hex()) {
            node.peers.proven.insert((*conn, terms.principal));
        }
    }

    /// A frame is about to reach an engine.
    pub(super) fn note_bringer(&mut self, engine: EngineId, conn: ConnId, relay: &RelayUrl, frame: &str) {
        let peers = &mut self.nodes[engine.0].peers;
        if !peers.is_watched {
            return;
        }
        let principal = peers.principal(relay);
        let is_heard = principal.is_none_or(|key| peers.proven.contains(&(conn, key)));
        if let (true, Ok(RelayMessage::Event { json, .. })) = (is_heard, RelayMessage::parse(frame))
            && let Ok(event) = Event::parse(json.to_owned().into())
        {
            peers.brought.entry(event.id.to_bytes()).or_default().insert((relay.clone(), principal));
        }
    }

    /// Nothing is said to a peer that has not proven who it is, and no event that it may not read.
    pub(super) fn check_disclosure(&self, engine: EngineId, conn: ConnId, frame: &str) {
        let node = &self.nodes[engine.0];
        if !node.peers.is_watched {
            return;
        }
        self.check_proven(engine, conn, frame);
        let Some(open) = node.conns.get(&conn) else { return };
        let principal = node.peers.principal(&open.relay);
        if let Ok(ClientMessage::Event { json }) = ClientMessage::parse(frame)
            && let Ok(event) = Event::parse(json.to_owned().into())
        {
            let is_allowed = node.config.access.allows(&principal, Capability::SyncRead, &event);
            assert!(is_allowed, "{} may not read what is published to it: {frame}", open.relay);
        }
    }

    /// Has the relay of this connection proven who it is, if it is a peer?
    pub(super) fn check_proven(&self, engine: EngineId, conn: ConnId, what: &str) {
        let node = &self.nodes[engine.0];
        let Some(open) = node.conns.get(&conn) else { return };
        let Some(principal) = node.peers.principal(&open.relay) else { return };
        let is_proven = node.peers.proven.contains(&(conn, principal));
        assert!(is_proven, "{} has not proven who it is: {what}", open.relay);
    }

    /// Only what some relay may learn of is looked at for it.
    pub(super) fn check_view(&self, engine: EngineId, view: &View) {
        let node = &self.nodes[engine.0];
        let access = &node.config.access;
        let of_peers = node.peers.peerings.values().map(|peering| access.view([&peering.terms.principal]));
        let mut views = of_peers.chain([access.view([])]);
        assert!(views.any(|of_one| of_one == *view), "a view of nobody: {view:?}");
    }

    /// What is held and hidden from a relay is asked for when it offers it, like anything else.
    pub(super) fn check_known(&self, engine: EngineId, ids: &[[u8; 32]], view: &View, known: &[bool]) {
        let known: Vec<[u8; 32]> = ids.iter().zip(known).filter(|(_, known)| **known).map(|(id, _)| *id).collect();
        let seen = |event: &Event| assert!(view.shows(event), "{} is not asked for, as it is held", event.id);
        events_of(&self.nodes[engine.0].store, known).iter().for_each(seen);
    }

    /// What was proven of somebody else at the same URL is no proof of who is there now.
    pub(super) fn check_heirs(&self, engine: EngineId, batch: &Batch) {
        let node = &self.nodes[engine.0];
        for mark in batch.coverage.iter().filter(|_| node.offsets.is_empty()) {
            let since = node.peers.principal_since.get(&mark.relay).copied().unwrap_or_default();
            let is_of_now = mark.windows.iter().all(|proof| proof.asked_at_secs >= since);
            assert!(is_of_now, "a mark of {} that another has proven: {mark:?}", mark.relay);
        }
    }

    /// Whoever has brought a protected event may write it now, and is noted as the one who has brought it.
    pub(super) fn check_bringers(&self, engine: EngineId, batch: &Batch) {
        let node = &self.nodes[engine.0];
        if !node.peers.is_watched {
            return;
        }
        let access = &node.config.access;
        let nobody = BTreeSet::new();
        for event in &batch.events {
            let id = event.id.to_bytes();
            let bringers = node.peers.brought.get(&id).unwrap_or(&nobody);
            let is_trusted = |(relay, principal): &Bringer| {
                principal.is_none() && node.wishes.get(relay).is_some_and(|(_, options)| options.trusted)
            };
            let may =
                |bringer: &&Bringer| is_trusted(bringer) || access.allows(&bringer.1, Capability::SyncWrite, event);
            assert!(bringers.iter().any(|bringer| may(&bringer)), "{} is stored, and nobody may write it", event.id);
            let Some(context) = batch.contexts.get(&id) else {
                assert!(
                    bringers.iter().any(|(_, key)| key.is_none() || !access.protects(event)),
                    "{} has no context",
                    event.id
                );
                continue;
            };
            let is_right = |(relay, key): &Bringer| {
                let named = node.peers.peerings.get(relay).filter(|peering| peering.terms.id == context.peer);
                named.is_some_and(|peering| Some(peering.terms.principal) == *key)
            };
            assert!(bringers.iter().filter(may).any(is_right), "{} was not brought by {}", event.id, context.peer);
        }
    }

    /// When the rights of an engine at a relay, or those of the relay at the engine, changed last, in seconds since 1970.
    pub(super) fn rights_changed_secs(&self, engine: EngineId, relay: &RelayUrl) -> u64 {
        let of_relay = self.relays.get(relay).map_or(0, |remote| remote.access_changed_secs);
        self.nodes[engine.0].peers.changed_secs.max(of_relay)
    }

    /// Those of these ids that an engine can get from a relay: what it may write here, and we may read there. Where
    /// anything stands between the two, `surely` leaves out whatever is protected there.
    pub(super) fn gettable(
        &self,
        engine: EngineId,
        relay: &RelayUrl,
        ids: Vec<[u8; 32]>,
        surely: bool,
    ) -> Vec<[u8; 32]> {
        let remote = &self.relays[relay];
        let node = &self.nodes[engine.0];
        let theirs = &remote.honest().config().access;
        if ids.is_empty() || node.config.access.is_open() && theirs.is_open() {
            return ids;
        }
        let principal = node.peers.principal(relay);
        // What is hidden from strangers is not asked for again of others than peers.
        let us = self.known_as(engine, relay).filter(|_| principal.is_some());
        let is_trusted = principal.is_none() && node.wishes.get(relay).is_some_and(|(_, options)| options.trusted);
        let is_plain = remote.is_untampered && !remote.network.is_faulty();
        let can = |event: &Event| {
            let is_sure = !surely || is_plain || !theirs.protects(event);
            let is_ours = is_trusted || node.config.access.allows(&principal, Capability::SyncWrite, event);
            is_sure && is_ours && theirs.allows(&us, Capability::SyncRead, event)
        };
        let held = events_of(remote.honest().store(), ids);
        held.iter().filter(|event| can(event)).map(|event| event.id.to_bytes()).collect()
    }

    /// Those of these ids that an engine can bring to a relay.
    pub(super) fn givable(&self, engine: EngineId, relay: &RelayUrl, ids: Vec<[u8; 32]>) -> Vec<[u8; 32]> {
        let node = &self.nodes[engine.0];
        let theirs = &self.relays[relay].honest().config().access;
        if ids.is_empty() || node.config.access.is_open() && theirs.is_open() {
            return ids;
        }
        let (principal, us) = (node.peers.principal(relay), self.known_as(engine, relay));
        let can = |event: &Event| {
            node.config.access.allows(&principal, Capability::SyncRead, event)
                && theirs.allows(&us, Capability::SyncWrite, event)
        };
        let held = events_of(&node.store, ids);
        held.iter().filter(|event| can(event)).map(|event| event.id.to_bytes()).collect()
    }

    /// Does a relay answer an engine's requests for this, whole or without what it hides?
    pub(super) fn serves(&self, engine: EngineId, relay: &RelayUrl, filter: &Filter) -> bool {
        let (config, us) = (self.relays[relay].honest().config(), self.known_as(engine, relay));
        let is_stranger = config.auth_required && us.is_none();
        let is_named = config.access.names(filter) && !config.access.covers(&us, Capability::SyncRead, filter);
        !is_stranger && !is_named
    }

    /// Do an engine's own rules keep it from syncing this with a relay, one way?
    pub(super) fn denies(&self, engine: EngineId, relay: &RelayUrl, filter: &Filter, capability: Capability) -> bool {
        let node = &self.nodes[engine.0];
        let (access, principal) = (&node.config.access, node.peers.principal(relay));
        access.names(filter) && !access.covers(&principal, capability, filter)
    }

    /// Do an engine's own rules keep anything from being synced with a relay?
    pub(super) fn is_denied(&self, engine: EngineId, relay: &RelayUrl) -> bool {
        let Some((interests, options)) = self.nodes[engine.0].told().remove(relay) else { return false };
        let is_denied = |interest: &Interest| match interest {
            Interest::Opaque(filter) => {
                let down = options.direction.is_down() && !options.trusted;
                down && self.denies(engine, relay, filter, Capability::SyncWrite)
                    || options.direction.is_up() && self.denies(engine, relay, filter, Capability::SyncRead)
            }
            _ => false,
        };
        interests.iter().any(is_denied)
    }

    /// Does a gap stand because the relay's rules do not let the engine have, or bring, what it is about?
    pub(super) fn is_refused(&self, engine: EngineId, relay: &RelayUrl, gap: &Gap) -> bool {
        let is_of_rules = |words: &str| words.contains("restricted:") || words.contains("auth-required:");
        let filter = self.nodes[engine.0].filters.get(&gap.filter);
        match &gap.reason {
            GapReason::AuthRequired(_) => filter.is_some_and(|filter| !self.serves(engine, relay, filter)),
            GapReason::Refused(words) => {
                is_of_rules(words) && filter.is_some_and(|filter| !self.serves(engine, relay, filter))
            }
            GapReason::NotAccepted { reason, .. } => is_of_rules(reason),
            _ => false,
        }
    }

    /// What of an engine's wish can be synced with a relay, one way.
    pub(super) fn permitted(&self, engine: EngineId, relay: &RelayUrl, wish: Wish, capability: Capability) -> Wish {
        let (mut interests, options) = wish;
        interests.retain(|interest| match interest {
            Interest::Opaque(filter) => {
                self.serves(engine, relay, filter) && !self.denies(engine, relay, filter, capability)
            }
            _ => true,
        });
        (interests, options)
    }

    /// Whom a relay takes an engine for.
    fn known_as(&self, engine: EngineId, relay: &RelayUrl) -> Option<PublicKey> {
        let node = &self.nodes[engine.0];
        let authenticates = node.peers.peerings.get(relay).is_none_or(|peering| peering.terms.authenticates);
        node.signs_as.filter(|_| authenticates).map(key_of)
    }
}

fn events_of(store: &impl Store, ids: Vec<[u8; 32]>) -> Vec<Event> {
    let records = at_once(store.events(ids)).unwrap_or_default();
    records.into_iter().flatten().filter_map(|record| Event::parse(record.json).ok()).collect()
}
