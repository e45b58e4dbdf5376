//! What the native store costs: CPU an event, beside a signature check in the same run; time of item sets and
//! queries; size on disk; peak memory.
//!
//! `cargo bench --bench store -- [EVENTS [BATCH]]`; 200,000 events in batches of 2,000 by default.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod generator;

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use relaysync::ingest::{Verified, verify};
use relaysync::native::store::{NativeStore, NativeStoreConfig};
use relaysync::peer::View;
use relaysync::protocol::{Event, Filter, Window};
use relaysync::store::{Batch, Query, Store};

const CHECKS: u32 = 2000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<u64>().ok());
    let (events, batch) = (numbers.next().unwrap_or(200_000), numbers.next().unwrap_or(2000));
    let folder = tempfile::tempdir().expect("a folder");
    let store = NativeStore::open(folder.path(), NativeStoreConfig::default()).expect("the store opens");

    let written = write(&store, events, batch).await;
    let commit_us = written.cpu.as_secs_f64() * 1e6 / events as f64;
    let check_us = signature_check_us();
    println!("{events} events in batches of {batch}");
    println!("commit           {commit_us:8.2} µs CPU an event");
    println!("signature check  {check_us:8.2} µs CPU an event");
    println!("ratio            {:8.3}", commit_us / check_us);
    println!("slowest commit   {:8.1} ms, all of them {:.1} s", ms(written.slowest), written.wall.as_secs_f64());
    println!("peak memory      {:8.1} MB", memory_mb("VmHWM:"));
    // The database sets its file larger than it is; what counts is the blocks in use.
    let bytes = std::fs::metadata(store.path()).expect("the file is there").blocks() * 512;
    println!("on disk          {:8.1} MB, {} bytes an event", bytes as f64 / 1e6, bytes / events);

    known(&store, events).await;
    items(&store).await;
    queries(&store, events).await;
    export(&store).await;
    println!("peak memory      {:8.1} MB, after all that", memory_mb("VmHWM:"));

    drop(store);
    let begun = Instant::now();
    let store = NativeStore::open(folder.path(), NativeStoreConfig::default()).expect("the store opens");
    println!("open again       {:8.1} ms", ms(begun.elapsed()));
    drop(store);
}

struct Written {
    cpu: Duration,
    wall: Duration,
    slowest: Duration,
}

async fn write(store: &NativeStore, events: u64, batch: u64) -> Written {
    let mut written = Written { cpu: Duration::ZERO, wall: Duration::ZERO, slowest: Duration::ZERO };
    let mut next = 0;
    while next < events {
        let end = (next + batch).min(events);
        let parsed = (next..end).map(|n| Event::parse(generator::json(n).into()).expect("it is an event"));
        let batch = Batch { events: parsed.map(Verified::trust).collect(), now_secs: 1, ..Batch::default() };
        let (cpu, wall) = (cpu(), Instant::now());
        store.commit(batch).await.expect("the batch is committed");
        written.cpu += self::cpu() - cpu;
        written.wall += wall.elapsed();
        written.slowest = written.slowest.max(wall.elapsed());
        next = end;
    }
    written
}

fn signature_check_us() -> f64 {
    let secp = secp256k1::Secp256k1::new();
    let keys = secp256k1::Keypair::from_seckey_slice(&secp, &[7; 32]).expect("a key");
    let author = nostr::key::PublicKey::from_byte_array(keys.x_only_public_key().0.serialize());
    let (at, kind, content) = (nostr::types::Timestamp::from_secs(1), nostr::event::Kind::TextNote, "a".repeat(200));
    let id = nostr::event::EventId::compute(&author, &at, &kind, &nostr::event::Tags::new(), &content);
    let message = secp256k1::Message::from_digest(id.to_bytes());
    let signature = secp.sign_schnorr_no_aux_rand(message.as_ref(), &keys);
    let json = format!(
        r#"{{"id":"{id}","pubkey":"{author}","created_at":1,"kind":1,"tags":[],"content":"{content}","sig":"{signature}"}}"#
    );
    let event = Event::parse(json.into()).expect("it is an event");
    let begun = cpu();
    for _ in 0..CHECKS {
        verify(event.clone()).expect("it is genuine");
    }
    (cpu() - begun).as_secs_f64() * 1e6 / f64::from(CHECKS)
}

