//! Repositories: their announcements, and whether they are accepted.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Index;
use crate::discover::announcement::{Announcement, Version};
use crate::discover::arena::{AuthorNumber, Number, RelayNumber, RepoNumber};
use crate::protocol::Address;

/// An address that an announcement was made for, or that roots name.
#[derive(Debug)]
pub(super) struct Repository {
    pub(super) author: AuthorNumber,
    announced: Option<Announced>,
    pub(super) accepted: bool,
    /// How many issues, patches and pull requests name it.
    pub(super) roots: u32,
    /// When it began to wait for an announcement, if it does.
    orphan_since: Option<u64>,
}

impl Repository {
    pub(super) fn is_spent(&self) -> bool {
        self.announced.is_none() && self.roots == 0
    }

    /// The relays that are to have what belongs to it, unless they are no targets.
    pub(super) fn relays_if_accepted(&self) -> &[RelayNumber] {
        match &self.announced {
            Some(announced) if self.accepted => &announced.relays,
            _ => &[],
        }
    }

    pub(super) fn relays(&self) -> &[RelayNumber] {
        self.announced.as_ref().map_or(&[], |announced| &announced.relays)
    }

    pub(super) fn is_announced(&self) -> bool {
        self.announced.is_some()
    }
}

/// What is kept of an announcement.
#[derive(Debug, Clone)]
struct Announced {
    version: Version,
    /// Each once.
    relays: Box<[RelayNumber]>,
    maintainers: Box<[AuthorNumber]>,
}

impl Index {
    /// The version of the announcement held.
    pub(in crate::discover) fn version(&self, address: &Address) -> Option<Version> {
        let repo = self.repositories.find(address)?;
        self.repositories[repo].announced.as_ref().map(|announced| announced.version)
    }

    pub(in crate::discover) fn is_accepted(&self, address: &Address) -> bool {
        self.repositories.find(address).is_some_and(|repo| self.repositories[repo].accepted)
    }

    /// Is there no room for one more?
    pub(in crate::discover) fn is_full(&self) -> bool {
        self.live.accepted >= self.config.repositories_max
    }

    /// Does the configuration accept this announcement?
    pub(in crate::discover) fn accepts(&self, announcement: &Announcement) -> bool {
        let lists_us = announcement.relays.iter().any(|url| self.is_own(url));
        self.config.accepts(&announcement.address, lists_us)
    }

    /// The accepted repositories with this identifier that name this maintainer.
    pub(in crate::discover) fn maintained(&self, identifier: &str, key: &[u8; 32]) -> Vec<&Address> {
        let Some(author) = self.authors.find(key) else { return Vec::new() };
        let begin = (Arc::from(identifier), author, RepoNumber::FIRST);
        let begun = self.maintainers.range(begin..);
        let named = begun.take_while(|(name, maintainer, _)| &**name == identifier && *maintainer == author);
        named.map(|(.., repo)| self.repositories.key(*repo)).collect()
    }

    /// Is this the author or a maintainer of an accepted repository?
    pub(in crate::discover) fn has_accepted(&self, key: &[u8; 32]) -> bool {
        self.authors.find(key).is_some_and(|author| self.authors[author].accepted > 0)
    }

    /// Whether an accepted repository has the announcement with this id.
    pub(in crate::discover) fn is_accepted_announcement(&self, id: &[u8; 32]) -> bool {
        self.find_announcement(id).is_some_and(|repo| self.repositories[repo].accepted)
    }

    /// The repository whose announcement has this id, with its author.
    pub(in crate::discover) fn announcement_at(&self, id: &[u8; 32]) -> Option<&Address> {
        self.find_announcement(id).map(|repo| self.repositories.key(repo))
    }

    fn find_announcement(&self, id: &[u8; 32]) -> Option<RepoNumber> {
        let is = |repo: RepoNumber| {
            self.repositories.has(repo)
                && self.repositories[repo].announced.as_ref().is_some_and(|announced| announced.version.id() == id)
        };
        self.announcement_ids.find(id, is)
    }

