//! The relay side: its rules on the bare state machine, and its behaviour on sockets.

mod access;
mod auth;
#[cfg(feature = "native")]
mod changes;
#[cfg(feature = "native")]
mod client;
#[cfg(feature = "native")]
mod crowd;
mod events;
mod hostile;
mod interleaved;
mod limits;
mod publishing;
mod reconciliation;
mod requests;
#[cfg(feature = "native")]
mod shared;
#[cfg(feature = "native")]
mod sockets;
mod twins;
mod world;
