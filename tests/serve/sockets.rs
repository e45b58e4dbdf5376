//! The relay service on sockets, with clients of another WebSocket implementation's making where it matters.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use negentropy::{Id, Negentropy, NegentropyStorageVector};
use relaysync::native::serve::{RelayService, ServiceConfig};
use relaysync::peer::View;
use relaysync::protocol::message::client;
use relaysync::protocol::{Event, Filter, RelayInfo, RelayMessage, hex};
use relaysync::serve::ServeConfig;
use relaysync::store::{MemoryStore, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::client::{ANY_PORT, Client, End, counters_when, http, patiently, service, service_with};
use crate::events::{note, notes};
use crate::world::{ids, story};

#[tokio::test]
async fn the_information_document_is_for_pages_of_any_origin() {
    let service = service().await;
    let get = |accept: &str| format!("GET / HTTP/1.1\r\nhost: x\r\naccept: {accept}\r\nconnection: close\r\n\r\n");
    let (head, body) = http(&service, &get("application/nostr+json")).await;
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: application/nostr+json"), "{head}");
    assert!(head.contains("access-control-allow-origin: *"), "{head}");
    assert_eq!(RelayInfo::parse(&body), Some(ServeConfig::default().relay_info()));
    let (head, body) = http(&service, &get("text/html, */*;q=0.8")).await;
    assert!(head.contains("content-type: text/plain") && body.contains("Nostr relay"), "{head} {body}");
    let (head, _) = http(&service, "OPTIONS / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(head.starts_with("http/1.1 204") && head.contains("access-control-allow-headers: *"), "{head}");
    let (head, _) =
        http(&service, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    assert!(head.starts_with("http/1.1 405"), "{head}");
    let handshake = "GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: close\r\n\r\n";
    let (head, _) = http(&service, handshake).await;
    assert!(head.starts_with("http/1.1 400"), "{head}");
    service.shutdown().await;
}

#[tokio::test]
async fn events_go_in_and_come_out() {
    let service = service().await;
    let (mut alice, mut bob) = (Client::connect(&service).await, Client::connect(&service).await);
    bob.say(r#"["REQ","live",{"limit":0}]"#).await;
    assert_eq!(bob.hear().await, r#"["EOSE","live"]"#);
    let events = notes(1..=300);
    for event in &events {
        alice.say(client::event(event.json_str())).await;
    }
    for event in &events {
        assert_eq!(alice.hear().await, format!(r#"["OK","{}",true,""]"#, event.id.to_hex()));
    }
    let mut live = Vec::new();
    for _ in &events {
        live.push(bob.hear().await);
    }
    assert_eq!(story(&live), ids(&events));
    alice.say(r#"["REQ","page",{"limit":1000}]"#).await;
    let mut page = story(&alice.hear_until("[\"EOSE\"").await);
    assert_eq!(page.pop().as_deref(), Some("EOSE"));
    assert_eq!(page, ids(events.iter().rev()));
    alice.say(r#"["REQ","page",{}]"#).await;
    assert_eq!(alice.hear_until("[\"EOSE\"").await.len(), 300 + 1);
    service.shutdown().await;
}

#[tokio::test]
async fn both_sides_reconcile() {
    let events = notes((0..5_000).map(|number| 1_000 + number / 4));
    let service = service_with(ServeConfig::default(), &events[..4_900]).await;
    let mut alice = Client::connect(&service).await;
    let mut storage = NegentropyStorageVector::new();
    for event in &events[100..] {
        storage.insert(event.created_at_secs(), Id::from_byte_array(event.id.to_bytes())).unwrap();
    }
    storage.seal().unwrap();
    let mut side = Negentropy::borrowed(&storage, 60_000).unwrap();
    alice.say(client::neg_open("n", &Filter::new(), &side.initiate().unwrap())).await;
    let (mut have, mut need) = (Vec::new(), Vec::new());
    loop {
        let frame = alice.hear().await;
        let RelayMessage::NegMsg { message, .. } = RelayMessage::parse(&frame).unwrap() else { panic!("{frame}") };
        match side.reconcile_with_ids(&hex::decode(&message).unwrap(), &mut have, &mut need).unwrap() {
            Some(message) => alice.say(client::neg_msg("n", &message)).await,
            None => break,
        }
    }
    assert_eq!((have.len(), need.len()), (100, 100));

    let need: Vec<[u8; 32]> = need.into_iter().map(Id::to_bytes).collect();
    alice.say(client::req_ids("down", &need)).await;
    assert_eq!(alice.hear_until("[\"EOSE\"").await.len(), 100 + 1);
    for event in &events[4_900..] {
        alice.say(client::event(event.json_str())).await;
    }
    for _ in 0..100 {
        assert!(alice.hear().await.contains(",true,"));
    }
    let counters = service.counters().await;
    assert_eq!((counters.events_stored, counters.item_sets_read), (100, 1));
    service.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_is_cut_and_nobody_else() {
    let config = ServeConfig { outbound_bytes_max: 500_000, ..ServeConfig::default() };
    let service = service_with(config, &[]).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 * 1024).unwrap();
    let mut slow = Client::over(socket.connect(service.local_addr()).await.unwrap(), &service).await;
    slow.say(r#"["REQ","a",{"limit":0}]"#).await;
    slow.hear().await;
    let (mut alice, mut bob) = (Client::connect(&service).await, Client::connect(&service).await);
    bob.say(r#"["REQ","a",{"limit":0}]"#).await;
    bob.hear().await;
    let mut sent = 0;
    while service.counters().await.clients_cut == 0 {
        let event = note(sent).content("x".repeat(60_000)).sign();
        sent += 1;
        assert!(sent < 1_000, "the system's buffers are not that large");
        alice.say(client::event(event.json_str())).await;
        assert!(alice.hear().await.contains(",true,"));
        assert_eq!(story(&[bob.hear().await]), ids([&event]));
    }
    // What the system had taken for it already may still arrive, the goodbye need not.
    match slow.end().await {
        End::Closed(code, reason) => assert_eq!((code, &*reason), (CloseCode::Policy, "client reads too slowly")),
        End::Dropped => {}
    }
    alice.say(r#"["COUNT","c",{}]"#).await;
    assert_eq!(alice.hear().await, format!(r#"["COUNT","c",{{"count":{sent}}}]"#));
    service.shutdown().await;
}

#[tokio::test]
async fn a_page_larger_than_a_client_may_have_waiting_reaches_it_whole() {
    let events: Vec<Event> =
        (0..600).map(|at| note(at).content(format!("{at}{}", "x".repeat(10_000))).sign()).collect();
    let config = ServeConfig {
        outbound_bytes_max: 1_000_000,
        outbound_pause_bytes: 200_000,
        read_bytes_max: 200_000,
        ..ServeConfig::default()
    };
    let service = service_with(config, &events).await;
    let mut alice = Client::connect(&service).await;
    alice.say(r#"["REQ","a",{"limit":1000}]"#).await;
    assert_eq!(alice.hear_until("[\"EOSE\"").await.len(), 600 + 1);
    service.shutdown().await;
}

#[tokio::test]
async fn hostile_frames_end_their_own_connection_with_a_reason() {
    let config = ServeConfig { frame_bytes_max: 10_000, ..ServeConfig::default() };
    let service = service_with(config, &[]).await;
    let mut bystander = Client::connect(&service).await;
    // Masked with zeros, as clients must mask.
    let frame = |first: u8, payload: &[u8]| {
        let mut frame = vec![first, 0x80 | u8::try_from(payload.len()).unwrap(), 0, 0, 0, 0];
        frame.extend(payload);
        frame
    };
    let huge = [&[0x81, 0xFF][..], &u64::MAX.to_be_bytes()[..], &[0; 4]].concat();
    let large = [&[0x81, 0xFE][..], &10_001_u16.to_be_bytes()[..], &[0; 4], &[b' '; 10_001][..]].concat();
    let pieces = [&frame(0x01, &[b' '; 120])[..], &frame(0x00, &[b' '; 120]).repeat(100)[..]].concat();
    for (bytes, code, reason) in [
        (frame(0x81, b"\xff\xfe"), CloseCode::Invalid, "frame is not UTF-8"),
        (frame(0x82, b"[]"), CloseCode::Unsupported, "frame is not text"),
        (frame(0x83, b""), CloseCode::Protocol, "WebSocket protocol broken"),
        (frame(0xC1, b"[]"), CloseCode::Protocol, "WebSocket protocol broken"),
        (vec![0x81, 0x02, b'[', b']'], CloseCode::Protocol, "WebSocket protocol broken"),
        (frame(0x80, b"[]"), CloseCode::Protocol, "WebSocket protocol broken"),
        (huge, CloseCode::Size, "frame larger than allowed"),
        (large, CloseCode::Size, "frame larger than allowed"),
        (pieces, CloseCode::Size, "frame larger than allowed"),
    ] {
        let mut hostile = Client::connect(&service).await;
        hostile.0.get_mut().write_all(&bytes).await.unwrap();
        match hostile.end().await {
            End::Closed(got, text) => {
                assert!(got == code && text.starts_with(reason), "{:?}…: {got} {text}", &bytes[..3]);
            }
            End::Dropped => panic!("{:?}…: dropped without a word", &bytes[..3]),
        }
    }
    bystander.say(r#"["REQ","a",{}]"#).await;
    assert_eq!(story(&[bystander.hear().await]), ["EOSE"]);
    service.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_refused_by_rates_and_holds_up_nobody() {
    let config = ServeConfig {
        events_per_minute_max: 100,
        requests_per_minute_max: 100,
        bytes_per_minute_max: 4_000_000,
        ..ServeConfig::default()
    };
    let service = service_with(config, &notes(1..=50)).await;
    let mut bystander = Client::connect(&service).await;
    let flood = Client::connect(&service).await;
    let (mut sink, mut stream) = flood.0.split();
    let event = client::event(note(1).sign().json_str());
    let req = format!(r##"["REQ","a",{{"#t":["{}"]}}]"##, "x".repeat(2_000));
    let flooding = tokio::spawn(async move {
        for _ in 0..2_000 {
            for frame in [&event, &req] {
                sink.send(Message::Text(frame.clone().into())).await.unwrap();
            }
        }
        sink
    });
    let hearing = tokio::spawn(async move {
        let (mut refused, mut oks) = (0, 0);
        // A REQ that replaces one which is being answered leaves that without EOSE; each event has its OK.
        while oks < 2_000 {
            let frame = stream.next().await.unwrap().unwrap().into_text().unwrap();
            oks += usize::from(frame.starts_with(r#"["OK","#));
            refused += usize::from(frame.contains("rate-limited:"));
        }
        refused
    });
    while !flooding.is_finished() {
        bystander.say(r#"["COUNT","c",{}]"#).await;
        let counted = bystander.hear().await;
        if counted.contains("rate-limited:") {
            break; // It asks a lot itself.
        }
    }
    let refused = patiently(hearing).await.unwrap();
    assert!(refused >= 3_700, "{refused}");
    let counters = service.counters().await;
    assert!(counters.events_rate_limited > 0 && counters.requests_rate_limited > 0, "{counters:?}");
    assert!(counters.frames_rate_limited > 0 && counters.clients_cut == 0, "{counters:?}");
    drop(patiently(flooding).await.unwrap());
    service.shutdown().await;
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_subscriptions_along_and_its_events_stay() {
    let service = service().await;
    let mut alice = Client::connect(&service).await;
    alice.say(r#"["REQ","a",{}]"#).await;
    alice.say(client::event(note(1).sign().json_str())).await;
    drop(alice);
    let counters = counters_when(&service, |counters| counters.events_stored == 1).await;
    assert_eq!(counters.clients, 1);
    service.shutdown().await;
}

#[tokio::test]
async fn more_clients_than_allowed_are_turned_away() {
    let config = ServiceConfig { clients_max: 1, ..ServiceConfig::default() };
    let service = service_with(config, &[]).await;
    let mut alice = Client::connect(&service).await;
    alice.say(r#"["REQ","a",{}]"#).await;
    alice.hear().await;
    let (head, _) = http(&service, "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(head.starts_with("http/1.1 503"), "{head}");
    service.shutdown().await;
}

#[tokio::test]
async fn more_connections_of_one_address_than_allowed_are_turned_away() {
    let config = ServiceConfig { bounds_loopback: true, clients_per_address_max: 1, ..ServiceConfig::default() };
    let service = service_with(config, &[]).await;
    let alice = Client::connect(&service).await;
    let get = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let (head, _) = http(&service, get).await;
    assert!(head.starts_with("http/1.1 429"), "{head}");
    drop(alice);
    patiently(async { while http(&service, get).await.0.starts_with("http/1.1 429") {} }).await;
    assert!(service.counters().await.clients_turned_away >= 1);
    service.shutdown().await;
}

#[tokio::test]
async fn those_who_are_turned_away_fill_no_places() {
    let config = ServiceConfig {
        bounds_loopback: true,
        clients_max: 3,
        connects_per_address_per_minute_max: 2,
        turned_away_max: 2,
        ..ServiceConfig::default()
    };
    let service = service_with(config, &[]).await;
    let mut silent = Vec::new();
    for _ in 0..6 {
        silent.push(TcpStream::connect(service.local_addr()).await.unwrap());
    }
    counters_when(&service, |counters| counters.clients_turned_away == 4).await;
    for mut dropped in silent.drain(4..) {
        let read = patiently(dropped.read(&mut [0])).await;
        assert!(matches!(read, Ok(0) | Err(_)), "dropped without a word");
    }
    service.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_reads_nothing_at_all_holds_neither_memory_nor_a_place() {
    let serve = ServeConfig { outbound_bytes_max: 3_000_000, ..ServeConfig::default() };
    let config = ServiceConfig { clients_max: 2, ..serve.into() };
    let service = service_with(config, &[]).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 * 1024).unwrap();
    let mut deaf = Client::over(socket.connect(service.local_addr()).await.unwrap(), &service).await;
    deaf.say(r#"["REQ","a",{"limit":0}]"#).await;
    let mut alice = Client::connect(&service).await;
    let mut sent = 0;
    while service.counters().await.clients_cut == 0 {
        sent += 1;
        assert!(sent < 1_000, "the system's buffers are not that large");
        alice.say(client::event(note(sent).content("x".repeat(60_000)).sign().json_str())).await;
        alice.hear().await;
    }
    // The place is free again, though the deaf one neither reads nor leaves.
    patiently(async {
        loop {
            let get = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            if http(&service, get).await.0.starts_with("http/1.1 200") {
                return;
            }
        }
    })
    .await;
    drop(deaf);
    service.shutdown().await;
}

#[tokio::test]
async fn shutdown_says_goodbye_and_frees_the_port() {
    let service = service().await;
    let addr = service.local_addr();
    let (polite, silent) = (Client::connect(&service).await, Client::connect(&service).await);
    let halfway = TcpStream::connect(addr).await.unwrap();
    counters_when(&service, |counters| counters.clients == 2).await;
    let polite = tokio::spawn(polite.end());
    let begun = Instant::now();
    service.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(polite.await.unwrap(), End::Closed(CloseCode::Away, "relay shuts down".into()));
    assert!(TcpStream::connect(addr).await.is_err());
    drop((silent, halfway));
}

#[tokio::test]
async fn what_was_received_before_a_shutdown_is_stored() {
    let store = Arc::new(MemoryStore::default());
    let service = RelayService::bind(ANY_PORT, ServeConfig::default(), store.clone()).await.unwrap();
    let mut alice = Client::connect(&service).await;
    let events = notes(1..=200);
    for event in &events {
        alice.say(client::event(event.json_str())).await;
    }
    counters_when(&service, |counters| counters.events == 200).await;
    service.shutdown().await;
    assert_eq!(store.count(vec![Filter::new()], &View::all(), 0).await.unwrap(), 200);
    let frames = alice.hear_until(&format!(r#"["OK","{}""#, events[199].id.to_hex())).await;
    assert_eq!(frames.len(), 200);
}

#[tokio::test]
async fn an_address_in_use_is_an_error_that_names_it() {
    let service = service().await;
    let addr = service.local_addr();
    let error = RelayService::bind(addr, ServeConfig::default(), Arc::new(MemoryStore::default())).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot listen on {addr}: ")), "{error}");
    service.shutdown().await;
}
