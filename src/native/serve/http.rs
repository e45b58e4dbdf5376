//! Accepts connections and answers HTTP: the upgrade to a WebSocket, the relay information document (NIP-11), and a
//! line of text for a browser.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE,
    HeaderValue, UPGRADE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::crypto::SecureRandom;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::connection::{Connection, Links};
use super::document::Document;
use super::encryption::Encryption;
use super::visitors::{Visit, Visitors};
use super::{ServiceConfig, stopped};
use crate::native::NativeClock;
use crate::native::link::Link;
use crate::native::rpc::{Rpc, Way};
use crate::protocol::hex;
use crate::runtime::Clock;
use crate::serve::ClientId;

/// Lets clients in.
#[derive(Debug)]
pub(super) struct Doors {
    config: Arc<ServiceConfig>,
    links: Links,
    encryption: Encryption,
    rpc: Option<Rpc>,
    is_stopping: watch::Receiver<bool>,
    /// The relay information document.
    document: Arc<Document>,
    random: &'static dyn SecureRandom,
    clock: NativeClock,
    turned_away: Arc<AtomicU64>,
}

/// What is decided of a connection before anything of it is read.
#[derive(Debug)]
struct Welcome {
    /// The status that it is turned away with.
    refusal: Option<StatusCode>,
    _visit: Visit,
}

/// Bytes gathered for a socket before they are written.
const WRITE_BUFFER_BYTES: usize = 64 * 1024;
/// hyper takes no less.
const REQUEST_BYTES_MIN: usize = 8 * 1024;

impl Doors {
    pub(super) fn new(
        config: Arc<ServiceConfig>,
        document: Arc<Document>,
        links: Links,
        encryption: Encryption,
        rpc: Option<Rpc>,
        is_stopping: watch::Receiver<bool>,
        turned_away: Arc<AtomicU64>,
    ) -> Self {
        let random = rustls::crypto::ring::default_provider().secure_random;
        let clock = NativeClock::new();
        Self { config, links, encryption, rpc, is_stopping, document, random, clock, turned_away }
    }

