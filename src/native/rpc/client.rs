//! Calling a daemon over its unix socket.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT as USER_AGENT_HEADER};
use hyper::{Request, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use tokio::net::UnixStream;

use super::body::RPC_TYPE;
use super::methods::{Asked, Blame, Fault};
use crate::native::http::exchange;
use crate::native::websocket::USER_AGENT;

/// The largest answer taken, in bytes: a thousand peers with all that is known of them.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Why there is no result.
#[derive(Debug)]
pub(in crate::native) enum AskError {
    /// No daemon listens there.
    Nobody,
    /// The socket cannot be used.
    Socket(io::Error),
    /// What came is no answer.
    Answer(String),
    /// The daemon did not carry it out.
    Fault(Fault),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("no daemon listens there"),
            Self::Socket(error) => error.fmt(f),
            Self::Answer(words) => f.write_str(words),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    result: Value,
    error: Option<String>,
}

/// Has the daemon that listens at `path` carry out a call, within `time_max`.
///
/// # Errors
/// It does not, or there is none.
pub(in crate::native) async fn ask(path: &Path, asked: &Asked, time_max: Duration) -> Result<Value, AskError> {
    let asking = async {
        let socket = UnixStream::connect(path).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => AskError::Nobody,
            _ => AskError::Socket(error),
        })?;
        let request = request(asked)?;
        let answer = exchange(socket, request, ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(|error| AskError::Answer(format!("the daemon does not answer: {error}")))?;
        result(answer.status, &answer.body)
    };
    let late = || AskError::Answer(format!("the daemon does not answer within {} s", time_max.as_secs()));
    tokio::time::timeout(time_max, asking).await.unwrap_or_else(|_| Err(late()))
}

fn request(asked: &Asked) -> Result<Request<Full<bytes::Bytes>>, AskError> {
    let fault = |error: &dyn fmt::Display| AskError::Answer(format!("the call cannot be written: {error}"));
    let body = serde_json::to_vec(asked).map_err(|error| fault(&error))?;
    let request = Request::post("/")
        .header(HOST, "localhost")
        .header(USER_AGENT_HEADER, USER_AGENT)
        .header(CONTENT_TYPE, RPC_TYPE)
        .body(Full::new(body.into()));
    request.map_err(|error| fault(&error))
}

fn result(status: StatusCode, body: &[u8]) -> Result<Value, AskError> {
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|error| AskError::Answer(format!("what answers is no daemon of relaysync ({status}): {error}")))?;
    let blame = match status {
        StatusCode::OK => return Ok(answer.result),
        StatusCode::BAD_REQUEST => Blame::Call,
        StatusCode::NOT_FOUND => Blame::Name,
        StatusCode::CONFLICT => Blame::Circumstances,
        _ => Blame::Us,
    };
    let words = answer.error.unwrap_or_else(|| status.to_string());
    Err(AskError::Fault(Fault { blame, words }))
}
