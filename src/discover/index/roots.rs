//! Roots: issues, patches and pull requests (NIP-34), which whole conversations refer to.

use super::Index;
use crate::discover::arena::{AuthorNumber, RelayNumber, RepoNumber, RootNumber};
use crate::discover::changes::Want;
use crate::protocol::Address;

/// An issue, patch or pull request. There may be millions: 64 bytes, unless it belongs to several repositories.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) id: [u8; 32],
    created_at: u64,
    repositories: Repositories,
    author: AuthorNumber,
    /// Its author is blocked: it is remembered, and wanted of no relay.
    pub(super) muted: bool,
}

/// The repositories that a root belongs to: of most, one.
#[derive(Debug)]
enum Repositories {
    One(RepoNumber),
    /// In order; none for a root that is gone, and whose slot is not yet empty.
    Many(Box<[RepoNumber]>),
}

impl Root {
    pub(super) fn repositories(&self) -> &[RepoNumber] {
        match &self.repositories {
            Repositories::One(repo) => std::slice::from_ref(repo),
            Repositories::Many(repos) => repos,
        }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.repositories().is_empty()
    }

    fn set_repositories(&mut self, mut repos: Vec<RepoNumber>) {
        repos.sort_unstable();
        self.repositories = match repos[..] {
            [repo] => Repositories::One(repo),
            _ => Repositories::Many(repos.into()),
        };
    }
}

/// A root as an event tells of it.
#[derive(Debug)]
pub(in crate::discover) struct NewRoot {
    pub(in crate::discover) id: [u8; 32],
    pub(in crate::discover) author: [u8; 32],
    /// Seconds since 1970.
    pub(in crate::discover) created_at: u64,
    /// Each once.
    pub(in crate::discover) repositories: Vec<Address>,
}

impl Index {
    /// Does the root with this id belong to an accepted repository?
    pub(in crate::discover) fn is_accepted_root(&self, id: &[u8; 32]) -> bool {
        self.accepted_repositories_of_root(id).next().is_some()
    }

    pub(in crate::discover) fn accepted_repositories_of_root(&self, id: &[u8; 32]) -> impl Iterator<Item = &Address> {
        let root = self.find_root(id).filter(|root| !self.roots[*root].muted);
        let repos = root.map_or(&[][..], |root| self.roots[root].repositories());
        repos.iter().filter(|repo| self.repositories[**repo].accepted).map(|repo| self.repositories.key(*repo))
    }

    /// The author of the root with this id.
    pub(in crate::discover) fn root_author(&self, id: &[u8; 32]) -> Option<&[u8; 32]> {
        let root = self.find_root(id).filter(|root| !self.roots[*root].is_spent())?;
        Some(self.authors.key(self.roots[root].author))
    }

    fn find_root(&self, id: &[u8; 32]) -> Option<RootNumber> {
        self.root_ids.find(id, |root| self.roots.get(root).is_some_and(|body| body.id == *id))
    }

    /// Takes a root that is held.
    pub(in crate::discover) fn add_root(&mut self, new: &NewRoot) {
        if new.repositories.is_empty() {
            return;
        }
        let root = match self.find_root(&new.id).filter(|root| !self.roots[*root].is_spent()) {
            Some(root) => root,
            None if self.live.roots >= self.config.roots_max => {
                self.counters.roots_refused += 1;
                return;
            }
            None => self.begin_root(new),
        };
        for address in &new.repositories {
            let repo = self.find_or_insert_repository(address);
            self.join(root, repo);
        }
        if self.roots[root].is_spent() {
            self.end_root(root);
        }
        self.drop_orphans();
    }

    /// The root with this id is gone.
    pub(in crate::discover) fn remove_root(&mut self, id: &[u8; 32]) {
        if let Some(root) = self.find_root(id) {
            self.remove_root_number(root);
        }
    }

    /// What this author dated until this second is gone.
    pub(in crate::discover) fn remove_roots_of(&mut self, author: &[u8; 32], until_secs: u64) {
        let Some(author) = self.authors.find(author) else { return };
        let is_gone = |root: &RootNumber| self.roots[*root].created_at <= until_secs;
        let gone: Vec<RootNumber> = self.author_roots.of(author).filter(is_gone).collect();
        for root in gone {
            self.remove_root_number(root);
        }
    }

