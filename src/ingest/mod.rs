//! The one way of an event into the store: match → dedup → verify → policy → batch.

mod verify;

pub use verify::{Invalid, Verdict, Verified, verify};
