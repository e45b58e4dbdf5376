//! A client on a socket that waits with a bound, and services for it.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use relaysync::native::serve::{RelayService, ServiceConfig};
use relaysync::protocol::Event;
use relaysync::serve::{Counters, ServeConfig};
use relaysync::store::{Batch, MemoryStore, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, client_async};

/// Nothing here takes so long on a machine that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A client that waits with a bound.
#[derive(Debug)]
pub(crate) struct Client(pub(crate) WebSocketStream<TcpStream>);

/// How a connection ended, as the client saw it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed(CloseCode, String),
    Dropped,
}

impl Client {
    pub(crate) async fn connect(service: &RelayService) -> Self {
        Self::over(TcpStream::connect(service.local_addr()).await.unwrap(), service).await
    }

    pub(crate) async fn over(socket: TcpStream, service: &RelayService) -> Self {
        let (socket, _) = patiently(client_async(service.url().as_str(), socket)).await.unwrap();
        Self(socket)
    }

    pub(crate) async fn say(&mut self, frame: impl Into<String>) {
        patiently(self.0.send(Message::Text(frame.into().into()))).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> String {
        match patiently(self.0.next()).await {
            Some(Ok(Message::Text(text))) => text.to_string(),
            other => panic!("no text: {other:?}"),
        }
    }

    /// All frames up to and with the first that begins so.
    pub(crate) async fn hear_until(&mut self, beginning: &str) -> Vec<String> {
        let mut frames = Vec::new();
        loop {
            frames.push(self.hear().await);
            if frames.last().is_some_and(|frame| frame.starts_with(beginning)) {
                return frames;
            }
        }
    }

    /// Reads on until the connection ends.
    pub(crate) async fn end(mut self) -> End {
        loop {
            match patiently(self.0.next()).await {
                Some(Ok(Message::Close(Some(frame)))) => return End::Closed(frame.code, frame.reason.to_string()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return End::Dropped,
            }
        }
    }
}

pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("within the bound")
}

pub(crate) async fn service_with(config: impl Into<ServiceConfig>, events: &[Event]) -> RelayService {
    let store = MemoryStore::default();
    let events = events.iter().map(|event| relaysync::ingest::verify(event.clone()).unwrap()).collect();
    store.commit(Batch { events, ..Batch::default() }).await.unwrap();
    RelayService::bind(ANY_PORT, config, Arc::new(store)).await.unwrap()
}

pub(crate) async fn service() -> RelayService {
    service_with(ServeConfig::default(), &[]).await
}

/// The service's numbers, once they satisfy `condition`.
pub(crate) async fn counters_when(service: &RelayService, condition: impl Fn(&Counters) -> bool) -> Counters {
    patiently(async {
        loop {
            let counters = service.counters().await;
            if condition(&counters) {
                return counters;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

pub(crate) async fn http(service: &RelayService, request: &str) -> (String, String) {
    let mut socket = TcpStream::connect(service.local_addr()).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    patiently(socket.read_to_string(&mut response)).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}
