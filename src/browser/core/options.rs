//! What a core is opened with.

use wasm_bindgen::JsValue;

use super::params::{Params, fault};
use super::tuning;
use crate::browser::BrowserConfig;
use crate::browser::failure::Failure;
use crate::job::JobsConfig;
use crate::store::packed::Durability;

/// Where events are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// In the browser's database.
    IndexedDb,
    /// In memory.
    Memory,
}

/// What a core is opened with.
#[derive(Debug)]
pub(super) struct Options {
    /// The name of the database.
    pub(super) name: String,
    /// Where events are held.
    pub(super) storage: Storage,
    /// How sure events are when a commit returns.
    pub(super) durability: Durability,
    /// How much may be stored, in bytes.
    pub(super) bytes_max: Option<u64>,
    /// How much is logged; nothing, if it is not said.
    pub(super) log: Option<String>,
    /// Bounds and timeouts of sockets and signatures.
    pub(super) browser: BrowserConfig,
    /// Bounds and timeouts of jobs.
    pub(super) jobs: JobsConfig,
}

impl Options {
    /// Reads `options`. Signatures are checked by the host, or here.
    ///
    /// # Errors
    /// Names what is unknown or wrong.
    pub(super) fn parse(options: &JsValue, verifies_elsewhere: bool) -> Result<Self, Failure> {
        let mut params = Params::of(options, "options")?;
        let name = params.text("name")?;
        let storage = match &*params.text("storage")? {
            "indexeddb" => Storage::IndexedDb,
            "memory" => Storage::Memory,
            other => return Err(fault("storage", &format!("there is no {other:?}; there are indexeddb and memory"))),
        };
        let durability = match params.optional_text("durability")?.as_deref() {
            None | Some("relaxed") => Durability::Relaxed,
            Some("strict") => Durability::Strict,
            Some(other) => {
                return Err(fault("durability", &format!("there is no {other:?}; there are relaxed and strict")));
            }
        };
        let (bytes_max, log) = (params.optional_number("bytesMax")?, params.optional_text("log")?);
        let (mut browser, mut jobs) = (BrowserConfig::default(), tuning::defaults(verifies_elsewhere));
        if let Some(config) = params.optional("config")? {
            tuning::apply(Params::of(&config, "config")?, &mut browser, &mut jobs)?;
        }
        params.finish("options")?;
        Ok(Self { name, storage, durability, bytes_max, log, browser, jobs })
    }
}
