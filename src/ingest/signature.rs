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
    Signed::of(event).is_genuine()
}

#[cfg(all(feature = "browser", target_family = "wasm"))]
pub(crate) use pure::Signed;

#[cfg(all(feature = "browser", target_family = "wasm"))]
mod pure {
    use k256::schnorr::{Signature, VerifyingKey};

    use crate::protocol::Event;

    /// What a signature is over, and by whom it is said to be.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Signed<'a> {
        /// The event's id.
        pub(crate) id: &'a [u8; 32],
        /// The author's key.
        pub(crate) author: &'a [u8; 32],
        /// The signature.
        pub(crate) signature: &'a [u8; 64],
    }

    impl<'a> Signed<'a> {
        /// The signature of `event`.
        pub(crate) fn of(event: &'a Event) -> Self {
            Self { id: event.id.as_bytes(), author: event.pubkey.as_bytes(), signature: event.sig.as_bytes() }
        }

        /// Is it the author's?
        pub(crate) fn is_genuine(self) -> bool {
            let key = VerifyingKey::from_slice(self.author);
            let signature = Signature::try_from(&self.signature[..]);
            matches!((key, signature), (Ok(key), Ok(signature)) if key.verify_raw(self.id, &signature).is_ok())
        }
    }
}
