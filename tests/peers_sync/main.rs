//! The program against other people's relays and client: what it holds afterwards is what they hold, whatever
//! interrupts it.
#![cfg(feature = "native")]
#![expect(clippy::disallowed_methods, reason = "how long things really take is tested here")]

#[path = "../program/call.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod call;
#[path = "../support/peers.rs"]
mod peers;

mod directions;
mod events;
mod hosting;
mod interruptions;
mod kills;
mod outcomes;
mod pool;
mod world;
