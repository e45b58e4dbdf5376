//! Asking servers that are named by `http` and `https` URLs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request, header};
use url::Url;

use super::{Answer, exchange};
use crate::native::config::{ConfigError, SocketConfig};
use crate::native::link::Link;
use crate::native::tls::Tls;
use crate::native::websocket::USER_AGENT;
use crate::protocol::RelayUrl;
use crate::runtime::ConnectError;

/// An `http` or `https` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::native) struct HttpUrl {
    url: Url,
    /// The same host and port as a relay's: whom to connect to.
    dial: RelayUrl,
}

impl HttpUrl {
    /// Parses a URL; says what is wrong with it otherwise.
    pub(in crate::native) fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("invalid URL {text:?}: {error}"))?;
        let scheme = match url.scheme() {
            "http" => "ws",
            "https" => "wss",
            _ => return Err(format!("invalid URL {text:?}: the scheme must be http or https")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!("invalid URL {text:?}: it carries no user name or password"));
        }
        let port = url.port_or_known_default().unwrap_or_default();
        let dial = RelayUrl::parse(&format!("{scheme}://{}:{port}", url.host_str().unwrap_or_default()));
        Ok(Self { url, dial: dial.map_err(|error| error.to_string())? })
    }

    /// The URL whose path is `path`, behind this one's.
    pub(in crate::native) fn join(&self, path: &str) -> Self {
        let mut joined = self.clone();
        joined.url.set_path(&format!("{}/{path}", self.url.path().trim_end_matches('/')));
        joined
    }

    fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    fn target(&self) -> String {
        let path = self.url.path();
        self.url.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(in crate::native) enum HttpError {
    /// No connection came about.
    Connect(ConnectError),
    /// The request or the answer was cut off, or is no HTTP.
    Http(Box<dyn std::error::Error + Send + Sync>),
    /// It took longer than this.
    TimedOut(Duration),
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::Http(error) => error.fmt(f),
            Self::TimedOut(time) => write!(f, "no answer within {} s", time.as_secs_f32()),
        }
    }
}

/// Asks servers. Cheap to clone. Needs a tokio runtime.
#[derive(Clone)]
pub(in crate::native) struct HttpClient {
    config: Arc<SocketConfig>,
    tls: Tls,
}

impl HttpClient {
    /// Loads the trusted certificate authorities.
    pub(in crate::native) fn new(config: SocketConfig) -> Result<Self, ConfigError> {
        let tls = Tls::new(&config)?;
        Ok(Self { config: Arc::new(config), tls })
    }

    /// Gets `url`; takes `body_bytes_max` of the answer's body and `time_max` for all of it.
    pub(in crate::native) async fn get(
        &self,
        url: &HttpUrl,
        body_bytes_max: usize,
        time_max: Duration,
    ) -> Result<Answer, HttpError> {
        self.ask(Method::GET, url, None, body_bytes_max, time_max).await
    }

    /// Posts `json` to `url`; the bounds are as for [`HttpClient::get`].
    pub(in crate::native) async fn post_json(
        &self,
        url: &HttpUrl,
        json: Bytes,
        body_bytes_max: usize,
        time_max: Duration,
    ) -> Result<Answer, HttpError> {
        self.ask(Method::POST, url, Some(json), body_bytes_max, time_max).await
    }

    async fn ask(
        &self,
        method: Method,
        url: &HttpUrl,
        json: Option<Bytes>,
        body_bytes_max: usize,
        time_max: Duration,
    ) -> Result<Answer, HttpError> {
        let request = request(method, url, json).map_err(|error| HttpError::Http(error.into()))?;
        let asking = async {
            let link = Link::open(&url.dial, false, None, &self.config, &self.tls).await.map_err(HttpError::Connect)?;
            exchange(link, request, body_bytes_max).await.map_err(|error| HttpError::Http(error.into()))
        };
        tokio::time::timeout(time_max, asking).await.unwrap_or(Err(HttpError::TimedOut(time_max)))
    }
}

fn request(method: Method, url: &HttpUrl, json: Option<Bytes>) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let mut request = Request::builder()
        .method(method)
        .uri(url.target())
        .header(header::HOST, url.authority())
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::CONNECTION, "close");
    if json.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    request.body(Full::new(json.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::HttpUrl;

    #[test]
    fn a_url_says_whom_to_connect_to_and_what_to_ask() {
        let url = HttpUrl::parse("https://Hooks.Example/a/b?c=d#e").unwrap();
        assert_eq!(url.dial.as_str(), "wss://hooks.example");
        assert_eq!((url.authority().as_str(), url.target().as_str()), ("hooks.example", "/a/b?c=d"));
        let url = HttpUrl::parse("http://[::1]:9464").unwrap().join("status");
        assert_eq!(url.dial.as_str(), "ws://[::1]:9464");
        assert_eq!((url.authority().as_str(), url.target().as_str()), ("[::1]:9464", "/status"));
        for text in ["", "hooks.example", "ws://hooks.example", "http://", "https://a:b@hooks.example"] {
            assert!(HttpUrl::parse(text).is_err(), "{text}");
        }
    }
}
