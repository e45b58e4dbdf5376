//! What becomes of those who wait when there is a bug.
//!
//! A panic ends in a trap: what waits is never woken again, and what is in memory may be half done. So all that was
//! asked for fails at once, and so does all that is asked for later.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::failure::Failure;
use super::host::{Host, Status};

thread_local! {
    static CALLS: RefCell<BTreeMap<u64, Function>> = const { RefCell::new(BTreeMap::new()) };
    static HOSTS: RefCell<Vec<Host>> = const { RefCell::new(Vec::new()) };
    static NEXT_CALL: Cell<u64> = const { Cell::new(0) };
    static BROKEN: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Tells `host` of a panic. It has to be [forgotten](forget).
pub(super) fn tell(host: &Host) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| panic::set_hook(Box::new(break_down)));
    HOSTS.with_borrow_mut(|hosts| hosts.push(host.clone()));
}

/// Tells `host` no more.
pub(super) fn forget(host: &Host) {
    HOSTS.with_borrow_mut(|hosts| hosts.retain(|other| !js_sys::Object::is(other, host)));
}

/// A promise for what `work` comes to. After a panic it is rejected.
pub(super) fn promise(work: impl Future<Output = Result<JsValue, Failure>> + 'static) -> Promise {
    if let Some(failure) = broken() {
        return Promise::reject(&failure.into());
    }
    let call = NEXT_CALL.get();
    NEXT_CALL.set(call + 1);
    let mut settle = None;
    let promise = Promise::new(&mut |resolve, reject| settle = Some((resolve, reject)));
    // The constructor has called its function before it returned.
    let Some((resolve, reject)) = settle else { return promise };
    CALLS.with_borrow_mut(|calls| calls.insert(call, reject));
    spawn_local(async move {
        let result = work.await;
        let Some(reject) = CALLS.with_borrow_mut(|calls| calls.remove(&call)) else { return };
        // Neither of them throws.
        let _ = match result {
            Ok(value) => resolve.call1(&JsValue::UNDEFINED, &value),
            Err(failure) => reject.call1(&JsValue::UNDEFINED, &failure.into()),
        };
    });
    promise
}

/// Was there a panic?
fn broken() -> Option<Failure> {
    BROKEN.with_borrow(|broken| broken.as_deref().map(Failure::internal))
}

/// The hook. It may be called at any moment, so whatever is in use is left alone.
fn break_down(info: &PanicHookInfo<'_>) {
    let message = info.to_string();
    let _ = BROKEN.try_with(|broken| broken.try_borrow_mut().map(|mut broken| *broken = Some(message.clone())));
    let calls = CALLS.with(|calls| calls.try_borrow_mut().map(|mut calls| std::mem::take(&mut *calls)));
    for reject in calls.into_iter().flatten().map(|(_, reject)| reject) {
        let _ = reject.call1(&JsValue::UNDEFINED, &Failure::internal(&message).into());
    }
    let hosts = HOSTS.with(|hosts| hosts.try_borrow().map(|hosts| hosts.clone()));
    for host in hosts.into_iter().flatten() {
        host.tell(&Status::Panic { message: &message });
    }
}
