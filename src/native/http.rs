//! Fetching a relay information document (NIP-11): one GET, bounded in size by the configuration, in time by the
//! caller.

use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use url::Url;

use super::config::SocketConfig;
use super::dial::Link;
use super::websocket::USER_AGENT;
use crate::protocol::RelayUrl;
use crate::runtime::ConnectError;

/// Bytes of an answer's head, at most.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// Asks over `link` for the document of `url`. No redirect is followed: the document belongs to the very address.
pub(super) async fn relay_info(link: Link, url: &RelayUrl, config: &SocketConfig) -> Result<String, ConnectError> {
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake::<_, Empty<&[u8]>>(TokioIo::new(link))
        .await
        .map_err(|error| fault(&error))?;
    let request = request(url)?;
    let body = async move {
        let response = sender.send_request(request).await.map_err(|error| fault(&error))?;
        if !response.status().is_success() {
            return Err(ConnectError::Handshake(format!("HTTP {}", response.status())));
        }
        let body = Limited::new(response.into_body(), config.info_bytes_max).collect().await.map_err(|error| {
            ConnectError::Handshake(format!("relay information, {} bytes at most: {error}", config.info_bytes_max))
        })?;
        String::from_utf8(body.to_bytes().into())
            .map_err(|_| ConnectError::Handshake("relay information is not UTF-8".into()))
    };
    // The connection lives only as long as this future, so dropping that frees it.
    tokio::pin!(body, connection);
    tokio::select! {
        result = &mut body => result,
        // It has ended: what it read is with the body now, or an error is.
        _ = &mut connection => body.await,
    }
}

fn request(url: &RelayUrl) -> Result<Request<Empty<&'static [u8]>>, ConnectError> {
    let url = Url::parse(url.as_str()).map_err(|error| fault(&error))?;
    let host = url.host_str().unwrap_or_default();
    let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    Request::get(path)
        .header(header::HOST, authority)
        .header(header::ACCEPT, "application/nostr+json")
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::CONNECTION, "close")
        .body(Empty::new())
        .map_err(|error| fault(&error))
}

fn fault(error: &dyn std::error::Error) -> ConnectError {
    ConnectError::Handshake(format!("relay information: {error}"))
}
