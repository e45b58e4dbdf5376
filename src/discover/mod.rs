//! From what is held to what is wanted: which repositories are ours (NIP-34), and which relays are to have what of them.
//!
//! [`Discovery`] observes accepted events and keeps the index of repositories. For each relay that accepted
//! repositories list it hands out, as differences, what is wanted of that relay: the announcements, the repositories
//! that list it, and the issues, patches and pull requests of those. Changes are collected for a window that begins
//! with the first of them. What is wanted depends on which events were observed and not on their order, unless a bound
//! bites.
//!
//! ```
//! use relaysync::discover::{DiscoverConfig, Discovery};
//! use relaysync::plan::Interest;
//! use relaysync::protocol::RelayUrl;
//! use relaysync::runtime::Instant;
//!
//! let bootstrap = RelayUrl::parse("wss://relay.example").unwrap();
//! let config = DiscoverConfig { bootstrap: vec![bootstrap.clone()], ..DiscoverConfig::default() };
//! let mut discovery = Discovery::new(config, Instant::ZERO);
//! let changes = discovery.poll(Instant::ZERO);
//! assert_eq!((&changes[0].relay, &changes[0].added[..]), (&bootstrap, &[Interest::Announcements][..]));
//! ```

mod announcement;
mod arena;
mod changes;
mod config;
mod counters;
#[cfg(test)]
mod draft;
mod index;
mod judge;
mod layer_one;
mod memory;
mod place;
mod recent;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use config::{Accept, DiscoverConfig, Rules};
pub use counters::{DiscoveryCounters, DiscoverySizes};
pub use index::{RelayStatus, RepositoryStatus};
pub use judge::Objection;
pub(crate) use layer_one::{LayerOne, layer_one_of};
pub use place::{is_private_address, service_url};

use self::announcement::{Announcement, first_values, identifier};
use self::index::{Index, NewRoot};
use self::memory::{Promises, Reference, References, references};
use self::requests::{KIND_DELETION, KIND_VANISH, Tombstones};
use crate::plan::Interest;
use crate::protocol::{Address, Event, RelayUrl};
use crate::runtime::Instant;

/// Kinds of issues, patches and pull requests (NIP-34).
pub const ROOT_KINDS: [u16; 3] = [1617, 1618, 1621];
const KIND_STATE: u16 = 30618;
const KIND_GRASP_LIST: u16 = 10317;

/// What has changed for one relay since the last batch. An interest in both lists was not wanted for a while, in which
/// what came for it was refused: it is begun anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetChange {
    /// The relay.
    pub relay: RelayUrl,
    /// What is wanted of it from now on.
    pub added: Vec<Interest>,
    /// What is wanted of it no more.
    pub removed: Vec<Interest>,
}

impl TargetChange {
    fn of(relay: RelayUrl) -> Self {
        Self { relay, added: Vec::new(), removed: Vec::new() }
    }
}

/// The repository index, and what follows from it.
#[derive(Debug)]
pub struct Discovery {
    index: Index,
    tombstones: Tombstones,
    references: References,
    promises: Promises,
    /// The end of the batch window.
    due: Option<Instant>,
}

impl Discovery {
    /// The kinds that [`Discovery::observe`] has to see of what was held before it began: announcements, issues,
    /// patches and pull requests. They may come in any order; with the announcements first, nothing has to wait.
    /// Requests to delete and to vanish matter when they are new: a store holds nothing of what they removed.
    pub const KINDS: [u16; 4] = [Address::REPOSITORY, ROOT_KINDS[0], ROOT_KINDS[1], ROOT_KINDS[2]];

    /// Does [`Discovery::observe`] look at events of this kind?
    pub fn observes(kind: u16) -> bool {
        Self::KINDS.contains(&kind) || kind == KIND_DELETION || kind == KIND_VANISH
    }

    /// Nothing is known but the bootstrap relays, which are due at once.
    pub fn new(config: DiscoverConfig, now: Instant) -> Self {
        let index = Index::new(config);
        let due = index.has_changes().then_some(now);
        let (tombstones, references, promises) = (Tombstones::new(), References::new(), Promises::new());
        Self { index, tombstones, references, promises, due }
    }

    /// The configuration.
    pub fn config(&self) -> &DiscoverConfig {
        &self.index.config
    }

    /// Takes a new configuration and derives anew what follows from it. The differences come with the next batch.
    pub fn reconfigure(&mut self, config: DiscoverConfig, now: Instant) {
        self.promises = Promises::new();
        self.index.reconfigure(config);
        self.look_at_window(now);
    }

    /// Takes note of an event that is held: genuine, and accepted by whoever stored it. Repeating it changes nothing.
    pub fn observe(&mut self, event: &Event, now: Instant) {
        match event.kind_number() {
            Address::REPOSITORY => self.observe_announcement(event),
            KIND_DELETION | KIND_VANISH => self.tombstones.obey(event, &mut self.index),
            kind if ROOT_KINDS.contains(&kind) => self.observe_root(event),
            _ => return,
        }
        self.look_at_window(now);
    }

