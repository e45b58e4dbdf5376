//! Signed events for tests, from keys of fixed bytes.

use std::sync::OnceLock;

use relaysync::ingest::{Verified, verify};
use relaysync::protocol::{Event, hex};
use secp256k1::{Keypair, Secp256k1, SecretKey, SignOnly};

pub(crate) const NOW_SECS: u64 = 1_700_000_000;

/// An event to be signed.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    author: u8,
    kind: u16,
    created_at: u64,
    tags: Vec<Vec<String>>,
    content: String,
}

/// A text note of author 1.
pub(crate) fn note(created_at: u64) -> Draft {
    Draft { author: 1, kind: 1, created_at, tags: Vec::new(), content: "a note".into() }
}

impl Draft {
    pub(crate) fn by(self, author: u8) -> Self {
        Self { author, ..self }
    }

    pub(crate) fn kind(self, kind: u16) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn content(self, content: impl Into<String>) -> Self {
        Self { content: content.into(), ..self }
    }

    pub(crate) fn tag(mut self, name: &str, value: &str) -> Self {
        self.tags.push(vec![name.into(), value.into()]);
        self
    }

    pub(crate) fn bare_tag(mut self, name: &str) -> Self {
        self.tags.push(vec![name.into()]);
        self
    }

    pub(crate) fn sign(&self) -> Event {
        let Self { author, kind, created_at, tags, content } = self;
        let pubkey = hex::encode(&keypair(*author).x_only_public_key().0.serialize());
        let hashed = serde_json::to_vec(&(0, &pubkey, created_at, kind, tags, content)).unwrap();
        let id = bitcoin_hashes::sha256::Hash::hash(&hashed).to_byte_array();
        let signature = secp().sign_schnorr_no_aux_rand(&id, &keypair(*author)).to_byte_array();
        // A space more than needed: the bytes must be passed on as they came.
        let json = format!(
            r#"{{"id":"{}", "pubkey":"{pubkey}","created_at":{created_at},"kind":{kind},"tags":{},"content":{},"sig":"{}"}}"#,
            hex::encode(&id),
            serde_json::to_string(tags).unwrap(),
            serde_json::to_string(content).unwrap(),
            hex::encode(&signature),
        );
        Event::parse(json.into()).unwrap()
    }

    pub(crate) fn verified(&self) -> Verified<Event> {
        verify(self.sign()).unwrap()
    }
}

/// Notes at these times, all different.
pub(crate) fn notes(times: impl IntoIterator<Item = u64>) -> Vec<Event> {
    times.into_iter().enumerate().map(|(number, at)| note(at).content(format!("note {number}")).sign()).collect()
}

fn secp() -> &'static Secp256k1<SignOnly> {
    static SECP: OnceLock<Secp256k1<SignOnly>> = OnceLock::new();
    SECP.get_or_init(Secp256k1::signing_only)
}

fn keypair(author: u8) -> Keypair {
    Keypair::from_secret_key(secp(), &SecretKey::from_slice(&[author; 32]).unwrap())
}
