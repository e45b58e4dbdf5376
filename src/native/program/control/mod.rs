//! The commands that govern: `relaysync peer`, `identity` and `access`.
//!
//! Each makes calls to the control plane, and shows what comes back. A daemon that runs carries them out; without one they
//! are carried out here, on its files.

mod access;
mod caller;
mod identity;
mod peer;
mod put;
mod table;

pub(super) use access::{AccessArguments, run as access};
pub(super) use identity::{IdentityArguments, run as identity};
pub(super) use peer::{PeerArguments, run as peer};

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::sync_run::print;
use super::{Exit, Failure};
use crate::protocol::PublicKey;

/// Whom to govern, and how to show what comes back.
#[derive(Debug, Clone, Args)]
struct ControlArguments {
    /// The socket of the daemon; by default the one that its configuration says (control.socket).
    #[arg(long, global = true, value_name = "PATH", conflicts_with_all = ["config", "store"])]
    socket: Option<PathBuf>,
    /// The daemon's configuration; by default RELAYSYNC_CONFIG, or relaysync.toml if it is there.
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    /// The daemon's event store (store.path).
    #[arg(long, global = true, value_name = "PATH")]
    store: Option<String>,
    /// Print what comes back as one line of JSON.
    #[arg(long, global = true)]
    json: bool,
}

/// What a call has come to: for programs, and for people.
struct Shown {
    json: Value,
    text: String,
    exit: Exit,
}

impl Shown {
    fn new(json: Value, text: impl Into<String>) -> Self {
        Self { json, text: text.into(), exit: Exit::Complete }
    }

    fn print(self, as_json: bool) -> Result<Exit, Failure> {
        if as_json {
            print(&format!("{}\n", self.json))?
        } else {
            print(&self.text)?
        }
        Ok(self.exit)
    }
}

/// A parameter of a call.
fn param(value: &(impl Serialize + ?Sized)) -> Result<Box<RawValue>, Failure> {
    serde_json::value::to_raw_value(value).map_err(Failure::new)
}

/// A result of a call, to be shown.
fn read<T: DeserializeOwned>(result: &Value) -> Result<T, Failure> {
    T::deserialize(result)
        .map_err(|error| Failure::new(format!("the daemon is of another version, its answer cannot be shown: {error}")))
}

/// A public key, for clap.
fn public_key(text: &str) -> Result<PublicKey, String> {
    crate::peer::public_key(text, |_| "write a public key, as npub1… or 64 hexadecimal digits".to_owned())
}
