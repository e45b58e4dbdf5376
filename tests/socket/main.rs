//! Client sockets against loopback servers that are written byte by byte, each with one fault.
#![cfg(feature = "native")]
#![expect(clippy::disallowed_methods, reason = "how long things really take is tested here")]

mod flow;
mod frames;
mod handshake;
mod info;
mod peer;
mod pins;
mod stop;
mod tls;