    /// Looks again whether this author is blocked.
    pub(super) fn mute_or_unmute(&mut self, key: &[u8; 32]) {
        let Some(author) = self.authors.find(key) else { return };
        let muted = self.config.block_authors.contains(key);
        let roots: Vec<RootNumber> = self.author_roots.of(author).collect();
        for root in roots {
            self.change(root, |body| body.muted = muted);
        }
    }

    /// A root without repositories yet, in a slot that an earlier one with this id may have left.
    fn begin_root(&mut self, new: &NewRoot) -> RootNumber {
        let body = Root {
            id: new.id,
            created_at: new.created_at,
            repositories: Repositories::Many(Box::default()),
            author: self.hold_author(&new.author),
            muted: self.config.block_authors.contains(&new.author),
        };
        let author = body.author;
        let root = match self.find_root(&new.id) {
            Some(root) => {
                self.roots[root] = body;
                root
            }
            None => {
                let root = self.roots.insert(body);
                self.root_ids.insert(&new.id, root);
                root
            }
        };
        self.author_roots.insert(author, root);
        self.live.roots += 1;
        root
    }

    /// A root that has lost its last repository.
    fn end_root(&mut self, root: RootNumber) {
        let author = self.roots[root].author;
        self.author_roots.remove(author, root);
        self.release_author(author);
        self.live.roots -= 1;
        self.spent.roots.push(root);
    }

    fn remove_root_number(&mut self, root: RootNumber) {
        for repo in self.roots[root].repositories().to_vec() {
            self.part(root, repo);
        }
    }

    fn join(&mut self, root: RootNumber, repo: RepoNumber) {
        if self.roots[root].repositories().contains(&repo) {
            return;
        }
        if self.repositories[repo].roots as usize >= self.config.roots_per_repository_max {
            self.counters.roots_refused_by_repository += 1;
            self.wait_or_not(repo);
            return;
        }
        self.repository_roots.insert(repo, root);
        let mut repos = self.roots[root].repositories().to_vec();
        repos.push(repo);
        self.change(root, |body| body.set_repositories(repos));
        self.count_root(repo, true);
    }

    /// A root does not belong to a repository any more; with its last one it is gone.
    pub(super) fn part(&mut self, root: RootNumber, repo: RepoNumber) {
        let mut repos = self.roots[root].repositories().to_vec();
        repos.retain(|other| *other != repo);
        self.change(root, |body| body.set_repositories(repos));
        self.repository_roots.remove(repo, root);
        if self.roots[root].is_spent() {
            self.end_root(root);
        }
        self.count_root(repo, false);
    }

    /// Changes a root, and what is wanted of relays with it.
    fn change(&mut self, root: RootNumber, change: impl FnOnce(&mut Root)) {
        let before = self.relays_of(root);
        change(&mut self.roots[root]);
        let after = self.relays_of(root);
        for relay in before.iter().filter(|relay| !after.contains(relay)) {
            self.toggle(*relay, Want::Root(root), false);
        }
        for relay in after.iter().filter(|relay| !before.contains(relay)) {
            self.toggle(*relay, Want::Root(root), true);
        }
    }

    /// The active relays that a root is wanted of.
    fn relays_of(&self, root: RootNumber) -> Vec<RelayNumber> {
        let root = &self.roots[root];
        if root.muted {
            return Vec::new();
        }
        let listed = root.repositories().iter().flat_map(|repo| self.repositories[*repo].relays_if_accepted());
        let mut relays: Vec<RelayNumber> = listed.copied().filter(|relay| self.relays[*relay].is_active).collect();
        relays.sort_unstable();
        relays.dedup();
        relays
    }
}

#[cfg(test)]
mod tests {
    use super::Root;

    #[test]
    fn a_root_is_small() {
        assert_eq!(size_of::<Option<Root>>(), 64);
    }
}
