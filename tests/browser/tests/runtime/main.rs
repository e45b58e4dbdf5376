//! The browser runtime in a browser. Relays of two makes run beside it, at URLs that are known when this is compiled:
//! see `tests/browser/run.mjs`.

#![cfg(target_family = "wasm")]

mod calls;
mod clock;
mod events;
mod sockets;
mod syncing;
mod urls;
mod verifying;

use std::sync::Arc;

use js_sys::Object;
use relaysync::browser::{BrowserConfig, BrowserRuntime, Host};
use relaysync::protocol::RelayUrl;
use relaysync::store::{MemoryStore, StoreConfig};
use wasm_bindgen::JsCast;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

/// Our relay service, empty at first.
fn own_relay() -> RelayUrl {
    RelayUrl::parse(env!("RELAYSYNC_TEST_OWN_RELAY")).expect("a relay runs beside the tests")
}

/// A relay of another make, without NIP-77 and with small pages, empty at first.
fn other_relay() -> RelayUrl {
    RelayUrl::parse(env!("RELAYSYNC_TEST_OTHER_RELAY")).expect("a relay runs beside the tests")
}

/// A host that provides nothing, and is told nothing.
fn host() -> Host {
    let host = Object::new();
    let ignore = js_sys::Function::new_no_args("");
    js_sys::Reflect::set(&host, &"status".into(), &ignore).expect("it is a plain object");
    host.unchecked_into()
}

/// A runtime over an empty store.
fn runtime() -> Arc<BrowserRuntime<MemoryStore>> {
    Arc::new(BrowserRuntime::new(MemoryStore::new(StoreConfig::default()), host(), BrowserConfig::default()))
}
