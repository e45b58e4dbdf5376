//! Events for the tests of this module: nobody here looks at their signatures.

use nostr::event::{EventId, Kind, Signature, Tag, Tags};
use nostr::key::PublicKey;
use nostr::types::Timestamp;

use crate::protocol::{Address, Event, hex};

pub(super) struct Draft {
    author: [u8; 32],
    kind: u16,
    created_at: u64,
    tags: Vec<Tag>,
    content: String,
}

/// An event of this author and kind, dated 1,000 seconds after 1970.
pub(super) fn draft(author: u8, kind: u16) -> Draft {
    Draft { author: [author; 32], kind, created_at: 1_000, tags: Vec::new(), content: String::new() }
}

/// An announcement that lists these relays.
pub(super) fn announcement(author: u8, identifier: &str, relays: &[&str]) -> Draft {
    let tag: Vec<&str> = std::iter::once(&"relays").chain(relays).copied().collect();
    draft(author, 30617).tag(&["d", identifier]).tag(&tag)
}

/// An issue of these repositories.
pub(super) fn issue(number: u8, repositories: &[&Address]) -> Draft {
    let issue = draft(90, 1621).content(&number.to_string());
    repositories.iter().fold(issue, |issue, address| issue.tag(&["a", &address.to_string()]))
}

/// The address of a repository.
pub(super) fn repo(author: u8, identifier: &str) -> Address {
    Address::repository([author; 32], identifier)
}

/// The id in hexadecimal.
pub(super) fn hex_id(event: &Event) -> String {
    hex::encode(event.id.as_bytes())
}

impl Draft {
    pub(super) fn at(self, created_at: u64) -> Self {
        Self { created_at, ..self }
    }

    pub(super) fn content(self, content: &str) -> Self {
        Self { content: content.into(), ..self }
    }

    pub(super) fn tag(mut self, values: &[&str]) -> Self {
        self.tags.push(Tag::parse(values.iter().copied()).expect("a tag has a name"));
        self
    }

    pub(super) fn event(self) -> Event {
        let author = PublicKey::from_byte_array(self.author);
        let (created_at, kind) = (Timestamp::from(self.created_at), Kind::from_u16(self.kind));
        let tags = Tags::from_list(self.tags);
        let id = EventId::compute(&author, &created_at, &kind, &tags, &self.content);
        let signature = Signature::from_byte_array([0; 64]);
        nostr::event::Event::new(id, author, created_at, kind, tags, self.content, signature).into()
    }
}
