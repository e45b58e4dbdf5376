//! A daemon that is killed again and again while it syncs, is told things and is written to: whatever it has
//! acknowledged is there afterwards, at its peer, too.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relaysync::peer::Pin;
use relaysync::protocol::{Event, RelayUrl};

use crate::certificate::{Certificate, Dates};
use crate::client::{Client, ids, until};
use crate::events::note;
use crate::side::{NAMESPACES, Side, WRITER, configuration, synced};

const KILLS: u64 = 50;
/// The longest time that the daemon may go on before it is killed.
const LIFE_MICROS: u64 = 400_000;

/// A daemon that is killed.
struct Victim {
    directory: tempfile::TempDir,
    /// Its files are there as long as this is.
    _certificate: Certificate,
    pin: Pin,
    url: RelayUrl,
}

impl Victim {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (certificate, pin) = Certificate::new(Dates::Now);
        // It is to be found again at the same port.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let text = configuration(directory.path(), &certificate, listen);
        std::fs::write(directory.path().join("relaysync.toml"), text).unwrap();
        let url = RelayUrl::parse(&format!("wss://localhost:{port}")).unwrap();
        Self { directory, _certificate: certificate, pin, url }
    }

    /// Calls the program, which finds the daemon by itself.
    fn call(&self, arguments: &[&str]) -> Output {
        program(self.directory.path()).args(arguments).output().unwrap()
    }

    /// The same, where it has to succeed; gives what it prints.
    fn told(&self, arguments: &[&str]) -> String {
        let output = self.call(arguments);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {words}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts the daemon, and waits until its relay listens.
    fn start(&self) -> Life {
        let mut child = program(self.directory.path()).arg("run").stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = Vec::new();
        loop {
            let Some(line) = lines.next() else { panic!("it ended: {said:#?}") };
            if line.contains("the relay listens at") {
                break;
            }
            said.push(line);
        }
        std::thread::spawn(move || lines.for_each(drop));
        Life(child)
    }
}

fn program(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relaysync"));
    command.current_dir(directory).env_remove("RELAYSYNC_CONFIG").env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// A process that ends with this.
struct Life(Child);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Publishes one event after the other until the relay is gone; those that it has taken are in `taken`.
async fn write(url: RelayUrl, pin: Pin, first: u64, taken: Arc<Mutex<Vec<Event>>>) {
    let Ok(mut client) = Client::try_connect(&url, pin).await else { return };
    if client.try_authenticate(WRITER).await.is_err() {
        return;
    }
    for number in first.. {
        let event = synced(number, 1).remove(0);
        if !client.try_publish(&event).await {
            return;
        }
        taken.lock().unwrap().push(event);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_kills_lose_neither_configuration_nor_events() {
    let (a, b) = (Victim::new(), Side::start().await);
    let own_key = a.told(&["identity", "ensure", "--json"]);
    let own_key: serde_json::Value = serde_json::from_str(&own_key).unwrap();
    let own_key = own_key["pubkey"].as_str().unwrap().to_owned();
    for capability in [relaysync::peer::Capability::SyncRead, relaysync::peer::Capability::SyncWrite] {
        b.grant(own_key.parse().unwrap(), capability).await;
    }
    let rule = serde_json::json!({"kinds": [5000], "#r": NAMESPACES}).to_string();
    let writer = note(0).by(WRITER).sign().pubkey;
    for key in [writer, b.key().await] {
        for capability in ["read", "write"] {
            a.told(&["access", "grant", &key.to_hex(), capability, &rule]);
        }
    }
    let port = b.daemon.relay_url().unwrap().port();
    let (b_url, b_key, b_pin) = (format!("wss://localhost:{port}"), b.key().await.to_hex(), b.pin.to_string());
    let peer =
        ["peer", "put", "--id", "b", "--url", &b_url, "--auth-pubkey", &b_key, "--filter", &rule, "--pin", &b_pin];
    a.told(&[&peer[..], &["--verify", "pin", "--direction", "both"]].concat());

    let taken = Arc::new(Mutex::new(Vec::new()));
    let mut granted = BTreeSet::new();
    for round in 0..KILLS {
        let life = a.start();
        let at_a = tokio::spawn(write(a.url.clone(), a.pin, 1_000_000 + round * 10_000, taken.clone()));
        let at_b = synced(round * 10, 10);
        b.publish(&at_b).await;
        taken.lock().unwrap().extend(at_b);
        // One thing that it is told for certain, and then one that it may die in.
        for number in [0, 1] {
            let key = note(0).by((100 + round) as u8).kind(number).sign().pubkey.to_hex();
            let match_filter = format!(r#"{{"kinds":[{}]}}"#, 5000 + round * 2 + u64::from(number));
            let arguments = ["access", "grant", &key, "read", &match_filter];
            if number == 0 {
                a.told(&arguments);
                granted.insert((key, match_filter));
            } else {
                let mut dying = program(a.directory.path()).args(arguments).stdout(Stdio::null()).spawn().unwrap();
                tokio::time::sleep(Duration::from_micros(round * 7_919_993 % LIFE_MICROS)).await;
                drop(life);
                // Without a daemon it works on the files itself, once they are free.
                assert!(dying.wait().unwrap().code().is_some());
                break;
            }
        }
        at_a.await.unwrap();
    }

    let _life = a.start();
    let listed = a.told(&["access", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    for (key, events) in &granted {
        let events: serde_json::Value = serde_json::from_str(events).unwrap();
        let is_it = |rule: &serde_json::Value| rule["principal"] == **key && rule["match"] == events;
        assert!(listed.as_array().unwrap().iter().any(is_it), "{key} {events} is not in {listed}");
    }
    assert!(a.told(&["identity", "show"]).contains(&own_key), "it is the same identity");
    let expected = ids(&*taken.lock().unwrap());
    println!("{KILLS} kills, {} events, {} rules", expected.len(), granted.len());
    let b_url = RelayUrl::parse(&b_url).unwrap();
    until("all that was acknowledged is at both", async || {
        holds(&a.url, a.pin, &expected).await && holds(&b_url, b.pin, &expected).await
    })
    .await;
}

/// Does the relay give all of these?
async fn holds(url: &RelayUrl, pin: Pin, expected: &BTreeSet<String>) -> bool {
    let mut client = Client::connect(url, pin).await;
    client.authenticate(WRITER).await;
    let expected: Vec<&String> = expected.iter().collect();
    for part in expected.chunks(500) {
        let filter = serde_json::json!({"ids": part, "kinds": [5000], "#r": NAMESPACES}).to_string();
        if client.fetch(&filter).await.unwrap().len() < part.len() {
            return false;
        }
    }
    true
}
