//! How fast a store of many events is. `RELAYSYNC_EVENTS=100000` when it is built makes them many; the figures are in
//! the log.

use js_sys::Date;
use relaysync::browser::idb::{IndexedDb, estimate};
use relaysync::protocol::hex;
use relaysync::store::packed::{PackedConfig, PackedStore};
use relaysync::store::{Query, Store};
use wasm_bindgen_test::{console_log, wasm_bindgen_test};

use crate::events::*;
use crate::fresh_name;

const EVENTS_IN_BATCH: u32 = 500;
const EVENTS_FEW: u32 = 3_000;

fn note(number: u32) -> Draft {
    // Relays send the newest first; several of them, so that dates are not quite in order.
    let created_at = NOW_SECS - u64::from(number / 3) * 60 - u64::from(number % 3) * 100_000;
    let mut draft = draft(number, created_at);
    draft.id = noise(u64::from(number) + 1_000);
    draft.author = noise(u64::from(number % 200));
    draft = draft.tag("t", &format!("topic {}", number % 1_000)).tag("client", "test");
    // The signature is always the same: so that there is as much that cannot be compressed as in real events.
    draft.content = hex::encode(&noise(u64::from(number) << 20));
    draft
}

/// Bytes that cannot be compressed.
fn noise(seed: u64) -> [u8; 32] {
    let mut state = seed ^ 0x9E37_79B9_7F4A_7C15;
    std::array::from_fn(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    })
}

async fn measure(events: u32, segment_bytes_max: usize) {
    let name = fresh_name();
    let config = PackedConfig { segment_bytes_max, ..PackedConfig::default() };
    let store = PackedStore::open(IndexedDb::open(&name).await.unwrap(), config.clone()).await.unwrap();
    let usage_before = estimate().await.usage_bytes.unwrap_or_default();
    let (mut commit_ms, mut slowest_ms, mut json_bytes) = (0.0, 0.0_f64, 0);
    for first in (0..events).step_by(EVENTS_IN_BATCH as usize) {
        let drafts: Vec<Draft> = (first..events.min(first + EVENTS_IN_BATCH)).map(note).collect();
        let batch = batch(&drafts);
        json_bytes += batch.events.iter().map(|event| event.json().len()).sum::<usize>();
        let begun = Date::now();
        store.commit(batch).await.unwrap();
        let took = Date::now() - begun;
        commit_ms += took;
        slowest_ms = slowest_ms.max(took);
    }
    let usage = store.usage();
    store.backing().close();
    drop(store);
    let database_bytes = estimate().await.usage_bytes.unwrap_or_default() - usage_before;
    let begun = Date::now();
    let database = IndexedDb::open(&name).await.unwrap();
    let connected = Date::now();
    let store = PackedStore::open(database, config).await.unwrap();
    let opened = Date::now();
    let question = Query { limit: 50, ..question(r#"{"kinds":[1]}"#) };
    assert_eq!(store.query(question).await.unwrap().records.len(), 50);
    let asked = Date::now();
    assert_eq!(store.usage().events, u64::from(events));
    console_log!(
        "{events} events of {} bytes, segments of {segment_bytes_max}: committed in {commit_ms:.0} ms ({:.0} events/s, slowest batch {slowest_ms:.0} ms); \
         {} bytes in {} segments, of them index {}, on disk {database_bytes:.0}; opened in {:.0} ms (connection {:.0}), first query {:.0} ms",
        json_bytes / events as usize,
        f64::from(events) / commit_ms * 1e3,
        usage.bytes,
        usage.segments,
        usage.index_bytes,
        opened - begun,
        connected - begun,
        asked - opened,
    );
    store.backing().close();
    IndexedDb::delete(&name).await.unwrap();
}

#[wasm_bindgen_test]
async fn many_events_are_stored_and_found_again() {
    let events = option_env!("RELAYSYNC_EVENTS").map_or(EVENTS_FEW, |events| events.parse().unwrap());
    for segment_bytes_max in [60_000, 200_000, 1_000_000] {
        measure(events, segment_bytes_max).await;
    }
}
