//! Accepts connections and answers one request on each.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::AdminConfig;
use super::exposition;
use super::health;
use super::metrics::Metrics;
use super::process::Process;
use super::report::DaemonReport;
use crate::native::NativeClock;
use crate::native::rpc::{Rpc, Way};
use crate::runtime::Clock;

/// hyper takes no less.
const REQUEST_BYTES_MIN: usize = 8 << 10;
const TEXT: &str = "text/plain; charset=utf-8";
const PATHS: &str = "/metrics\n/healthz\n/readyz\n/status\n";

/// Answers questions about the daemon.
#[derive(Debug)]
pub(super) struct Desk {
    metrics: Mutex<Metrics>,
    config: AdminConfig,
    clock: NativeClock,
    reports: watch::Receiver<Arc<DaemonReport>>,
    rpc: Option<Rpc>,
}

/// The report as JSON, with its verdict.
#[derive(Serialize)]
struct Status<'r> {
    complete: bool,
    #[serde(flatten)]
    report: &'r DaemonReport,
}

impl Status<'_> {
    /// Anybody may ask: of what access rules deny, how much it is, and not what, or whose.
    fn json(&self) -> serde_json::Result<String> {
        let mut json = serde_json::to_value(self)?;
        for relay in json["relays"].as_array_mut().into_iter().flatten() {
            let Some(relay) = relay.as_object_mut() else { continue };
            let denied = relay.remove("denied").and_then(|denied| denied.as_array().map(Vec::len));
            relay.insert("denied_count".to_owned(), denied.unwrap_or(0).into());
        }
        Ok(json.to_string())
    }
}

impl Desk {
    pub(super) fn new(
        config: AdminConfig,
        clock: NativeClock,
        reports: watch::Receiver<Arc<DaemonReport>>,
        rpc: Option<Rpc>,
    ) -> Self {
        let metrics = Metrics::new(config.prefix.clone(), config.relays_named_max);
        Self { metrics: Mutex::new(metrics), config, clock, reports, rpc }
    }

    /// Accepts for as long as it is polled.
    pub(super) async fn run(self, listener: TcpListener) {
        let desk = Arc::new(self);
        let mut connections = JoinSet::new();
        loop {
            let has_room = connections.len() < desk.config.connections_max.max(1);
            tokio::select! {
                Some(ended) = connections.join_next() => report_panic(ended),
                accepted = listener.accept(), if has_room => match accepted {
                    Ok((socket, _)) => drop(connections.spawn(desk.clone().talk(socket))),
                    Err(error) => {
                        tracing::warn!("cannot accept a connection for the admin server: {error}");
                        tokio::time::sleep(desk.config.accept_retry).await;
                    }
                },
            }
        }
    }

    async fn talk(self: Arc<Self>, socket: TcpStream) {
        let local = match socket.local_addr() {
            Ok(local) => local,
            Err(error) => return tracing::debug!("a question to the admin server: {error}"),
        };
        let answer = |request: Request<Incoming>| {
            let desk = self.clone();
            async move { Ok::<_, Infallible>(desk.take(request, local).await) }
        };
        let mut http = http1::Builder::new();
        // Whoever asks again connects again: nobody holds a place that he does not use.
        http.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(self.config.connection_time_max);
        http.max_buf_size(self.config.request_bytes_max.max(REQUEST_BYTES_MIN));
        let talk = http.serve_connection(TokioIo::new(socket), service_fn(answer));
        match timeout(self.config.connection_time_max, talk).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("a question to the admin server: {error}"),
            Err(_) => tracing::debug!("a question to the admin server took too long"),
        }
    }

    /// Answers a question, or a call to the control plane.
    async fn take(&self, request: Request<Incoming>, local: SocketAddr) -> Response<Full<Bytes>> {
        match &self.rpc {
            Some(rpc) if request.uri().path() == "/" && request.method() == Method::POST => {
                rpc.answer(request, Way::Http { local, encrypted: false }).await
            }
            _ => self.answer(request.method(), request.uri().path()),
        }
    }

    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return body(StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET it\n".to_owned());
        }
        let report = self.reports.borrow().clone();
        match path {
            "/" => body(StatusCode::OK, TEXT, PATHS.to_owned()),
            "/metrics" => {
                let mut metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
                body(StatusCode::OK, exposition::CONTENT_TYPE, metrics.page(&report, Process::read()))
            }
            "/healthz" => judged(health::alive(&report, self.clock.now().instant, &self.config)),
            "/readyz" => judged(health::ready(&report, self.clock.now().instant, &self.config)),
            "/status" => status(&report),
            _ => body(StatusCode::NOT_FOUND, TEXT, format!("there are only\n{PATHS}")),
        }
    }
}

fn judged(judgement: Result<(), String>) -> Response<Full<Bytes>> {
    match judgement {
        Ok(()) => body(StatusCode::OK, TEXT, "ok\n".to_owned()),
        Err(why) => body(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
    }
}

fn status(report: &DaemonReport) -> Response<Full<Bytes>> {
    match (Status { complete: report.is_complete(), report }.json()) {
        Ok(json) => body(StatusCode::OK, "application/json", json),
        Err(error) => body(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{error}\n")),
    }
}

fn body(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The words of relays are in there: a browser must not take them for a page.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!("a connection of the admin server ended badly: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::admin::samples;

    #[test]
    fn what_is_denied_is_a_number_for_whoever_asks_without_a_key() {
        let mut relay = samples::relay("wss://a.example");
        relay.denied = vec!["kinds 5000 of aa4fc8 are not fetched".to_owned(), "nor published".to_owned()];
        let report = samples::daemon(vec![relay]);
        let json = Status { complete: false, report: &report }.json().unwrap();
        assert!(json.contains("\"denied_count\":2") && !json.contains("aa4fc8"), "{json}");
        let read: DaemonReport = serde_json::from_str(&json).unwrap();
        assert_eq!(read.relays[0].denied, [""; 0]);
    }
}
