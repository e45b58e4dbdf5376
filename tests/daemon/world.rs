//! Relays, daemons and clients of them, all on this machine.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use relaysync::ingest::verify;
use relaysync::native::daemon::Daemon;
use relaysync::native::serve::RelayService;
use relaysync::native::settings::{Settings, Sources, load};
use relaysync::protocol::{Event, RelayUrl};
use relaysync::serve::ServeConfig;
use relaysync::store::{Batch, MemoryStore, Store};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::events::{Draft, note};

/// Nothing here takes longer, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The URL under which the daemon's service is known.
pub(crate) const SERVICE: &str = "wss://git.example";

pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("within the bound")
}

/// A relay that holds `events`.
pub(crate) async fn relay(events: &[Event]) -> RelayService {
    let store = MemoryStore::default();
    let events = events.iter().map(|event| verify(event.clone()).unwrap()).collect();
    store.commit(Batch { events, ..Batch::default() }).await.unwrap();
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    RelayService::bind(any_port, ServeConfig::default(), Arc::new(store)).await.unwrap()
}

/// Settings of a daemon with its store in `directory`: quick, allowed to dial this machine, and with `lines` of a file.
pub(crate) fn settings(directory: &Path, lines: &str) -> Settings {
    let text = format!(
        "[store]\npath = '{}'\n[discovery]\nprivate_relays = true\nbatch_window = '50ms'\n\
         [sync]\nprogress_interval = '50ms'\nbackoff_floor = '50ms'\nbackoff_base = '100ms'\n{lines}",
        directory.join("events.db").display()
    );
    let sources = Sources { file: Some(("test.toml".to_owned(), text)), ..Sources::default() };
    load(&sources).unwrap_or_else(|mistakes| panic!("{mistakes}")).settings
}

/// The same, for a daemon that is a relay, known as [`SERVICE`], and begins at `bootstrap`.
pub(crate) fn embedded(directory: &Path, bootstrap: &[RelayUrl]) -> Settings {
    let mut settings = settings(directory, &format!("[relay]\nlisten = '127.0.0.1:0'\nurls = ['{SERVICE}']\n"));
    settings.discovery.config.bootstrap = bootstrap.to_vec();
    settings
}

pub(crate) async fn start(settings: Settings) -> Daemon {
    Daemon::start(settings, None).await.unwrap_or_else(|error| panic!("{error}"))
}

/// An announcement of `author` that lists `relays`.
pub(crate) fn announcement(author: u8, identifier: &str, relays: &[&str]) -> Event {
    let mut draft = note(1_000).by(author).kind(30617).tag("d", identifier);
    for relay in relays {
        // One tag each: a list of one tag is what the drafts of these tests cannot write.
        draft = draft.tag("relays", relay);
    }
    draft.sign()
}

/// What refers to the repository of `announcement`.
pub(crate) fn of_repository(announcement: &Event, identifier: &str, kind: u16) -> Draft {
    note(2_000).by(9).kind(kind).tag("a", &format!("30617:{}:{identifier}", announcement.pubkey.to_hex()))
}

/// A client of a relay.
pub(crate) struct Client(WebSocketStream<TcpStream>);

impl Client {
    pub(crate) async fn connect(relay: &RelayUrl) -> Self {
        let socket = TcpStream::connect((relay.host(), relay.port())).await.unwrap();
        Self(patiently(client_async(relay.as_str(), socket)).await.unwrap().0)
    }

    async fn say(&mut self, frame: String) {
        patiently(self.0.send(Message::Text(frame.into()))).await.unwrap();
    }

    async fn hear(&mut self) -> serde_json::Value {
        match patiently(self.0.next()).await {
            Some(Ok(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
            other => panic!("no text: {other:?}"),
        }
    }

    /// Publishes an event; gives what the relay says to it, empty if it took it.
    pub(crate) async fn publish(&mut self, event: &Event) -> String {
        self.say(format!("[\"EVENT\",{}]", event.json_str())).await;
        loop {
            let answer = self.hear().await;
            if answer[0] == "OK" && answer[1] == event.id.to_hex() {
                let words = answer[3].as_str().unwrap().to_owned();
                return if answer[2] == true { String::new() } else { words };
            }
        }
    }

    /// The ids of everything that the relay holds.
    pub(crate) async fn held(&mut self) -> BTreeSet<String> {
        let ids = self.subscribe().await;
        self.say("[\"CLOSE\",\"all\"]".to_owned()).await;
        ids
    }

    /// The same; from now on the relay tells of what it gets.
    pub(crate) async fn subscribe(&mut self) -> BTreeSet<String> {
        self.say("[\"REQ\",\"all\",{}]".to_owned()).await;
        let mut ids = BTreeSet::new();
        loop {
            let answer = self.hear().await;
            match answer[0].as_str() {
                Some("EVENT") => drop(ids.insert(answer[2]["id"].as_str().unwrap().to_owned())),
                Some("EOSE") => return ids,
                _ => panic!("{answer}"),
            }
        }
    }

    /// The id of the next event that the relay tells of.
    pub(crate) async fn told(&mut self) -> String {
        let answer = self.hear().await;
        assert_eq!(answer[0], "EVENT", "{answer}");
        answer[2]["id"].as_str().unwrap().to_owned()
    }
}

/// The ids of `events`.
pub(crate) fn ids<'e>(events: impl IntoIterator<Item = &'e Event>) -> BTreeSet<String> {
    events.into_iter().map(|event| event.id.to_hex()).collect()
}

/// Waits until `relay` holds exactly `events`.
pub(crate) async fn holds(relay: &RelayUrl, events: &[&Event]) {
    let expected = ids(events.iter().copied());
    let mut client = Client::connect(relay).await;
    let mut held = BTreeSet::new();
    let waited = tokio::time::timeout(PATIENCE, async {
        while held != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
            held = client.held().await;
        }
    });
    if waited.await.is_err() {
        panic!("holds {held:?}, and should hold {expected:?}");
    }
}
