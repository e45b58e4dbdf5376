//! Signed events.

use nostr::event::{Event, EventBuilder, FinalizeUnsignedEvent, Kind, Tag};
use nostr::key::Keys;
use secp256k1::Secp256k1;

const SECRETS: [&str; 2] = [
    "6b911fd37cdf5c81d4c0adb1ab7fa822ed253ab0ad9aa18d77257c88b29b718e",
    "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa",
];

/// An event of the first (0) or second (1) author.
pub(crate) fn event(author: usize, kind: u16, created_at: u64, content: &str) -> Event {
    let keys = Keys::parse(SECRETS[author]).unwrap();
    let unsigned = EventBuilder::new(Kind::from(kind), content)
        .tag(Tag::parse(["t", "test"]).unwrap())
        .custom_created_at(created_at.into())
        .finalize_unsigned(keys.public_key());
    let signature = keys.sign_schnorr_with_aux_rand(&Secp256k1::new(), unsigned.compute_id().as_bytes(), &[0; 32]);
    unsigned.add_signature(signature).unwrap()
}

pub(crate) fn json(event: &Event) -> String {
    serde_json::to_string(event).unwrap()
}

/// Notes at the seconds 1 to `count`, oldest first, one a line.
pub(crate) fn notes(count: u64) -> Vec<String> {
    (1..=count).map(|second| json(&event(0, 1, second, "note"))).collect()
}
