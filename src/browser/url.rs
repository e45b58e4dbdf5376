//! Relay URLs by the parser that JavaScript has.

use wasm_bindgen::prelude::*;

use crate::protocol::relay_url::{is_tracking, reasons};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = URL)]
    type Url;
    #[wasm_bindgen(constructor, catch, js_class = "URL")]
    fn new(text: &str) -> Result<Url, JsValue>;
    #[wasm_bindgen(method, getter)]
    fn protocol(this: &Url) -> String;
    #[wasm_bindgen(method, getter)]
    fn username(this: &Url) -> String;
    #[wasm_bindgen(method, getter)]
    fn password(this: &Url) -> String;
    #[wasm_bindgen(method, getter)]
    fn hostname(this: &Url) -> String;
    #[wasm_bindgen(method, getter)]
    fn host(this: &Url) -> String;
    #[wasm_bindgen(method, getter)]
    fn pathname(this: &Url) -> String;
    #[wasm_bindgen(method, getter)]
    fn search(this: &Url) -> String;
    #[wasm_bindgen(method, getter, js_name = searchParams)]
    fn search_params(this: &Url) -> SearchParams;

    #[wasm_bindgen(js_name = URLSearchParams)]
    type SearchParams;
    #[wasm_bindgen(method)]
    fn keys(this: &SearchParams) -> js_sys::Iterator;
    #[wasm_bindgen(method)]
    fn delete(this: &SearchParams, name: &str);
    #[wasm_bindgen(method, js_name = toString)]
    fn text(this: &SearchParams) -> String;
}

/// The normal form of a relay URL, or why it is none.
pub(crate) fn normalise(text: &str) -> Result<String, String> {
    let url = Url::new(text).map_err(|_| format!("it is no URL; {}", reasons::NO_URL))?;
    if !matches!(&*url.protocol(), "ws:" | "wss:") {
        return Err(reasons::SCHEME.into());
    }
    if !url.username().is_empty() || !url.password().is_empty() {
        return Err(reasons::CREDENTIALS.into());
    }
    let (name, host) = (url.hostname(), url.host());
    let bare = name.trim_end_matches('.');
    if bare.is_empty() {
        return Err(reasons::NO_HOST.into());
    }
    let port = &host[name.len()..];
    let mut normal = format!("{}//{bare}{port}{}", url.protocol(), url.pathname().trim_end_matches('/'));
    let query = if url.search().is_empty() { String::new() } else { without_tracking(&url.search_params()) };
    if !query.is_empty() {
        // Where there is a query, an empty path is written as a slash.
        if url.pathname().trim_end_matches('/').is_empty() {
            normal.push('/');
        }
        normal.push('?');
        normal.push_str(&query);
    }
    Ok(normal)
}

fn without_tracking(params: &SearchParams) -> String {
    let names: Vec<String> = params.keys().into_iter().flatten().filter_map(|name| name.as_string()).collect();
    names.iter().filter(|name| is_tracking(name)).for_each(|name| params.delete(name));
    params.text()
}
