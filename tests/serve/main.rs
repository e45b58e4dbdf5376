//! The relay side: its rules on the bare state machine, and its behaviour on sockets.

mod auth;
#[cfg(feature = "native")]
mod client;
#[cfg(feature = "native")]
mod crowd;
mod events;
mod hostile;
mod limits;
mod publishing;
mod reconciliation;
mod requests;
#[cfg(feature = "native")]
mod shared;
#[cfg(feature = "native")]
mod sockets;
#[cfg(feature = "native")]
mod tls;
mod world;
