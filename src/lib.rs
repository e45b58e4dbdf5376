//! relaysync (draft)
pub mod drive;
pub mod engine;
pub mod fetch;
pub mod ingest;
pub mod plan;
#[cfg(feature = "native")]
pub mod native;
pub mod protocol;
pub mod relay;
pub mod runtime;
pub mod serve;
#[cfg(any(feature = "native", feature = "testing"))]
pub mod sample;
pub mod store;
