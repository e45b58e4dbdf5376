//! Relays: which of them are targets, and what changes with that.

use std::collections::BTreeSet;

use super::{Index, Root};
use crate::discover::DiscoverConfig;
use crate::discover::arena::{RelayNumber, RepoNumber};
use crate::discover::changes::Want;
use crate::discover::place::{Place, origin};
use crate::protocol::RelayUrl;

/// A relay that announcements list, or that is bootstrapped from.
#[derive(Debug)]
pub(super) struct Relay {
    standing: Standing,
    /// Announcements that list it, accepted or not.
    announcements: u32,
    /// Those of accepted repositories.
    pub(super) repositories: u32,
    /// Issues, patches and pull requests wanted of it.
    pub(super) roots: u32,
    pub(super) is_active: bool,
    /// Does it count against `relays_max`?
    is_counted: bool,
}

impl Relay {
    fn new(standing: Standing) -> Self {
        Self { standing, announcements: 0, repositories: 0, roots: 0, is_active: false, is_counted: false }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.announcements == 0 && !self.is_bootstrap()
    }

    pub(super) fn is_bootstrap(&self) -> bool {
        self.standing == Standing::Bootstrap
    }
}

/// What a relay can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::discover) enum Standing {
    /// Our own service: never a target.
    Own,
    /// On the block-list.
    Blocked,
    /// At a private address, which announcements may not name.
    Private,
    /// A target in any case.
    Bootstrap,
    /// A target while an accepted repository lists it.
    Open,
}

/// What decides about the standing of a relay.
#[derive(Debug)]
pub(super) struct Rules {
    own: BTreeSet<Place>,
    blocked: BTreeSet<Place>,
    bootstrap: BTreeSet<RelayUrl>,
    private_relays: bool,
}

impl Rules {
    pub(super) fn of(config: &DiscoverConfig) -> Self {
        Self {
            own: config.service_urls.iter().map(Place::of).collect(),
            blocked: config.block_relays.iter().map(Place::of).collect(),
            bootstrap: config.bootstrap.iter().cloned().collect(),
            private_relays: config.private_relays,
        }
    }

    fn standing(&self, url: &RelayUrl) -> Standing {
        let place = Place::of(url);
        if self.own.contains(&place) {
            Standing::Own
        } else if self.blocked.contains(&place) {
            Standing::Blocked
        } else if self.bootstrap.contains(url) {
            Standing::Bootstrap
        } else if place.is_private() && !self.private_relays {
            Standing::Private
        } else {
            Standing::Open
        }
    }
}

impl Index {
    pub(in crate::discover) fn standing(&self, url: &RelayUrl) -> Standing {
        match self.relays.find(url) {
            Some(relay) => self.relays[relay].standing,
            None => self.rules.standing(url),
        }
    }

    pub(in crate::discover) fn is_own(&self, url: &RelayUrl) -> bool {
        self.standing(url) == Standing::Own
    }

    pub(super) fn add_bootstrap_relays(&mut self) {
        for url in self.rules.bootstrap.clone() {
            let relay = self.find_or_insert_relay(&url);
            self.settle(relay);
        }
    }

    /// A number for a relay that an announcement lists; `None` if there are too many. Our own service has one for all
    /// of its paths, and finds room in any case.
    pub(super) fn hold_relay(&mut self, url: &RelayUrl) -> Option<RelayNumber> {
        let is_own = self.is_own(url);
        let is_known = self.relays.find(url).is_some();
        if !is_own && !is_known && self.relays.len() >= self.config.relay_urls_max {
            self.counters.relay_urls_refused += 1;
            return None;
        }
        let relay = if is_own { self.find_or_insert_relay(&origin(url)) } else { self.find_or_insert_relay(url) };
        self.relays[relay].announcements += 1;
        self.counters.relays_private += u64::from(!is_known && self.relays[relay].standing == Standing::Private);
        Some(relay)
    }

    pub(super) fn release_relay(&mut self, relay: RelayNumber) {
        self.relays[relay].announcements -= 1;
        if self.relays[relay].is_spent() {
            self.spent.relays.push(relay);
        }
    }

    fn find_or_insert_relay(&mut self, url: &RelayUrl) -> RelayNumber {
        let rules = &self.rules;
        self.relays.find_or_insert(url, || Relay::new(rules.standing(url)))
    }

    pub(super) fn is_own_number(&self, relay: RelayNumber) -> bool {
        self.relays[relay].standing == Standing::Own
    }

