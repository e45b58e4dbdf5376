//! The native runtime.

pub mod store;
//! The native runtime: tokio, sockets, threads.

mod clock;
pub mod program;
pub mod serve;

pub use clock::NativeClock;
