//! Small things that JavaScript has and the bindings do not, in a window, a worker and Node alike.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use js_sys::{Function, Promise, Reflect};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;

    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues, catch)]
    fn random_values(bytes: &mut [u8]) -> Result<JsValue, JsValue>;

    type MessageChannel;
    #[wasm_bindgen(constructor, catch)]
    fn new() -> Result<MessageChannel, JsValue>;
    #[wasm_bindgen(method, getter)]
    fn port1(this: &MessageChannel) -> MessagePort;
    #[wasm_bindgen(method, getter)]
    fn port2(this: &MessageChannel) -> MessagePort;

    type MessagePort;
    #[wasm_bindgen(method, setter)]
    fn set_onmessage(this: &MessagePort, handler: &Function);
    #[wasm_bindgen(method, js_name = postMessage)]
    fn post_message(this: &MessagePort, message: &JsValue);
}

/// Milliseconds since some moment that stays the same; never steps back.
pub(super) fn monotonic_ms() -> f64 {
    performance_now()
}

/// Bytes that nobody can guess.
///
/// # Errors
/// There is no `crypto`, which has been everywhere for years.
pub(super) fn entropy<const N: usize>() -> Result<[u8; N], JsValue> {
    let mut bytes = [0; N];
    random_values(&mut bytes)?;
    Ok(bytes)
}

/// Lets everything else that waits have its turn: sockets, messages, timers. A timer of no time would take four
/// milliseconds.
pub(super) async fn give_way() {
    let global = js_sys::global();
    let immediate = field(&global, "setImmediate").and_then(|function| function.dyn_into::<Function>());
    if let Ok(set_immediate) = immediate {
        turn(|resolve| drop(set_immediate.call1(&JsValue::UNDEFINED, resolve))).await;
    } else {
        turn(|resolve| {
            TURNS.with(|turns| match turns {
                Some(turns) => turns.queue(resolve),
                None => drop(resolve.call0(&JsValue::UNDEFINED)),
            });
        })
        .await;
    }
}

thread_local! {
    static TURNS: Option<Turns> = Turns::new();
}

/// Messages to ourselves, each of which lets one go on who has given way. A channel for each time would cost more than
/// what others do meanwhile.
struct Turns {
    sender: MessagePort,
    waiting: Rc<RefCell<VecDeque<Function>>>,
}

impl Turns {
    /// `None` where there are no channels.
    fn new() -> Option<Self> {
        let channel = MessageChannel::new().ok()?;
        let waiting: Rc<RefCell<VecDeque<Function>>> = Rc::default();
        let queue = waiting.clone();
        let next = Closure::<dyn FnMut()>::new(move || {
            let next = queue.borrow_mut().pop_front();
            // What resolves a promise does not throw.
            next.into_iter().for_each(|next| drop(next.call0(&JsValue::UNDEFINED)));
        });
        channel.port1().set_onmessage(next.into_js_value().unchecked_ref());
        Some(Self { sender: channel.port2(), waiting })
    }

    fn queue(&self, resolve: &Function) {
        self.waiting.borrow_mut().push_back(resolve.clone());
        self.sender.post_message(&JsValue::NULL);
    }
}

/// Waits until the function that `begin` is given has been called.
async fn turn(mut begin: impl FnMut(&Function)) {
    let called = Promise::new(&mut |resolve, _| begin(&resolve));
    // It is resolved, never rejected.
    let _ = JsFuture::from(called).await;
}

/// A field of an object; `undefined` if there is none.
///
/// # Errors
/// `object` is none, or a getter of it has thrown.
pub(super) fn field(object: &JsValue, name: &str) -> Result<JsValue, JsValue> {
    Reflect::get(object, &JsValue::from_str(name))
}

/// A plain value of JavaScript: objects for maps, `null` for nothing.
///
/// # Errors
/// A number is too large for JavaScript, or the like.
pub(super) fn value(value: &impl Serialize) -> Result<JsValue, serde_wasm_bindgen::Error> {
    value.serialize(&serde_wasm_bindgen::Serializer::json_compatible())
}

/// What was thrown, in words.
pub(super) fn words(thrown: &JsValue) -> String {
    let text = |name| field(thrown, name).ok().and_then(|value| value.as_string()).filter(|text| !text.is_empty());
    if let Some(text) = thrown.as_string() {
        return text;
    }
    match (text("name"), text("message")) {
        (Some(name), Some(message)) if name != "Error" => format!("{name}: {message}"),
        (_, Some(message)) => message,
        (Some(name), None) => name,
        (None, None) => format!("{thrown:?}"),
    }
}

/// What kind of exception was thrown: the `name` of a `DOMException` or an `Error`.
pub(super) fn kind(thrown: &JsValue) -> String {
    field(thrown, "name").ok().and_then(|value| value.as_string()).unwrap_or_default()
}
