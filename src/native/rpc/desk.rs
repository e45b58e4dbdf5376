//! Takes calls, and answers them.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Body;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::Value;
use tokio::sync::Semaphore;
use url::Url;

use super::RpcConfig;
use super::admission::Admission;
use super::authorization::{check_body, check_method, check_url, claimed, proven};
use super::body::{RPC_TYPE, Refusal, answer, read, refuse};
use super::methods::{Asked, Fault, carry_out};
use crate::ingest::Verified;
use crate::native::NativeClock;
use crate::native::control::Control;
use crate::protocol::{Event, PublicKey};
use crate::runtime::{Clock, Now};

/// The control plane for callers. Cheap to clone.
#[derive(Clone)]
pub struct Rpc {
    inner: Arc<Inner>,
}

struct Inner {
    control: Control,
    config: RpcConfig,
    clock: NativeClock,
    admission: Mutex<Admission>,
    /// One for each call that may be carried out at once.
    turns: Semaphore,
}

/// How a call came.
#[derive(Debug, Clone, Copy)]
pub(in crate::native) enum Way {
    /// Over the unix socket, which only its owner can use.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no such sockets"))]
    Socket,
    /// To this address.
    Http { local: SocketAddr, encrypted: bool },
}

impl fmt::Debug for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rpc").field("config", &self.inner.config).finish_non_exhaustive()
    }
}

impl Rpc {
    /// Takes calls to `control`. Which keys may call over HTTP, that says ([`Desired::admins`]).
    ///
    /// [`Desired::admins`]: crate::native::control::Desired::admins
    pub fn new(control: Control, config: RpcConfig) -> Self {
        let clock = NativeClock::new();
        let admission = Mutex::new(Admission::new(clock.now().unix_secs, !control.is_new()));
        let turns = Semaphore::new(config.calls_max.clamp(1, Semaphore::MAX_PERMITS));
        Self { inner: Arc::new(Inner { control, config, clock, admission, turns }) }
    }

    pub(super) fn config(&self) -> &RpcConfig {
        &self.inner.config
    }

