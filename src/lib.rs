//! relaysync (draft)
pub mod ingest;
#[cfg(feature = "native")]
pub mod native;
pub mod protocol;
pub mod runtime;
pub mod store;
