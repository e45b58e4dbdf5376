//! The bodies of calls and of answers.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::methods::{Blame, Fault};

/// The content type of calls and answers (NIP-86).
pub(super) const RPC_TYPE: &str = "application/nostr+json+rpc";

/// Why a call is turned away before it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) words: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self { status, words: words.into() }
    }

    /// Who calls has not shown who he is.
    pub(super) fn unproven(words: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, words)
    }
}

/// All of a body, of `bytes_max` bytes at most, within `time_max`.
pub(super) async fn read<B>(body: B, bytes_max: usize, time_max: Duration) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes, Error: Error>,
{
    let too_large = || {
        let words = format!("the call has more than {bytes_max} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, words)
    };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large());
    }
    let reading = async {
        let mut body = std::pin::pin!(body);
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            let cut = |error| Refusal::new(StatusCode::BAD_REQUEST, format!("the call was cut off: {error}"));
            let Ok(data) = frame.map_err(cut)?.into_data() else { continue };
            if data.len() > bytes_max - read.len() {
                return Err(too_large());
            }
            read.extend_from_slice(&data);
        }
        Ok(read.into())
    };
    let late = || Refusal::new(StatusCode::REQUEST_TIMEOUT, "the call did not come in time");
    tokio::time::timeout(time_max, reading).await.unwrap_or_else(|_| Err(late()))
}

/// The answer to a call.
pub(super) fn answer(result: Result<Value, Fault>) -> Response<Full<Bytes>> {
    match result {
        Ok(result) => respond(StatusCode::OK, &json!({ "result": result })),
        Err(Fault { blame, words }) => {
            let status = match blame {
                Blame::Call => StatusCode::BAD_REQUEST,
                Blame::Name => StatusCode::NOT_FOUND,
                Blame::Circumstances => StatusCode::CONFLICT,
                Blame::Us => StatusCode::INTERNAL_SERVER_ERROR,
            };
            respond(status, &json!({ "result": null, "error": words }))
        }
    }
}

/// The answer to a call that is turned away.
pub(super) fn refuse(refusal: &Refusal) -> Response<Full<Bytes>> {
    let mut response = respond(refusal.status, &json!({ "result": null, "error": refusal.words }));
    if refusal.status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Nostr"));
    }
    if refusal.status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn respond(status: StatusCode, answer: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.to_string().into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
