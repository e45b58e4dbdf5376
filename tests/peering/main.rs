//! Two daemons that are peers of each other, on loopback, as operators run them: certificates of their own, pinned keys,
//! authentication (NIP-42), access rules. What is protected flows between them and to nobody else; whatever is wrong
//! with a peer, nothing flows, and the health says what it is.
#![cfg(feature = "native")]

mod certificate;
mod changes;
mod client;
#[path = "../serve/events.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod events;
mod flow;
#[cfg(unix)]
mod kills;
mod refusals;
mod side;
