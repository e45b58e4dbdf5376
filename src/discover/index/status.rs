//! What can be asked of the index.

use super::Index;
use crate::discover::DiscoverySizes;
use crate::discover::arena::{RelayNumber, RepoNumber};
use crate::plan::Interest;
use crate::protocol::{Address, RelayUrl};

/// What is known of one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryStatus {
    /// Its address.
    pub address: Address,
    /// Is it one of ours? An announcement that is not accepted is remembered, and nothing is fetched for it.
    pub accepted: bool,
    /// The relays that its announcement lists, targets or not.
    pub relays: Vec<RelayUrl>,
    /// How many issues, patches and pull requests name it.
    pub roots: usize,
}

/// What is wanted of one relay, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayStatus {
    /// The relay.
    pub url: RelayUrl,
    /// Is it one to begin from?
    pub bootstrap: bool,
    /// Does it wait because there are too many?
    pub waiting: bool,
    /// How many accepted repositories list it.
    pub repositories: usize,
    /// How many issues, patches and pull requests are wanted of it.
    pub roots: usize,
}

impl Index {
    pub(in crate::discover) fn repository_status(&self) -> impl Iterator<Item = RepositoryStatus> {
        self.repositories.iter().filter(|(_, _, body)| body.is_announced()).map(|(_, address, body)| RepositoryStatus {
            address: address.clone(),
            accepted: body.accepted,
            relays: body.relays().iter().map(|relay| self.relays.key(*relay).clone()).collect(),
            roots: body.roots as usize,
        })
    }

    /// Of targets and of those that wait.
    pub(in crate::discover) fn relay_status(&self) -> impl Iterator<Item = RelayStatus> {
        self.relays.iter().filter_map(|(relay, ..)| self.status_of(relay))
    }

    pub(in crate::discover) fn status_of_relay(&self, url: &RelayUrl) -> Option<RelayStatus> {
        self.status_of(self.relays.find(url)?)
    }

    fn status_of(&self, relay: RelayNumber) -> Option<RelayStatus> {
        let body = &self.relays[relay];
        let waiting = self.waiting.contains(&relay);
        (body.is_active || waiting).then(|| RelayStatus {
            url: self.relays.key(relay).clone(),
            bootstrap: body.is_bootstrap(),
            waiting,
            repositories: body.repositories as usize,
            roots: body.roots as usize,
        })
    }

    /// Everything that is wanted of a relay now, handed out or not.
    pub(in crate::discover) fn interests_of(&self, url: &RelayUrl) -> Vec<Interest> {
        let active = self.relays.find(url).filter(|relay| self.relays[*relay].is_active);
        let Some(relay) = active else { return Vec::new() };
        let repositories: Vec<RepoNumber> = self.relay_repositories.of(relay).collect();
        let mut roots: Vec<_> = repositories.iter().flat_map(|repo| self.repository_roots.of(*repo)).collect();
        roots.sort_unstable();
        roots.dedup();
        let wanted = roots.into_iter().filter(|root| !self.roots[*root].muted);
        let repositories = repositories.iter().map(|repo| Interest::Repo(self.repositories.key(*repo).clone()));
        let roots = wanted.map(|root| Interest::Root(self.roots[root].id));
        std::iter::once(Interest::Announcements).chain(repositories).chain(roots).collect()
    }

    /// The accepted repository whose announcement has this id.
    pub(in crate::discover) fn accepted_announcement(&self, id: &[u8; 32]) -> Option<&Address> {
        self.announcement_at(id).filter(|address| self.is_accepted(address))
    }

    /// What the index knows of sizes.
    pub(in crate::discover) fn sizes(&self) -> DiscoverySizes {
        DiscoverySizes {
            repositories: self.live.accepted,
            dormant_repositories: self.live.dormant,
            roots: self.live.roots,
            orphans: self.live.orphans,
            relays: self.relays.iter().filter(|(.., body)| body.is_active).count(),
            relays_waiting: self.waiting.len(),
            relay_urls: self.relays.len(),
            changes: self.changes.len(),
            ..DiscoverySizes::default()
        }
    }
}
