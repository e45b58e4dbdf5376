//! The browser runtime: the same engine over WebSockets and timers of JavaScript, and what JavaScript sees of it.
//!
//! It runs in a window, in a worker and in Node, all on the one thread that it was made on. JavaScript opens a
//! [`Core`] with [options](Core::open) and a host, an object with what only it can give: sockets where there is no
//! `WebSocket`, workers that check signatures, a signer, and somebody to tell. Importing the module does nothing, and
//! nothing is logged, unless it is asked for.

mod clock;
mod config;
mod core;
mod failure;
mod host;
mod js;
mod logs;
mod panics;
mod runtime;
mod socket;
mod url;
mod verify;

pub use clock::BrowserClock;
pub use config::BrowserConfig;
pub use core::Core;
pub use host::Host;
pub use runtime::BrowserRuntime;
pub use socket::{BrowserConnector, BrowserReceiver, BrowserSender};
pub(crate) use url::normalise;
pub use verify::{verify, version};
