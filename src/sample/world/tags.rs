//! Tags as NIP-34, NIP-22 and NIP-18 want them.

use nostr::event::Tag;
use nostr::key::PublicKey;
use nostr::nips::nip19::ToBech32;

use crate::protocol::RelayUrl;

pub(super) fn tag<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Tag {
    Tag::parse(values.into_iter().map(Into::into)).expect("a tag with a name is well-formed")
}

/// What is referred to: an event, its author and its kind.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) id: String,
    pub(super) author: String,
    pub(super) kind: u16,
}

impl Target {
    /// The `e` tag with marker, as in NIP-10.
    pub(super) fn marked(&self, marker: &str) -> Tag {
        tag(["e", &self.id, "", marker])
    }

    pub(super) fn author(&self) -> Tag {
        tag(["p", &self.author])
    }

    /// The root of a comment (NIP-22).
    pub(super) fn as_root(&self) -> [Tag; 3] {
        [tag(["E", &self.id, "", &self.author]), tag(["K", &self.kind.to_string()]), tag(["P", &self.author])]
    }

    /// What a comment (NIP-22) answers.
    pub(super) fn as_parent(&self) -> [Tag; 3] {
        [tag(["e", &self.id, "", &self.author]), tag(["k", &self.kind.to_string()]), self.author()]
    }

    pub(super) fn quoted(&self) -> Tag {
        tag(["q", &self.id, "", &self.author])
    }
}

/// Where a GRASP server has a repository: `https://host/npub…/identifier.git`.
pub(super) fn clone_url(server: &RelayUrl, owner: &PublicKey, identifier: &str) -> String {
    let base = server.as_str().replacen("ws", "http", 1);
    let Ok(npub) = owner.to_bech32();
    format!("{base}/{npub}/{identifier}.git")
}
