//! The plan of one repository: whose it is, who has a say, where it is.

use std::collections::BTreeSet;

use nostr::key::PublicKey;

use super::tags::Target;
use crate::protocol::Address;

/// Where announcements name a relay or our service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    /// In `relays` and `clone`, as GRASP wants it.
    Both,
    /// In `relays` only.
    Relays,
    /// In `clone` only.
    Clone,
}

impl Listing {
    pub(super) fn in_relays(self) -> bool {
        self != Self::Clone
    }

    pub(super) fn in_clone(self) -> bool {
        self != Self::Relays
    }
}

/// A repository that lists our service.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    pub(super) owner: usize,
    pub(super) owner_key: PublicKey,
    pub(super) identifier: String,
    pub(super) maintainers: Vec<usize>,
    /// Where it is: places of relays.
    pub(super) relays: BTreeSet<usize>,
    /// Where its announcement is.
    pub(super) announced_at: BTreeSet<usize>,
    pub(super) relays_listed: Listing,
    pub(super) service_listed: Listing,
    /// Its earliest commit.
    pub(super) euc: String,
    pub(super) roots: Vec<Root>,
}

/// An issue, patch or pull request, and the comments on it.
#[derive(Debug, Clone)]
pub(super) struct Root {
    pub(super) target: Target,
    pub(super) comments: Vec<Target>,
}

impl Repository {
    pub(super) fn address(&self) -> Address {
        Address::repository(self.owner_key.to_bytes(), &self.identifier)
    }

    pub(super) fn owner_hex(&self) -> String {
        self.owner_key.to_hex()
    }
}
