//! Relay information documents (NIP-11): missing, huge, slow, in pieces, something else.

use std::time::Duration;

use relaysync::native::{NativeConnector, SocketConfig};
use relaysync::protocol::RelayInfo;
use relaysync::runtime::{ConnectError, Connector};
use tokio::io::AsyncWriteExt;

use super::peer::*;

async fn fetch(address: &str, config: SocketConfig) -> Result<String, ConnectError> {
    let connector = NativeConnector::new(config).unwrap();
    within(connector.relay_info(&dial(address))).await
}

async fn answer(answer: String) -> Result<String, ConnectError> {
    let address = listen(|mut socket| async move {
        let head = read_head(&mut socket).await.to_lowercase();
        assert!(head.starts_with("get / http/1.1\r\n"), "{head}");
        assert!(head.contains("accept: application/nostr+json\r\n"), "{head}");
        assert!(head.contains("host: 127.0.0.1:"), "{head}");
        // The client stops reading a document that is too large.
        let _ = socket.write_all(answer.as_bytes()).await;
    })
    .await;
    fetch(&address, SocketConfig::default()).await
}

fn is_refused(result: &Result<String, ConnectError>, word: &str) -> bool {
    matches!(result, Err(ConnectError::Handshake(detail)) if detail.contains(word))
}

#[tokio::test]
async fn by_length_by_chunks_and_by_end() {
    let json = r#"{"name":"x","limitation":{"max_limit":100}}"#;
    let length = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{json}", json.len());
    assert_eq!(answer(length).await.unwrap(), json);
    let (left, right) = json.split_at(7);
    let chunks = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{left}\r\n{:x};note=1\r\n{right}\r\n0\r\nTrailer: x\r\n\r\n",
        left.len(),
        right.len()
    );
    assert_eq!(answer(chunks).await.unwrap(), json);
    assert_eq!(answer(format!("HTTP/1.0 200 OK\r\n\r\n{json}")).await.unwrap(), json);
}

#[tokio::test]
async fn missing_or_something_else() {
    let missing = answer("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into()).await;
    assert!(is_refused(&missing, "404"), "{missing:?}");
    let html = answer("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>".into()).await.unwrap();
    assert_eq!(RelayInfo::parse(&html), None);
    let nothing = answer(String::new()).await;
    assert!(is_refused(&nothing, "relay information"), "{nothing:?}");
    let cut = answer("HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n{\"name\":".into()).await;
    assert!(is_refused(&cut, "relay information"), "{cut:?}");
    let garbage = answer("220 mail.example ESMTP\r\n".into()).await;
    assert!(is_refused(&garbage, "relay information"), "{garbage:?}");
}

#[tokio::test]
async fn too_large_however_it_is_said() {
    let body = "x".repeat((128 << 10) + 1);
    let announced = answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
    assert!(is_refused(&announced, "131072"), "{announced:?}");
    let endless = answer(format!("HTTP/1.1 200 OK\r\n\r\n{body}")).await;
    assert!(is_refused(&endless, "131072"), "{endless:?}");
    let chunk = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n", body.len());
    assert!(is_refused(&answer(chunk).await, "131072"));
    let head = answer(format!("HTTP/1.1 200 OK\r\nX: {body}\r\n\r\n{{}}")).await;
    assert!(is_refused(&head, "relay information"), "{head:?}");
}

#[tokio::test]
async fn slow_ones_are_given_up() {
    let address = listen(|mut socket| async move {
        read_head(&mut socket).await;
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await.unwrap();
        while socket.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let config = SocketConfig { info_timeout: Duration::from_millis(150), ..SocketConfig::default() };
    assert_eq!(fetch(&address, config).await, Err(ConnectError::TimedOut));
}
