//! What a sync costs as a whole: events from a relay of ours, in a process of its own, into a store on disk.
//!
//! `cargo bench --bench sync -- [EVENTS]`; 200,000 events by default. With RELAYSYNC_BENCH_POOL=1 rust-nostr's client
//! pool is measured beside it (building it takes minutes, once). All figures are of one run on one machine: compare
//! them with each other, not with those of another day.

#[path = "../../tests/support/peers.rs"]
mod peers;
mod process;

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use process::{Measured, Serving, cpu};
use relaysync::ingest::verify;
use relaysync::protocol::Event;
use relaysync::sample::{SampleConfig, SampleKinds, cached_jsonl};

/// Signature checks that the yardstick is made of.
const CHECKS: usize = 4_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let whole = arguments.iter().any(|argument| argument == "--bench");
    let events =
        arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(if whole { 200_000 } else { 2_000 });
    let folder = tempfile::tempdir().expect("a folder");
    let sample = sample(events);
    let check_us = signature_check_us(&sample);
    println!("{events} events; signature check {check_us:.1} µs, {:.1}k a CPU second", 1e3 / check_us);

    let source = folder.path().join("source");
    import(&source, &sample, events);
    let serving = Serving::start(&source);
    println!(
        "{:<34}{:>9}{:>9}{:>11}{:>9}{:>11}{:>9}{:>10}",
        "into an empty store", "wall s", "ev/s", "CPU µs/ev", "rest µs", "ev/CPU s", "of goal", "peak MB"
    );
    for method in ["req", "negentropy"] {
        let target = folder.path().join(method);
        let measured = process::sync(&serving.url, &target, &["--method", method]);
        assert_eq!(measured.report["relays"][0]["stored"], events, "{}", measured.report);
        print_run(&format!("relaysync, {method}"), &measured, events, check_us);
        let again = process::sync(&serving.url, &target, &["--method", "negentropy"]);
        assert_eq!(again.report["relays"][0]["received"], 0, "{}", again.report);
        println!(
            "{:<34}{:>9.3} whole process, {:.0} ms as reported, {:.3} s CPU",
            "  a second sync, nothing to fetch",
            again.wall.as_secs_f64(),
            again.reported_ms(),
            again.cpu.as_secs_f64()
        );
    }
    if std::env::var_os("RELAYSYNC_BENCH_POOL").is_some() {
        pool(&serving.url, folder.path(), events, check_us);
    }
    drop(serving);
    overlap(&sample, events.min(20_000));
}

fn print_run(name: &str, measured: &Measured, events: usize, check_us: f64) {
    let (wall, cpu_us) = (measured.wall.as_secs_f64(), measured.cpu.as_secs_f64() * 1e6 / events as f64);
    println!(
        "{name:<34}{wall:>9.2}{:>9.0}{cpu_us:>11.1}{:>9.1}{:>11.0}{:>9.2}{:>10.1}",
        events as f64 / wall,
        cpu_us - check_us,
        1e6 / cpu_us,
        check_us / cpu_us,
        measured.peak_bytes as f64 / 1e6
    );
}

fn pool(url: &str, folder: &Path, events: usize, check_us: f64) {
    let lmdb = folder.join("lmdb");
    let arguments = ["down".as_ref(), url.as_ref(), "--lmdb".as_ref(), lmdb.as_os_str()];
    match peers::RustNostrPool::run(peers::Build::Release, arguments) {
        Ok(report) => {
            let measured = Measured {
                wall: report.wall,
                cpu: report.cpu,
                peak_bytes: report.memory_peak_bytes,
                report: report.json,
            };
            print_run(&format!("rust-nostr pool, LMDB, got {}", report.held), &measured, events, check_us);
        }
        Err(error) => println!("rust-nostr's pool failed: {error}"),
    }
}

/// By which method a store that holds a part of the events gets the rest for less: the rule of `auto`.
fn overlap(sample: &Path, events: usize) {
    println!("\n{events} events at the relay, a part of them held: comparing (negentropy) and paging (req)");
    println!(
        "{:>8}{:>14}{:>14}{:>12}{:>12}{:>9}{:>9}",
        "held %", "neg CPU ms", "req CPU ms", "neg kB", "req kB", "CPU n/r", "kB n/r"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let part = |name: &str, keep: &dyn Fn(usize) -> bool| {
        let path = folder.path().join(name);
        let mut file = BufWriter::new(File::create(&path).expect("a file"));
        for (index, line) in lines(sample).take(events).enumerate().filter(|(index, _)| keep(*index)) {
            writeln!(file, "{line}").unwrap_or_else(|error| panic!("line {index}: {error}"));
        }
        file.flush().expect("the file is written");
        path
    };
    let source = folder.path().join("source");
    import(&source, &part("all.jsonl", &|_| true), events);
    let serving = Serving::start(&source);
    for percent in [0, 1, 10, 50, 90, 99, 100] {
        let held = part("part.jsonl", &|index| index * 7919 % 100 < percent);
        let mut runs = ["negentropy", "req"].map(|method| {
            let target = folder.path().join(format!("{method}{percent}"));
            import(&target, &held, lines(&held).count());
            process::sync(&serving.url, &target, &["--method", method])
        });
        let kb = |run: &Measured| (run.number("bytes_in") + run.number("bytes_out")) / 1e3;
        let ms = |run: &mut Measured| run.cpu.as_secs_f64() * 1e3;
        let (n, r) = (ms(&mut runs[0]), ms(&mut runs[1]));
        println!(
            "{percent:>8}{n:>14.0}{r:>14.0}{:>12.0}{:>12.0}{:>9.2}{:>9.2}",
            kb(&runs[0]),
            kb(&runs[1]),
            n / r.max(1.0),
            kb(&runs[0]) / kb(&runs[1])
        );
    }
}

fn sample(events: usize) -> PathBuf {
    let config = SampleConfig { events, authors: 2_000, kinds: SampleKinds::Regular, ..SampleConfig::default() };
    cached_jsonl(&config, Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("the sample can be written")
}

fn lines(path: &Path) -> impl Iterator<Item = String> {
    BufReader::new(File::open(path).expect("the sample is there")).lines().map(|line| line.expect("it is text"))
}

fn import(store: &Path, sample: &Path, events: usize) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relaysync"));
    command.args(["import", "--no-verify", "--store"]).arg(store).stderr(Stdio::null());
    let status = command.stdin(File::open(sample).expect("the sample is there")).status().expect("the program runs");
    assert!(status.success(), "import of {events} events");
}

fn signature_check_us(sample: &Path) -> f64 {
    let events: Vec<Event> =
        lines(sample).take(CHECKS).map(|line| Event::parse(line.into()).expect("it is an event")).collect();
    let count = events.len();
    let begun = cpu(std::process::id()).unwrap_or(Duration::ZERO);
    for event in events {
        verify(event).expect("it is genuine");
    }
    (cpu(std::process::id()).unwrap_or(Duration::ZERO) - begun).as_secs_f64() * 1e6 / count as f64
}
