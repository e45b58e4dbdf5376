//! The program as a user calls it: arguments, stdin, stdout, stderr, exit status.
#![cfg(feature = "native")]
#![expect(clippy::disallowed_methods, reason = "how long things really take is tested here")]

mod call;
mod config;
#[cfg(target_os = "linux")]
mod control;
mod demo;
mod events;
#[cfg(target_os = "linux")]
mod readme;
#[cfg(target_os = "linux")]
mod run;
mod sim;
#[cfg(unix)]
mod status;
#[cfg(unix)]
mod stop;
mod store;
mod usage;
