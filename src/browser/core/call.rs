//! Requests, by the names of their methods.

use wasm_bindgen::prelude::*;

use super::Open;
use super::params::Params;
use crate::browser::failure::Failure;
use crate::runtime::Runtime;

/// All methods, for who has misspelt one.
const METHODS: &str = "add, query, count, event, replaceable, watch, unwatch, job, repos, take, progress, settled, stop, \
                       publish, coverage, relays, storage, export, import, wake, close";

impl Open {
    /// Carries out a request.
    pub(super) async fn answer(&self, request: &JsValue) -> Result<JsValue, Failure> {
        // Jobs know of their store that it fails, in words; what can be done about that, the store knows.
        self.carry_out(request).await.map_err(|failure| failure.by_condition(&self.runtime.store().condition()))
    }

    async fn carry_out(&self, request: &JsValue) -> Result<JsValue, Failure> {
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
            "watch" => self.watch(params).await,
            "unwatch" => self.unwatch(params),
            "job" => self.job(params).await,
            "repos" => self.repos(params).await,
            "take" => self.take(params).await,
            "progress" => self.progress(params),
            "settled" => self.settled(params).await,
            "stop" => self.stop(params),
            "publish" => self.publish(params).await,
            "coverage" => self.coverage(params).await,
            "relays" => self.relays(params),
            "storage" => self.storage(params),
            "export" => self.export(params).await,
            "import" => self.import(params).await,
            "wake" => self.wake(params),
            "close" => self.close(params).await,
            other => Err(Failure::invalid(format!("there is no method {other:?}; there are {METHODS}"))),
        }
    }
}