    /// Accepts until the service stops, then waits for the connections to end.
    pub(super) async fn run(self, listener: TcpListener) {
        let doors = Arc::new(self);
        let mut is_stopping = doors.is_stopping.clone();
        let mut connections = JoinSet::new();
        let mut visitors = Visitors::default();
        let mut clients = 0;
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut is_stopping) => break,
                Some(ended) = connections.join_next() => report_panic(ended),
                accepted = listener.accept() => match accepted {
                    Ok((socket, from)) => {
                        clients += 1;
                        if let Some(welcome) = doors.welcome(from.ip(), connections.len(), &mut visitors) {
                            connections.spawn(doors.clone().let_in(socket, ClientId(clients), welcome));
                        }
                    }
                    Err(error) => {
                        tracing::warn!("cannot accept a connection: {error}");
                        tokio::time::sleep(doors.config.accept_retry).await;
                    }
                },
            }
        }
        drop(listener);
        while let Some(ended) = connections.join_next().await {
            report_panic(ended);
        }
    }

    /// Decides about a connection while `others` are open or being turned away; `None` for one to be dropped.
    fn welcome(&self, ip: IpAddr, others: usize, visitors: &mut Visitors) -> Option<Welcome> {
        let is_full = others - visitors.turned_away() >= self.config.clients_max;
        let visit = if is_full { None } else { visitors.admit(ip, &self.config, self.clock.now().instant) };
        if let Some(visit) = visit {
            return Some(Welcome { refusal: None, _visit: visit });
        }
        self.turned_away.fetch_add(1, Ordering::Relaxed);
        let status = if is_full { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::TOO_MANY_REQUESTS };
        let is_flood = visitors.turned_away() >= self.config.turned_away_max;
        (!is_flood).then(|| Welcome { refusal: Some(status), _visit: visitors.turn_away() })
    }

    async fn let_in(self: Arc<Self>, socket: TcpStream, client: ClientId, welcome: Welcome) {
        if let Err(error) = socket.set_nodelay(true) {
            return tracing::debug!("client {} is gone already: {error}", client.0);
        }
        let local = socket.local_addr();
        let mut is_stopping = self.is_stopping.clone();
        let link = tokio::select! {
            link = self.encryption.welcome(socket) => link,
            () = stopped(&mut is_stopping) => return,
        };
        let (local, link) = match local.and_then(|local| Ok((local, link?))) {
            Ok(connected) => connected,
            Err(error) => return tracing::debug!("client {}: {error}", client.0),
        };
        let refusal =
            welcome.refusal.or((link.is_encrypted() != self.encryption.is_on()).then_some(StatusCode::BAD_REQUEST));
        let way = Way::Http { local, encrypted: link.is_encrypted() };
        let upgrade = Mutex::new(None);
        let (doors, upgrade_wanted) = (&self, &upgrade);
        let answer = |request| async move {
            Ok::<_, Infallible>(match refusal {
                None => doors.take(request, way, upgrade_wanted).await,
                Some(StatusCode::BAD_REQUEST) => plain(StatusCode::BAD_REQUEST, "connect by wss:// or https://\n"),
                Some(StatusCode::SERVICE_UNAVAILABLE) => plain(StatusCode::SERVICE_UNAVAILABLE, "too many clients\n"),
                Some(status) => plain(status, "too many connections from your address\n"),
            })
        };
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.config.request_max);
        http.max_buf_size(self.config.request_bytes_max.max(REQUEST_BYTES_MIN));
        let talk = http.serve_connection(TokioIo::new(link), service_fn(answer)).with_upgrades();
        tokio::select! {
            talked = talk => if let Err(error) = talked {
                return tracing::debug!("client {}: {error}", client.0);
            },
            () = stopped(&mut is_stopping) => return,
        }
        let upgrade = upgrade.into_inner().unwrap_or_else(PoisonError::into_inner);
        match upgrade {
            Some(upgrade) => self.serve(upgrade, client).await,
            None => tracing::trace!("client {} asked by HTTP only", client.0),
        }
    }

    async fn serve(&self, upgrade: OnUpgrade, client: ClientId) {
        let mut challenge = [0; 16];
        let socket = match (upgrade.await, self.random.fill(&mut challenge)) {
            (Ok(upgraded), Ok(())) => self.socket(upgraded).await,
            (Err(error), _) => return tracing::debug!("client {} did not upgrade: {error}", client.0),
            (_, Err(_)) => return tracing::error!("the system gives no random numbers"),
        };
        let connection = Connection {
            client,
            links: self.links.clone(),
            frames_at_once_max: self.config.frames_at_once_max.max(1),
            close_max: self.config.close_max,
        };
        match socket {
            Some(socket) => connection.run(socket, hex::encode(&challenge)).await,
            None => tracing::error!("client {} came over something that is no socket", client.0),
        }
    }

    async fn socket(&self, upgraded: Upgraded) -> Option<WebSocketStream<Link>> {
        let bytes_max = Some(self.config.serve.frame_bytes_max);
        let config = WebSocketConfig::default()
            .read_buffer_size(self.config.read_buffer_bytes)
            .write_buffer_size(WRITE_BUFFER_BYTES)
            .max_message_size(bytes_max)
            .max_frame_size(bytes_max);
        let parts = upgraded.downcast::<TokioIo<Link>>().ok()?;
        let read = parts.read_buf.to_vec();
        let socket = parts.io.into_inner();
        Some(WebSocketStream::from_partially_read(socket, read, Role::Server, Some(config)).await)
    }

    /// Answers a call to the control plane, or anything else that is asked.
    async fn take(
        &self,
        request: Request<Incoming>,
        way: Way,
        upgrade: &Mutex<Option<OnUpgrade>>,
    ) -> Response<Full<Bytes>> {
        match &self.rpc {
            Some(rpc) if Rpc::is_call(request.method(), request.headers()) => {
                for_any_origin(rpc.answer(request, way).await)
            }
            _ => self.answer(request, upgrade),
        }
    }

    fn answer(&self, mut request: Request<Incoming>, upgrade: &Mutex<Option<OnUpgrade>>) -> Response<Full<Bytes>> {
        let wants = |name, value: &str| header_has(request.headers(), &name, value);
        if request.method() == Method::OPTIONS {
            return plain(StatusCode::NO_CONTENT, "");
        }
        if wants(UPGRADE, "websocket") {
            let Ok(response) = create_response_with_body(&request, Full::<Bytes>::default) else {
                return plain(StatusCode::BAD_REQUEST, "not a WebSocket handshake\n");
            };
            *upgrade.lock().unwrap_or_else(PoisonError::into_inner) = Some(hyper::upgrade::on(&mut request));
            return response;
        }
        if request.method() != Method::GET {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "GET it, or connect by WebSocket\n");
        }
        if wants(ACCEPT, "application/nostr+json") {
            return body(StatusCode::OK, "application/nostr+json", self.document.json());
        }
        plain(StatusCode::OK, "This is a Nostr relay. Connect to it by WebSocket.\n")
    }
}

fn header_has(headers: &HeaderMap, name: &hyper::header::HeaderName, value: &str) -> bool {
    let has = |text: &str| text.split([',', ';']).any(|part| part.trim().eq_ignore_ascii_case(value));
    headers.get_all(name).iter().any(|header| header.to_str().is_ok_and(has))
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    body(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

fn body(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for_any_origin(response)
}

/// A response that pages of any origin may read, as NIP-11 demands.
fn for_any_origin(mut response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    // The star does not mean the one that signs calls.
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, Authorization"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, OPTIONS"));
    response
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!("a connection's task ended badly: {error}");
    }
}
