//! Which database is to hold the store? All candidates do the same work in one run: the same events, the same NIP
//! rules, the same indexes; each commit durable. One process a candidate, so that peak memory is its own.
//!
//! * `runs`: relaysync's own store, packed sorted runs in redb;
//! * `redb`, `fjall`, `lmdb`: one row an index entry, inserted in order, and one row an event.
//!
//! `cargo run --release -- [EVENTS [BATCH]]`
//!
//! One run on a busy machine with two cores, 200,000 events in batches of 2,000:
//!
//! ```text
//! candidate  µs CPU/event  slowest commit  items, all  on disk  peak memory
//! runs               7.30          106 ms     48.2 ms   287 MB        73 MB
//! lmdb              29.50          480 ms     88.3 ms   372 MB       365 MB
//! fjall             25.15          597 ms    104.2 ms   253 MB       276 MB
//! redb              50.60          848 ms    130.1 ms   316 MB        91 MB
//! ```

#[path = "../../store/generator.rs"]
mod generator;
mod rows;
mod runs;

use std::process::Command;
use std::time::{Duration, Instant};

use relaysync::ingest::Verified;
use relaysync::protocol::{Event, Filter, Window};
use relaysync::store::Batch;

const CANDIDATES: [&str; 4] = ["runs", "lmdb", "fjall", "redb"];

/// Something that can be measured.
trait Candidate {
    /// Commits durably.
    fn commit(&mut self, batch: Batch);
    /// Reads the item set of a filter and says how many items it has.
    fn items(&self, filter: &Filter) -> usize;
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let (events, batch) = match numbers[..] {
        [] => (200_000, 2000),
        [events] => (events, 2000),
        [events, batch, ..] => (events, batch),
    };
    match arguments.iter().find(|argument| CANDIDATES.contains(&argument.as_str())) {
        Some(name) => measure(name, events, batch),
        None => {
            println!("{events} events in batches of {batch}");
            println!("candidate  µs CPU/event  slowest commit  items, all  items, kinds 1 and 7  on disk  peak memory");
            for name in CANDIDATES {
                let program = std::env::current_exe().expect("this program has a path");
                let status = Command::new(program).args([name, &events.to_string(), &batch.to_string()]).status();
                assert!(status.expect("the candidate runs").success(), "{name} failed");
            }
        }
    }
}

fn measure(name: &str, events: u64, batch: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut candidate: Box<dyn Candidate> = match name {
        "runs" => Box::new(runs::Runs::open(folder.path())),
        "lmdb" => Box::new(rows::Rows::new(rows::Lmdb::open(folder.path()))),
        "fjall" => Box::new(rows::Rows::new(rows::Fjall::open(folder.path()))),
        _ => Box::new(rows::Rows::new(rows::Redb::open(folder.path()))),
    };
    let (mut spent, mut slowest) = (Duration::ZERO, Duration::ZERO);
    for first in (0..events).step_by(batch as usize) {
        let parsed = (first..(first + batch).min(events)).map(|n| Event::parse(generator::json(n).into()));
        let events = parsed.map(|event| Verified::trust(event.expect("it is an event"))).collect();
        let (cpu_before, begun) = (cpu(), Instant::now());
        candidate.commit(Batch { events, coverage: Vec::new(), now_secs: 1 });
        spent += cpu() - cpu_before;
        slowest = slowest.max(begun.elapsed());
    }
    let items = |filter: &Filter| {
        let begun = Instant::now();
        let items = candidate.items(filter);
        assert!(items > 0 && Window::ALL.contains(0));
        begun.elapsed().as_secs_f64() * 1e3
    };
    let all = items(&Filter::new());
    let kinds = items(&Filter::new().kinds([1_u16.into(), 7_u16.into()]));
    println!(
        "{name:<9} {:13.2} {:12.0} ms {all:8.1} ms {kinds:18.1} ms {:5.0} MB {:9.0} MB",
        spent.as_secs_f64() * 1e6 / events as f64,
        slowest.as_secs_f64() * 1e3,
        disk_mb(folder.path()),
        memory_mb(),
    );
}

/// User and system time of this process, all threads.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux tells the time of a process");
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks: u64 = fields[11..13].iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells the memory of a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or_default() / 1e3
}

/// Blocks in use, since some databases set their files larger than they are.
fn disk_mb(folder: &std::path::Path) -> f64 {
    use std::os::unix::fs::MetadataExt;
    let mut blocks = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
        let metadata = entry.metadata().expect("the file is there");
        blocks += metadata.blocks() * 512;
        if metadata.is_dir() {
            blocks += (disk_mb(&entry.path()) * 1e6) as u64;
        }
    }
    blocks as f64 / 1e6
}
