//! The one way of an event into the store: match → dedup → verify → policy → batch.

mod keep;
mod pipeline;
pub(crate) mod signature;
mod verify;

pub use keep::Keep;
pub use pipeline::{Admission, Outcomes, Pipeline, Settled, Source, Work};
pub use verify::{Invalid, Verdict, Verified, verify};