    /// Takes an announcement that is held, unless a newer one is.
    pub(in crate::discover) fn announce(&mut self, announcement: &Announcement) {
        self.counters.relay_urls_invalid += announcement.tally.urls_invalid;
        self.counters.relay_urls_skipped += announcement.tally.urls_skipped;
        self.counters.maintainers_skipped += announcement.tally.maintainers_skipped;
        if self.version(&announcement.address).is_some_and(|held| held >= announcement.version) {
            return;
        }
        let known = self.repositories.find(&announcement.address);
        let accepted = self.admits(known, self.accepts(announcement));
        let is_announced = known.is_some_and(|repo| self.repositories[repo].is_announced());
        if !accepted && !is_announced && self.live.dormant >= self.config.dormant_repositories_max {
            self.counters.dormant_refused += 1;
            return;
        }
        let repo = self.find_or_insert_repository(&announcement.address);
        let relays: BTreeSet<RelayNumber> = announcement.relays.iter().filter_map(|url| self.hold_relay(url)).collect();
        let announced = Announced {
            version: announcement.version,
            relays: relays.into_iter().collect(),
            maintainers: announcement.maintainers.iter().map(|key| self.hold_author(key)).collect(),
        };
        self.reshape(repo, |index| {
            index.forget_announcement(repo);
            index.remember_announcement(repo, announced);
            index.set_accepted(repo, accepted);
        });
    }

    /// The announcement is gone, if it was no newer than `until`.
    pub(in crate::discover) fn withdraw(&mut self, address: &Address, until: Version) {
        let Some(repo) = self.repositories.find(address) else { return };
        if self.repositories[repo].announced.as_ref().is_some_and(|announced| announced.version <= until) {
            self.reshape(repo, |index| index.forget_announcement(repo));
        }
    }

    /// The repositories that this author has announced.
    pub(in crate::discover) fn announced_by(&self, author: &[u8; 32]) -> Vec<Address> {
        let begun = self.repositories.from(Address::repository(*author, "")..);
        begun
            .take_while(|(address, _)| address.author == *author)
            .filter(|(_, repo)| self.repositories[*repo].is_announced())
            .map(|(address, _)| address.clone())
            .collect()
    }

    /// Decides about every announcement as the configuration would have it now. Those that leave make room first.
    pub(super) fn judge_repositories_anew(&mut self) {
        let wanted = |(repo, address, body): (RepoNumber, &Address, &Repository)| {
            let lists_us = body.relays().iter().any(|relay| self.is_own_number(*relay));
            let wanted = self.config.accepts(address, lists_us);
            (body.is_announced() && wanted != body.accepted).then_some((repo, wanted))
        };
        let (come, leave): (Vec<_>, Vec<_>) =
            self.repositories.iter().filter_map(wanted).partition(|(_, wanted)| *wanted);
        for (repo, wanted) in leave.into_iter().chain(come) {
            let accepted = self.admits(Some(repo), wanted);
            self.reshape(repo, |index| index.set_accepted(repo, accepted));
        }
    }

    pub(super) fn find_or_insert_repository(&mut self, address: &Address) -> RepoNumber {
        if let Some(repo) = self.repositories.find(address) {
            return repo;
        }
        let author = self.hold_author(&address.author);
        let new = Repository { author, announced: None, accepted: false, roots: 0, orphan_since: None };
        self.repositories.find_or_insert(address, || new)
    }

    /// Is a repository accepted that should be, or is there no room?
    fn admits(&mut self, known: Option<RepoNumber>, wanted: bool) -> bool {
        let is_accepted = known.is_some_and(|repo| self.repositories[repo].accepted);
        if wanted && !is_accepted && self.is_full() {
            self.counters.repositories_refused += 1;
            return false;
        }
        wanted
    }

