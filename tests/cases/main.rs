//! Faults reported of relays, clients and sync tools, and their like, played against the engine in virtual time. Each
//! test asserts the right outcome: what is held afterwards, and `complete` or the gaps with their reasons.

mod authentication;
mod faults;
mod limits;
mod link;
mod live;
mod negentropy;
mod oddities;
mod paging;
mod publishing;
mod seconds;
mod store;
mod support;
