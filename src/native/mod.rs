//! The native runtime: tokio, sockets, threads.

pub mod program;
pub mod serve;
