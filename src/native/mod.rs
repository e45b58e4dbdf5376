//! The native runtime: tokio's clock and tasks, TCP and TLS sockets, the embedded store, the relay service, and the
//! `relaysync` program.

pub mod admin;
mod clock;
mod config;
pub mod control;
pub mod daemon;
mod dial;
pub mod feed;
pub mod hook;
mod http;
mod link;
mod pins;
pub mod program;
pub mod rpc;
mod runtime;
pub mod serve;
pub mod settings;
pub mod store;
#[cfg(feature = "testing")]
pub mod swarm;
mod tls;
mod websocket;

pub use clock::NativeClock;
pub use config::{ConfigError, SocketConfig};
pub use pins::pin_of;
pub use runtime::NativeRuntime;
pub use websocket::{NativeConnector, NativeReceiver, NativeSender};
