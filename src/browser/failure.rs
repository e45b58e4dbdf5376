//! Errors, as JavaScript gets them.

use serde::Serialize;
use wasm_bindgen::JsValue;

/// Why a call was rejected: an object with these fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Failure {
    code: Code,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    relay: Option<String>,
    retryable: bool,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Code {
    /// What was asked for is not as it has to be: the caller's mistake.
    Invalid,
    /// It is closed already.
    Closed,
    /// The store failed.
    Storage,
    /// A bug: nothing works any more until it is opened anew.
    Internal,
}

impl Failure {
    /// A mistake of the caller's.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::Invalid, message, false)
    }

    /// It is closed.
    pub(super) fn closed() -> Self {
        Self::new(Code::Closed, "it is closed; open it anew", false)
    }

    /// The store failed.
    pub(super) fn storage(error: &dyn std::error::Error) -> Self {
        Self::new(Code::Storage, error.to_string(), true)
    }

    /// A bug.
    pub(super) fn internal(message: &str) -> Self {
        Self::new(Code::Internal, format!("the core has failed, and has to be opened anew: {message}"), false)
    }

    fn new(code: Code, message: impl Into<String>, retryable: bool) -> Self {
        Self { code, message: message.into(), relay: None, retryable }
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> Self {
        // Strings and booleans only; if even they cannot be made, the words have to do.
        serde_wasm_bindgen::to_value(&failure).unwrap_or_else(|_| failure.message.into())
    }
}
