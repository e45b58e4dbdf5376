//! Errors, as JavaScript gets them.

use serde::Serialize;
use wasm_bindgen::JsValue;

use crate::job::JobError;
use crate::store::packed::{Condition, PackedError, PackedFault};

/// Why a call was rejected: an object with these fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    /// What kind of failure it is, in a stable word.
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    relay: Option<String>,
    /// May the same call succeed later?
    retryable: bool,
}

impl Failure {
    /// A mistake of the caller's.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { code: "invalid-argument", message: message.into(), relay: None, retryable: false }
    }

    /// A mistake of the caller's, about a relay.
    pub(super) fn of_relay(message: impl Into<String>, relay: &str) -> Self {
        Self { relay: Some(relay.to_owned()), ..Self::invalid(message) }
    }

    /// It is closed.
    pub(super) fn closed() -> Self {
        Self { code: "closed", message: "it is closed; open it anew".into(), relay: None, retryable: false }
    }

    /// The store of this name failed.
    pub(super) fn of_store(name: &str, fault: PackedFault) -> Self {
        PackedError { name: name.into(), fault }.into()
    }

    /// The same; where the store failed, by what is known of it.
    pub(super) fn by_condition(self, condition: &Condition) -> Self {
        match condition {
            Condition::Full(_) if self.code == "storage" => Self { code: "storage-full", ..self },
            Condition::Deposed if self.code == "storage" => Self { code: "deposed", retryable: false, ..self },
            _ => self,
        }
    }

    /// A bug.
    pub(super) fn internal(message: &str) -> Self {
        let message = format!("the core has failed, and has to be opened anew: {message}");
        Self { code: "internal", message, relay: None, retryable: false }
    }
}

impl From<PackedError> for Failure {
    fn from(error: PackedError) -> Self {
        let code = match &error.fault {
            PackedFault::Quota(_) => "storage-full",
            PackedFault::Deposed => "deposed",
            _ => "storage",
        };
        Self { code, message: error.to_string(), relay: None, retryable: error.fault.is_passing() }
    }
}

impl From<JobError> for Failure {
    fn from(error: JobError) -> Self {
        let code = match &error {
            JobError::TooMany("jobs", _) => error.code(),
            JobError::NoRelays | JobError::NoFilters | JobError::TooMany(..) | JobError::Filter(_) => {
                "invalid-argument"
            }
            _ => error.code(),
        };
        Self { code, message: error.to_string(), relay: None, retryable: error.is_retryable() }
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> Self {
        // Strings and booleans only; if even they cannot be made, the words have to do.
        serde_wasm_bindgen::to_value(&failure).unwrap_or_else(|_| failure.message.into())
    }
}
