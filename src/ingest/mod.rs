//! The one way of an event into the store: match → dedup → verify → policy → batch.

mod pipeline;
mod verify;

pub use pipeline::{Keep, Outcomes, Pipeline, Settled, Source, Work};
pub use verify::{Invalid, Verdict, Verified, verify};