async fn known(store: &NativeStore, events: u64) {
    for (what, from) in [("held", 0), ("new", events)] {
        let ids: Vec<[u8; 32]> = (0..2000).map(|n| id(from + n * 37 % events)).collect();
        let begun = Instant::now();
        store.known(ids, &View::all()).await.expect("ids are looked up");
        println!("known, {what:<9} {:8.2} µs an id", begun.elapsed().as_secs_f64() * 1e6 / 2000.0);
    }
}

fn id(n: u64) -> [u8; 32] {
    relaysync::protocol::hex::decode(&generator::hex("id", n)).and_then(|bytes| bytes.try_into().ok()).expect("an id")
}

async fn items(store: &NativeStore) {
    for json in ["{}", r#"{"kinds":[1,7]}"#, r##"{"#t":["topic7"]}"##] {
        let mut times = Vec::new();
        let mut len = 0;
        for _ in 0..5 {
            let begun = Instant::now();
            len = store.items(&filter(json), Window::ALL, &View::all()).await.expect("items are read").len();
            times.push(ms(begun.elapsed()));
        }
        let (first, best) = (times[0], times.iter().copied().fold(f64::MAX, f64::min));
        println!("items            {best:8.2} ms (first {first:.2} ms) for {len} items of {json}");
    }
}

async fn queries(store: &NativeStore, events: u64) {
    let author = |n| format!(r#""{}""#, generator::hex("author", n));
    let authors = (0..500).map(author).collect::<Vec<_>>().join(",");
    let ids = (0..500).map(|n| format!(r#""{}""#, generator::hex("id", n * (events / 500)))).collect::<Vec<_>>();
    let jsons = [
        r#"{"limit":500}"#.to_owned(),
        r#"{"kinds":[7],"limit":500}"#.to_owned(),
        r#"{"kinds":[0,3,1621],"until":1699990000,"limit":500}"#.to_owned(),
        format!(r#"{{"authors":[{}],"limit":100}}"#, author(3)),
        format!(r#"{{"authors":[{}],"kinds":[0],"limit":1}}"#, author(3)),
        format!(r#"{{"authors":[{authors}],"kinds":[1,6],"limit":500}}"#),
        format!(r##"{{"#p":[{}],"kinds":[1,7],"limit":100}}"##, author(9)),
        format!(r##"{{"#t":["topic5"],"#p":[{}],"limit":100}}"##, author(9)),
        format!(r#"{{"ids":[{}]}}"#, ids.join(",")),
    ];
    for json in jsons {
        let query = Query {
            filter: filter(&json),
            after: None,
            limit: 500,
            bytes_max: usize::MAX,
            now_secs: 1_800_000_000,
            view: View::all(),
        };
        store.query(query.clone()).await.expect("it answers");
        let begun = Instant::now();
        let page = store.query(query).await.expect("it answers");
        let took = ms(begun.elapsed());
        let begun = Instant::now();
        let count = store.count(vec![filter(&json)], &View::all(), 1_800_000_000).await.expect("it counts");
        let short: String = json.chars().take(60).collect();
        println!(
            "query            {took:8.2} ms for {:>3} events; count {:8.2} ms for {count:>7}: {short}",
            page.records.len(),
            ms(begun.elapsed())
        );
    }
}

async fn export(store: &NativeStore) {
    let mut query = Query {
        filter: Filter::new(),
        after: None,
        limit: 1000,
        bytes_max: 1 << 20,
        now_secs: 1_800_000_000,
        view: View::all(),
    };
    let begun = Instant::now();
    let mut events = 0;
    loop {
        let page = store.query(query.clone()).await.expect("it answers");
        events += page.records.len();
        query.after = page.next;
        if page.next.is_none() {
            break;
        }
    }
    println!(
        "export           {:8.2} µs an event, {events} events",
        begun.elapsed().as_secs_f64() * 1e6 / events as f64
    );
}

fn filter(json: &str) -> Filter {
    serde_json::from_str(json).expect("it is a filter")
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// User and system time of this process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux tells the time of a process");
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks: u64 = fields[11..13].iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn memory_mb(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells the memory of a process");
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or_default() / 1e3
}
