//! Sockets as JavaScript has them: text frames, events, no way to read slower.

mod connector;
mod inbox;
mod info;
mod link;

pub use connector::BrowserConnector;
pub use link::{BrowserReceiver, BrowserSender};
