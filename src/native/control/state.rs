//! What the control plane is told, as it is kept.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::identity::IdentitySource;
use crate::peer::{PeerSpec, Rule, rfc3339};
use crate::protocol::{Filter, PublicKey};

/// Everything that is to survive a restart, but the secret key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    /// Who we are, or were when this was written: the configuration may say otherwise.
    pub(super) identity: Option<Named>,
    /// Whose secret key is kept here.
    pub(super) kept: Option<Named>,
    /// Who we have been, the last one first.
    pub(super) previous: Vec<PublicKey>,
    /// The peers, in the order of their names.
    pub(super) peers: Vec<Peer>,
    /// The access rules.
    pub(super) rules: BTreeSet<Rule>,
    /// What is protected, beside what is by configuration.
    pub(super) protected: BTreeSet<Filter>,
}

/// A key, without its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub(super) pubkey: PublicKey,
    pub(super) source: IdentitySource,
    /// When it became our identity for the first time, in seconds since 1970.
    #[serde(rename = "created_at", with = "rfc3339::moment")]
    pub(super) created_secs: u64,
}

/// A peer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peer {
    pub(super) spec: PeerSpec,
    /// The keys that it has had before, the last one first.
    pub(super) previous: Vec<PublicKey>,
}

impl State {
    pub(super) fn peer(&self, id: &str) -> Option<&Peer> {
        self.place(id).ok().map(|at| &self.peers[at])
    }

    pub(super) fn peer_mut(&mut self, id: &str) -> Option<&mut Peer> {
        self.place(id).ok().map(|at| &mut self.peers[at])
    }

    /// Where the peer is, or would be.
    pub(super) fn place(&self, id: &str) -> Result<usize, usize> {
        self.peers.binary_search_by(|peer| peer.spec.id.as_str().cmp(id))
    }

    /// Names a new identity. The former one is remembered, as one of `previous_max`.
    pub(super) fn rename(&mut self, identity: Named, previous_max: usize) {
        let former = self.identity.replace(identity).map(|former| former.pubkey);
        remember(&mut self.previous, former, identity.pubkey, previous_max);
    }

    /// Whose key is it? By name, for all that is known of.
    pub(super) fn owners(&self) -> BTreeMap<PublicKey, Owner<'_>> {
        let mut owners = BTreeMap::new();
        for peer in &self.peers {
            owners.extend(peer.previous.iter().map(|key| (*key, Owner::PreviousOfPeer(&peer.spec.id))));
        }
        owners.extend(self.previous.iter().map(|key| (*key, Owner::PreviouslyUs)));
        owners.extend(self.peers.iter().map(|peer| (peer.spec.auth_pubkey, Owner::Peer(&peer.spec.id))));
        owners.extend(self.identity.iter().map(|identity| (identity.pubkey, Owner::Us)));
        owners
    }
}

/// Whose a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner<'s> {
    Us,
    PreviouslyUs,
    Peer(&'s str),
    PreviousOfPeer(&'s str),
}

/// Puts `former` in front of the former keys, among which `current` is not any more.
pub(super) fn remember(previous: &mut Vec<PublicKey>, former: Option<PublicKey>, current: PublicKey, max: usize) {
    previous.retain(|key| *key != current && Some(*key) != former);
    if let Some(former) = former.filter(|former| *former != current) {
        previous.insert(0, former);
    }
    previous.truncate(max);
}
