//! What JavaScript sees: a [`Core`] is opened, and called with requests.

mod call;
mod events;
mod options;
mod params;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use super::failure::Failure;
use super::{BrowserConfig, BrowserRuntime, Host, logs, panics};
use crate::store::{MemoryStore, StoreConfig};
use options::Options;

/// A store, and what syncs it. Everything is asked for by [`Core::call`].
#[wasm_bindgen]
pub struct Core {
    open: Rc<Open>,
}

/// What calls that are under way hold on to.
struct Open {
    runtime: Arc<BrowserRuntime<MemoryStore>>,
    host: Host,
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
    let options = Options::parse(options)?;
    if let Some(level) = &options.log {
        logs::begin(level).map_err(|reason| Failure::invalid(format!("log: {reason}")))?;
    }
    let store = MemoryStore::new(StoreConfig::default());
    let runtime = Arc::new(BrowserRuntime::new(store, host.clone(), BrowserConfig::default()));
    Ok(Core { open: Rc::new(Open { runtime, host: host.clone(), is_closed: Cell::new(false) }) })
}
