//! What is asked of relays and of the store as a whole.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::params::{Params, fault};
use super::relay_view::RelayView;
use super::{Open, plain};
use crate::browser::failure::Failure;
use crate::job::RelayAnswer;
use crate::protocol::Event;
use crate::runtime::Runtime;
use crate::store::packed::{Condition, PackedFault, Usage};

/// What became of an event that was published.
#[derive(Debug, Serialize)]
struct Published {
    outcome: &'static str,
    reason: Option<&'static str>,
    relays: Vec<RelayAnswer>,
}

/// What the store holds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Holdings {
    events: u64,
    bytes: u64,
    bytes_max: Option<u64>,
    segments: u64,
    floor_secs: Option<u64>,
    state: &'static str,
    message: Option<String>,
}

impl Open {
    /// Stores an event and sends it to relays.
    pub(super) async fn publish(&self, mut params: Params) -> Result<JsValue, Failure> {
        let event = Event::parse(Bytes::from(params.text("event")?));
        let event = event.map_err(|error| fault("event", &error.to_string()))?;
        let relays = params.relays("relays")?;
        let timeout = params.optional_number("timeoutMs")?.map(Duration::from_millis);
        params.finish("publish")?;
        let report = self.jobs.publish(event, relays, timeout.unwrap_or(self.config.publish_timeout)).await?;
        let (outcome, reason) = (report.outcome.word(), report.outcome.reason());
        plain(&Published { outcome, reason, relays: report.relays })
    }

    /// What is proven of a filter at each relay.
    pub(super) async fn coverage(&self, mut params: Params) -> Result<JsValue, Failure> {
        let filter = params.filter("filter")?;
        params.finish("coverage")?;
        plain(&self.jobs.coverage(&filter).await?)
    }

    /// How things are at every relay.
    pub(super) fn relays(&self, params: Params) -> Result<JsValue, Failure> {
        params.finish("relays")?;
        plain(&self.jobs.relays().iter().map(RelayView::of).collect::<Vec<_>>())
    }

    /// What is held, and whether more can be.
    pub(super) fn storage(&self, params: Params) -> Result<JsValue, Failure> {
        params.finish("storage")?;
        let Usage { events, bytes, bytes_max, segments, floor_secs, .. } = self.runtime.store().usage();
        let (state, message) = self.condition();
        plain(&Holdings { events, bytes, bytes_max, segments, floor_secs, state, message })
    }

    /// How the store does: in a word, and in words if it does not do well.
    pub(super) fn condition(&self) -> (&'static str, Option<String>) {
        match self.runtime.store().condition() {
            Condition::Full(words) => ("full", Some(words)),
            Condition::Deposed => ("deposed", Some(PackedFault::Deposed.to_string())),
            Condition::Failed(words) => ("failed", Some(words)),
            // Reading may fail where nothing was to be written.
            Condition::Good => match self.jobs.store_failure() {
                Some(words) => ("failed", Some(words)),
                None => ("ok", None),
            },
        }
    }

    /// Events as lines.
    pub(super) async fn export(&self, mut params: Params) -> Result<JsValue, Failure> {
        let after = params.optional_number("after")?;
        let bytes_max = params.size("bytesMax")?.unwrap_or(self.config.take_bytes_max);
        params.finish("export")?;
        plain(&self.jobs.export(after, bytes_max).await?)
    }

    /// Adds the events of lines.
    pub(super) async fn import(&self, mut params: Params) -> Result<JsValue, Failure> {
        let text = params.text("text")?;
        params.finish("import")?;
        plain(&self.jobs.import(&text).await?)
    }

    /// The machine slept, the network came back, or somebody looks.
    pub(super) fn wake(&self, params: Params) -> Result<JsValue, Failure> {
        params.finish("wake")?;
        self.jobs.wake();
        Ok(super::nothing())
    }

    /// Ends everything.
    pub(super) async fn close(&self, params: Params) -> Result<JsValue, Failure> {
        params.finish("close")?;
        self.is_closed.set(true);
        self.jobs.close().await;
        self.runtime.store().backing().close();
        Ok(super::nothing())
    }
}
