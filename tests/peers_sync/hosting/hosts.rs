//! Relays of all makes, under one way to use them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use relaysync::ingest::Verified;
use relaysync::native::serve::RelayService;
use relaysync::protocol::message::client;
use relaysync::protocol::{Event, RelayUrl};
use relaysync::serve::ServeConfig;
use relaysync::store::{Batch, MemoryStore, Store};
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use super::FEW_MAX;
use crate::events;
use crate::peers::{NpmRelay, Peer, PeerConfig, RustNostrRelay};

/// Whose relay it is, and how it is to behave.
#[derive(Debug, Clone)]
pub(super) enum Make {
    Own(Box<ServeConfig>),
    RustNostr(PeerConfig),
    Npm(PeerConfig),
}

/// A relay that can go away and come back under its address, with what it got meanwhile.
pub(super) struct Host {
    make: Make,
    url: RelayUrl,
    folder: tempfile::TempDir,
    running: Running,
}

enum Running {
    Own { store: Arc<MemoryStore>, service: Option<RelayService> },
    Peer(Option<Peer>),
}

impl Host {
    /// Starts it, empty, on a free port.
    pub(super) async fn start(make: Make) -> Self {
        let running = match &make {
            Make::Own(config) => {
                let store = Arc::<MemoryStore>::default();
                let service = Some(serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), config, &store).await);
                Running::Own { store, service }
            }
            Make::RustNostr(config) => Running::Peer(Some(RustNostrRelay::start(config))),
            Make::Npm(config) => Running::Peer(Some(NpmRelay::start(config))),
        };
        let url = match &running {
            Running::Own { service, .. } => service.as_ref().expect("it was started").url(),
            Running::Peer(peer) => {
                RelayUrl::parse(&peer.as_ref().expect("it was started").url).expect("it prints a URL")
            }
        };
        Self { make, url, folder: tempfile::tempdir().expect("a temporary folder"), running }
    }

    pub(super) fn url(&self) -> &RelayUrl {
        &self.url
    }

    /// Can others fetch deletions here?
    pub(super) fn keeps_deletions(&self) -> bool {
        !matches!(self.make, Make::Npm(_))
    }

    /// Puts events, forged ones too, where it keeps its events, whether it runs or not. Nobody is told of them.
    pub(super) async fn put(&mut self, events: &[Event]) {
        let path = self.folder.path().join("events.jsonl");
        match &mut self.running {
            Running::Own { store, .. } => {
                let events = events.iter().cloned().map(Verified::trust).collect();
                store.commit(Batch { events, ..Batch::default() }).await.expect("it is memory");
            }
            Running::Peer(Some(peer)) => peer.load(&events::write(self.folder.path(), "more.jsonl", events)),
            Running::Peer(None) => {
                let mut text = std::fs::read_to_string(&path).expect("written when it was stopped");
                text.extend(events.iter().flat_map(|event| [event.json_str(), "\n"]));
                std::fs::write(&path, text).expect("a temporary folder can be written");
            }
        }
    }

    /// Publishes events as a client would.
    pub(super) async fn publish(&self, published: &[relaysync::sample::world::WorldEvent]) {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.url.port())).await.expect("it listens");
        let (mut socket, _) = client_async(self.url.as_str(), stream).await.expect("it shakes hands");
        for published in published {
            socket.send(Message::Text(client::event(published.event.json_str()).into())).await.expect("it reads");
        }
        let mut left = published.len();
        while left > 0 {
            let message = tokio::time::timeout(FEW_MAX, socket.next()).await.expect("it answers");
            let text = message.expect("it stays").expect("it speaks").into_text().expect("it speaks text");
            assert!(text.contains("true"), "{text}");
            left -= 1;
        }
    }

    /// It goes away, with all its connections.
    pub(super) async fn stop(&mut self) {
        match &mut self.running {
            Running::Own { service, .. } => service.take().expect("it runs").shutdown().await,
            Running::Peer(running) => {
                let mut peer = running.take().expect("it runs");
                let text: String = peer.dump().iter().flat_map(|line| [line.as_str(), "\n"]).collect();
                std::fs::write(self.folder.path().join("events.jsonl"), text)
                    .expect("a temporary folder can be written");
            }
        }
    }

    /// It comes back, under the same address.
    pub(super) async fn start_again(&mut self) {
        let load = Some(self.folder.path().join("events.jsonl"));
        match (&mut self.running, &self.make) {
            (Running::Own { store, service }, Make::Own(config)) => {
                let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, self.url.port()));
                *service = Some(serve(addr, config, store).await);
            }
            (Running::Peer(running), Make::RustNostr(config)) => {
                *running = Some(RustNostrRelay::start(&PeerConfig { port: self.url.port(), load, ..config.clone() }));
            }
            (Running::Peer(running), Make::Npm(config)) => {
                *running = Some(NpmRelay::start(&PeerConfig { port: self.url.port(), load, ..config.clone() }));
            }
            _ => unreachable!("a relay stays of its make"),
        }
    }
}

async fn serve(addr: SocketAddr, config: &ServeConfig, store: &Arc<MemoryStore>) -> RelayService {
    RelayService::bind(addr, config.clone(), store.clone()).await.expect("the port is free")
}
