//! The daemon as a whole, on loopback: it finds repositories, judges, serves, goes on after a restart, and reloads.
#![cfg(feature = "native")]

mod beside;
mod discovery;
#[path = "../serve/events.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod events;
#[cfg(unix)]
mod hook;
#[cfg(unix)]
mod metrics;
mod reload;
mod world;
