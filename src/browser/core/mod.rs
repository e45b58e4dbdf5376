//! What JavaScript sees: a [`Core`] is opened, and called with requests.

mod call;
mod events;
mod jobs;
mod options;
mod params;
mod place;
mod relay_view;
mod standing;
mod tuning;
mod watching;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use js_sys::{Object, Promise};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::failure::Failure;
use super::idb::IndexedDb;
use super::{BrowserConfig, BrowserRuntime, Host, js, logs, panics};
use crate::job::Jobs;
use crate::store::packed::{MemoryBacking, PackedConfig, PackedFault, PackedStore};
use options::{Options, Storage};
use place::{CoreStore, Place};
pub(super) use relay_view::RelayView;

/// A store, and what syncs it. Everything is asked for by [`Core::call`].
#[wasm_bindgen]
pub struct Core {
    open: Rc<Open>,
}

/// What calls that are under way hold on to.
struct Open {
    runtime: Arc<BrowserRuntime<CoreStore>>,
    jobs: Jobs<BrowserRuntime<CoreStore>>,
    host: Host,
    config: BrowserConfig,
    is_closed: Cell<bool>,
}

#[wasm_bindgen]
impl Core {
    /// Opens the store that `options` name.
    ///
    /// # Errors
    /// The promise is rejected with an object with `code`, `message` and `retryable`: an option is unknown or wrong, or
    /// the store cannot be opened.
    pub fn open(options: JsValue, host: Host) -> Promise {
        panics::tell(&host);
        panics::promise(async move {
            let opened = open(&options, &host).await;
            if opened.is_err() {
                panics::forget(&host);
            }
            opened.map(JsValue::from)
        })
    }

    /// Carries out `request`, an object with `method` and its parameters.
    ///
    /// # Errors
    /// The promise is rejected with an object with `code`, `message`, `retryable` and perhaps `relay`.
    pub fn call(&self, request: JsValue) -> Promise {
        let open = self.open.clone();
        panics::promise(async move { open.answer(&request).await })
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        panics::forget(&self.open.host);
    }
}

async fn open(options: &JsValue, host: &Host) -> Result<Core, Failure> {
    let options = Options::parse(options, host.checks_signatures())?;
    if let Some(level) = &options.log {
        logs::begin(level).map_err(|reason| Failure::invalid(format!("log: {reason}")))?;
    }
    let seed = js::entropy().map_err(|thrown| Failure::internal(&js::words(&thrown)))?;
    let config = options.browser;
    let place = match options.storage {
        Storage::Memory => Place::Memory(MemoryBacking::default()),
        Storage::IndexedDb => {
            let opened = IndexedDb::open(&options.name).await;
            Place::Database(opened.map_err(|error| Failure::of_store(&options.name, PackedFault::from(error)))?)
        }
    };
    let packed =
        PackedConfig { durability: options.durability, bytes_max: options.bytes_max, ..PackedConfig::default() };
    let store = PackedStore::open(place, packed).await?;
    #[expect(clippy::arc_with_non_send_sync, reason = "the driver is the same natively, where threads share it")]
    let runtime = Arc::new(BrowserRuntime::new(store, host.clone(), config.clone()));
    let jobs = Jobs::new(runtime.clone(), options.jobs, u64::from_le_bytes(seed));
    let open = Rc::new(Open { runtime, jobs, host: host.clone(), config, is_closed: Cell::new(false) });
    spawn_local(watching::watch(Rc::downgrade(&open)));
    Ok(Core { open })
}

/// The answer where there is none.
fn nothing() -> JsValue {
    Object::new().into()
}

/// An answer as a plain value.
fn plain(value: &impl Serialize) -> Result<JsValue, Failure> {
    js::value(value).map_err(|error| Failure::internal(&error.to_string()))
}

/// The text of a JSON array of these.
fn array<'a>(objects: impl Iterator<Item = &'a Bytes>) -> String {
    let mut text = String::from("[");
    for json in objects {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&String::from_utf8_lossy(json));
    }
    text.push(']');
    text
}