    fn observe_announcement(&mut self, event: &Event) {
        self.index.counters.announcements += 1;
        let Some(announcement) = Announcement::read(event, &self.index.config) else {
            self.index.counters.identifiers_too_long += 1;
            return;
        };
        self.promises.keep_announcement(&announcement);
        if self.tombstones.names(event) {
            self.tombstones.bury_version(&announcement.address, announcement.version, &mut self.index);
        }
        let (address, version) = (&announcement.address, announcement.version);
        if self.tombstones.cover(event) || self.tombstones.cover_version(address, version) {
            return;
        }
        self.index.announce(&announcement);
        if self.index.is_accepted(address) {
            self.note_references(event);
        }
    }

    fn observe_root(&mut self, event: &Event) {
        self.index.counters.roots += 1;
        let (root, skipped) = read_root(event, &self.index.config);
        self.index.counters.root_repositories_skipped += skipped;
        self.promises.keep_root(&root);
        if self.tombstones.cover(event) {
            return;
        }
        self.index.add_root(&root);
        if self.index.is_accepted_root(&root.id) {
            self.note_references(event);
        }
    }

    fn note_references(&mut self, event: &Event) {
        let Index { config, counters, .. } = &mut self.index;
        self.references.note(event, config, counters);
    }

    /// The window begins with the first change and does not begin again with each; it ends early if all has been undone.
    fn look_at_window(&mut self, now: Instant) {
        if !self.index.has_changes() {
            self.due = None;
        } else if self.due.is_none() {
            self.due = Some(now + self.index.config.batch_window);
        }
    }

    /// When [`Discovery::poll`] has something to give.
    pub fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// The next batch, if its window has ended: at most one change a relay. When there are too many interests for one
    /// batch, the next is due at once.
    pub fn poll(&mut self, now: Instant) -> Vec<TargetChange> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        let batch = self.index.take_changes(self.index.config.batch_interests_max);
        if !self.index.has_changes() {
            self.due = None;
        }
        self.count(&batch);
        batch
    }

    /// Everything that has changed, whether its window has ended or not.
    pub fn flush(&mut self) -> Vec<TargetChange> {
        let batch = self.index.take_changes(usize::MAX);
        self.due = None;
        self.count(&batch);
        batch
    }

    fn count(&mut self, batch: &[TargetChange]) {
        let counters = &mut self.index.counters;
        counters.batches += u64::from(!batch.is_empty());
        counters.interests_added += batch.iter().map(|change| change.added.len() as u64).sum::<u64>();
        counters.interests_removed += batch.iter().map(|change| change.removed.len() as u64).sum::<u64>();
    }

    /// Everything wanted of a relay now, whether it was handed out or not; nothing for one that is no target.
    pub fn interests_of(&self, relay: &RelayUrl) -> Vec<Interest> {
        self.index.interests_of(relay)
    }

    /// The accepted repositories that an event is about: its own, if it is an announcement; its author's or those that
    /// name its author a maintainer, if it is a state; those that it refers to; and those of the issues, patches and
    /// pull requests that it refers to.
    pub fn repositories_of(&self, event: &Event) -> BTreeSet<Address> {
        let (kind, author) = (event.kind_number(), event.pubkey.to_bytes());
        let mut found = BTreeSet::new();
        if matches!(kind, Address::REPOSITORY | KIND_STATE) {
            found.insert(Address::repository(author, identifier(event)));
        }
        if kind == KIND_STATE {
            found.extend(self.index.maintained(identifier(event), &author).into_iter().cloned());
        }
        for reference in references(event, &self.index.config) {
            match reference {
                Reference::Address(address) => found.extend([address]),
                Reference::Id(id) => {
                    found.extend(self.index.accepted_repositories_of_root(&id).cloned());
                    found.extend(self.index.accepted_announcement(&id).cloned());
                }
            }
        }
        found.retain(|address| self.index.is_accepted(address));
        found
    }

    /// Every repository with an announcement.
    pub fn repositories(&self) -> impl Iterator<Item = RepositoryStatus> {
        self.index.repository_status()
    }

    /// Every relay that is a target or waits to be one.
    pub fn relays(&self) -> impl Iterator<Item = RelayStatus> {
        self.index.relay_status()
    }

    /// One of those relays.
    pub fn relay(&self, url: &RelayUrl) -> Option<RelayStatus> {
        self.index.status_of_relay(url)
    }

    /// What has been seen so far.
    pub fn counters(&self) -> DiscoveryCounters {
        self.index.counters
    }

    /// How much is held.
    pub fn sizes(&self) -> DiscoverySizes {
        DiscoverySizes { references: self.references.len(), promises: self.promises.len(), ..self.index.sizes() }
    }
}

/// Reads an issue, patch or pull request, and counts the repositories that were too many.
fn read_root(event: &Event, config: &DiscoverConfig) -> (NewRoot, u64) {
    let addresses = first_values(event, "a")
        .filter_map(|value| Address::parse(value).ok())
        .filter(|address| address.kind == Address::REPOSITORY)
        .filter(|address| address.identifier.len() <= config.identifier_bytes_max);
    let (mut repositories, mut skipped) = (Vec::new(), 0);
    for address in addresses {
        if repositories.len() >= config.repositories_per_root_max {
            skipped += 1;
        } else if !repositories.contains(&address) {
            repositories.push(address);
        }
    }
    let (id, author) = (event.id.to_bytes(), event.pubkey.to_bytes());
    (NewRoot { id, author, created_at: event.created_at_secs(), repositories }, skipped)
}
