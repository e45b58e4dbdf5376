//! One connection: the socket, and the two halves of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use js_sys::{Function, JsString};
use wasm_bindgen::prelude::*;

use super::inbox::Inbox;
use crate::browser::{BrowserConfig, js};
use crate::runtime::{CloseReason, FrameReceiver, FrameSender, SendError};

/// `readyState` of a socket that takes frames.
const OPEN: u16 = 1;
/// Close codes (RFC 6455) that a page may give: this one, and those of its own from 3000 on.
const NORMAL: u16 = 1000;
/// What browsers tell when there was no goodbye.
const ABNORMAL: u16 = 1006;

#[wasm_bindgen]
extern "C" {
    /// A `WebSocket`, or something like it.
    #[wasm_bindgen(extends = js_sys::Object)]
    #[derive(Debug, Clone)]
    pub(super) type Socket;

    #[wasm_bindgen(method, getter, structural, js_name = readyState)]
    fn ready_state(this: &Socket) -> u16;
    #[wasm_bindgen(method, getter, structural, js_name = bufferedAmount)]
    fn buffered_amount(this: &Socket) -> Option<f64>;
    #[wasm_bindgen(method, catch, structural)]
    fn send(this: &Socket, text: &str) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, structural)]
    fn close(this: &Socket, code: u16) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, setter, structural)]
    fn set_onopen(this: &Socket, handler: Option<&Function>) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, setter, structural)]
    fn set_onmessage(this: &Socket, handler: Option<&Function>) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, setter, structural)]
    fn set_onclose(this: &Socket, handler: Option<&Function>) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, setter, structural)]
    fn set_onerror(this: &Socket, handler: Option<&Function>) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, setter, structural, js_name = binaryType)]
    fn set_binary_type(this: &Socket, kind: &str) -> Result<(), JsValue>;
}

type Handler = Closure<dyn FnMut(JsValue)>;

thread_local! {
    /// Does nothing. Made from text, it would be what a strict content security policy forbids.
    static NOTHING: Function = Closure::<dyn FnMut()>::new(|| {}).into_js_value().unchecked_into();
}

/// A socket with handlers on it. It is closed, and the handlers are taken off, when this is dropped.
pub(super) struct Link {
    socket: Socket,
    inbox: Rc<RefCell<Inbox>>,
    _handlers: [Handler; 4],
}

impl Link {
    /// Puts handlers on `socket`.
    ///
    /// # Errors
    /// It is no socket: it does not take them.
    pub(super) fn new(socket: Socket, frame_bytes_max: usize, config: &BrowserConfig) -> Result<Self, JsValue> {
        let inbox = Rc::new(RefCell::new(Inbox::default()));
        let handlers = [
            on_open(inbox.clone()),
            on_message(socket.clone(), inbox.clone(), frame_bytes_max, config.waiting_units_max),
            on_close(inbox.clone()),
            on_error(inbox.clone()),
        ];
        let link = Self { socket, inbox, _handlers: handlers };
        let [open, message, close, error] = link._handlers.each_ref().map(|handler| handler.as_ref().unchecked_ref());
        link.socket.set_binary_type("arraybuffer")?;
        link.socket.set_onopen(Some(open))?;
        link.socket.set_onmessage(Some(message))?;
        link.socket.set_onclose(Some(close))?;
        link.socket.set_onerror(Some(error))?;
        Ok(link)
    }

    /// Waits until the socket is open.
    ///
    /// # Errors
    /// It has ended before.
    pub(super) async fn opened(&self) -> Result<(), CloseReason> {
        std::future::poll_fn(|cx| self.inbox.borrow_mut().poll_opened(cx)).await
    }

    fn close(&self) {
        // It throws only for codes that pages may not use.
        let _ = self.socket.close(NORMAL);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // What had taken the handlers lets go of them. `ws` reports what is closed too early, to whoever listens: nobody.
        let _ = self.socket.set_onopen(None).and(self.socket.set_onmessage(None)).and(self.socket.set_onclose(None));
        let _ = NOTHING.with(|nothing| self.socket.set_onerror(Some(nothing)));
        self.close();
    }
}

/// The sending half.
pub struct BrowserSender {
    link: Rc<Link>,
    config: Arc<BrowserConfig>,
}

/// The receiving half.
pub struct BrowserReceiver {
    link: Rc<Link>,
    frame_bytes_max: usize,
    config: Arc<BrowserConfig>,
}

