//! Calls to the control plane: over HTTP, who may call and what is said to others; over the unix socket, who can use it.
#![cfg(feature = "native")]

mod authorization;
mod calls;
mod daemon;
#[cfg(unix)]
mod socket;
mod world;
