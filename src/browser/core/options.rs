//! What a core is opened with.

use wasm_bindgen::JsValue;

use super::params::{Params, fault};
use crate::browser::failure::Failure;

/// Where events are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// In the browser's database.
    IndexedDb,
    /// In memory.
    Memory,
}

/// What a core is opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// The name of the database.
    pub(super) name: String,
    /// Where events are held.
    pub(super) storage: Storage,
    /// How much is logged; nothing, if it is not said.
    pub(super) log: Option<String>,
}

impl Options {
    /// Reads `options`.
    ///
    /// # Errors
    /// Names what is unknown or wrong.
    pub(super) fn parse(options: &JsValue) -> Result<Self, Failure> {
        let mut params = Params::of(options, "options")?;
        let name = params.text("name")?;
        let storage = match &*params.text("storage")? {
            "indexeddb" => Storage::IndexedDb,
            "memory" => Storage::Memory,
            other => return Err(fault("storage", &format!("there is no {other:?}; there are indexeddb and memory"))),
        };
        let log = params.optional_text("log")?;
        params.finish("options")?;
        Ok(Self { name, storage, log })
    }
}
