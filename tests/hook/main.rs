//! The git data hook: what is handed on, to whom, and that nothing is lost or held up.
#![cfg(all(feature = "native", unix))]

mod bounds;
mod command;
mod delivery;
#[path = "../store_conformance/events.rs"]
#[expect(dead_code, reason = "the tests of stores need more of it")]
mod events;
mod kill;
mod trouble;
mod url;
mod world;
