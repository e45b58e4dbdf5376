//! How much room the browser gives.

use js_sys::{Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// What the browser says of the storage of this origin.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// About how many bytes all databases and caches of the origin take.
    pub usage_bytes: Option<f64>,
    /// About how many bytes they may take.
    pub quota_bytes: Option<f64>,
}

/// Asks the browser. Where it does not say, as in Node, nothing is known.
pub async fn estimate() -> Estimate {
    ask().await.unwrap_or_default()
}

async fn ask() -> Option<Estimate> {
    let of =
        |object: &JsValue, name: &str| Reflect::get(object, &name.into()).ok().filter(|value| !value.is_undefined());
    let storage = of(&of(&js_sys::global(), "navigator")?, "storage")?;
    let estimate = of(&storage, "estimate")?.dyn_into::<js_sys::Function>().ok()?;
    let promise = estimate.call0(&storage).ok()?.dyn_into::<Promise>().ok()?;
    let answer = JsFuture::from(promise).await.ok()?;
    let number = |name| of(&answer, name)?.as_f64();
    Some(Estimate { usage_bytes: number("usage"), quota_bytes: number("quota") })
}
