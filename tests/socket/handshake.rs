//! Servers that are none, or never answer.

use std::time::{Duration, Instant};

use relaysync::native::{NativeConnector, SocketConfig};
use relaysync::runtime::{ConnectError, Connector, Dial};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::peer::*;

async fn refusal(answer: &'static str) -> ConnectError {
    let address = listen(move |mut socket| async move {
        read_head(&mut socket).await;
        socket.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    match connect_with(&address, SocketConfig::default()).await {
        Err(error) => error,
        Ok(_) => panic!("connected"),
    }
}

fn is_handshake(error: &ConnectError, word: &str) -> bool {
    matches!(error, ConnectError::Handshake(detail) if detail.contains(word))
}

#[tokio::test]
async fn what_is_no_websocket_server_is_named() {
    for (answer, word) in [
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404"),
        ("HTTP/1.1 200 OK\r\n\r\n<html>", "200"),
        (
            "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: d3Jvbmc=\r\n\r\n",
            "Sec-WebSocket-Accept",
        ),
        ("SSH-2.0-OpenSSH_9.9\r\n\r\n", "httparse"),
        ("", "closed"),
    ] {
        let error = refusal(answer).await;
        assert!(is_handshake(&error, word), "{word}: {error:?}");
    }
}

#[tokio::test]
async fn an_endless_head_is_cut_off() {
    let address = listen(|mut socket| async move {
        read_head(&mut socket).await;
        let mut line = "HTTP/1.1 101 x\r\n".to_owned();
        while socket.write_all(line.as_bytes()).await.is_ok() {
            line = format!("X: {}\r\n", "x".repeat(1000));
        }
    })
    .await;
    let Err(error) = connect_with(&address, SocketConfig::default()).await else { panic!("connected") };
    assert!(is_handshake(&error, "too long"), "{error:?}");
}

#[tokio::test]
async fn nobody_there_and_no_such_name() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let Err(error) = connect_with(&address, SocketConfig::default()).await else { panic!("connected") };
    assert!(matches!(error, ConnectError::Refused(_)), "{error:?}");
    let Err(error) = connect_with("no-such-host.invalid:1", SocketConfig::default()).await else { panic!("connected") };
    assert!(matches!(error, ConnectError::Dns(_)), "{error:?}");
}

#[tokio::test]
async fn a_server_that_never_answers_times_out() {
    let config = SocketConfig { connect_timeout: Duration::from_millis(100), ..SocketConfig::default() };
    let silent = listen(hold).await;
    assert_eq!(connect_with(&silent, config.clone()).await.err(), Some(ConnectError::TimedOut));
    let drip = listen(|mut socket| async move {
        while socket.write_all(b"H").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    })
    .await;
    let result = connect_with(&drip, config).await;
    assert!(matches!(&result, Err(ConnectError::TimedOut | ConnectError::Handshake(_))), "{:?}", result.err());
}

/// privkeyio/wisp#140: a connect that cannot be interrupted holds up the shutdown.
#[tokio::test]
async fn giving_up_frees_the_socket_at_once() {
    for scheme in ["ws", "wss"] {
        let (arrive, arrived) = tokio::sync::oneshot::channel();
        let (leave, left) = tokio::sync::oneshot::channel();
        let address = listen(|mut socket| async move {
            let mut sink = [0; 4096];
            assert!(socket.read(&mut sink).await.unwrap() > 0, "the client's first bytes");
            arrive.send(()).unwrap();
            hold(socket).await;
            leave.send(()).unwrap();
        })
        .await;
        let connector = NativeConnector::new(SocketConfig::default()).unwrap();
        let mut dial = dial(&address);
        dial.url = format!("{scheme}://{address}").parse().unwrap();
        let connecting = tokio::spawn(async move { connector.connect(&dial).await.map(|_| ()) });
        within(arrived).await.unwrap();
        let given_up = Instant::now();
        connecting.abort();
        within(left).await.unwrap();
        assert!(given_up.elapsed() < Duration::from_millis(500), "{scheme}: {:?}", given_up.elapsed());
    }
}

/// Whoever announces a repository chooses the names of its relays, and what they resolve to.
#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_not_connected_to() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connector = NativeConnector::new(SocketConfig::default()).unwrap();
    for host in ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]"] {
        let dial = Dial { public_only: true, ..dial(&format!("{host}:{port}")) };
        let Err(error) = within(connector.connect(&dial)).await else { panic!("connected to {host}") };
        assert_eq!(error, ConnectError::Private(dial.url.host()));
        assert_eq!(within(connector.relay_info(&dial)).await, Err(error));
    }
    let nobody =
        std::future::poll_fn(|context| std::task::Poll::Ready(listener.poll_accept(context).is_pending())).await;
    assert!(nobody, "somebody has connected");
}
