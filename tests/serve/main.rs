//! The relay side: its rules on the bare state machine, and its behaviour on sockets.

mod auth;
mod events;
mod limits;
mod publishing;
mod reconciliation;
mod requests;
#[cfg(feature = "native")]
mod sockets;
mod world;
