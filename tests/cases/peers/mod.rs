//! Configured peers: who they are, what they may bring and get, and what changes while they are synced with.

mod access;
mod auth;
mod identity;
mod proofs;
mod support;
mod terms;
