//! `relaysync status` against a daemon's admin server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use relaysync::native::NativeClock;
use relaysync::native::admin::{AdminConfig, AdminServer, DaemonReport, Readiness, Stage};
use relaysync::runtime::Clock;
use tokio::sync::watch;

use super::call::{lines_of, run, start};

/// An admin server for as long as it is held.
struct Daemon {
    url: String,
    reports: watch::Sender<Arc<DaemonReport>>,
    _server: AdminServer,
    _runtime: tokio::runtime::Runtime,
}

impl Daemon {
    fn new(readiness: Readiness) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let clock = NativeClock::new();
        let report = DaemonReport { readiness, ..DaemonReport::starting(1_700_000_000, clock.now().instant) };
        let (reports, published) = watch::channel(Arc::new(report));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = runtime.block_on(AdminServer::bind(address, AdminConfig::default(), clock, published)).unwrap();
        let url = format!("http://{}", server.local_addr());
        Self { url, reports, _server: server, _runtime: runtime }
    }
}

fn all_ready() -> Readiness {
    Readiness { store: Stage::Ready, index: Stage::Ready, service: Stage::Ready }
}

#[test]
fn the_verdict_is_shown_and_is_the_exit_status() {
    let directory = tempfile::tempdir().unwrap();
    let complete = Daemon::new(all_ready());
    let call = run(directory.path(), &["status", "--url", &complete.url], "");
    assert_eq!((call.status, call.stderr.as_str()), (0, ""), "{call:?}");
    assert!(call.stdout.starts_with("relaysync "), "{call:?}");
    let index = Stage::Pending("12 events read so far".to_owned());
    let starting = Daemon::new(Readiness { index, ..all_ready() });
    let call = run(directory.path(), &["status", "--url", &starting.url], "");
    assert_eq!(call.status, 3, "{call:?}");
    assert!(call.lines().contains(&"Not ready: index: 12 events read so far"), "{call:?}");
}

#[test]
fn the_configuration_says_where_to_ask() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::new(all_ready());
    let listen = daemon.url.strip_prefix("http://").unwrap();
    std::fs::write(directory.path().join("a.toml"), format!("[http]\nlisten = \"{listen}\"\n")).unwrap();
    let call = run(directory.path(), &["status", "--config", "a.toml"], "");
    assert_eq!((call.status, call.stderr.as_str()), (0, ""), "{call:?}");
    std::fs::write(directory.path().join("relaysync.toml"), "").unwrap();
    run(directory.path(), &["status"], "").assert_one_line(2, "relaysync.toml has no http.listen");
    run(directory.path(), &["status", "--config", "b.toml"], "").assert_one_line(2, "there is no b.toml");
}

#[test]
fn json_is_what_the_daemon_says() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::new(all_ready());
    let call = run(directory.path(), &["status", "--json", "--url", &daemon.url], "");
    assert_eq!((call.status, call.lines().len()), (0, 1), "{call:?}");
    let status: serde_json::Value = serde_json::from_str(&call.stdout).unwrap();
    assert_eq!((&status["complete"], &status["version"]), (&true.into(), &env!("CARGO_PKG_VERSION").into()));
}

#[test]
fn watching_shows_what_changes_until_it_is_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::new(all_ready());
    let mut child = start(directory.path(), &["status", "--watch", "--json", "--url", &daemon.url]);
    let mut shown = lines_of(child.stdout.take().unwrap());
    let complete = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["complete"].clone();
    assert_eq!(complete(&shown.next().unwrap()), true);
    daemon.reports.send_modify(|report| {
        let mut changed = DaemonReport::clone(report);
        changed.readiness.store = Stage::Pending("no space is left".to_owned());
        *report = Arc::new(changed);
    });
    assert!(shown.any(|line| complete(&line) == false), "the change is shown");
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(child.wait().unwrap().code().is_some(), "it ends by itself");
}

#[test]
fn nobody_there_is_one_clear_line() {
    let directory = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    run(directory.path(), &["status", "--url", &url], "").assert_one_line(1, "no daemon answers at");
    run(directory.path(), &["status", "--url", "ws://127.0.0.1:1"], "").assert_one_line(2, "must be http or https");
    let daemon = Daemon::new(all_ready());
    let wrong = format!("{}/elsewhere", daemon.url);
    run(directory.path(), &["status", "--url", &wrong], "").assert_one_line(1, "no daemon of relaysync: 404");
}
