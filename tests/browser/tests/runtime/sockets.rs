//! The connector by itself.

use std::sync::Arc;

use relaysync::peer::TlsTerms;
use relaysync::protocol::RelayUrl;
use relaysync::runtime::{CloseReason, ConnectError, Connector, Dial, FrameReceiver, FrameSender, Runtime, SendError};
use wasm_bindgen_test::wasm_bindgen_test;

use super::{own_relay, runtime};

fn dial(url: RelayUrl) -> Dial {
    Dial { url, frame_bytes_max: 1 << 20, public_only: false, tls: None }
}

const REQUEST: &str = r#"["REQ","x",{"kinds":[9999],"limit":1}]"#;

#[wasm_bindgen_test]
async fn frames_go_both_ways_until_the_connection_is_closed() {
    let runtime = runtime();
    let (mut sender, mut receiver) = runtime.connector().connect(&dial(own_relay())).await.expect("it listens");
    sender.try_send(REQUEST.into()).expect("it is open");
    let mut frames = Vec::new();
    receiver.receive(&mut frames).await.expect("it answers");
    // Our relay adds a hint (NIP-67).
    assert!(frames[0].as_str().starts_with(r#"["EOSE","x""#), "{frames:?}");
    sender.close();
    assert_eq!(sender.try_send(REQUEST.into()), Err(SendError::Closed));
    assert!(receiver.receive(&mut frames).await.is_err());
}

#[wasm_bindgen_test]
async fn a_frame_that_is_too_large_ends_the_connection() {
    let runtime = runtime();
    let dial = Dial { frame_bytes_max: 5, ..dial(own_relay()) };
    let (mut sender, mut receiver) = runtime.connector().connect(&dial).await.expect("it listens");
    sender.try_send(REQUEST.into()).expect("it is open");
    let ended = receiver.receive(&mut Vec::new()).await;
    assert_eq!(ended, Err(CloseReason::FrameTooLarge));
}

#[wasm_bindgen_test]
async fn more_than_may_wait_is_not_taken() {
    let runtime = runtime();
    let (mut sender, _receiver) = runtime.connector().connect(&dial(own_relay())).await.expect("it listens");
    assert_eq!(sender.try_send(" ".repeat(9 << 20)), Err(SendError::Full));
}

#[wasm_bindgen_test]
async fn who_cannot_be_reached_or_may_not_be_is_told_apart() {
    let runtime = runtime();
    let connect = async |dial: Dial| runtime.connector().connect(&dial).await.err().expect("nobody is there");
    let nobody = RelayUrl::parse("ws://127.0.0.1:9").expect("it is one");
    assert!(matches!(connect(dial(nobody.clone())).await, ConnectError::Io(_)));
    let public = Dial { public_only: true, ..dial(nobody.clone()) };
    assert_eq!(connect(public).await, ConnectError::Private("127.0.0.1".into()));
    let encrypted = Dial { tls: Some(Arc::new(TlsTerms::default())), ..dial(nobody.clone()) };
    assert_eq!(connect(encrypted).await, ConnectError::Unencrypted(nobody.to_string()));
    let secure = RelayUrl::parse("wss://127.0.0.1:9").expect("it is one");
    let hosted = TlsTerms { hostname: Some("x.example".into()), ..TlsTerms::default() };
    assert!(matches!(connect(Dial { tls: Some(Arc::new(hosted)), ..dial(secure) }).await, ConnectError::Pin(_)));
}

#[wasm_bindgen_test]
async fn the_information_document_is_fetched() {
    let runtime = runtime();
    let document = runtime.connector().relay_info(&dial(own_relay())).await.expect("it has one");
    assert!(document.contains("supported_nips"), "{document}");
    let nobody = RelayUrl::parse("ws://127.0.0.1:9").expect("it is one");
    assert!(matches!(runtime.connector().relay_info(&dial(nobody)).await, Err(ConnectError::Io(_))));
}
