//! The control plane's files: what is told is kept, whatever happens to the process, and what is damaged is named.
#![cfg(all(feature = "native", unix))]

mod between;
mod concurrent;
mod daemon;
mod damage;
#[path = "../serve/events.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod events;
mod identity;
mod kill;
mod peers;
mod support;
