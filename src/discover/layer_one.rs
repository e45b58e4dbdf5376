//! What of the first layer belongs to a repository: versions of its announcement, its states, and the lists of grasp
//! servers of those that look after it.

use super::announcement::{Announcement, identifier};
use super::{Discovery, KIND_GRASP_LIST, KIND_STATE};
use crate::protocol::{Address, Event};

/// Versions of one event of the first layer, whatever they say.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LayerOne {
    kind: u16,
    author: [u8; 32],
    /// Empty for lists.
    identifier: Box<str>,
}

/// Of what an event of the first layer is a version.
pub(crate) fn layer_one_of(event: &Event) -> LayerOne {
    let kind = event.kind_number();
    let identifier = if kind == KIND_GRASP_LIST { "" } else { identifier(event) };
    LayerOne { kind, author: event.pubkey.to_bytes(), identifier: identifier.into() }
}

impl Discovery {
    /// What is wanted together with this event, if it announces an accepted repository; else nothing.
    pub(crate) fn layer_one_with(&self, event: &Event) -> Vec<LayerOne> {
        if event.kind_number() != Address::REPOSITORY {
            return Vec::new();
        }
        let accepted = Announcement::read(event, self.config()).filter(|one| self.index.is_accepted(&one.address));
        let Some(Announcement { address, maintainers, .. }) = accepted else { return Vec::new() };
        let of = |kind, author, identifier: &str| LayerOne { kind, author, identifier: identifier.into() };
        let mut wanted = vec![of(Address::REPOSITORY, address.author, &address.identifier)];
        for person in maintainers.into_iter().chain([address.author]) {
            wanted.push(of(KIND_STATE, person, &address.identifier));
            wanted.push(of(KIND_GRASP_LIST, person, ""));
        }
        wanted
    }
}
