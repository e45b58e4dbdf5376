//! The native runtime: tokio's clock and tasks, the relay service, the store on disk, and the `relaysync` program.

mod clock;
pub mod program;
pub mod serve;
pub mod store;

pub use clock::NativeClock;
