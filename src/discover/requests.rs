//! Requests to delete (NIP-09) and to vanish (NIP-62): what they name, and the memory of them.

use super::announcement::{Version, decode_32, first_values};
use super::recent::Recent;
use super::{DiscoverConfig, Index};
use crate::protocol::{Address, Event, RelayUrl};

pub(super) const KIND_DELETION: u16 = 5;
pub(super) const KIND_VANISH: u16 = 62;
const ALL_RELAYS: &str = "ALL_RELAYS";

/// What has been removed, in case it comes after the request.
#[derive(Debug)]
pub(super) struct Tombstones {
    /// By id and author.
    ids: Recent<([u8; 32], [u8; 32])>,
    /// Versions of announcements, up to this one.
    addresses: Recent<Address, Version>,
    /// Everything by an author, up to this second since 1970.
    authors: Recent<[u8; 32], u64>,
}

impl Tombstones {
    pub(super) fn new() -> Self {
        Self { ids: Recent::new(), addresses: Recent::new(), authors: Recent::new() }
    }

    /// Was this event of `author` removed by its id, or with all that the author had?
    pub(super) fn cover(&self, event: &Event) -> bool {
        let author = event.pubkey.to_bytes();
        self.names(event) || self.authors.get(&author).is_some_and(|until| event.created_at_secs() <= *until)
    }

    /// Was this event of `author` removed by its id?
    pub(super) fn names(&self, event: &Event) -> bool {
        self.ids.contains(&(event.id.to_bytes(), event.pubkey.to_bytes()))
    }

    /// Was this version of an announcement removed with others?
    pub(super) fn cover_version(&self, address: &Address, version: Version) -> bool {
        self.addresses.get(address).is_some_and(|until| version <= *until)
    }

    /// Versions up to this one are gone.
    pub(super) fn bury_version(&mut self, address: &Address, until: Version, index: &mut Index) {
        let until = self.addresses.get(address).map_or(until, |known| until.max(*known));
        let entries_max = index.config.tombstones_max;
        index.counters.tombstones_dropped += self.addresses.insert(address.clone(), until, entries_max);
        index.withdraw(address, until);
    }

    /// Does what a request demands.
    pub(super) fn obey(&mut self, request: &Event, index: &mut Index) {
        index.counters.requests += 1;
        match request.kind_number() {
            KIND_DELETION => self.delete(request, index),
            KIND_VANISH if concerns_us(request, index) => self.vanish(request, index),
            _ => {}
        }
    }

    fn delete(&mut self, request: &Event, index: &mut Index) {
        let author = request.pubkey.to_bytes();
        for id in first_values(request, "e").filter_map(decode_32) {
            self.delete_id(id, author, index);
        }
        for address in own_repositories(request, &index.config) {
            self.bury_version(&address, Version::last_of(request.created_at_secs()), index);
        }
    }

    fn delete_id(&mut self, id: [u8; 32], author: [u8; 32], index: &mut Index) {
        let entries_max = index.config.tombstones_max;
        index.counters.tombstones_dropped += self.ids.insert((id, author), (), entries_max);
        if index.root_author(&id) == Some(&author) {
            index.remove_root(&id);
        }
        let announced = index.announcement_at(&id).filter(|address| address.author == author).cloned();
        if let Some(address) = announced
            && let Some(version) = index.version(&address)
        {
            self.bury_version(&address, version, index);
        }
    }

    fn vanish(&mut self, request: &Event, index: &mut Index) {
        let author = request.pubkey.to_bytes();
        let until = self.authors.get(&author).map_or(0, |until| *until).max(request.created_at_secs());
        let entries_max = index.config.tombstones_max;
        index.counters.tombstones_dropped += self.authors.insert(author, until, entries_max);
        index.remove_roots_of(&author, until);
        for address in index.announced_by(&author) {
            index.withdraw(&address, Version::last_of(until));
        }
    }
}

/// Is this request to vanish addressed to us?
pub(super) fn concerns_us(request: &Event, index: &Index) -> bool {
    first_values(request, "relay")
        .any(|relay| relay == ALL_RELAYS || RelayUrl::parse(relay).is_ok_and(|url| index.is_own(&url)))
}

/// The repositories that an author's own request to delete names.
pub(super) fn own_repositories(request: &Event, config: &DiscoverConfig) -> Vec<Address> {
    let author = request.pubkey.to_bytes();
    first_values(request, "a")
        .filter_map(|value| Address::parse(value).ok())
        .filter(|address| address.kind == Address::REPOSITORY && address.author == author)
        .filter(|address| address.identifier.len() <= config.identifier_bytes_max)
        .collect()
}
