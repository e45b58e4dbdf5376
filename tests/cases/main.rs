//! Faults reported of relays, clients and sync tools, and their like, played against the engine in virtual time. Each
//! test asserts the right outcome: what is held afterwards, and `complete` or the gaps with their reasons.

mod absences;
mod authentication;
mod convergence;
mod discovery;
mod driving;
mod faults;
mod health;
mod kills;
mod limits;
mod link;
mod live;
mod liveness;
mod negentropy;
mod oddities;
mod paging;
mod passes;
mod peers;
mod planted;
mod publishing;
mod refusals;
mod seconds;
mod store;
mod storms;
mod support;
