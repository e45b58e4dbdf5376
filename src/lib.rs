//! relaysync (draft)
pub mod ingest;
pub mod protocol;
pub mod runtime;
pub mod serve;
pub mod store;
