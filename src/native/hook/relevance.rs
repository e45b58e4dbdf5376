//! Which repositories an event is news of.

use std::collections::BTreeSet;

use super::config::HookConfig;
use crate::protocol::{Address, Event, hex};

/// The kind of the states of repositories (NIP-34).
pub(super) const STATE: u16 = 30618;

/// What an event is news of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Relevance {
    /// The repositories that it names.
    pub(super) repositories: BTreeSet<Address>,
    /// It is a state of this address; repositories of other authors may follow it, too.
    pub(super) state: Option<Address>,
    /// Addresses passed over.
    pub(super) skipped: u64,
}

impl Relevance {
    /// Looks at `event`; nothing if its kind is no news.
    pub(super) fn of(event: &Event, config: &HookConfig) -> Self {
        let mut relevance = Self::default();
        if !config.kinds.contains(&event.kind_number()) {
            return relevance;
        }
        if matches!(event.kind_number(), Address::REPOSITORY | STATE) {
            let identifier = event.tags.iter().find_map(|tag| value(tag.as_slice(), &["d"])).unwrap_or_default();
            let own = Address::repository(event.pubkey.to_bytes(), identifier);
            if relevance.add(own.clone(), config) && event.kind_number() == STATE {
                relevance.state = Some(own);
            }
        }
        for text in event.tags.iter().filter_map(|tag| value(tag.as_slice(), &["a", "A"])) {
            if let Ok(address) = Address::parse(text)
                && address.kind == Address::REPOSITORY
            {
                relevance.add(address, config);
            }
        }
        relevance
    }

    fn add(&mut self, address: Address, config: &HookConfig) -> bool {
        let is_short = address.identifier.len() <= config.address_bytes_max;
        let has_room = self.repositories.len() < config.repositories_per_event_max;
        let is_taken = self.repositories.contains(&address) || is_short && has_room;
        if is_taken {
            self.repositories.insert(address);
        } else {
            self.skipped += 1;
        }
        is_taken
    }
}

/// Does this announcement name `author` as a maintainer?
pub(super) fn names_maintainer(announcement: &Event, author: &[u8; 32]) -> bool {
    let author = hex::encode(author);
    let lists = announcement.tags.iter().map(|tag| tag.as_slice()).filter(|tag| tag[0] == "maintainers");
    lists.flat_map(|tag| &tag[1..]).any(|key| *key == author)
}

/// The value of a tag with one of these names.
fn value<'t>(tag: &'t [String], names: &[&str]) -> Option<&'t str> {
    let name = tag.first()?;
    names.contains(&name.as_str()).then(|| tag.get(1).map(String::as_str))?
}
