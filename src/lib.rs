//! relaysync (draft)
pub mod ingest;
pub mod protocol;
pub mod runtime;
#[cfg(any(feature = "native", feature = "testing"))]
pub mod sample;
pub mod store;
