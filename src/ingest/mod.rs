//! The one way of an event into the store: match → dedup → verify → policy → batch.

mod keep;
#[cfg(any(test, all(feature = "browser", target_family = "wasm")))]
mod multiply;
mod pipeline;
#[cfg(any(test, all(feature = "browser", target_family = "wasm")))]
pub(crate) mod schnorr;
pub(crate) mod signature;
mod verify;

pub use keep::Keep;
pub use pipeline::{Admission, Outcomes, Pipeline, Settled, Source, Work};
pub use verify::{Invalid, Verdict, Verified, verify};
