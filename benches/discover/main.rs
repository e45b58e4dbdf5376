//! What discovery costs at 1,000 relays, 100,000 repositories and 1,000,000 issues, beside a tenth of that: what one
//! event more takes must not grow with what is there.
//!
//! `cargo bench --bench discover -- [ISSUES]`; there are a tenth as many repositories and a thousandth as many relays.

mod generator;
mod planned;

use std::time::{Duration, Instant};

use relaysync::discover::{DiscoverConfig, Discovery, DiscoverySizes, service_url};
use relaysync::protocol::Event;
use relaysync::runtime;

use self::generator::Scale;
use self::planned::Planned;

/// Events observed between two batches.
const BATCH_EVENTS: u64 = 5_000;
/// Events measured one by one.
const SAMPLES: u64 = 4_001;
/// The same in the whole engine, where each costs requests to all relays of its repositories.
const ENGINE_SAMPLES: u64 = 1_001;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let whole = arguments.iter().any(|argument| argument == "--bench");
    let roots: u64 =
        arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(if whole { 1_000_000 } else { 20_000 });
    let scale = |roots: u64| Scale { relays: (roots / 1_000).max(4), repositories: (roots / 10).max(4), roots };
    // Both stay until the end, so that neither gets the memory of the other.
    let (small, large) = (World::build(scale(roots / 10)), World::build(scale(roots)));
    println!("{:<34}{:>14}{:>14}{:>9}", "", "a tenth", "whole", "ratio");
    let size = |name: &str, of: fn(&DiscoverySizes) -> usize| {
        let (small, large) = (of(&small.discovery.sizes()), of(&large.discovery.sizes()));
        println!("{name:<34}{small:>14}{large:>14}");
    };
    size("relays", |sizes| sizes.relays);
    size("repositories", |sizes| sizes.repositories);
    size("issues", |sizes| sizes.roots);
    row("interests handed out", small.interests, large.interests);
    row("memory, MB", small.memory_bytes / 1e6, large.memory_bytes / 1e6);
    row("memory, bytes an issue", small.memory_bytes / small.roots(), large.memory_bytes / large.roots());
    row("building, µs an event", micros(small.spent) / small.events(), micros(large.spent) / large.events());
    let (mut small, mut large) = (small, large);
    for (name, one) in [
        ("one more issue, median µs", World::one_more_root as fn(&mut World, u64) -> Duration),
        ("one more announcement, median µs", World::one_more_announcement),
        ("one comment judged, median µs", World::one_judged),
    ] {
        // In turns, so that both see the same machine.
        let (small, large): (Vec<_>, Vec<_>) = (0..SAMPLES).map(|n| (one(&mut small, n), one(&mut large, n))).unzip();
        row(name, median(small), median(large));
    }
    drop((small, large));
    measure_engine(scale, roots / 10);
}

/// The whole engine, every relay connected.
fn measure_engine(scale: impl Fn(u64) -> Scale, roots: u64) {
    let (mut small, mut large) = (Planned::build(scale(roots / 10)), Planned::build(scale(roots)));
    println!("\n{:<34}{:>14}{:>14}{:>9}", "the whole engine, all connected", "a hundredth", "a tenth", "ratio");
    row("relays", small.sizes().relays as f64, large.sizes().relays as f64);
    row("subscriptions", small.sizes().subscriptions as f64, large.sizes().subscriptions as f64);
    row("frames sent", small.requests as f64, large.requests as f64);
    row("memory, MB", small.memory_bytes / 1e6, large.memory_bytes / 1e6);
    row("building, µs an issue", micros(small.spent) / (roots / 10) as f64, micros(large.spent) / roots as f64);
    let (small, large): (Vec<_>, Vec<_>) =
        (0..ENGINE_SAMPLES).map(|n| (small.one_more_root(n), large.one_more_root(n))).unzip();
    row("one more issue, median µs", median(small.clone()), median(large.clone()));
    row("one more issue, mean µs", mean(&small), mean(&large));
}

fn mean(times: &[Duration]) -> f64 {
    micros(times.iter().sum()) / times.len() as f64
}

fn row(name: &str, small: f64, large: f64) {
    println!("{name:<34}{small:>14.2}{large:>14.2}{:>9.2}", large / small);
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    micros(times[times.len() / 2])
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

struct World {
    scale: Scale,
    discovery: Discovery,
    spent: Duration,
    interests: f64,
    memory_bytes: f64,
}

impl World {
    /// Observes everything, announcements first, in batches.
    fn build(scale: Scale) -> Self {
        let before = resident_bytes();
        let ours = service_url("wss://ours.example").expect("it is a URL");
        let config = DiscoverConfig { service_urls: vec![ours], ..DiscoverConfig::default() };
        let discovery = Discovery::new(config, runtime::Instant::ZERO);
        let mut world = Self { scale, discovery, spent: Duration::ZERO, interests: 0.0, memory_bytes: 0.0 };
        world.observe_all(scale.repositories, |n| scale.announcement(n));
        world.observe_all(scale.roots, |n| scale.root(n));
        world.memory_bytes = resident_bytes() - before;
        world
    }

    fn observe_all(&mut self, count: u64, make: impl Fn(u64) -> Event) {
        for begin in (0..count).step_by(BATCH_EVENTS as usize) {
            let events: Vec<Event> = (begin..count.min(begin + BATCH_EVENTS)).map(&make).collect();
            let discovery = &mut self.discovery;
            let mut changes = Vec::new();
            self.spent += timed(|| {
                events.iter().for_each(|event| discovery.observe(event, runtime::Instant::ZERO));
                changes = discovery.flush();
            });
            self.interests += changes.iter().map(|change| change.added.len() as f64).sum::<f64>();
        }
    }

    fn one_more_root(&mut self, n: u64) -> Duration {
        let event = self.scale.root(self.scale.roots + n);
        self.observe_one(&event)
    }

    fn one_more_announcement(&mut self, n: u64) -> Duration {
        let event = self.scale.announcement(self.scale.repositories + n);
        self.observe_one(&event)
    }

    fn observe_one(&mut self, event: &Event) -> Duration {
        timed(|| {
            self.discovery.observe(event, runtime::Instant::ZERO);
            assert!(!self.discovery.flush().is_empty());
        })
    }

    fn one_judged(&mut self, n: u64) -> Duration {
        // An issue that is there is judged like any other event that names a repository.
        let event = self.scale.root(n * self.scale.roots / SAMPLES);
        timed(|| assert!(self.discovery.judge(&event).is_ok()))
    }

    fn roots(&self) -> f64 {
        self.scale.roots as f64
    }

    fn events(&self) -> f64 {
        self.roots() + self.scale.repositories as f64
    }
}

/// Memory that this process has of the machine; not a number where the system does not tell.
fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kibibytes.map_or(f64::NAN, |kibibytes| kibibytes * 1024.0)
}