    /// An accepted repository lists this relay from now on.
    pub(super) fn list(&mut self, repo: RepoNumber, relay: RelayNumber) {
        self.relay_repositories.insert(relay, repo);
        self.relays[relay].repositories += 1;
        if self.relays[relay].is_active {
            self.toggle_repository(repo, relay, true);
        } else {
            self.settle(relay);
        }
    }

    /// An accepted repository does not list this relay any more, or is not accepted.
    pub(super) fn unlist(&mut self, repo: RepoNumber, relay: RelayNumber) {
        if self.relays[relay].is_active {
            self.toggle_repository(repo, relay, false);
        }
        self.relay_repositories.remove(relay, repo);
        self.relays[relay].repositories -= 1;
        self.settle(relay);
    }

    /// `repo` has come to an active relay, or goes from it; and with it those roots for which no other is a reason.
    fn toggle_repository(&mut self, repo: RepoNumber, relay: RelayNumber, added: bool) {
        let is_reason = |other: RepoNumber| other != repo && self.relay_repositories.has(relay, other);
        let is_only_reason = |root: &Root| !root.repositories().iter().copied().any(is_reason);
        let roots: Vec<_> = self
            .repository_roots
            .of(repo)
            .filter(|root| !self.roots[*root].muted && is_only_reason(&self.roots[*root]))
            .collect();
        self.toggle(relay, Want::Repo(repo), added);
        for root in roots {
            self.toggle(relay, Want::Root(root), added);
        }
    }

    /// Makes a relay a target, or lets it be one no more, as its standing, its repositories and the bound demand.
    fn settle(&mut self, relay: RelayNumber) {
        let Relay { standing, repositories, is_active, .. } = self.relays[relay];
        let wanted = match standing {
            Standing::Own | Standing::Blocked | Standing::Private => false,
            Standing::Bootstrap => true,
            Standing::Open => repositories > 0,
        };
        let has_room = standing == Standing::Bootstrap || self.live.relays < self.config.relays_max;
        if !wanted || has_room || is_active {
            self.waiting.remove(&relay);
        } else {
            self.counters.relays_refused += u64::from(self.waiting.insert(relay));
        }
        let becomes_active = wanted && (is_active || has_room);
        if becomes_active != is_active {
            self.set_active(relay, becomes_active);
        }
        self.count(relay);
        if is_active && !becomes_active {
            self.admit_waiting_relays();
        }
    }

    /// A target that is no bootstrap relay counts against the bound.
    fn count(&mut self, relay: RelayNumber) {
        let counts = self.relays[relay].is_active && self.relays[relay].standing == Standing::Open;
        let counted = std::mem::replace(&mut self.relays[relay].is_counted, counts);
        self.live.relays += usize::from(counts);
        self.live.relays -= usize::from(counted);
    }

    /// First come, first served, as far as numbers tell.
    pub(super) fn admit_waiting_relays(&mut self) {
        while self.live.relays < self.config.relays_max {
            let Some(relay) = self.waiting.pop_first() else { break };
            self.settle(relay);
        }
    }

    fn set_active(&mut self, relay: RelayNumber, active: bool) {
        self.relays[relay].is_active = active;
        self.toggle(relay, Want::Announcements, active);
        let repositories: Vec<RepoNumber> = self.relay_repositories.of(relay).collect();
        for repo in repositories {
            self.toggle(relay, Want::Repo(repo), active);
            // A root of several repositories comes with the first of them.
            let lists = |other: &&RepoNumber| self.relay_repositories.has(relay, **other);
            let is_first = |root: &Root| root.repositories().iter().find(lists) == Some(&repo);
            let roots: Vec<_> = self
                .repository_roots
                .of(repo)
                .filter(|root| !self.roots[*root].muted && is_first(&self.roots[*root]))
                .collect();
            for root in roots {
                self.toggle(relay, Want::Root(root), active);
            }
        }
    }

    /// Gives every relay the standing that the configuration gives it now.
    pub(super) fn judge_relays_anew(&mut self) {
        let standings: Vec<_> = self.relays.iter().map(|(relay, url, _)| (relay, self.rules.standing(url))).collect();
        for (relay, standing) in standings {
            if self.relays[relay].standing != standing {
                self.relays[relay].standing = standing;
                self.settle(relay);
            }
            if self.relays[relay].is_spent() {
                self.spent.relays.push(relay);
            }
        }
    }
}
