//! The repository index: repositories, their issues, patches and pull requests, and the relays that are to have them.
//!
//! Kept are relations by number, each from one side: a repository's relays and roots, a relay's repositories, an
//! author's roots. What is wanted of a relay follows from them and is not kept. Each change of a relation works out
//! what it alone adds or removes, so that one more root costs its repositories times their relays.
//!
//! A relay is *active* if it is a target. A root is wanted at a relay while any accepted repository that it belongs to
//! lists that relay, which must be active, unless its author is blocked.

mod relays;
mod repositories;
mod roots;
mod status;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use self::status::{RelayStatus, RepositoryStatus};

use self::relays::{Relay, Rules};
use self::repositories::Repository;
pub(super) use self::roots::NewRoot;
use self::roots::Root;
use super::arena::{Arena, AuthorNumber, IdIndex, Relation, RelayNumber, RepoNumber, RootNumber, Slots};
use super::changes::{Changes, Want};
use super::counters::DiscoveryCounters;
use super::{DiscoverConfig, TargetChange};
use crate::plan::Interest;
use crate::protocol::{Address, RelayUrl};

/// See the module.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) config: DiscoverConfig,
    pub(super) counters: DiscoveryCounters,
    rules: Rules,
    repositories: Arena<RepoNumber, Address, Repository>,
    relays: Arena<RelayNumber, RelayUrl, Relay>,
    authors: Arena<AuthorNumber, [u8; 32], Author>,
    roots: Slots<RootNumber, Root>,
    root_ids: IdIndex<RootNumber>,
    announcement_ids: IdIndex<RepoNumber>,
    repository_roots: Relation<RepoNumber, RootNumber>,
    /// Accepted repositories only, whether the relay is active or not.
    relay_repositories: Relation<RelayNumber, RepoNumber>,
    author_roots: Relation<AuthorNumber, RootNumber>,
    /// Maintainers that accepted repositories name, by the identifier.
    maintainers: BTreeSet<(Arc<str>, AuthorNumber, RepoNumber)>,
    /// Relays that would be active if there was room.
    waiting: BTreeSet<RelayNumber>,
    /// Addresses with roots and without an announcement, by when they began to wait.
    orphans: BTreeSet<(u64, RepoNumber)>,
    orphans_begun: u64,
    live: Live,
    changes: Changes,
    spent: Spent,
}

/// How many there are of what is bounded.
#[derive(Debug, Default)]
struct Live {
    accepted: usize,
    dormant: usize,
    roots: usize,
    /// Times that a root waits for an announcement.
    orphans: usize,
    /// Active relays, bootstrap relays not counted.
    relays: usize,
}

/// What may have lost its last use. It keeps its number until no change refers to it.
#[derive(Debug, Default)]
struct Spent {
    relays: Vec<RelayNumber>,
    repositories: Vec<RepoNumber>,
    roots: Vec<RootNumber>,
}

/// Somebody who is named somewhere.
#[derive(Debug, Default)]
struct Author {
    /// Repositories, maintainers and roots that name this key.
    uses: u32,
    /// Accepted repositories of this author or with this maintainer.
    accepted: u32,
}

impl Index {
    pub(super) fn new(config: DiscoverConfig) -> Self {
        let mut index = Self {
            rules: Rules::of(&config),
            config,
            counters: DiscoveryCounters::default(),
            repositories: Arena::new(),
            relays: Arena::new(),
            authors: Arena::new(),
            roots: Slots::new(),
            root_ids: IdIndex::new(),
            announcement_ids: IdIndex::new(),
            repository_roots: Relation::new(),
            relay_repositories: Relation::new(),
            author_roots: Relation::new(),
            maintainers: BTreeSet::new(),
            waiting: BTreeSet::new(),
            orphans: BTreeSet::new(),
            orphans_begun: 0,
            live: Live::default(),
            changes: Changes::default(),
            spent: Spent::default(),
        };
        index.add_bootstrap_relays();
        index
    }

    /// Takes a new configuration, and derives anew what follows from it.
    pub(super) fn reconfigure(&mut self, config: DiscoverConfig) {
        let old = std::mem::replace(&mut self.config, config);
        self.rules = Rules::of(&self.config);
        self.add_bootstrap_relays();
        self.judge_relays_anew();
        let blocked = self.config.block_authors.symmetric_difference(&old.block_authors).copied().collect::<Vec<_>>();
        for author in blocked {
            self.mute_or_unmute(&author);
        }
        self.judge_repositories_anew();
        self.admit_waiting_relays();
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Takes up to `interests_max` changes out, relay by relay.
    pub(super) fn take_changes(&mut self, interests_max: usize) -> Vec<TargetChange> {
        let mut batch: Vec<TargetChange> = Vec::new();
        let mut current = None;
        for _ in 0..interests_max.max(1) {
            let Some((relay, want, added)) = self.changes.next() else { break };
            if current != Some(relay) {
                current = Some(relay);
                batch.push(TargetChange::of(self.relays.key(relay).clone()));
            }
            let interest = self.interest(want);
            let change = batch.last_mut().expect("the relay has just been added");
            if added { change.added.push(interest) } else { change.removed.push(interest) }
        }
        if self.changes.is_empty() {
            self.empty_spent_slots();
        }
        batch
    }

    fn interest(&self, want: Want) -> Interest {
        match want {
            Want::Announcements => Interest::Announcements,
            Want::Repo(repo) => Interest::Repo(self.repositories.key(repo).clone()),
            Want::Root(root) => Interest::Root(self.roots[root].id),
        }
    }

    fn toggle(&mut self, relay: RelayNumber, want: Want, added: bool) {
        self.changes.toggle(relay, want, added);
        if let Want::Root(_) = want {
            let roots = &mut self.relays[relay].roots;
            *roots = if added { *roots + 1 } else { *roots - 1 };
        }
    }

    fn empty_spent_slots(&mut self) {
        for relay in std::mem::take(&mut self.spent.relays) {
            if self.relays.has(relay) && self.relays[relay].is_spent() {
                self.relays.remove(relay);
            }
        }
        for root in std::mem::take(&mut self.spent.roots) {
            if self.roots.get(root).is_some_and(Root::is_spent) {
                self.root_ids.remove(&self.roots[root].id, root);
                self.roots.remove(root);
            }
        }
        for repo in std::mem::take(&mut self.spent.repositories) {
            if self.repositories.has(repo) && self.repositories[repo].is_spent() {
                let author = self.repositories[repo].author;
                self.repositories.remove(repo);
                self.release_author(author);
            }
        }
    }

    fn hold_author(&mut self, key: &[u8; 32]) -> AuthorNumber {
        let author = self.authors.find_or_insert(key, Author::default);
        self.authors[author].uses += 1;
        author
    }

    fn release_author(&mut self, author: AuthorNumber) {
        self.authors[author].uses -= 1;
        if self.authors[author].uses == 0 {
            self.authors.remove(author);
        }
    }
}
