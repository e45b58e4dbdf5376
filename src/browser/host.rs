//! What the JavaScript around the core provides.

use js_sys::{Function, JsString, Promise, Uint8Array};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::core::RelayView;
use super::js;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What the JavaScript around the core provides. */
export interface Host {
  /** Opens a socket, where the global `WebSocket` is missing or not to be used. */
  webSocket?: (url: string) => unknown;
  /** Fetches relay information documents; by default the global `fetch`. */
  fetch?: (url: string, init: object) => Promise<Response>;
  /** Checks signatures elsewhere: as `verify`, 128 bytes an event, one byte each back. */
  verify?: (batch: Uint8Array) => Promise<Uint8Array>;
  /** Signs the JSON of an unsigned event for a relay (NIP-42). */
  sign?: (unsigned: string, relay: string) => Promise<string>;
  /** The key that `sign` signs with, in hexadecimal. */
  publicKey?: () => Promise<string>;
  /** Hears of what happens. Must not throw. */
  status: (message: any) => void;
}
"#;

#[wasm_bindgen]
extern "C" {
    /// An object with what the JavaScript around the core provides: sockets, workers, a signer, somebody to tell.
    #[wasm_bindgen(typescript_type = "Host")]
    #[derive(Clone, Debug)]
    pub type Host;

    #[wasm_bindgen(method, getter, structural, js_name = webSocket)]
    pub(super) fn web_socket(this: &Host) -> Option<Function>;
    #[wasm_bindgen(method, getter, structural)]
    pub(super) fn fetch(this: &Host) -> Option<Function>;
    #[wasm_bindgen(method, getter, structural)]
    fn verify(this: &Host) -> Option<Function>;
    #[wasm_bindgen(method, getter, structural)]
    fn sign(this: &Host) -> Option<Function>;
    #[wasm_bindgen(method, getter, structural, js_name = publicKey)]
    fn public_key(this: &Host) -> Option<Function>;
    #[wasm_bindgen(method, catch, structural)]
    fn status(this: &Host, message: &JsValue) -> Result<(), JsValue>;
}

/// A message to the host.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum Status<'a> {
    /// Whether what arrives can be stored has changed.
    Storage {
        /// `ok`, `full`, `deposed` or `failed`.
        state: &'static str,
        /// Why it cannot be, in words.
        message: Option<&'a str>,
    },
    /// How things are at a relay has changed.
    Relay(&'a RelayView),
    /// A bug: the core is of no use any more.
    Panic {
        /// What it said, and where.
        message: &'a str,
    },
}

impl Host {
    /// Tells the host. What it does wrong with that is its own affair.
    pub(super) fn tell(&self, status: &Status<'_>) {
        let told = js::value(status).map_err(JsValue::from).and_then(|value| self.status(&value));
        if let Err(thrown) = told {
            tracing::warn!("the status callback has thrown: {}", js::words(&thrown));
        }
    }

    /// Are signatures checked elsewhere?
    pub(super) fn checks_signatures(&self) -> bool {
        self.verify().is_some()
    }

    /// Has signatures checked elsewhere; `None` if there is nobody who does.
    pub(super) fn check(&self, batch: &[u8]) -> Option<impl Future<Output = Result<Vec<u8>, String>> + use<>> {
        let check = self.verify()?;
        let answer = call(&check, self, &[Uint8Array::from(batch).into()]);
        Some(async move {
            let answer: Uint8Array =
                answer.await?.dyn_into().map_err(|other| format!("the answer is {other:?}, no Uint8Array"))?;
            Ok(answer.to_vec())
        })
    }

    /// The key of the signer, in hexadecimal, if the host says.
    pub(super) async fn key(&self) -> Result<Option<String>, String> {
        let Some(key) = self.public_key() else { return Ok(None) };
        text(call(&key, self, &[]).await?).map(Some)
    }

    /// Has an unsigned event signed; `None` if there is nobody who does.
    pub(super) async fn signature(&self, unsigned: &str, relay: &str) -> Option<Result<String, String>> {
        let sign = self.sign()?;
        let signed = call(&sign, self, &[unsigned.into(), relay.into()]).await;
        Some(signed.and_then(text))
    }
}

/// Calls a function that answers with a promise, or at once.
fn call(
    function: &Function,
    this: &JsValue,
    arguments: &[JsValue],
) -> impl Future<Output = Result<JsValue, String>> + use<> {
    let answer = function.apply(this, &arguments.iter().collect());
    async move {
        let answer = answer.map_err(|thrown| js::words(&thrown))?;
        JsFuture::from(Promise::resolve(&answer)).await.map_err(|thrown| js::words(&thrown))
    }
}

fn text(value: JsValue) -> Result<String, String> {
    value.dyn_into::<JsString>().map(String::from).map_err(|other| format!("the answer is {other:?}, no string"))
}
