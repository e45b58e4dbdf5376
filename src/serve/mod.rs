//! The relay side: a [`Server`] answers clients from a store, without sockets, clock or tasks of its own.
//!
//! It has the engine's shape: inputs go in, effects come out, time is an argument. Bound to sockets it is the relay
//! service; driven by a simulation it is the honest relay there. Events of clients take the [`Intake`], the one write
//! path: verify → judge → commit → fan out.

mod access;
mod auth;
mod client;
mod config;
mod counters;
mod intake;
mod io;
mod item_sets;
mod limits;
mod merge;
mod publishing;
mod rates;
mod reconciliation;
mod requests;
mod server;

pub use config::ServeConfig;
pub use counters::Counters;
pub use intake::{Intake, IntakeWork, Settled};
pub use io::{ClientId, Cut, ServeEffect, ServeInput, Ticket, Tickets, WorkFault};
#[cfg(feature = "native")]
pub(crate) use rates::Bucket;
pub use reconciliation::reconcile;
pub use server::Server;
