//! Makes connections.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use js_sys::Function;
use wasm_bindgen::prelude::*;

use super::info;
use super::link::{BrowserReceiver, BrowserSender, Link, Socket, halves};
use crate::browser::{BrowserConfig, Host, js};
use crate::discover::is_private_address;
use crate::peer::{TlsMode, TlsTerms, Verify};
use crate::runtime::{CloseReason, ConnectError, Connector, Dial};

/// Sockets of the browser, or those that the host opens.
#[derive(Debug, Clone)]
pub struct BrowserConnector {
    host: Host,
    config: Arc<BrowserConfig>,
}

impl BrowserConnector {
    /// Sockets that `host` opens, if it does.
    pub fn new(host: Host, config: Arc<BrowserConfig>) -> Self {
        Self { host, config }
    }

    fn socket(&self, url: &str) -> Result<Socket, JsValue> {
        let socket = match self.host.web_socket() {
            Some(open) => open.call1(&self.host, &url.into())?,
            None => {
                let class: Function = js::field(&js_sys::global(), "WebSocket")?.dyn_into().map_err(|_| {
                    JsValue::from_str("there is no WebSocket here; give one, such as that of the package `ws`")
                })?;
                js_sys::Reflect::construct(&class, &js_sys::Array::of1(&url.into()))?
            }
        };
        Ok(socket.unchecked_into())
    }

    async fn open(&self, dial: &Dial) -> Result<Link, ConnectError> {
        let socket = self.socket(dial.url.as_str()).map_err(|thrown| thrown_at(dial, &thrown))?;
        let link = Link::new(socket, self.frame_bytes_max(dial), &self.config)
            .map_err(|thrown| ConnectError::Io(format!("no WebSocket: {}", js::words(&thrown))))?;
        link.opened().await.map_err(|reason| match reason {
            CloseReason::Io(words) => ConnectError::Io(words),
            reason => ConnectError::Handshake(reason.to_string()),
        })?;
        Ok(link)
    }

    fn frame_bytes_max(&self, dial: &Dial) -> usize {
        dial.frame_bytes_max.min(self.config.frame_bytes_max)
    }
}

impl Connector for BrowserConnector {
    type Sender = BrowserSender;
    type Receiver = BrowserReceiver;

    async fn connect(&self, dial: &Dial) -> Result<(BrowserSender, BrowserReceiver), ConnectError> {
        check(dial)?;
        let open = pin!(self.open(dial));
        let link = within(self.config.connect_timeout, open).await.ok_or(ConnectError::TimedOut)??;
        Ok(halves(link, self.frame_bytes_max(dial), self.config.clone()))
    }

    async fn relay_info(&self, dial: &Dial) -> Result<String, ConnectError> {
        check(dial)?;
        let fetch = pin!(info::fetch(&self.host, &dial.url, self.config.info_bytes_max));
        within(self.config.info_timeout, fetch).await.ok_or(ConnectError::TimedOut)?
    }
}

/// What `work` comes to, if it does in time.
async fn within<F: Future + Unpin>(time: std::time::Duration, work: F) -> Option<F::Output> {
    let timer = TimeoutFuture::new(u32::try_from(time.as_millis()).unwrap_or(u32::MAX >> 1).min(u32::MAX >> 1));
    match select(work, timer).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

/// Refuses what a browser cannot be held to. It looks names up itself and tells nobody; addresses it can be kept from.
fn check(dial: &Dial) -> Result<(), ConnectError> {
    let host = dial.url.host();
    let is_private = || {
        host.eq_ignore_ascii_case("localhost")
            || host.ends_with(".localhost")
            || host.parse().is_ok_and(is_private_address)
    };
    if dial.public_only && is_private() {
        return Err(ConnectError::Private(host));
    }
    match dial.tls.as_deref() {
        Some(terms) if terms.mode == TlsMode::Required && !dial.url.is_tls() => {
            Err(ConnectError::Unencrypted(dial.url.to_string()))
        }
        Some(terms) if asks_too_much(terms) => Err(ConnectError::Pin(
            "a browser does not show the keys of relays: pinned keys, and other host names, cannot be held to here"
                .into(),
        )),
        _ => Ok(()),
    }
}

fn asks_too_much(terms: &TlsTerms) -> bool {
    !terms.pins.is_empty() || terms.verify == Verify::Pin || terms.hostname.is_some()
}

/// A page that came encrypted may not open a socket that is not.
fn thrown_at(dial: &Dial, thrown: &JsValue) -> ConnectError {
    match &*js::kind(thrown) {
        "SecurityError" => ConnectError::Unencrypted(dial.url.to_string()),
        _ => ConnectError::Io(js::words(thrown)),
    }
}
