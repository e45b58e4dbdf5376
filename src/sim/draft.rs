//! Signed events for tests, from keys of fixed bytes.

use nostr::event::{EventId, Kind, Signature, Tag, Tags};
use nostr::key::PublicKey;
use nostr::types::Timestamp;
use secp256k1::{Keypair, Secp256k1, SecretKey};

use crate::protocol::Event;

/// An event to be signed.
#[derive(Debug, Clone)]
pub struct Draft {
    author: u8,
    kind: u16,
    created_at: u64,
    tags: Vec<Vec<String>>,
    content: String,
}

/// A text note of author 1, dated `created_at` seconds since 1970.
pub fn note(created_at: u64) -> Draft {
    Draft { author: 1, kind: 1, created_at, tags: Vec::new(), content: String::new() }
}

/// Signed notes at these times, in seconds since 1970, all different.
pub fn notes(times: impl IntoIterator<Item = u64>) -> Vec<Event> {
    times.into_iter().enumerate().map(|(number, at)| note(at).content(format!("note {number}")).sign()).collect()
}

/// The key of an author.
pub fn key_of(author: u8) -> PublicKey {
    let secret = SecretKey::from_byte_array(&[author.max(1); 32]).expect("small numbers are keys");
    let pair = Keypair::from_secret_key(&Secp256k1::signing_only(), &secret);
    PublicKey::from_byte_array(pair.x_only_public_key().0.serialize())
}

impl Draft {
    /// By this author; 0 is none.
    #[must_use]
    pub fn by(self, author: u8) -> Self {
        Self { author: author.max(1), ..self }
    }

    /// Of this kind.
    #[must_use]
    pub fn kind(self, kind: u16) -> Self {
        Self { kind, ..self }
    }

    /// With this content.
    #[must_use]
    pub fn content(self, content: impl Into<String>) -> Self {
        Self { content: content.into(), ..self }
    }

    /// With one more tag.
    #[must_use]
    pub fn tag(mut self, name: &str, value: &str) -> Self {
        self.tags.push(vec![name.into(), value.into()]);
        self
    }

    /// With one more tag, of several values.
    #[must_use]
    pub fn tags(mut self, tag: &[String]) -> Self {
        self.tags.push(tag.to_vec());
        self
    }

    /// The event, with a genuine signature. The same draft gives the same bytes.
    ///
    /// # Panics
    /// A tag has no name.
    pub fn sign(&self) -> Event {
        let context = Secp256k1::signing_only();
        let secret = SecretKey::from_byte_array(&[self.author; 32]).expect("small numbers are keys");
        let pair = Keypair::from_secret_key(&context, &secret);
        let author = PublicKey::from_byte_array(pair.x_only_public_key().0.serialize());
        let (created_at, kind) = (Timestamp::from(self.created_at), Kind::from_u16(self.kind));
        let tags = self.tags.iter().map(|tag| Tag::parse(tag).expect("a tag has a name")).collect();
        let tags = Tags::from_list(tags);
        let id = EventId::compute(&author, &created_at, &kind, &tags, &self.content);
        let signature = context.sign_schnorr_no_aux_rand(id.as_bytes(), &pair).to_byte_array();
        let signature = Signature::from_byte_array(signature);
        nostr::event::Event::new(id, author, created_at, kind, tags, self.content.clone(), signature).into()
    }
}
