//! relaysync (draft)
pub mod drive;
pub mod engine;
pub mod fetch;
pub mod ingest;
#[cfg(feature = "native")]
pub mod native;
pub mod plan;
pub mod protocol;
pub mod relay;
pub mod runtime;
#[cfg(any(feature = "native", feature = "testing"))]
pub mod sample;
pub mod serve;
#[cfg(feature = "testing")]
pub mod sim;
pub mod store;