    /// Changes a repository's announcement or whether it is accepted, and works out what follows.
    fn reshape(&mut self, repo: RepoNumber, change: impl FnOnce(&mut Self)) {
        let was_accepted = self.repositories[repo].accepted;
        let before = self.repositories[repo].relays_if_accepted().to_vec();
        change(self);
        let accepted = self.repositories[repo].accepted;
        let after = self.repositories[repo].relays_if_accepted().to_vec();
        self.counters.repositories_accepted += u64::from(accepted && !was_accepted);
        self.counters.repositories_left += u64::from(was_accepted && !accepted);
        for relay in before.iter().filter(|relay| !after.contains(relay)) {
            self.unlist(repo, *relay);
        }
        for relay in after.iter().filter(|relay| !before.contains(relay)) {
            self.list(repo, *relay);
        }
        self.wait_or_not(repo);
        self.drop_orphans();
    }

    fn remember_announcement(&mut self, repo: RepoNumber, announced: Announced) {
        self.announcement_ids.insert(announced.version.id(), repo);
        self.repositories[repo].announced = Some(announced);
        self.live.dormant += 1;
    }

    fn forget_announcement(&mut self, repo: RepoNumber) {
        self.set_accepted(repo, false);
        let Some(announced) = self.repositories[repo].announced.take() else { return };
        self.live.dormant -= 1;
        self.announcement_ids.remove(announced.version.id(), repo);
        announced.relays.iter().for_each(|relay| self.release_relay(*relay));
        announced.maintainers.iter().for_each(|author| self.release_author(*author));
    }

    fn set_accepted(&mut self, repo: RepoNumber, accepted: bool) {
        if std::mem::replace(&mut self.repositories[repo].accepted, accepted) == accepted {
            return;
        }
        if accepted {
            self.live.accepted += 1;
            self.live.dormant -= 1;
        } else {
            self.live.accepted -= 1;
            self.live.dormant += 1;
        }
        let announced = self.repositories[repo].announced.as_ref();
        let maintainers = announced.map_or_else(Box::default, |announced| announced.maintainers.clone());
        self.count_accepted(repo, &maintainers, accepted);
    }

    fn count_accepted(&mut self, repo: RepoNumber, maintainers: &[AuthorNumber], added: bool) {
        let owner = self.repositories[repo].author;
        for author in maintainers.iter().chain([&owner]) {
            let accepted = &mut self.authors[*author].accepted;
            *accepted = if added { *accepted + 1 } else { *accepted - 1 };
        }
        let identifier = &self.repositories.key(repo).identifier;
        for author in maintainers {
            let named = (identifier.clone(), *author, repo);
            if added {
                self.maintainers.insert(named)
            } else {
                self.maintainers.remove(&named)
            };
        }
    }

    /// A repository with roots and without an announcement waits.
    pub(super) fn wait_or_not(&mut self, repo: RepoNumber) {
        let body = &self.repositories[repo];
        let (roots, waits) = (body.roots, !body.is_announced() && body.roots > 0);
        match (body.orphan_since, waits) {
            (None, true) => {
                self.orphans_begun += 1;
                self.orphans.insert((self.orphans_begun, repo));
                self.repositories[repo].orphan_since = Some(self.orphans_begun);
                self.live.orphans += roots as usize;
            }
            (Some(since), false) => {
                self.orphans.remove(&(since, repo));
                self.repositories[repo].orphan_since = None;
                self.live.orphans -= roots as usize;
            }
            _ => {}
        }
        if self.repositories[repo].is_spent() {
            self.spent.repositories.push(repo);
        }
    }

    /// A root names this repository from now on, or does so no more.
    pub(super) fn count_root(&mut self, repo: RepoNumber, added: bool) {
        let body = &mut self.repositories[repo];
        let waits = body.orphan_since.is_some();
        if added {
            body.roots += 1;
            self.live.orphans += usize::from(waits);
        } else {
            body.roots -= 1;
            self.live.orphans -= usize::from(waits);
        }
        self.wait_or_not(repo);
    }

    /// Lets those go that have waited longest, if there are too many.
    pub(super) fn drop_orphans(&mut self) {
        while self.live.orphans > self.config.orphans_max {
            let Some((_, repo)) = self.orphans.first().copied() else { break };
            let roots: Vec<_> = self.repository_roots.of(repo).collect();
            self.counters.orphans_dropped += roots.len() as u64;
            for root in roots {
                self.part(root, repo);
            }
        }
    }
}
