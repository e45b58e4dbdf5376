//! Asking by HTTP: one request on a connection, an answer that is bounded in size by the configuration, in time by the
//! caller.

mod client;
mod info;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

pub(super) use self::client::{HttpClient, HttpUrl};
pub(super) use self::info::relay_info;

/// Bytes of an answer's head, at most.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// What a server has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// The body, or its beginning.
    pub(super) body: Bytes,
    /// Is that all of it?
    pub(super) is_whole: bool,
}

/// Sends `request` over `link` and reads the answer, of its body `body_bytes_max` at most. No redirect is followed.
pub(super) async fn exchange(
    link: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    body_bytes_max: usize,
) -> Result<Answer, hyper::Error> {
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(link)).await?;
    let answer = async move {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let (body, is_whole) = read_body(response.into_body(), body_bytes_max).await?;
        Ok(Answer { status, body, is_whole })
    };
    // The connection lives only as long as this future, so dropping that frees it.
    tokio::pin!(answer, connection);
    tokio::select! {
        result = &mut answer => result,
        // It has ended: what it read is with the body now, or an error is.
        _ = &mut connection => answer.await,
    }
}

/// As much of the body as is taken, and whether that is all.
async fn read_body(mut body: Incoming, bytes_max: usize) -> Result<(Bytes, bool), hyper::Error> {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let room = bytes_max - read.len();
        read.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Ok((read.into(), false));
        }
    }
    Ok((read.into(), true))
}