/// The two halves of a connection, which ends when either is closed or both are dropped.
pub(super) fn halves(
    link: Link,
    frame_bytes_max: usize,
    config: Arc<BrowserConfig>,
) -> (BrowserSender, BrowserReceiver) {
    let link = Rc::new(link);
    (BrowserSender { link: link.clone(), config: config.clone() }, BrowserReceiver { link, frame_bytes_max, config })
}

impl FrameSender for BrowserSender {
    fn try_send(&mut self, frame: String) -> Result<(), SendError> {
        if self.link.inbox.borrow().has_ended() || self.link.socket.ready_state() != OPEN {
            return Err(SendError::Closed);
        }
        // Numbers of bytes are exact in it up to 2^53.
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let is_full = self.link.socket.buffered_amount().unwrap_or(0.0) + frame.len() as f64
            > self.config.outbound_bytes_max as f64;
        if is_full {
            return Err(SendError::Full);
        }
        self.link.socket.send(&frame).map_err(|thrown| {
            self.link.inbox.borrow_mut().end(CloseReason::Io(js::words(&thrown)));
            SendError::Closed
        })
    }

    fn set_reading(&mut self, _reading: bool) {}

    fn close(&mut self) {
        self.link.close();
    }
}

impl FrameReceiver for BrowserReceiver {
    async fn receive(&mut self, frames: &mut Vec<crate::runtime::Frame>) -> Result<(), CloseReason> {
        std::future::poll_fn(|cx| self.link.inbox.borrow_mut().poll_filled(cx)).await;
        // Each message is a task of its own. Those that have come meanwhile are taken at once: it costs next to nothing to
        // handle one more.
        js::give_way().await;
        let received = std::future::poll_fn(|cx| {
            self.link.inbox.borrow_mut().poll_receive(cx, frames, self.frame_bytes_max, &self.config)
        });
        let received = received.await;
        if received.is_err() {
            self.link.close();
        }
        received
    }
}

fn on_open(inbox: Rc<RefCell<Inbox>>) -> Handler {
    Closure::new(move |_| inbox.borrow_mut().opened())
}

fn on_message(socket: Socket, inbox: Rc<RefCell<Inbox>>, frame_bytes_max: usize, waiting_units_max: usize) -> Handler {
    Closure::new(move |event: JsValue| {
        let mut inbox = inbox.borrow_mut();
        if inbox.has_ended() {
            return;
        }
        let data = js::field(&event, "data").and_then(|data| data.dyn_into::<JsString>());
        let fault = match data {
            Ok(frame) => inbox.push(frame, frame_bytes_max, waiting_units_max),
            Err(_) => Some(CloseReason::Protocol("binary message".into())),
        };
        if let Some(reason) = fault {
            inbox.end(reason);
            // A socket of the host's own may call back at once.
            drop(inbox);
            let _ = socket.close(NORMAL);
        }
    })
}

fn on_close(inbox: Rc<RefCell<Inbox>>) -> Handler {
    Closure::new(move |event: JsValue| {
        let number = |name| js::field(&event, name).ok().and_then(|value| value.as_f64());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "close codes have 16 bits")]
        let code = number("code").unwrap_or(f64::from(ABNORMAL)) as u16;
        let reason = js::field(&event, "reason").ok().and_then(|value| value.as_string()).unwrap_or_default();
        inbox.borrow_mut().end(match (code, &*reason) {
            (ABNORMAL, "") => CloseReason::Io("no goodbye; browsers do not say why".into()),
            (ABNORMAL, words) => CloseReason::Io(words.into()),
            // No code was given (RFC 6455, 7.1.5).
            (1005, words) => CloseReason::Remote(words.into()),
            (code, "") => CloseReason::Remote(code.to_string()),
            (code, words) => CloseReason::Remote(format!("{code} {words}")),
        });
    })
}

/// Browsers say nothing in this event, and have the one of the end follow; `ws` says why.
fn on_error(inbox: Rc<RefCell<Inbox>>) -> Handler {
    Closure::new(move |event: JsValue| {
        let words = js::field(&event, "message").ok().and_then(|value| value.as_string());
        if let Some(words) = words.filter(|words| !words.is_empty()) {
            inbox.borrow_mut().end(CloseReason::Io(words));
        }
    })
}
