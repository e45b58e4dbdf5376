//! Checks signatures: elsewhere, if the host has workers, or here, with breaks.

use wasm_bindgen::prelude::*;

use super::{BrowserClock, BrowserConfig, Host, js};
use crate::ingest::schnorr::{self, Signed};
use crate::ingest::signature::signed;
use crate::ingest::{Invalid, Verdict, Verified};
use crate::protocol::Event;

/// Id, key and signature.
const SIGNED_BYTES: usize = 128;
/// Signatures checked at once by a worker that does nothing else: more would hardly be faster, and forged ones dearer.
const AT_ONCE_MAX: usize = 512;

/// Checks signatures, and nothing else: for workers that do that for another instance. 128 bytes an event: id, public
/// key, signature. One byte each back: 1 if the signature is the key's over the id, 0 if not, or if there are fewer
/// bytes than 128.
#[wasm_bindgen]
pub fn verify(batch: &[u8]) -> Vec<u8> {
    let whole: Vec<Signed<'_>> = batch.chunks(SIGNED_BYTES).filter_map(unpack).collect();
    let mut verdicts: Vec<u8> = Vec::with_capacity(whole.len() + 1);
    for part in whole.chunks(AT_ONCE_MAX) {
        verdicts.extend(schnorr::are_genuine(part).into_iter().map(u8::from));
    }
    // Only the last can be cut short.
    verdicts.resize(batch.len().div_ceil(SIGNED_BYTES), 0);
    verdicts
}

/// The version of the package.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}

/// Checks ids and signatures. One verdict an event, in order.
pub(super) async fn check(
    host: &Host,
    clock: &BrowserClock,
    config: &BrowserConfig,
    events: Vec<Event>,
) -> Vec<Verdict> {
    let check = |part: &[Event]| part.iter().map(|event| event.verify_id()).collect();
    let ids = in_slices(clock, config, &events, check).await;
    let named: Vec<&Event> = events.iter().zip(&ids).filter(|(_, genuine)| **genuine).map(|(event, _)| event).collect();
    let mut signatures = check_signatures(host, clock, config, &named).await.into_iter();
    let verdict = |(event, named)| match named {
        false => Verdict::Invalid(Invalid::Id),
        true if signatures.next() == Some(true) => Verdict::Valid(Verified::checked(event)),
        true => Verdict::Invalid(Invalid::Signature),
    };
    events.into_iter().zip(ids).map(verdict).collect()
}

async fn check_signatures(host: &Host, clock: &BrowserClock, config: &BrowserConfig, events: &[&Event]) -> Vec<bool> {
    if events.len() >= config.verify_host_events_min
        && let Some(answer) = host.check(&pack(events))
    {
        match answer.await {
            Ok(answer) if answer.len() == events.len() => return answer.into_iter().map(|byte| byte == 1).collect(),
            Ok(answer) => tracing::warn!("{} verdicts for {} events: checking here", answer.len(), events.len()),
            Err(words) => tracing::warn!("no signatures checked elsewhere, so here: {words}"),
        }
    }
    let check = |part: &[&Event]| schnorr::are_genuine(&part.iter().map(|event| signed(event)).collect::<Vec<_>>());
    in_slices(clock, config, events, check).await
}

/// Checks some at once, and gives the thread back now and then.
async fn in_slices<T>(
    clock: &BrowserClock,
    config: &BrowserConfig,
    events: &[T],
    check: impl Fn(&[T]) -> Vec<bool>,
) -> Vec<bool> {
    let mut verdicts = Vec::with_capacity(events.len());
    let mut begun = clock.elapsed();
    for part in events.chunks(config.verify_at_once_max.max(1)) {
        if clock.elapsed().saturating_sub(begun) >= config.verify_slice {
            js::give_way().await;
            begun = clock.elapsed();
        }
        verdicts.extend(check(part));
    }
    verdicts
}

fn pack(events: &[&Event]) -> Vec<u8> {
    let mut batch = Vec::with_capacity(events.len() * SIGNED_BYTES);
    for event in events {
        let signed = signed(event);
        batch.extend_from_slice(signed.id);
        batch.extend_from_slice(signed.author);
        batch.extend_from_slice(signed.signature);
    }
    batch
}

fn unpack(bytes: &[u8]) -> Option<Signed<'_>> {
    let (id, bytes) = bytes.split_first_chunk()?;
    let (author, bytes) = bytes.split_first_chunk()?;
    Some(Signed { id, author, signature: bytes.try_into().ok()? })
}