    /// Is this request a call?
    pub(in crate::native) fn is_call(method: &Method, headers: &HeaderMap) -> bool {
        let is_ours =
            |text: &str| text.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(RPC_TYPE));
        method == Method::POST && headers.get(CONTENT_TYPE).and_then(|name| name.to_str().ok()).is_some_and(is_ours)
    }

    /// Answers a call, or says why it is not one.
    pub(in crate::native) async fn answer<B>(&self, request: Request<B>, way: Way) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes, Error: Error>,
    {
        match self.serve(request, way).await {
            Ok(result) => answer(result),
            Err(refusal) => {
                let words = refusal.words.clone();
                let (told, refused) = match way {
                    // Who may use it is no stranger.
                    Way::Socket => (refusal, None),
                    Way::Http { .. } => {
                        let (config, now) = (&self.inner.config, self.now());
                        let (told, refused) = self.admission().refuse(refusal, config, now);
                        (told, Some(refused))
                    }
                };
                // Anybody can cause this, as often as he likes.
                tracing::debug!(refused, "a call to the control plane was refused: {words}");
                refuse(&told)
            }
        }
    }

    async fn serve<B>(&self, request: Request<B>, way: Way) -> Result<Result<Value, Fault>, Refusal>
    where
        B: Body<Data = Bytes, Error: Error>,
    {
        let (asked, caller) = self.take(request, way).await?;
        // Nobody closes the semaphore.
        let turn = self.inner.turns.acquire().await;
        let _turn = match turn {
            Ok(turn) => turn,
            Err(error) => return Ok(Err(Fault::broken(error.to_string()))),
        };
        if let Some(caller) = caller {
            // He may have been taken out while he waited.
            self.check_governs(&caller)?;
        }
        Ok(self.carry_out(asked, way).await)
    }

    /// What is asked, if whoever asks may, and by which key, if that matters.
    async fn take<B>(&self, request: Request<B>, way: Way) -> Result<(Asked, Option<PublicKey>), Refusal>
    where
        B: Body<Data = Bytes, Error: Error>,
    {
        if !Self::is_call(request.method(), request.headers()) {
            let words = format!("POST it, with content type {RPC_TYPE}");
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, words));
        }
        let (head, body) = request.into_parts();
        // Nothing of a stranger's call is read.
        let signed = match way {
            Way::Socket => None,
            Way::Http { local, encrypted } => Some(self.identify(&head, local, encrypted)?),
        };
        let config = &self.inner.config;
        let body = read(body, config.body_bytes_max, config.body_time_max).await?;
        if let Some(event) = &signed {
            check_body(event, &body)?;
            self.check_governs(&event.pubkey)?;
            let now = self.now();
            self.admission().admit(event, config, now)?;
        }
        let asked = serde_json::from_slice(&body).map_err(|error| {
            // Its words would repeat what is there, which may be a secret.
            let (line, column) = (error.line(), error.column());
            let form = "{\"method\":\"supportedmethods\",\"params\":[]}";
            let words = format!("this is no call, from line {line}, column {column}, on; write one like {form}");
            Refusal::new(StatusCode::BAD_REQUEST, words)
        })?;
        Ok((asked, signed.map(|event| event.pubkey)))
    }

    /// Who calls: one of the keys that may govern. The signature is looked at last, as it costs the most.
    fn identify(&self, head: &Parts, local: SocketAddr, encrypted: bool) -> Result<Verified<Event>, Refusal> {
        if self.inner.control.desired().admins.is_empty() {
            let words = "nobody may govern this daemon over HTTP: name keys in its settings (control.admins)";
            return Err(Refusal::new(StatusCode::FORBIDDEN, words));
        }
        let event = claimed(&head.headers)?;
        self.check_governs(&event.pubkey)?;
        let (config, now) = (&self.inner.config, self.now());
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        check_url(&event, config.urls.iter().cloned().chain(addressed(local, encrypted, path)))?;
        check_method(&event, head.method.as_str())?;
        self.admission().check(&event, config, now)?;
        self.admission().check_forgeries(config, now)?;
        proven(event).inspect_err(|_| self.admission().note_forgery(config, now))
    }

    fn check_governs(&self, key: &PublicKey) -> Result<(), Refusal> {
        if self.inner.control.desired().admins.contains(key) {
            return Ok(());
        }
        let words = format!("the key {} may not govern this daemon (control.admins)", key.to_hex());
        Err(Refusal::new(StatusCode::FORBIDDEN, words))
    }

    async fn carry_out(&self, asked: Asked, way: Way) -> Result<Value, Fault> {
        let inner = &self.inner;
        let result = carry_out(&inner.control, &asked, matches!(way, Way::Socket)).await;
        match &result {
            Ok(_) => tracing::debug!("{} was carried out", asked.method),
            Err(fault) => tracing::info!("a call to the control plane was not carried out: {fault}"),
        }
        result
    }

    fn now(&self) -> Now {
        self.inner.clock.now()
    }

    fn admission(&self) -> MutexGuard<'_, Admission> {
        // Nothing panics while this is held.
        self.inner.admission.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The URLs by which this address is reached. What a request says itself of where it goes (`Host`) may be what somebody
/// else was told, so it does not count.
fn addressed(local: SocketAddr, encrypted: bool, path: &str) -> impl Iterator<Item = Url> {
    let scheme = if encrypted { "https" } else { "http" };
    let local = SocketAddr::new(local.ip().to_canonical(), local.port());
    let name = local.ip().is_loopback().then(|| format!("{scheme}://localhost:{}{path}", local.port()));
    let address = format!("{scheme}://{local}{path}");
    [Some(address), name].into_iter().flatten().filter_map(|url| Url::parse(&url).ok())
}
