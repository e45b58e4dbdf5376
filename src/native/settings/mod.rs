//! What an operator decides about the daemon: one TOML file, environment variables over it, flags over both.
//!
//! There is one list of settings (`sections`), with name, explanation and place of each; their defaults are those of
//! the configuration types that they fill. Reading, checking, writing the commented file and printing what holds are
//! walks over that list.

mod check;
mod keys;
mod mistake;
mod number;
mod raw;
mod read;
mod sections;
mod source;
mod suggest;
mod types;
mod value;
mod write;

pub use mistake::{Mistake, Mistakes, Origin};
pub use read::{Flag, Loaded, Sources, load};
pub use types::{
    AccessSettings, ControlSettings, DaemonSettings, DiscoverySettings, HookSettings, HttpSettings, IdentitySettings,
    LogFilter, LogFormat, LogSettings, PostUrl, RelaySettings, Settings, StoreSettings,
};
pub use write::template;

#[cfg(test)]
mod tests;
