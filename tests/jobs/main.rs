//! Jobs, on real sockets to our relay service and to relays that answer by a script.
#![cfg(feature = "native")]

mod bounds;
#[path = "../serve/events.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod events;
mod faults;
mod local;
mod publishing;
mod repos;
mod script;
mod sharing;
mod syncing;
mod world;
