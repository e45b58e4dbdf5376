//! What an operator decides about discovery.

use std::collections::BTreeSet;
use std::time::Duration;

use super::place::Place;
use crate::protocol::{Address, RelayUrl};

/// Which repositories are ours, and how much is remembered of them.
///
/// A bound applies to what comes from now on: lowering one lets nothing go that is there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoverConfig {
    /// The URLs of our own service, as relay and as git host ([`service_url`](super::service_url) reads them). A URL in
    /// an announcement is ours if it has the host and the port of one of these, whatever its scheme and path.
    pub service_urls: Vec<RelayUrl>,
    /// Which announcements are accepted.
    pub accept: Accept,
    /// Authors whose repositories are accepted in any case, public keys.
    pub allow_authors: BTreeSet<[u8; 32]>,
    /// Repositories that are accepted in any case.
    pub allow_repositories: BTreeSet<Address>,
    /// Authors from whom nothing is wanted, whatever else is said here.
    pub block_authors: BTreeSet<[u8; 32]>,
    /// Repositories that are never accepted.
    pub block_repositories: BTreeSet<Address>,
    /// Relays that are never targets; the host and the port decide.
    pub block_relays: Vec<RelayUrl>,
    /// Relays that are targets in any case: where discovery begins. They may have private addresses.
    pub bootstrap: Vec<RelayUrl>,
    /// May announcements name relays at loopback, private and link-local addresses? Anybody can publish an announcement,
    /// so on a host with internal services the answer is no. Names that resolve to such addresses are not seen here:
    /// [`DiscoverConfig::is_confined`] says which relays they must not be used for.
    pub private_relays: bool,

    /// How long changes of targets are collected, from the first of them on, before they are handed out.
    pub batch_window: Duration,
    /// Interests handed out at a time; what is left comes with the next call.
    pub batch_interests_max: usize,

    /// Relays that are targets, bootstrap relays not counted. Others wait until one of these goes.
    pub relays_max: usize,
    /// Relay URLs remembered, targets or not.
    pub relay_urls_max: usize,
    /// The length of a relay or clone URL, in bytes.
    pub relay_url_bytes_max: usize,
    /// Values of `relays` tags, and as many of `clone` tags, that are looked at in one announcement.
    pub relays_per_repository_max: usize,
    /// Maintainers of one repository.
    pub maintainers_per_repository_max: usize,
    /// Repositories accepted. One more is looked at again with its next version, or when the configuration is read anew.
    pub repositories_max: usize,
    /// Announcements remembered that are not accepted.
    pub dormant_repositories_max: usize,
    /// The length of a repository's identifier, in bytes.
    pub identifier_bytes_max: usize,
    /// Issues, patches and pull requests remembered.
    pub roots_max: usize,
    /// Of them, those of one repository.
    pub roots_per_repository_max: usize,
    /// Repositories that one issue, patch or pull request can belong to.
    pub repositories_per_root_max: usize,
    /// Issues, patches and pull requests that wait for the announcement of their repository. Beyond, the repository that
    /// has waited longest is forgotten.
    pub orphans_max: usize,
    /// What accepted announcements, issues, patches and pull requests refer to, and what is therefore wanted: ids, and as
    /// many addresses. The oldest is forgotten first.
    pub references_max: usize,
    /// Of them, those that one event makes.
    pub references_per_event_max: usize,
    /// Events judged good that count as accepted before they are observed, by kind of memory. The oldest is forgotten
    /// first.
    pub promises_max: usize,
    /// Requests to delete or to vanish that are remembered, in case what they remove comes after them: ids, and as many
    /// addresses and authors. The oldest is forgotten first; a store remembers all.
    pub tombstones_max: usize,
}

/// Which announcements are accepted. What the allow-lists name is accepted in any case, and what the block-lists name
/// never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accept {
    /// Those that list our service, in `relays` or in `clone`.
    #[default]
    Listed,
    /// Only those of the allow-lists.
    Allowed,
    /// All: an archive.
    All,
}

impl Default for DiscoverConfig {
    fn default() -> Self {
        Self {
            service_urls: Vec::new(),
            accept: Accept::Listed,
            allow_authors: BTreeSet::new(),
            allow_repositories: BTreeSet::new(),
            block_authors: BTreeSet::new(),
            block_repositories: BTreeSet::new(),
            block_relays: Vec::new(),
            bootstrap: Vec::new(),
            private_relays: false,
            batch_window: Duration::from_secs(5),
            batch_interests_max: 100_000,
            relays_max: 2_000,
            relay_urls_max: 50_000,
            relay_url_bytes_max: 512,
            relays_per_repository_max: 50,
            maintainers_per_repository_max: 100,
            repositories_max: 200_000,
            dormant_repositories_max: 100_000,
            identifier_bytes_max: 512,
            roots_max: 2_000_000,
            roots_per_repository_max: 200_000,
            repositories_per_root_max: 16,
            orphans_max: 50_000,
            references_max: 200_000,
            references_per_event_max: 100,
            promises_max: 50_000,
            tombstones_max: 50_000,
        }
    }
}

/// Which rules decide what is wanted, as numbers: what was fetched by some says nothing about what others want.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// Those for announcements, states and lists of grasp servers.
    pub announcements: u64,
    /// Those for everything else.
    pub others: u64,
}

impl DiscoverConfig {
    /// Is this one of the relays that are never targets?
    pub fn blocks_relay(&self, relay: &RelayUrl) -> bool {
        self.block_relays.iter().any(|blocked| Place::of(blocked) == Place::of(relay))
    }

    /// Is this our own service? Then it is no target.
    pub fn is_own(&self, relay: &RelayUrl) -> bool {
        self.service_urls.iter().any(|own| Place::of(own) == Place::of(relay))
    }

    /// Is a relay that discovery alone asks for to be connected to at public addresses only? Whoever made its name known
    /// may have chosen what that resolves to.
    pub fn is_confined(&self, relay: &RelayUrl) -> bool {
        !self.private_relays && !self.bootstrap.contains(relay)
    }

    /// The rules of this configuration.
    pub fn rules(&self) -> Rules {
        let number = |text: String| {
            let hash = bitcoin_hashes::sha256::Hash::hash(text.as_bytes()).to_byte_array();
            u64::from_be_bytes(std::array::from_fn(|place| hash[place]))
        };
        let blocked = format!("{:?} {:?}", self.block_authors, self.block_repositories);
        let allowed =
            format!("{:?} {:?} {:?} {:?}", self.accept, self.service_urls, self.allow_authors, self.allow_repositories);
        Rules { announcements: number(format!("{allowed} {blocked}")), others: number(blocked) }
    }

    /// Is an announcement at `address` accepted that does or does not list our service?
    pub(super) fn accepts(&self, address: &Address, lists_us: bool) -> bool {
        if self.blocks(address) {
            return false;
        }
        let allowed = self.allow_authors.contains(&address.author) || self.allow_repositories.contains(address);
        allowed
            || match self.accept {
                Accept::Listed => lists_us,
                Accept::Allowed => false,
                Accept::All => true,
            }
    }

    /// Is the repository or its author on a block-list?
    pub(super) fn blocks(&self, address: &Address) -> bool {
        self.block_authors.contains(&address.author) || self.block_repositories.contains(address)
    }
}
