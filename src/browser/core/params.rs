//! Reads what JavaScript gives, strictly: what is unknown or wrong is an error that names it.

use std::collections::BTreeSet;
use std::time::Duration;

use js_sys::{Array, JSON, Object};
use wasm_bindgen::prelude::*;

use crate::browser::failure::Failure;
use crate::browser::js;
use crate::protocol::event::{EventId, PublicKey};
use crate::protocol::{Filter, RelayUrl, filter};

/// The largest integer that JavaScript's numbers hold without a gap.
const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// The fields of an object, each read at most once. [`Params::finish`] has to follow the last.
pub(super) struct Params {
    object: Object,
    unread: BTreeSet<String>,
    read: Vec<&'static str>,
}

impl Params {
    /// The fields of `value`; `what` it is, for the error.
    ///
    /// # Errors
    /// It is no object.
    pub(super) fn of(value: &JsValue, what: &str) -> Result<Self, Failure> {
        let object = value.dyn_ref::<Object>().filter(|_| !value.is_function() && !Array::is_array(value));
        let object = object.ok_or_else(|| Failure::invalid(format!("{what} must be an object")))?;
        let unread = Object::keys(object).iter().filter_map(|name| name.as_string()).collect();
        Ok(Self { object: object.clone(), unread, read: Vec::new() })
    }

    /// There is nothing else.
    ///
    /// # Errors
    /// Names what was not read.
    pub(super) fn finish(self, what: &str) -> Result<(), Failure> {
        let Some(name) = self.unread.first() else { return Ok(()) };
        let known = self.read.join(", ");
        Err(Failure::invalid(format!("{what} has no parameter {name:?}; it has {known}")))
    }

    /// A field; `None` if it is left out, `undefined` or `null`.
    pub(super) fn optional(&mut self, name: &'static str) -> Result<Option<JsValue>, Failure> {
        self.unread.remove(name);
        self.read.push(name);
        let value = js::field(&self.object, name).map_err(|thrown| fault(name, &js::words(&thrown)))?;
        Ok((!value.is_undefined() && !value.is_null()).then_some(value))
    }

    /// A field that has to be there.
    pub(super) fn required(&mut self, name: &'static str) -> Result<JsValue, Failure> {
        self.optional(name)?.ok_or_else(|| fault(name, "it is missing"))
    }

    /// A string.
    pub(super) fn text(&mut self, name: &'static str) -> Result<String, Failure> {
        self.required(name)?.as_string().ok_or_else(|| fault(name, "it must be a string"))
    }

    /// A string that may be left out.
    pub(super) fn optional_text(&mut self, name: &'static str) -> Result<Option<String>, Failure> {
        let value = self.optional(name)?;
        value.map(|value| value.as_string().ok_or_else(|| fault(name, "it must be a string"))).transpose()
    }

    /// A whole number from zero on that may be left out.
    pub(super) fn optional_number(&mut self, name: &'static str) -> Result<Option<u64>, Failure> {
        let Some(value) = self.optional(name)? else { return Ok(None) };
        match value.as_f64() {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number in bounds")]
            Some(number) if number.fract() == 0.0 && (0.0..=INTEGER_MAX).contains(&number) => Ok(Some(number as u64)),
            _ => Err(fault(name, "it must be a whole number, not less than zero")),
        }
    }

    /// A whole number from zero on.
    pub(super) fn number(&mut self, name: &'static str) -> Result<u64, Failure> {
        self.optional_number(name)?.ok_or_else(|| fault(name, "it is missing"))
    }

    /// A number of things or bytes that may be left out.
    pub(super) fn size(&mut self, name: &'static str) -> Result<Option<usize>, Failure> {
        let number = self.optional_number(name)?;
        Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
    }

    /// Sets durations to a number of milliseconds, if it is there.
    pub(super) fn set_duration<const N: usize>(
        &mut self,
        name: &'static str,
        durations: [&mut Duration; N],
    ) -> Result<(), Failure> {
        if let Some(ms) = self.optional_number(name)? {
            durations.into_iter().for_each(|duration| *duration = Duration::from_millis(ms));
        }
        Ok(())
    }

    /// Sets a number of things or bytes, if it is there.
    pub(super) fn set_size(&mut self, name: &'static str, size: &mut usize) -> Result<(), Failure> {
        *size = self.size(name)?.unwrap_or(*size);
        Ok(())
    }

    /// Yes or no; may be left out.
    pub(super) fn optional_bool(&mut self, name: &'static str) -> Result<Option<bool>, Failure> {
        let value = self.optional(name)?;
        value.map(|value| value.as_bool().ok_or_else(|| fault(name, "it must be true or false"))).transpose()
    }

    /// An event's id, in hexadecimal.
    pub(super) fn event_id(&mut self, name: &'static str) -> Result<[u8; 32], Failure> {
        let id = EventId::from_hex(&self.text(name)?).map_err(|error| fault(name, &error.to_string()))?;
        Ok(id.to_bytes())
    }

    /// An author's key, in hexadecimal.
    pub(super) fn public_key(&mut self, name: &'static str) -> Result<PublicKey, Failure> {
        PublicKey::from_hex(&self.text(name)?).map_err(|error| fault(name, &error.to_string()))
    }

    /// A list of authors' keys, in hexadecimal, that may be left out.
    pub(super) fn public_keys(&mut self, name: &'static str) -> Result<Vec<PublicKey>, Failure> {
        let parse = |text: &String| PublicKey::from_hex(text).map_err(|error| fault(name, &error.to_string()));
        self.texts(name)?.iter().map(parse).collect()
    }

    /// A list of filters, or one.
    pub(super) fn filters(&mut self, name: &'static str) -> Result<Vec<Filter>, Failure> {
        let value = self.required(name)?;
        let Some(list) = value.dyn_ref::<Array>() else { return Ok(vec![parse_filter(name, &value)?]) };
        if list.length() == 0 {
            return Err(fault(name, "it is an empty list, which selects nothing"));
        }
        let filter = |(place, value)| parse_filter(&format!("{name}[{place}]"), &value);
        list.iter().enumerate().map(filter).collect()
    }

    /// One filter.
    pub(super) fn filter(&mut self, name: &'static str) -> Result<Filter, Failure> {
        parse_filter(name, &self.required(name)?)
    }

    /// A list of strings that may be left out.
    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, Failure> {
        let Some(value) = self.optional(name)? else { return Ok(Vec::new()) };
        let list = value.dyn_into::<Array>().map_err(|_| fault(name, "it must be a list"))?;
        let text = |value: JsValue| value.as_string().ok_or_else(|| fault(name, "it must be a list of strings"));
        list.iter().map(text).collect()
    }

    /// A list of relays' URLs.
    pub(super) fn relays(&mut self, name: &'static str) -> Result<Vec<RelayUrl>, Failure> {
        let parse =
            |text: &String| RelayUrl::parse(text).map_err(|error| Failure::of_relay(format!("{name}: {error}"), text));
        self.texts(name)?.iter().map(parse).collect()
    }
}

/// An error that names what is at fault.
pub(super) fn fault(name: &str, reason: &str) -> Failure {
    Failure::invalid(format!("{name}: {reason}"))
}

/// Fields that are `undefined` are none, as everywhere in JavaScript.
fn parse_filter(name: &str, value: &JsValue) -> Result<Filter, Failure> {
    let json = JSON::stringify(value).ok().and_then(|json| JsValue::from(json).as_string());
    let json = json.ok_or_else(|| fault(name, "it must be a filter, like {\"kinds\":[1]}"))?;
    filter::parse_strict(&json).map_err(|error| fault(name, &error.to_string()))
}
