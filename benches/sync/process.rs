//! The program as a process, and what the system tells of it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often a running process is looked at for its peak memory.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// A process that has ended.
pub(crate) struct Measured {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) peak_bytes: u64,
    pub(crate) report: serde_json::Value,
}

impl Measured {
    /// A count of the first relay's report.
    pub(crate) fn number(&self, name: &str) -> f64 {
        self.report["relays"][0][name].as_f64().expect("the report has it")
    }

    pub(crate) fn reported_ms(&self) -> f64 {
        self.report["elapsed_secs"].as_f64().expect("the report has it") * 1e3
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
/// Syncs from `url` into the store at `store`.
pub(crate) fn sync(url: &str, store: &Path, options: &[&str]) -> Measured {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relaysync"));
    command.args(["sync", url, "--json", "--store"]).arg(store).args(options).stdout(Stdio::piped());
    let begun = Instant::now();
    let mut child = command.spawn().expect("the program runs");
    let (mut peak_bytes, pid) = (0, child.id());
    // As long as nobody waits for it, a process that has ended still tells of its time.
    while !has_ended(pid) {
        peak_bytes = memory_peak_bytes(pid).unwrap_or(0).max(peak_bytes);
        std::thread::sleep(LOOK_INTERVAL);
    }
    let (wall, cpu) = (begun.elapsed(), cpu(pid).expect("it waits to be reaped"));
    let mut text = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut text).expect("the report is text");
    let status = child.wait().expect("it has ended");
    assert!(status.success(), "{status}: {text}");
    Measured { wall, cpu, peak_bytes, report: serde_json::from_str(&text).expect("the report is JSON") }
}

/// A relay that serves a store.
pub(crate) struct Serving {
    pub(crate) url: String,
    child: Child,
}

impl Serving {
    pub(crate) fn start(store: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_relaysync"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--store"]).arg(store).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let url =
            lines.by_ref().map_while(Result::ok).find_map(|line| Some(line.split_once("listening on ")?.1.to_owned()));
        // What it says later is of no interest here, but must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { url: url.expect("it says where it listens"), child }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("the relay could not be ended: {error}");
        }
    }
}

/// User and system time of a process.
pub(crate) fn cpu(pid: u32) -> Option<Duration> {
    let ticks: u64 = stat(pid)?.get(11..13)?.iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 10))
}

fn has_ended(pid: u32) -> bool {
    stat(pid).is_none_or(|fields| fields.first().is_none_or(|state| state == "Z"))
}

/// The fields of `/proc/PID/stat` behind the name, the state first.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

fn memory_peak_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kb| kb * 1024)
}
