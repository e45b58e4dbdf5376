//! Signatures (BIP-340): by libsecp256k1 natively, by k256 in browsers, where the former would be half of the download.

use crate::protocol::Event;

/// Is the signature the author's over the id? The id is taken as it is.
#[cfg(not(all(feature = "browser", target_family = "wasm")))]
pub(super) fn is_genuine(event: &Event) -> bool {
    event.verify_signature()
}

/// Is the signature the author's over the id? The id is taken as it is.
#[cfg(all(feature = "browser", target_family = "wasm"))]
pub(super) fn is_genuine(event: &Event) -> bool {
    signed(event).is_genuine()
}

/// What is signed of `event`.
#[cfg(all(feature = "browser", target_family = "wasm"))]
pub(crate) fn signed(event: &Event) -> super::schnorr::Signed<'_> {
    super::schnorr::Signed { id: event.id.as_bytes(), author: event.pubkey.as_bytes(), signature: event.sig.as_bytes() }
}
