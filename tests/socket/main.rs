//! Client sockets against loopback servers that are written byte by byte, each with one fault.
#![cfg(feature = "native")]

mod flow;
mod frames;
mod handshake;
mod info;
mod peer;
mod tls;
