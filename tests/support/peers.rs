//! Other people's relays and client as child processes. Use from a test or benchmark:
//! `#[path = "support/peers.rs"] mod peers;`
//!
//! They are built on first use (minutes) and kept in the cache folder. Each child is killed by its process id when its
//! value is dropped, also by a panic; should the test itself be killed, the child sees its standard input end.

#![allow(dead_code, reason = "each test uses its own part of this")]

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a peer may take until it is ready. It loads its events first: the npm relay 1,300 a second.
const READY_TIMEOUT: Duration = Duration::from_secs(180);
/// How long a peer may take to carry out one command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// How to start a relay. Where one has no such option, the field says so.
#[derive(Debug, Clone, Default)]
pub(crate) struct PeerConfig {
    /// The port; 0 for any free one.
    pub(crate) port: u16,
    /// The most events in a page. The npm relay has 100 by default and 1,000 at most; rust-nostr's 500 and no most.
    pub(crate) page_cap: Option<usize>,
    /// Ask clients to authenticate (NIP-42), to read and to write. Only rust-nostr's relay.
    pub(crate) auth: bool,
    /// The most subscriptions of one connection, 500 by default. Only rust-nostr's relay.
    pub(crate) subscriptions_max: Option<usize>,
    /// The most events taken from one connection in a minute. Only rust-nostr's relay.
    pub(crate) events_per_minute_max: Option<u32>,
    /// A file of events, one a line as JSON, to begin with; signatures are not checked.
    pub(crate) load: Option<PathBuf>,
}

/// How the Rust peers are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// Quickly, for tests.
    Test,
    /// To be fast, for benchmarks.
    Release,
}

/// A relay that runs as a process of its own.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Where it listens: `ws://127.0.0.1:PORT`.
    pub(crate) url: String,
    /// Its process id.
    pub(crate) pid: u32,
    child: Child,
    commands: ChildStdin,
    answers: Receiver<String>,
    folder: tempfile::TempDir,
}

/// rust-nostr's relay: NIP-77, NIP-42, any page cap. Of two versions with one date it keeps the one that came last.
pub(crate) struct RustNostrRelay;

impl RustNostrRelay {
    /// Starts it and waits until it listens.
    pub(crate) fn start(config: &PeerConfig) -> Peer {
        Self::start_built(config, Build::Test)
    }

    /// The same with a choice of how it is compiled.
    pub(crate) fn start_built(config: &PeerConfig, build: Build) -> Peer {
        let mut command = Command::new(rust_peers(build).join("rust-nostr-relay"));
        add_common(&mut command, config);
        if config.auth {
            command.arg("--auth");
        }
        if let Some(max) = config.subscriptions_max {
            command.args(["--subscriptions-max", &max.to_string()]);
        }
        if let Some(max) = config.events_per_minute_max {
            command.args(["--events-per-minute-max", &max.to_string()]);
        }
        Peer::start(command)
    }
}

/// The relay made of the npm packages `@nostr-relay/*`: no NIP-77, pages of 100. It carries out deletions but does not
/// keep them, and takes 4 ms to check a signature.
pub(crate) struct NpmRelay;

impl NpmRelay {
    /// Starts it and waits until it listens.
    pub(crate) fn start(config: &PeerConfig) -> Peer {
        let only_rust = (config.auth, config.subscriptions_max, config.events_per_minute_max);
        assert_eq!(only_rust, (false, None, None), "the npm relay has no such option");
        let mut command = Command::new("node");
        command.arg(built(&["npm"]).join("relay.mjs"));
        add_common(&mut command, config);
        Peer::start(command)
    }
}

fn add_common(command: &mut Command, config: &PeerConfig) {
    command.args(["--port", &config.port.to_string()]);
    if let Some(page_cap) = config.page_cap {
        command.args(["--page-cap", &page_cap.to_string()]);
    }
    if let Some(load) = &config.load {
        command.arg("--load").arg(load);
    }
}

