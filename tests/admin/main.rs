//! The admin server over sockets: every page, and its bounds.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use relaysync::native::NativeClock;
use relaysync::native::admin::{AdminConfig, AdminServer, DaemonReport, Readiness, Stage};
use relaysync::runtime::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Nothing here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

struct World {
    server: AdminServer,
    reports: watch::Sender<Arc<DaemonReport>>,
    clock: NativeClock,
}

impl World {
    async fn new(config: AdminConfig) -> Self {
        let clock = NativeClock::new();
        let report = DaemonReport::starting(1_700_000_000, clock.now().instant);
        let (reports, published) = watch::channel(Arc::new(report));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = AdminServer::bind(address, config, clock.clone(), published).await.unwrap();
        Self { server, reports, clock }
    }

    fn publish(&self, change: impl FnOnce(&mut DaemonReport)) {
        let mut report = DaemonReport::clone(&self.reports.borrow());
        report.made_at = self.clock.now().instant;
        change(&mut report);
        self.reports.send_replace(Arc::new(report));
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.server.local_addr()).await.unwrap()
    }

    /// Sends `request` and reads to the end of the connection: head and body.
    async fn say(&self, request: &str) -> (String, String) {
        let talk = async {
            let mut socket = self.connect().await;
            socket.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            socket.read_to_end(&mut answer).await.unwrap();
            String::from_utf8(answer).unwrap()
        };
        let answer = tokio::time::timeout(PATIENCE, talk).await.expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_lowercase(), body.to_owned())
    }

    async fn get(&self, path: &str) -> (String, String) {
        self.say(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await
    }
}

fn ready(report: &mut DaemonReport) {
    report.readiness = Readiness { store: Stage::Ready, index: Stage::Ready, service: Stage::Off };
}

#[track_caller]
fn assert_status(head: &str, status: &str) {
    assert!(head.starts_with(&format!("http/1.1 {status}")), "{status}: {head}");
}

#[tokio::test]
async fn every_page_is_there() {
    let world = World::new(AdminConfig::default()).await;
    world.publish(ready);
    let (head, body) = world.get("/metrics").await;
    assert_status(&head, "200");
    assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{head}");
    assert!(body.contains("\nrelaysync_ready 1\n") && body.ends_with('\n'), "{body}");
    let (head, body) = world.get("/status").await;
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    let status: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&status["complete"], &status["started_at_secs"]), (&true.into(), &1_700_000_000.into()));
    let read: DaemonReport = serde_json::from_str(&body).unwrap();
    assert_eq!(read.version, env!("CARGO_PKG_VERSION"));
    for (path, status) in [("/healthz", "200"), ("/readyz", "200"), ("/", "200"), ("/nothing", "404"), ("//", "404")] {
        assert_status(&world.get(path).await.0, status);
    }
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let world = World::new(AdminConfig { engine_silence_max: Duration::ZERO, ..AdminConfig::default() }).await;
    world.publish(|report| report.engine.last_failure = Some("no space is left".to_owned()));
    let (head, body) = world.get("/healthz").await;
    assert_status(&head, "503");
    assert_eq!(body, "the engine has not moved for 0 s: no space is left\n");

    let world = World::new(AdminConfig::default()).await;
    let (head, body) = world.get("/readyz").await;
    assert_status(&head, "503");
    assert_eq!(body, "store: the store is not open yet\n");
    assert_status(&world.get("/healthz").await.0, "200");
    world.publish(ready);
    assert_status(&world.get("/readyz").await.0, "200");
}

#[tokio::test]
async fn only_questions_of_a_decent_size_are_answered() {
    let world = World::new(AdminConfig::default()).await;
    let host = "Host: localhost\r\n";
    let posted = format!("POST /status HTTP/1.1\r\n{host}Content-Length: 0\r\n\r\n");
    assert_status(&world.say(&posted).await.0, "405");
    let (head, body) = world.say(&format!("HEAD /status HTTP/1.1\r\n{host}\r\n")).await;
    assert_status(&head, "200");
    assert_eq!(body, "");
    let long = "x".repeat(6 << 10);
    assert_status(&world.say(&format!("GET / HTTP/1.1\r\n{host}A: {long}\r\nB: {long}")).await.0, "431");
}

/// Whoever connects and says nothing holds a place for a bounded time, and others are answered then.
#[tokio::test]
async fn the_silent_make_room() {
    let time_max = Duration::from_millis(300);
    let config = AdminConfig { connections_max: 2, connection_time_max: time_max, ..AdminConfig::default() };
    let world = World::new(config).await;
    let mut silent = [world.connect().await, world.connect().await];
    silent[0].write_all(b"GET /healthz HT").await.unwrap();
    assert_status(&world.get("/healthz").await.0, "200");
    for socket in &mut silent {
        let mut rest = Vec::new();
        tokio::time::timeout(PATIENCE, socket.read_to_end(&mut rest)).await.expect("it is closed").unwrap();
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "{rest:?}");
    }
}

#[tokio::test]
async fn an_address_in_use_is_an_error_and_a_dropped_server_frees_it() {
    let world = World::new(AdminConfig::default()).await;
    let address = world.server.local_addr();
    let bind = || AdminServer::bind(address, AdminConfig::default(), world.clock.clone(), world.reports.subscribe());
    let error = bind().await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot listen on {address}")), "{error}");
    drop(world.server);
    let freed = async {
        while bind().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, freed).await.expect("the address is free");
}
