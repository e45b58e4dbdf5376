//! Requests, by the names of their methods.

use wasm_bindgen::prelude::*;

use super::Open;
use super::params::Params;
use crate::browser::failure::Failure;

/// All methods, for who has misspelt one.
const METHODS: &str = "add, query, count, event, replaceable, close";

impl Open {
    /// Carries out a request.
    pub(super) async fn answer(&self, request: &JsValue) -> Result<JsValue, Failure> {
        let mut params = Params::of(request, "the request")?;
        let method = params.text("method")?;
        if self.is_closed.get() && method != "close" {
            return Err(Failure::closed());
        }
        match &*method {
            "add" => self.add(params).await,
            "query" => self.query(params).await,
            "count" => self.count(params).await,
            "event" => self.event(params).await,
            "replaceable" => self.replaceable(params).await,
            "close" => {
                params.finish("close")?;
                self.is_closed.set(true);
                Ok(js_sys::Object::new().into())
            }
            other => Err(Failure::invalid(format!("there is no method {other:?}; there are {METHODS}"))),
        }
    }
}
