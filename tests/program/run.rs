//! `relaysync run`: a daemon and its operator.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use relaysync::sample::{SampleConfig, SampleKinds, generate};

use super::call::{Call, lines_of, run};

/// Nothing here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon, and what it logs.
pub(crate) struct Daemon {
    child: Child,
    log: Box<dyn Iterator<Item = String>>,
}

impl Daemon {
    /// Starts a relay over a store in `directory`.
    pub(crate) fn start(directory: &Path, arguments: &[&str]) -> Self {
        Self::start_with(directory, &[&["--store", "events.db", "--listen", "127.0.0.1:0"], arguments].concat())
    }

    /// Starts a daemon in `directory`, ready for a file that grows too large.
    pub(crate) fn start_with(directory: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_relaysync"), "run"])
            .args(arguments)
            .current_dir(directory)
            .env("NO_COLOR", "1")
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Box::new(lines_of(child.stderr.take().unwrap()));
        Self { child, log }
    }

    /// Reads the log up to the first line with `words`; gives what follows them.
    #[track_caller]
    pub(crate) fn says(&mut self, words: &str) -> String {
        let mut lines = Vec::new();
        for line in self.log.by_ref() {
            if let Some((_, rest)) = line.split_once(words) {
                return rest.to_owned();
            }
            lines.push(line);
        }
        panic!("no line with {words:?}: {lines:#?}");
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(kill.unwrap().success());
    }

    /// Ends it by SIGTERM; gives the exit status and the rest of the log.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<String>) {
        self.signal("TERM");
        let signalled = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if signalled.elapsed() > PATIENCE => {
                    self.child.kill().unwrap();
                    panic!("SIGTERM did not end it");
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        (status.code(), self.log.by_ref().collect())
    }
}

impl Drop for Daemon {
    /// Nothing is left behind by a test that fails.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

#[test]
fn with_nothing_to_do_or_a_wrong_file_it_says_so_at_once() {
    let directory = tempfile::tempdir().unwrap();
    run(directory.path(), &["run"], "").assert_one_line(2, "relaysync config init");
    run(directory.path(), &["run", "--config", "none"], "").assert_one_line(2, "relaysync config init none");
    let call = run(directory.path(), &["run", "--bootstrap", "https://a.example"], "");
    assert_eq!(call.status, 2);
    assert!(call.stderr.starts_with("--bootstrap: discovery.bootstrap: \"https://a.example\""), "{call:?}");
}

#[test]
fn it_does_not_start_with_what_it_was_told_if_that_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("relaysync.db.control.json"), "{\n\"format\": 1,\n").unwrap();
    run(directory.path(), &["run"], "").assert_one_line(2, "relaysync.db.control.json:3:");
    assert_eq!(fs::read(directory.path().join("relaysync.db.control.json")).unwrap(), b"{\n\"format\": 1,\n");
}

#[test]
fn sigterm_drains_and_ends_with_status_0() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::start(directory.path(), &["--url", "wss://git.example", "--http", "127.0.0.1:0"]);
    daemon.says("the relay listens at ws://127.0.0.1:");
    let status = daemon.says("metrics and status are at ");
    daemon.says("the index of repositories is rebuilt");
    let shown = run(directory.path(), &["status", "--url", &status], "");
    assert!(shown.status != 1, "{shown:?}");
    let (status, log) = daemon.end();
    assert_eq!(status, Some(0), "{log:#?}");
    assert!(log.last().is_some_and(|line| line.contains("everything is committed and closed")), "{log:#?}");
}

#[test]
fn sighup_reads_the_file_again_and_a_broken_one_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("relaysync.toml");
    fs::write(&file, "[relay]\nurls = ['wss://git.example']\n").unwrap();
    let mut daemon = Daemon::start(directory.path(), &[]);
    daemon.says("the index of repositories is rebuilt");

    fs::write(&file, "[relay]\nurls = ['wss://git.example']\n[discovery]\naccept = 'some'\n").unwrap();
    daemon.signal("HUP");
    daemon.says("relaysync.toml:4: discovery.accept: ");
    daemon.says("nothing changes: 1 mistake");

    let text =
        "[relay]\nurls = ['wss://git.example']\nname = 'x'\n[discovery]\naccept = 'all'\n[log]\nfilter = 'debug'\n";
    fs::write(&file, text).unwrap();
    daemon.signal("HUP");
    assert_eq!(daemon.says("read again; changed: "), "discovery.accept, log.filter");
    assert_eq!(daemon.says("change with a restart: "), "relay.name");
    let (status, log) = daemon.end();
    assert_eq!(status, Some(0), "{log:#?}");
}

/// Offers the events of the other store to `relay`.
fn offer(directory: &Path, relay: &str) -> Call {
    run(directory, &["sync", relay, "--direction", "up", "--store", "other.db", "--timeout", "20"], "")
}

fn limit_file_size(daemon: &Daemon, size: &str) {
    let pid = daemon.child.id().to_string();
    let limited = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={size}:unlimited")]).status();
    assert!(limited.unwrap().success());
}

#[test]
fn after_a_failure_of_the_store_it_goes_on_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let events = generate(&SampleConfig { events: 5_000, kinds: SampleKinds::Regular, ..SampleConfig::default() });
    let lines: String = events.iter().map(|event| event.json_str().to_owned() + "\n").collect();
    assert_eq!(run(directory.path(), &["import", "--store", "other.db"], &lines).status, 0);

    let no_judge = ["--set", "discovery.enabled=false", "--set", "daemon.store_retry_base=100ms"];
    let mut daemon = Daemon::start(directory.path(), &no_judge);
    let relay = daemon.says("the relay listens at ");
    let size = fs::metadata(directory.path().join("events.db")).unwrap().len();
    limit_file_size(&daemon, &size.to_string());
    let refused = offer(directory.path(), &relay);
    assert_eq!(refused.status, 3, "what does not fit is not taken: {refused:?}");
    daemon.says("syncing stopped: ");

    limit_file_size(&daemon, "unlimited");
    daemon.says("the store is open again");
    // It may have been opened again before there was room, and wait for its next try.
    let begun = Instant::now();
    loop {
        let taken = offer(directory.path(), &relay);
        if taken.status == 0 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{taken:?}");
    }
    let (status, log) = daemon.end();
    assert_eq!(status, Some(0), "{log:#?}");
    let count = run(directory.path(), &["count", "--store", "events.db"], "");
    assert_eq!(count.stdout.trim(), events.len().to_string());
}
