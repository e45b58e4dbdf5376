//! Adding events, and asking for those that are held. Events cross as JSON text.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use wasm_bindgen::prelude::*;

use super::params::{Params, fault};
use super::{Open, plain};
use crate::browser::failure::Failure;
use crate::peer::View;
use crate::protocol::{Event, Filter};
use crate::runtime::{Clock, Runtime};
use crate::store::{Cursor, Query, Record, Store};

/// Bytes of events that are read from the store at once.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// The answer to `add`.
#[derive(Debug, Serialize)]
struct Added {
    outcomes: Vec<&'static str>,
    /// Why what is invalid is so, by its place.
    reasons: BTreeMap<String, String>,
}

impl Open {
    /// Adds events that the caller has.
    pub(super) async fn add(&self, mut params: Params) -> Result<JsValue, Failure> {
        let text = Bytes::from(params.text("events")?);
        params.finish("add")?;
        let mut reasons = BTreeMap::new();
        let mut outcomes = Vec::new();
        let mut events = Vec::new();
        for (place, json) in split(&text)?.into_iter().enumerate() {
            outcomes.push("invalid");
            match Event::parse_in(&text, json) {
                Ok(event) => events.push((place, event)),
                Err(error) => drop(reasons.insert(place.to_string(), error.to_string())),
            }
        }
        let (places, events): (Vec<_>, Vec<_>) = events.into_iter().unzip();
        for (place, added) in places.into_iter().zip(self.jobs.add(events).await?) {
            outcomes[place] = added.word();
            if let Some(reason) = added.reason() {
                reasons.insert(place.to_string(), reason.into());
            }
        }
        plain(&Added { outcomes, reasons })
    }

    /// What filters select, newest first.
    pub(super) async fn query(&self, mut params: Params) -> Result<JsValue, Failure> {
        let filters = params.filters("filters")?;
        let limit = params.size("limit")?.unwrap_or(usize::MAX);
        params.finish("query")?;
        let mut found = BTreeMap::new();
        for filter in filters {
            for record in self.records(filter, limit).await? {
                found.insert((std::cmp::Reverse(record.created_at), record.id), record.json);
            }
        }
        Ok(super::array(found.values().take(limit)).into())
    }

    /// How many events filters select.
    pub(super) async fn count(&self, mut params: Params) -> Result<JsValue, Failure> {
        let filters = params.filters("filters")?;
        params.finish("count")?;
        let now_secs = self.runtime.clock().now().unix_secs;
        let count = self.runtime.store().count(filters, &View::all(), now_secs).await?;
        #[expect(clippy::cast_precision_loss, reason = "no browser holds 2^53 events")]
        Ok(JsValue::from_f64(count as f64))
    }

    /// One event, by its id.
    pub(super) async fn event(&self, mut params: Params) -> Result<JsValue, Failure> {
        let id = params.event_id("id")?;
        params.finish("event")?;
        let found = self.runtime.store().events(vec![id]).await?;
        Ok(or_null(found.into_iter().flatten().next()))
    }

    /// The version that is held of a replaceable or addressable event.
    pub(super) async fn replaceable(&self, mut params: Params) -> Result<JsValue, Failure> {
        let kind = params.number("kind")?;
        let author = params.public_key("author")?;
        let identifier = params.optional_text("identifier")?;
        params.finish("replaceable")?;
        let kind = u16::try_from(kind).map_err(|_| fault("kind", "it must be less than 65536"))?;
        let mut filter = Filter::new().kind(kind.into()).author(author);
        if let Some(identifier) = identifier {
            filter = filter.identifier(identifier);
        }
        Ok(or_null(self.records(filter, 1).await?.into_iter().next()))
    }

    async fn records(&self, filter: Filter, limit: usize) -> Result<Vec<Record>, Failure> {
        let limit = filter.limit.map_or(limit, |own| own.min(limit));
        let now_secs = self.runtime.clock().now().unix_secs;
        let mut records = Vec::new();
        let mut after: Option<Cursor> = None;
        while records.len() < limit {
            let query = Query {
                filter: filter.clone(),
                after,
                limit: limit - records.len(),
                bytes_max: PAGE_BYTES_MAX,
                now_secs,
                view: View::all(),
            };
            let page = self.runtime.store().query(query).await?;
            records.extend(page.records);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(records)
    }
}

/// The objects of a JSON array, or the one object that it is.
fn split(text: &Bytes) -> Result<Vec<&str>, Failure> {
    let text = std::str::from_utf8(text).map_err(|error| fault("events", &error.to_string()))?;
    if text.trim_start().starts_with('{') {
        return Ok(vec![text]);
    }
    let list: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|error| fault("events", &format!("it must be the JSON of an event, or an array of them: {error}")))?;
    Ok(list.into_iter().map(RawValue::get).collect())
}

fn or_null(record: Option<Record>) -> JsValue {
    record.map_or(JsValue::NULL, |record| JsValue::from_str(&String::from_utf8_lossy(&record.json)))
}
