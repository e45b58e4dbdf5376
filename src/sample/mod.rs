//! Generated events with genuine signatures, for the demo, for tests and for benchmarks.
//!
//! A seed decides everything: the same [`SampleConfig`] gives the same bytes on every machine. The events are of the
//! kinds that relays hold (notes, reactions, profiles in many versions, articles, repositories, deletions, …), refer
//! to each other, and carry the characters and the dates that make synchronisation hard.
//!
//! ```
//! use relaysync::sample::{Burst, Sample, SampleConfig};
//!
//! let config = SampleConfig { events: 100, burst: Some(Burst { second: 1_710_000_000, events: 40 }), ..SampleConfig::default() };
//! let events: Vec<_> = Sample::new(&config).collect();
//! assert_eq!(events.len(), 100);
//! assert!(events.iter().all(|event| event.verify().is_ok()));
//! ```

mod dice;
mod drafts;
#[cfg(feature = "native")]
mod many;
mod words;
pub mod world;

use nostr::event::{Event as Fields, Signature};
use nostr::key::PublicKey;
use secp256k1::{Keypair, Secp256k1, SecretKey, SignOnly};

use self::dice::Dice;
use self::drafts::{Draft, Drafts};
#[cfg(feature = "native")]
pub use self::many::{cached_jsonl, generate};
use crate::protocol::Event;

/// What to generate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleConfig {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// How many events in all, with those of the burst and of the future.
    pub events: usize,
    /// How many authors write them; at least 1.
    pub authors: usize,
    /// The earliest date, in seconds since 1970.
    pub from_secs: u64,
    /// The latest date but for the events of the future, in seconds since 1970.
    pub to_secs: u64,
    /// Many events in one second, if any.
    pub burst: Option<Burst>,
    /// How many events are dated after `to_secs`. For them to lie in the future, `to_secs` must be now.
    pub future_events: usize,
    /// By how much, in seconds, the events of the future are dated after `to_secs` at most.
    pub future_secs: u64,
    /// Which kinds to generate.
    pub kinds: SampleKinds,
}

impl Default for SampleConfig {
    /// 1,000 events of all kinds by 20 authors from the year 2024, without burst or future.
    fn default() -> Self {
        Self {
            seed: 1,
            events: 1_000,
            authors: 20,
            from_secs: 1_704_067_200,
            to_secs: 1_735_689_599,
            burst: None,
            future_events: 0,
            future_secs: 86_400,
            kinds: SampleKinds::Mixed,
        }
    }
}

/// Events that share one second. They are of regular kinds and nothing in the sample deletes them, so a store keeps
/// them all; no other event of the sample has that date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Their date, in seconds since 1970.
    pub second: u64,
    /// How many there are.
    pub events: usize,
}

/// Which kinds a sample has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleKinds {
    /// All: a store that does what NIP-01 and NIP-09 say keeps fewer events than were generated.
    Mixed,
    /// Neither replaceable nor addressable kinds nor deletions: a store keeps every event.
    Regular,
}

/// The events of a [`SampleConfig`], oldest first but for a few that repeat the date of an earlier version. Signing
/// takes about 50 µs an event; `generate` uses all cores.
pub struct Sample {
    drafts: Drafts,
    signer: Signer,
}

impl Sample {
    /// Derives the authors' keys; the events are made one by one, as they are asked for.
    pub fn new(config: &SampleConfig) -> Self {
        let mut dice = Dice::new(config.seed);
        let signer = Signer::new(config.authors.max(1), &mut dice);
        Self { drafts: Drafts::new(config, signer.authors(), dice), signer }
    }
}

impl Iterator for Sample {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.drafts.next().map(|draft| self.signer.sign(draft))
    }
}

/// The authors' keys.
struct Signer {
    context: Secp256k1<SignOnly>,
    keys: Vec<(Keypair, PublicKey)>,
}

impl Signer {
    fn new(authors: usize, dice: &mut Dice) -> Self {
        let context = Secp256k1::signing_only();
        let keys = (0..authors)
            .map(|_| {
                let secret = secret_key(dice);
                let pair = Keypair::from_secret_key(&context, &secret);
                let (public, _parity) = pair.x_only_public_key();
                (pair, PublicKey::from_byte_array(public.serialize()))
            })
            .collect();
        Self { context, keys }
    }

    fn authors(&self) -> Vec<PublicKey> {
        self.keys.iter().map(|(_, public)| *public).collect()
    }

    fn sign(&self, draft: Draft) -> Event {
        let (pair, public) = &self.keys[draft.author];
        // Without auxiliary randomness the signature is a function of key and id: the same sample, the same bytes.
        let signature = self.context.sign_schnorr_no_aux_rand(draft.id.as_bytes(), pair);
        let signature = Signature::from_byte_array(signature.to_byte_array());
        let Draft { id, created_at, kind, tags, content, .. } = draft;
        Fields::new(id, *public, created_at, kind, tags, content, signature).into()
    }
}

/// Nearly all 32 bytes are a key; draws again for the rest.
fn secret_key(dice: &mut Dice) -> SecretKey {
    loop {
        if let Ok(key) = SecretKey::from_byte_array(&dice.bytes()) {
            return key;
        }
    }
}

#[cfg(test)]
mod tests;
