//! Many clients at once: most are idle, some are busy.

use relaysync::native::serve::{RelayService, ServiceConfig};
use relaysync::protocol::message::client;
use relaysync::serve::ServeConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::client::{Client, counters_when, patiently, service_with};
use crate::events::notes;

const IDLE: usize = 1_000;
const BUSY: usize = 50;
const EVENTS_EACH: usize = 40;
/// Both sides are in this process, and it holds all tests of this target besides.
const MEMORY_BYTES_MAX: usize = 200 << 20;

/// A client with as little memory as one can have: a bare socket, upgraded by hand.
async fn idle(service: &RelayService) -> TcpStream {
    let mut socket = TcpStream::connect(service.local_addr()).await.unwrap();
    let request = "GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                   sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(patiently(socket.read_u8()).await.unwrap());
    }
    let req = br#"["REQ","idle",{"kinds":[30617],"limit":0}]"#;
    let mut frame = vec![0x81, 0x80 | u8::try_from(req.len()).unwrap(), 0, 0, 0, 0];
    frame.extend(req);
    socket.write_all(&frame).await.unwrap();
    let mut eose = [0; 2 + r#"["EOSE","idle"]"#.len()];
    patiently(socket.read_exact(&mut eose)).await.unwrap();
    socket
}

/// Bytes of memory that this process has in use, where the system tells.
fn memory_bytes() -> usize {
    let Ok(statm) = std::fs::read_to_string("/proc/self/statm") else { return 0 };
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4_096
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_idle_and_fifty_busy_clients_are_served_in_little_memory() {
    let config = ServiceConfig { clients_max: IDLE + BUSY, ..ServeConfig::default().into() };
    let service = service_with(config, &[]).await;
    let before = memory_bytes();
    let mut crowd = Vec::new();
    for _ in 0..IDLE {
        crowd.push(idle(&service).await);
    }
    let with_idle = memory_bytes();
    let events = notes(1..=(BUSY * EVENTS_EACH) as u64);
    let begun = Instant::now();
    let mut busy = Vec::new();
    for part in events.chunks(EVENTS_EACH) {
        let mut client = Client::connect(&service).await;
        let frames: Vec<String> = part.iter().map(|event| client::event(event.json_str())).collect();
        busy.push(tokio::spawn(async move {
            client.say(r#"["REQ","a",{"kinds":[1],"limit":0}]"#).await;
            client.hear().await;
            for frame in &frames {
                client.say(frame).await;
            }
            let mut oks = 0;
            while oks < frames.len() {
                oks += usize::from(client.hear().await.starts_with(r#"["OK","#));
            }
            client.say(r#"["REQ","b",{"limit":5000}]"#).await;
            client.hear_until(r#"["EOSE","b""#).await;
            client
        }));
    }
    for busy in busy {
        patiently(busy).await.unwrap();
    }
    let counters = counters_when(&service, |counters| counters.events_stored == events.len() as u64).await;
    let peak = memory_bytes();
    eprintln!(
        "{IDLE} idle clients: {} kB each; {} events and 2 requests by {BUSY} busy ones in {:?}; {} MB in all",
        (with_idle - before) / IDLE / 1_000,
        events.len(),
        begun.elapsed(),
        peak / 1_000_000,
    );
    assert_eq!((counters.clients, counters.clients_cut), ((IDLE + BUSY) as u64, 0));
    assert!(peak - before < MEMORY_BYTES_MAX, "{} MB", (peak - before) >> 20);
    service.shutdown().await;
    drop(crowd);
}
