//! A folder with stores, and the program at work on them.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::call::{self, Call};
use crate::events::{Ids, ids_of};
use crate::peers::{Peer, lines_of};

/// For what takes moments, on a machine that is busy.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// From a signal to the end of the program.
pub(crate) const END_MAX: Duration = Duration::from_secs(2);

/// A temporary folder in which the program runs.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
}

/// The closing report of a sync with one relay, and the status.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: i32,
    pub(crate) report: Value,
    pub(crate) wall: Duration,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the program to its end.
    pub(crate) fn call(&self, arguments: &[&str]) -> Call {
        call::run(self.path(), arguments, "")
    }

    /// Syncs `store` with `relay` and gives back the report.
    pub(crate) fn sync(&self, relay: &str, store: &str, options: &[&str]) -> Outcome {
        let begun = Instant::now();
        let call = self.call(&[&["sync", relay, "--store", store, "--json"], options].concat());
        Outcome::of(&call, begun.elapsed())
    }

    /// The ids of all events in `store`.
    pub(crate) fn held(&self, store: &str) -> Ids {
        let call = self.call(&["export", "--store", store]);
        assert_eq!(call.status, 0, "{}", call.stderr);
        ids_of(&call.stdout.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    /// How many events of `store` the filter selects.
    pub(crate) fn count(&self, store: &str, filter: &str) -> u64 {
        let call = self.call(&["count", "--store", store, "--filter", filter]);
        call.stdout.trim().parse().unwrap_or_else(|error| panic!("{error}: {call:?}"))
    }

    /// Puts the events of a file into `store`.
    pub(crate) fn import(&self, store: &str, file: &Path) {
        let text = std::fs::read_to_string(file).expect("it was written");
        let call = call::run(self.path(), &["import", "--store", store], &text);
        assert_eq!(call.status, 0, "{}", call.stderr);
    }

    /// Starts the program and leaves it running.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut child = call::start(self.path(), arguments);
        drop(child.stdin.take());
        let stdout = lines_of(child.stdout.take().expect("it is piped"));
        let stderr = lines_of(child.stderr.take().expect("it is piped"));
        Running { child, stdout, stderr }
    }
}

impl Outcome {
    pub(crate) fn of(call: &Call, wall: Duration) -> Self {
        let report = serde_json::from_str(&call.stdout).unwrap_or_else(|error| panic!("{error}: {call:?}"));
        Self { status: call.status, report, wall }
    }

    /// A number of the first relay's report.
    #[track_caller]
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.report["relays"][0][name].as_u64().unwrap_or_else(|| panic!("no number {name}: {}", self.report))
    }

    /// Status 0, and the report says so, too.
    #[track_caller]
    pub(crate) fn assert_complete(&self) -> &Self {
        assert_eq!((self.status, self.report["complete"].as_bool()), (0, Some(true)), "{}", self.report);
        assert_eq!(self.number("invalid"), 0, "{}", self.report);
        self
    }

    /// For the log: what was done in which time.
    pub(crate) fn tell(&self, what: &str) {
        let moved = self.number("received") + self.number("published");
        let secs = self.wall.as_secs_f64();
        let [received, published, duplicate, pages, rounds] =
            ["received", "published", "duplicate", "pages", "rounds"].map(|name| self.number(name));
        println!(
            "{what}: {received} received ({duplicate} known), {published} published in {secs:.2} s, {:.0} events/s, \
             {pages} pages, {rounds} rounds, {} bytes in, {} out",
            moved as f64 / secs,
            self.number("bytes_in"),
            self.number("bytes_out"),
        );
    }
}

/// The ids of all events that a relay holds.
pub(crate) fn dump(relay: &mut Peer) -> Ids {
    ids_of(&relay.dump())
}

/// The program while it runs. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Running {
    /// Waits for a line on stderr that has all of `words`.
    #[track_caller]
    pub(crate) fn wait_for_line(&self, words: &[&str]) -> String {
        self.wait_for(|line| words.iter().all(|word| line.contains(word)))
    }

    /// Waits for a line on stderr that is wanted.
    #[track_caller]
    pub(crate) fn wait_for(&self, wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + WAIT_MAX;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.stderr.recv_timeout(left).unwrap_or_else(|error| panic!("the line never came: {error}"));
            if wanted(&line) {
                return line;
            }
        }
    }

    /// Sends a signal: `KILL`, `INT` or `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(kill.expect("there is a kill command").success());
    }

    /// Waits until it has ended, at most so long; gives back how it ended. Status −1 stands for a signal.
    #[track_caller]
    pub(crate) fn wait(mut self, max: Duration) -> Call {
        let until = Instant::now() + max;
        let status = loop {
            match self.child.try_wait().expect("it was started") {
                Some(status) => break status,
                None if Instant::now() > until => panic!("still running after {max:?}"),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let rest = |lines: &Receiver<String>| lines.iter().map(|line| line + "\n").collect();
        Call { status: status.code().unwrap_or(-1), stdout: rest(&self.stdout), stderr: rest(&self.stderr) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, or it is to end now: either is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
