//! What is remembered of accepted events beside the index: what they refer to, and which are on their way.

use std::sync::Arc;

use super::announcement::{Announcement, decode_32};
use super::counters::DiscoveryCounters;
use super::recent::Recent;
use super::{DiscoverConfig, NewRoot};
use crate::protocol::{Address, Event};

/// What accepted announcements and roots refer to.
#[derive(Debug)]
pub(super) struct References {
    ids: Recent<[u8; 32]>,
    addresses: Recent<Address>,
}

impl References {
    pub(super) fn new() -> Self {
        Self { ids: Recent::new(), addresses: Recent::new() }
    }

    /// Notes what an accepted event refers to.
    pub(super) fn note(&mut self, event: &Event, config: &DiscoverConfig, counters: &mut DiscoveryCounters) {
        let mut references = references(event, config);
        for reference in references.by_ref().take(config.references_per_event_max) {
            counters.references_dropped += match reference {
                Reference::Id(id) => self.ids.insert(id, (), config.references_max),
                Reference::Address(address) => self.addresses.insert(address, (), config.references_max),
            };
        }
        counters.references_skipped += references.count() as u64;
    }

    pub(super) fn has_id(&self, id: &[u8; 32]) -> bool {
        self.ids.contains(id)
    }

    pub(super) fn has_address(&self, address: &Address) -> bool {
        self.addresses.contains(address)
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len() + self.addresses.len()
    }
}

/// Something that an event refers to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference {
    Id([u8; 32]),
    Address(Address),
}

/// What `event` refers to: by `a`, `A`, `e`, `E` and `q` tags.
pub(super) fn references(event: &Event, config: &DiscoverConfig) -> impl Iterator<Item = Reference> {
    let identifier_bytes_max = config.identifier_bytes_max;
    event.tags.iter().filter_map(move |tag| {
        let value = tag.content()?;
        let address = || Address::parse(value).ok().filter(|address| address.identifier.len() <= identifier_bytes_max);
        match tag.kind() {
            "e" | "E" => decode_32(value).map(Reference::Id),
            "a" | "A" => address().map(Reference::Address),
            "q" => decode_32(value).map(Reference::Id).or_else(|| address().map(Reference::Address)),
            _ => None,
        }
    })
}

/// Announcements and roots that were judged good and are on their way into the store. They count as accepted until they
/// are observed, or until too many others follow.
#[derive(Debug)]
pub(super) struct Promises {
    ids: Recent<[u8; 32]>,
    addresses: Recent<Address>,
    /// By identifier.
    maintainers: Recent<(Arc<str>, [u8; 32])>,
    people: Recent<[u8; 32]>,
}

impl Promises {
    pub(super) fn new() -> Self {
        Self { ids: Recent::new(), addresses: Recent::new(), maintainers: Recent::new(), people: Recent::new() }
    }

    pub(super) fn make_root(&mut self, id: [u8; 32], entries_max: usize) -> u64 {
        self.ids.insert(id, (), entries_max)
    }

    /// Gives back how many older ones were forgotten.
    pub(super) fn make_announcement(&mut self, announcement: &Announcement, entries_max: usize) -> u64 {
        let address = &announcement.address;
        let mut forgotten = self.ids.insert(*announcement.version.id(), (), entries_max);
        forgotten += self.addresses.insert(address.clone(), (), entries_max);
        forgotten += self.people.insert(address.author, (), entries_max);
        for maintainer in &announcement.maintainers {
            forgotten += self.maintainers.insert((address.identifier.clone(), *maintainer), (), entries_max);
            forgotten += self.people.insert(*maintainer, (), entries_max);
        }
        forgotten
    }

    /// It has arrived: from now on the index says what it is.
    pub(super) fn keep_announcement(&mut self, announcement: &Announcement) {
        let address = &announcement.address;
        self.ids.remove(announcement.version.id());
        self.addresses.remove(address);
        self.people.remove(&address.author);
        for maintainer in &announcement.maintainers {
            self.maintainers.remove(&(address.identifier.clone(), *maintainer));
            self.people.remove(maintainer);
        }
    }

    pub(super) fn keep_root(&mut self, root: &NewRoot) {
        self.ids.remove(&root.id);
    }

    pub(super) fn has_id(&self, id: &[u8; 32]) -> bool {
        self.ids.contains(id)
    }

    pub(super) fn has_address(&self, address: &Address) -> bool {
        self.addresses.contains(address)
    }

    pub(super) fn has_maintainer(&self, identifier: &str, key: &[u8; 32]) -> bool {
        self.maintainers.contains(&(identifier.into(), *key))
    }

    pub(super) fn has_person(&self, key: &[u8; 32]) -> bool {
        self.people.contains(key)
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}
