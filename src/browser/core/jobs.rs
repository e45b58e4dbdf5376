//! Jobs and watches: what is to be held, and what was stored of it.

use std::time::Duration;

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::params::{Params, fault};
use super::{Open, plain};
use crate::browser::failure::Failure;
use crate::engine::Direction;
use crate::job::{JobSpec, Moment, Taken, What};
use crate::protocol::Address;
use crate::store::{Method, Sequence};

/// Where a job begins to give out.
#[derive(Debug, Serialize)]
struct Begun {
    cursor: Sequence,
}

/// What a job gives out.
#[derive(Debug, Serialize)]
struct Given {
    events: String,
    from: Vec<Option<String>>,
    live: Vec<bool>,
    cursor: Sequence,
}

impl Open {
    /// Begins a job over filters.
    pub(super) async fn job(&self, mut params: Params) -> Result<JsValue, Failure> {
        let id = params.text("id")?;
        let spec = JobSpec {
            what: What::Filters(params.filters("filters")?),
            relays: params.relays("relays")?,
            live: params.optional_bool("live")?.unwrap_or(false),
            direction: direction(&mut params)?,
            method: method(&mut params)?,
            timeout: params.optional_number("timeoutMs")?.map(Duration::from_millis),
            after: params.optional_number("after")?,
        };
        params.finish("job")?;
        self.begin(&id, spec).await
    }

    /// Begins a job over repositories.
    pub(super) async fn repos(&self, mut params: Params) -> Result<JsValue, Failure> {
        let id = params.text("id")?;
        let parse = |text: &String| Address::parse(text).map_err(|error| fault("addresses", &error.to_string()));
        let addresses = params.texts("addresses")?.iter().map(parse).collect::<Result<_, _>>()?;
        let authors = params.public_keys("authors")?.iter().map(|key| key.to_bytes()).collect();
        let spec = JobSpec {
            what: What::Repos { addresses, authors },
            relays: params.relays("bootstrapRelays")?,
            live: params.optional_bool("live")?.unwrap_or(false),
            after: params.optional_number("after")?,
            ..JobSpec::default()
        };
        params.finish("repos")?;
        self.begin(&id, spec).await
    }

    async fn begin(&self, id: &str, spec: JobSpec) -> Result<JsValue, Failure> {
        plain(&Begun { cursor: self.jobs.start(id, spec).await? })
    }

    /// Gives out what is stored, by whatever way.
    pub(super) async fn watch(&self, mut params: Params) -> Result<JsValue, Failure> {
        let (id, filters) = (params.text("id")?, params.filters("filters")?);
        let after = params.optional_number("after")?;
        params.finish("watch")?;
        plain(&Begun { cursor: self.jobs.watch(&id, filters, after).await? })
    }

    /// Ends a watch.
    pub(super) fn unwatch(&self, mut params: Params) -> Result<JsValue, Failure> {
        let id = params.text("id")?;
        params.finish("unwatch")?;
        self.jobs.unwatch(&id)?;
        Ok(super::nothing())
    }

    /// Waits for what a job or watch has to give out.
    pub(super) async fn take(&self, mut params: Params) -> Result<JsValue, Failure> {
        let id = params.text("id")?;
        let events_max = params.size("eventsMax")?.unwrap_or(self.config.take_events_max);
        let bytes_max = params.size("bytesMax")?.unwrap_or(self.config.take_bytes_max);
        params.finish("take")?;
        match self.jobs.take(&id, events_max.max(1), bytes_max).await? {
            Some(taken) => plain(&given(taken)),
            None => Ok(JsValue::NULL),
        }
    }

    /// How a job stands.
    pub(super) fn progress(&self, mut params: Params) -> Result<JsValue, Failure> {
        let id = params.text("id")?;
        params.finish("progress")?;
        plain(&self.jobs.report(&id)?)
    }

    /// Waits until a job is caught up, or over.
    pub(super) async fn settled(&self, mut params: Params) -> Result<JsValue, Failure> {
        let id = params.text("id")?;
        let moment = match &*params.text("moment")? {
            "caughtUp" => Moment::CaughtUp,
            "done" => Moment::Done,
            other => return Err(fault("moment", &format!("there is no {other:?}; there are caughtUp and done"))),
        };
        params.finish("settled")?;
        plain(&self.jobs.settled(&id, moment).await?)
    }

    /// Ends a job.
    pub(super) fn stop(&self, mut params: Params) -> Result<JsValue, Failure> {
        let id = params.text("id")?;
        params.finish("stop")?;
        self.jobs.stop(&id)?;
        Ok(super::nothing())
    }
}

fn direction(params: &mut Params) -> Result<Direction, Failure> {
    match params.optional_text("direction")?.as_deref() {
        None | Some("down") => Ok(Direction::Down),
        Some("up") => Ok(Direction::Up),
        Some("both") => Ok(Direction::Both),
        Some(other) => Err(fault("direction", &format!("there is no {other:?}; there are down, up and both"))),
    }
}

fn method(params: &mut Params) -> Result<Option<Method>, Failure> {
    match params.optional_text("negentropy")?.as_deref() {
        None | Some("auto") => Ok(None),
        Some("only") => Ok(Some(Method::Negentropy)),
        Some("never") => Ok(Some(Method::Req)),
        Some(other) => Err(fault("negentropy", &format!("there is no {other:?}; there are auto, only and never"))),
    }
}

fn given(taken: Taken) -> Given {
    Given {
        events: super::array(taken.records.iter().map(|record| &record.json)),
        from: taken.from.into_iter().map(|relay| relay.map(|relay| relay.to_string())).collect(),
        live: taken.live,
        cursor: taken.cursor,
    }
}
