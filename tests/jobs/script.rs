//! Relays that answer what is published by a script.

use futures_util::{SinkExt, StreamExt};
use relaysync::protocol::RelayUrl;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// A relay that has nothing, and answers an event of this id with these frames.
pub(crate) async fn relay(answer: impl Fn(&str) -> Vec<String> + Clone + Send + Sync + 'static) -> RelayUrl {
    relay_that_says(Vec::new(), answer).await
}

/// The same, with frames that it says at once.
pub(crate) async fn relay_that_says(
    greeting: Vec<String>,
    answer: impl Fn(&str) -> Vec<String> + Clone + Send + Sync + 'static,
) -> RelayUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (greeting, answer) = (greeting.clone(), answer.clone());
            tokio::spawn(async move {
                // Whoever asks for the information document is no WebSocket client, and gets nothing.
                if let Ok(socket) = tokio_tungstenite::accept_async(socket).await {
                    serve(socket, greeting, answer).await;
                }
            });
        }
    });
    RelayUrl::parse(&url).unwrap()
}

async fn serve(mut socket: WebSocketStream<TcpStream>, greeting: Vec<String>, answer: impl Fn(&str) -> Vec<String>) {
    for frame in greeting {
        if socket.send(Message::Text(frame.into())).await.is_err() {
            return;
        }
    }
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        let frames = match (parsed[0].as_str(), &parsed[1]) {
            (Some("EVENT"), event) => answer(event["id"].as_str().unwrap()),
            (Some("AUTH"), event) => vec![ok(event["id"].as_str().unwrap(), false, "restricted: not on the list")],
            (Some("REQ"), name) => vec![serde_json::json!(["EOSE", name]).to_string()],
            _ => Vec::new(),
        };
        for frame in frames {
            if socket.send(Message::Text(frame.into())).await.is_err() {
                return;
            }
        }
    }
}

pub(crate) fn ok(id: &str, accepted: bool, reason: &str) -> String {
    serde_json::json!(["OK", id, accepted, reason]).to_string()
}
