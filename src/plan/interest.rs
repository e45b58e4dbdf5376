//! What is wanted of a relay.

use std::sync::Arc;

use super::Pack;
use crate::protocol::{Address, Filter};

/// The atom of all planning: one thing that is wanted of a relay.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interest {
    /// Layer 1: announcements and states of repositories, and lists of grasp servers (NIP-34 kinds 30617, 30618 and
    /// 10317).
    Announcements,
    /// Layer 2: whatever refers to a repository by its address, in `a`, `A` and `q` tags.
    Repo(Address),
    /// Layer 3: whatever refers to an issue, patch or pull request by its id, in `e`, `E` and `q` tags.
    Root([u8; 32]),
    /// Whatever satisfies this filter; what it means is the caller's affair.
    Opaque(Arc<Filter>),
}

impl Interest {
    /// What is fetched for this interest, if it is fetched by itself.
    pub fn packs(&self) -> Vec<Pack> {
        match self {
            Self::Announcements => vec![Pack::announcements()],
            Self::Repo(address) => Pack::of_repositories(vec![address.clone()]),
            Self::Root(id) => Pack::of_roots(vec![*id]),
            Self::Opaque(filter) => vec![Pack::opaque(filter.clone())],
        }
    }
}
