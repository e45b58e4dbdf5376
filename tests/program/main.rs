//! The program as a user calls it: arguments, stdin, stdout, stderr, exit status.
#![cfg(feature = "native")]

mod call;
mod events;
mod store;
mod usage;
