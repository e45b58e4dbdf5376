//! A daemon goes by its control plane.

use std::path::Path;

use relaysync::engine::Phase;
use relaysync::native::daemon::{Daemon, DaemonError};
use relaysync::native::settings::{Settings, Sources, load};
use relaysync::peer::WorkerState;

use crate::support::{file, kind, open, patiently, spec, until};

pub(crate) fn settings(folder: &Path, lines: &str) -> Settings {
    let path = folder.join("events.db");
    let text = format!("[store]\npath = '{}'\n[sync]\nprogress_interval = '20ms'\n{lines}", path.display());
    let sources = Sources { file: Some(("test.toml".to_owned(), text)), ..Sources::default() };
    load(&sources).unwrap_or_else(|mistakes| panic!("{mistakes}")).settings
}

pub(crate) async fn start(folder: &Path, lines: &str) -> Daemon {
    Daemon::start(settings(folder, lines), None).await.unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test]
async fn it_is_somebody_and_tells_its_clients_who() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = start(folder.path(), "[relay]\nlisten = '127.0.0.1:0'\nurls = ['wss://r.example']\n").await;
    let first = daemon.control().identity().get().expect("somebody").pubkey;
    let url = daemon.relay_url().unwrap();
    let named = || named_by(url.as_str());
    assert_eq!(named().await, first.to_hex());
    let second = daemon.control().identity().rotate().await.unwrap().pubkey;
    patiently(async { while named().await != second.to_hex() {} }).await;
    assert!(daemon.shutdown().await);
    assert_eq!(open(folder.path()).await.identity().get().unwrap().pubkey, second);
}

/// The key that a relay's information document names as its own.
async fn named_by(url: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = url.strip_prefix("ws://").unwrap();
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let request =
        format!("GET / HTTP/1.1\r\nhost: {address}\r\naccept: application/nostr+json\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let begin = body.find('{').unwrap();
    let document: serde_json::Value = serde_json::from_str(&body[begin..=body.rfind('}').unwrap()]).unwrap();
    document["self"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn peers_are_worked_on_as_soon_as_they_are_put_and_no_longer_than_they_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = start(folder.path(), "[relay]\nlisten = '127.0.0.1:0'\nurls = ['wss://r.example']\n").await;
    let peers = daemon.control().peers();
    // Nobody listens there.
    let mut spec = spec("a", 1);
    spec.url = relaysync::protocol::RelayUrl::parse("wss://127.0.0.1:9").unwrap();
    let info = peers.put(spec).await.unwrap();
    assert!(info.warnings[0].contains("nothing protects"), "{:?}", info.warnings);
    let state = || peers.get("a").unwrap().runtime;
    until(|| state().state == WorkerState::Running && state().last_error.is_some()).await;
    let health = peers.health();
    assert_eq!(health.servers_failing[0].reason.to_string(), "connection_refused", "{health:?}");
    let reports = daemon.reports();
    until(|| reports.borrow().peers.as_ref().is_some_and(|peers| peers.peers[0].runtime.last_error.is_some())).await;
    patiently(peers.sync_now("a")).await.unwrap();
    peers.stop("a").await.unwrap();
    until(|| reports.borrow().relays.iter().all(|relay| relay.phase == Phase::Done)).await;
    assert_eq!(state().state, WorkerState::Stopped);
    let error = state().last_error;
    assert!(daemon.shutdown().await);

    assert_eq!(open(folder.path()).await.peers().get("a").unwrap().runtime.last_error, error, "it survives a restart");
    assert!(file(folder.path(), ".marks.json").exists());
}

#[tokio::test]
async fn who_brought_an_event_is_told_by_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = start(folder.path(), "[relay]\nlisten = '127.0.0.1:0'\nurls = ['wss://r.example']\n").await;
    let id = relaysync::protocol::EventId::from_byte_array([7; 32]);
    assert_eq!(patiently(daemon.control().peers().brought(id)).await.unwrap(), None);
    assert!(daemon.shutdown().await);
}

#[tokio::test]
async fn what_is_protected_can_change_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "[relay]\nlisten = '127.0.0.1:0'\nurls = ['wss://r.example']\n";
    let daemon = start(folder.path(), lines).await;
    let key = "aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4";
    let more = format!("{lines}[access]\nprotected = ['{{\"kinds\":[5000]}}']\n[control]\nadmins = ['{key}']\n");
    let reloaded = daemon.reload(&settings(folder.path(), &more)).await;
    assert_eq!(reloaded.changed, ["access.protected", "control.admins"]);
    assert_eq!(reloaded.faults, [""; 0]);
    let desired = daemon.control().desired();
    assert_eq!((desired.access.protected(), desired.admins.len()), (&[kind(5000)][..], 1));
    assert!(daemon.shutdown().await);
}

#[tokio::test]
async fn it_does_not_start_with_what_it_cannot_read() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).await.identity().ensure().await.unwrap();
    std::fs::write(file(folder.path(), ".control.json"), "{").unwrap();
    let started = Daemon::start(settings(folder.path(), ""), None).await;
    assert!(matches!(started, Err(DaemonError::Control(_))), "{started:?}");
}
