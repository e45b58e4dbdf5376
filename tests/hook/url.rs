//! Posting to a URL.

use std::time::Duration;

use relaysync::native::hook::{HookTarget, HookUrl};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::world::*;

/// A server that gives these answers one after the other, and what it was asked.
async fn server(answers: &'static [&'static str]) -> (HookTarget, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?key=1", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for answer in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = String::new();
            while !request.ends_with('}') {
                let mut buffer = [0; 4096];
                let read = socket.read(&mut buffer).await.unwrap();
                request.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
            }
            sender.send(request).unwrap();
            if answer.is_empty() {
                // It says nothing until the other side has had enough.
                assert_eq!(socket.read(&mut [0; 1]).await.unwrap_or(0), 0);
            }
            socket.write_all(answer.as_bytes()).await.ok();
        }
    });
    (HookTarget::Url(HookUrl::parse(&url).unwrap()), receiver)
}

#[tokio::test]
async fn json_is_posted_until_it_is_taken() {
    let (target, mut asked) = server(&[
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy",
        "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
        "nonsense",
        "",
        "HTTP/1.1 204 No Content\r\n\r\n",
    ])
    .await;
    let world = World::new(target, |config| config.timeout = Duration::from_millis(300)).await;
    world.commit(&[patch(1, "x")]).await;
    world.settled().await;
    let counters = world.counters();
    assert_eq!((counters.failed, counters.delivered), (4, 1), "{counters:?}");
    for _ in 0..5 {
        let request = asked.recv().await.unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /hook?key=1 HTTP/1.1\r\n"), "{head}");
        assert!(head.to_lowercase().contains("content-type: application/json"), "{head}");
        let json: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(json["repository"], address(1, "x").to_string());
    }
}
