//! Relay information documents (NIP-11).

use js_sys::{Function, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::browser::{Host, js};
use crate::protocol::RelayUrl;
use crate::runtime::ConnectError;

#[wasm_bindgen]
extern "C" {
    type Response;
    #[wasm_bindgen(method, getter, structural)]
    fn ok(this: &Response) -> bool;
    #[wasm_bindgen(method, getter, structural)]
    fn status(this: &Response) -> u16;
    #[wasm_bindgen(method, getter, structural)]
    fn body(this: &Response) -> Option<Body>;

    type Body;
    #[wasm_bindgen(method, catch, structural, js_name = getReader)]
    fn reader(this: &Body) -> Result<Reader, JsValue>;

    type Reader;
    #[wasm_bindgen(method, structural)]
    fn read(this: &Reader) -> Promise;

    type Chunk;
    #[wasm_bindgen(method, getter, structural)]
    fn done(this: &Chunk) -> bool;
    #[wasm_bindgen(method, getter, structural)]
    fn value(this: &Chunk) -> Option<Uint8Array>;

    type AbortController;
    #[wasm_bindgen(constructor, catch)]
    fn new() -> Result<AbortController, JsValue>;
    #[wasm_bindgen(method, getter)]
    fn signal(this: &AbortController) -> JsValue;
    #[wasm_bindgen(method)]
    fn abort(this: &AbortController);
}

/// Ends the request, if it has not ended, when it is dropped.
struct Request(AbortController);

impl Drop for Request {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Fetches the document of `relay`. Dropping this ends the request.
///
/// # Errors
/// Why not.
pub(super) async fn fetch(host: &Host, relay: &RelayUrl, bytes_max: usize) -> Result<String, ConnectError> {
    // `ws` becomes `http`, `wss` `https`.
    let url = relay.as_str().replacen("ws", "http", 1);
    let io = |thrown: JsValue| ConnectError::Io(js::words(&thrown));
    let request = Request(AbortController::new().map_err(io)?);
    let response = match ask(host, &url, &request, "cors").await {
        Ok(response) => response,
        // Browsers give no reason. If a page may send it and not see the answer, the answer is withheld.
        Err(thrown) => match ask(host, &url, &request, "no-cors").await {
            Ok(_) => return Err(ConnectError::Withheld(url)),
            Err(_) => return Err(io(thrown)),
        },
    };
    if !response.ok() {
        return Err(ConnectError::Handshake(format!("HTTP status {}", response.status())));
    }
    let bytes = read(&response, bytes_max).await?;
    String::from_utf8(bytes).map_err(|_| ConnectError::Io("the document is not UTF-8".into()))
}

async fn ask(host: &Host, url: &str, request: &Request, mode: &str) -> Result<Response, JsValue> {
    let headers = Object::new();
    Reflect::set(&headers, &"Accept".into(), &"application/nostr+json".into())?;
    let init = Object::new();
    for (name, value) in [
        ("mode", mode.into()),
        ("credentials", "omit".into()),
        ("signal", request.0.signal()),
        ("headers", headers.into()),
    ] {
        Reflect::set(&init, &name.into(), &value)?;
    }
    let (fetch, this) = match host.fetch() {
        Some(fetch) => (fetch, JsValue::from(host)),
        None => {
            let global = js_sys::global();
            (js::field(&global, "fetch")?.dyn_into::<Function>()?, global.into())
        }
    };
    let answer = fetch.call2(&this, &url.into(), &init)?;
    Ok(JsFuture::from(Promise::resolve(&answer)).await?.unchecked_into())
}

async fn read(response: &Response, bytes_max: usize) -> Result<Vec<u8>, ConnectError> {
    let io = |thrown: JsValue| ConnectError::Io(js::words(&thrown));
    let Some(body) = response.body() else { return Ok(Vec::new()) };
    let reader = body.reader().map_err(io)?;
    let mut bytes = Vec::new();
    loop {
        let chunk: Chunk = JsFuture::from(reader.read()).await.map_err(io)?.unchecked_into();
        let Some(part) = chunk.value().filter(|_| !chunk.done()) else { return Ok(bytes) };
        if bytes.len() + part.length() as usize > bytes_max {
            return Err(ConnectError::Io(format!("the document is larger than {bytes_max} bytes")));
        }
        bytes.extend_from_slice(&part.to_vec());
    }
}