impl Peer {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the peer was built");
        let commands = child.stdin.take().expect("it is piped");
        let answers = lines_of(child.stdout.take().expect("it is piped"));
        let folder = tempfile::tempdir().expect("a folder for dumps");
        let mut peer = Self { url: String::new(), pid: child.id(), child, commands, answers, folder };
        peer.url = peer.answer(READY_TIMEOUT, "to be ready");
        peer
    }

    /// All events that the relay holds, as JSON, in no particular order.
    pub(crate) fn dump(&mut self) -> Vec<String> {
        let path = self.folder.path().join("dump.jsonl");
        self.tell("dump", &path);
        read_lines(&path)
    }

    /// Adds the events of a file, one a line as JSON. Signatures are not checked and nobody is notified.
    pub(crate) fn load(&mut self, path: &Path) {
        self.tell("load", path);
    }

    fn tell(&mut self, command: &str, path: &Path) {
        writeln!(self.commands, "{command} {}", path.display()).expect("the peer runs");
        self.answer(COMMAND_TIMEOUT, command);
    }

    fn answer(&self, timeout: Duration, what: &str) -> String {
        let answer = self.answers.recv_timeout(timeout);
        answer.unwrap_or_else(|error| panic!("peer {} failed {what}: {error}; see its words above", self.pid))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both succeed for a child that has ended already; what else fails must not turn a panic into an abort.
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("peer {} could not be ended: {error}", self.pid);
        }
    }
}

/// What rust-nostr's client reports of a reconciliation.
#[derive(Debug, Clone)]
pub(crate) struct PoolReport {
    /// Events that it received.
    pub(crate) received: u64,
    /// Events that it sent.
    pub(crate) sent: u64,
    /// Events that the relay did not take.
    pub(crate) send_failures: u64,
    /// Events in its database afterwards.
    pub(crate) held: u64,
    /// The time of the reconciliation, connecting included.
    pub(crate) wall: Duration,
    /// The processor time that it took.
    pub(crate) cpu: Duration,
    /// The most memory that the process used, in bytes.
    pub(crate) memory_peak_bytes: u64,
    /// The whole report.
    pub(crate) json: serde_json::Value,
}

/// rust-nostr's client pool, which reconciles by NIP-77 only.
pub(crate) struct RustNostrPool;

impl RustNostrPool {
    /// Runs it: `arguments` as `["down", url, "--out", file]`, see its usage text. `Err` has its standard error.
    pub(crate) fn run<A: AsRef<OsStr>>(
        build: Build,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<PoolReport, String> {
        let arguments: Vec<OsString> = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        let output = Command::new(rust_peers(build).join("rust-nostr-pool")).args(arguments).output();
        let output = output.expect("the peer was built");
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        let count = |name: &str| json[name].as_u64().expect("the report has it");
        let time = |name: &str| Duration::from_secs_f64(json[name].as_f64().expect("the report has it"));
        Ok(PoolReport {
            received: count("received"),
            sent: count("sent"),
            send_failures: count("send_failures"),
            held: count("held"),
            wall: time("wall_secs"),
            cpu: time("cpu_secs"),
            memory_peak_bytes: count("memory_peak_bytes"),
            json,
        })
    }
}

/// The lines of a file.
pub(crate) fn read_lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

fn rust_peers(build: Build) -> PathBuf {
    match build {
        Build::Test => built(&["rust"]),
        Build::Release => built(&["rust", "--release"]),
    }
}

/// The folder of built peers, built now if need be.
fn built(arguments: &[&str]) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/build.sh");
    let output = Command::new("bash").arg(script).args(arguments).stderr(Stdio::inherit()).output().expect("bash runs");
    assert!(output.status.success(), "the peers could not be built; see above");
    String::from_utf8(output.stdout).expect("a path as text").trim_end().into()
}

/// Reads lines on a thread of its own, so that waiting for one can have a bound.
pub(crate) fn lines_of(output: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
