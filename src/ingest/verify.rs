//! The only place that makes a [`Verified`].

use std::ops::Deref;

use super::signature;
use crate::protocol::Event;

/// Proof, by type, that the id and signature of an event were checked (or that somebody took the responsibility, see
/// [`Verified::trust`]). Only this module can make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// Gives the event back.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl Verified<Event> {
    /// Takes an event as genuine without checking it: for files that the operator trusts (`import --no-verify`).
    /// Never for anything that came from a relay or client.
    pub fn trust(event: Event) -> Self {
        Self(event)
    }

    /// Takes an event whose id and signature a runtime has checked one by one, the latter perhaps elsewhere.
    #[cfg(all(feature = "browser", target_family = "wasm"))]
    pub(crate) fn checked(event: Event) -> Self {
        Self(event)
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Why an event is not genuine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invalid {
    /// The id is not the hash of the contents.
    Id,
    /// The signature is not the author's over the id, or the author's key is none.
    Signature,
}

impl Invalid {
    /// What is wrong, in words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Id => "the id is not the hash of the event",
            Self::Signature => "the signature is not the author's",
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly every value is the large one (on 64 bits); a box each would cost more"
)]
pub enum Verdict {
    /// Genuine.
    Valid(Verified<Event>),
    /// Not genuine.
    Invalid(Invalid),
    /// Held already, or remembered as gone: found before the signature was checked, which it was not.
    Known,
}

/// Checks id and signature. About 75 µs of a core, natively.
pub fn verify(event: Event) -> Result<Verified<Event>, Invalid> {
    if !event.verify_id() {
        return Err(Invalid::Id);
    }
    if !signature::is_genuine(&event) {
        return Err(Invalid::Signature);
    }
    Ok(Verified(event))
}
