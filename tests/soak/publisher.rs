//! A client that publishes at the daemon's own relay.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use relaysync::protocol::message::client;
use relaysync::protocol::{RelayMessage, RelayUrl};
use relaysync::sample::world::WorldEvent;
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use crate::Fault;

/// How long all answers may take.
const ANSWERS_MAX: Duration = Duration::from_secs(30);

/// Publishes events. Gives back those that the daemon did not take: what they refer to has not come to it yet.
pub(crate) async fn publish(relay: &RelayUrl, events: &[WorldEvent]) -> Result<Vec<WorldEvent>, Fault> {
    let stream = TcpStream::connect((relay.host(), relay.port())).await?;
    let (mut socket, _) = client_async(relay.as_str(), stream).await?;
    for published in events {
        socket.send(Message::Text(client::event(published.event.json_str()).into())).await?;
    }
    let mut refused = Vec::new();
    for _ in events {
        let answer = tokio::time::timeout(ANSWERS_MAX, socket.next()).await?.ok_or("the daemon's relay hangs up")??;
        let text = answer.into_text()?;
        if let RelayMessage::Ok { id, accepted: false, .. } = RelayMessage::parse(text.as_str())? {
            refused.extend(events.iter().filter(|event| event.event.id.to_hex() == *id).cloned());
        }
    }
    socket.close(None).await?;
    Ok(refused)
}
