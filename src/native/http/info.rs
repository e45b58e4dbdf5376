//! Fetching a relay information document (NIP-11).

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, header};
use url::Url;

use super::exchange;
use crate::native::config::SocketConfig;
use crate::native::link::Link;
use crate::native::websocket::USER_AGENT;
use crate::protocol::RelayUrl;
use crate::runtime::ConnectError;

/// Asks over `link` for the document of `url`. No redirect is followed: the document belongs to the very address.
pub(in crate::native) async fn relay_info(
    link: Link,
    url: &RelayUrl,
    config: &SocketConfig,
) -> Result<String, ConnectError> {
    let answer = exchange(link, request(url)?, config.info_bytes_max).await.map_err(|error| fault(&error))?;
    if !answer.status.is_success() {
        return Err(ConnectError::Handshake(format!("HTTP {}", answer.status)));
    }
    if !answer.is_whole {
        let most = config.info_bytes_max;
        return Err(ConnectError::Handshake(format!("relay information of more than {most} bytes")));
    }
    String::from_utf8(answer.body.into()).map_err(|_| ConnectError::Handshake("relay information is not UTF-8".into()))
}

fn request(url: &RelayUrl) -> Result<Request<Full<Bytes>>, ConnectError> {
    let url = Url::parse(url.as_str()).map_err(|error| fault(&error))?;
    let host = url.host_str().unwrap_or_default();
    let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    Request::get(path)
        .header(header::HOST, authority)
        .header(header::ACCEPT, "application/nostr+json")
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::CONNECTION, "close")
        .body(Full::default())
        .map_err(|error| fault(&error))
}

fn fault(error: &dyn std::error::Error) -> ConnectError {
    ConnectError::Handshake(format!("relay information: {error}"))
}
