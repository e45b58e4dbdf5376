//! What came of it.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use relaysync::protocol::hex;
use relaysync::sample::world::World;

use crate::mirror::Mirror;
use crate::process::{Daemon, End};
use crate::samples::{Sample, Samples};
use crate::{Fault, Plan};

/// How often it is looked whether all is held.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// What one more event that is held may cost in memory, beside caches: its place in the indexes of discovery.
const EVENT_BYTES_MAX: u64 = 4096;
/// What memory may do by itself: an allocator keeps some, caches fill.
const RSS_SLACK_BYTES: u64 = 32 << 20;

/// The end of a soak.
pub(crate) struct Verdict {
    wanted: usize,
    lacking: Vec<String>,
    surplus: Vec<String>,
    recovery: Duration,
    memory: Memory,
    status: (String, Option<i32>),
    end: End,
}

/// How memory went, from a third of the time on.
struct Memory {
    first: Sample,
    last: Sample,
    rss_bytes_max: u64,
    fds_max: usize,
    slope_bytes_per_hour: f64,
}

/// Waits until the daemon holds everything, or the time for that is up, and ends it.
pub(crate) async fn reach(plan: &Plan, world: &World, daemon: Daemon, mut samples: Samples) -> Result<Verdict, Fault> {
    let (mirror, wanted, begun) = (Mirror::of(daemon.relay_url())?, world.wanted(), Instant::now());
    let held = loop {
        let held = mirror.look().await?;
        samples.take(&daemon, world.events().len()).await?;
        match held {
            Ok(held) if held == wanted || begun.elapsed() > plan.recovery_max => break held,
            Err(gap) if begun.elapsed() > plan.recovery_max => {
                return Err(format!("the daemon's relay cannot be read as a whole: {gap}").into());
            }
            _ => {}
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    };
    let recovery = begun.elapsed();
    // The daemon's report is made every two seconds.
    tokio::time::sleep(2 * LOOK_INTERVAL).await;
    Ok(Verdict {
        wanted: wanted.len(),
        lacking: told(world, wanted.difference(&held).copied().collect()),
        surplus: told(world, held.difference(&wanted).copied().collect()),
        recovery,
        memory: Memory::of(samples.taken())?,
        status: daemon.status()?,
        end: daemon.end()?,
    })
}

fn told(world: &World, ids: BTreeSet<[u8; 32]>) -> Vec<String> {
    let tell = |id: &[u8; 32]| {
        let event = world.events().iter().find(|event| event.event.id.to_bytes() == *id);
        event.map_or(hex::encode(id), |event| {
            let at: Vec<String> = event.relays.iter().map(|relay| world.relays()[*relay].to_string()).collect();
            format!("{:?} at {}: {}", event.claim, at.join(", "), event.event.json_str())
        })
    };
    ids.iter().map(tell).collect()
}

impl Memory {
    fn of(samples: &[Sample]) -> Result<Self, Fault> {
        let steady = &samples[samples.len() / 3..];
        let (first, last) = (*steady.first().ok_or("no samples")?, *steady.last().ok_or("no samples")?);
        Ok(Self {
            first,
            last,
            rss_bytes_max: steady.iter().map(|sample| sample.rss_bytes).max().unwrap_or(0),
            fds_max: steady.iter().map(|sample| sample.fds).max().unwrap_or(0),
            slope_bytes_per_hour: slope(steady) * 3600.0,
        })
    }

    fn is_flat(&self) -> bool {
        let events = (self.last.events - self.first.events) as u64;
        self.last.rss_bytes <= self.first.rss_bytes + RSS_SLACK_BYTES + events * EVENT_BYTES_MAX
    }
}

/// Bytes of memory a second, by least squares.
fn slope(samples: &[Sample]) -> f64 {
    let count = samples.len() as f64;
    let mean = |value: fn(&Sample) -> f64| samples.iter().map(value).sum::<f64>() / count;
    let (secs, bytes) = (mean(|sample| sample.secs), mean(|sample| sample.rss_bytes as f64));
    let both: f64 = samples.iter().map(|sample| (sample.secs - secs) * (sample.rss_bytes as f64 - bytes)).sum();
    let square: f64 = samples.iter().map(|sample| (sample.secs - secs).powi(2)).sum();
    if square > 0.0 { both / square } else { 0.0 }
}

impl Verdict {
    fn errors_logged(&self) -> u64 {
        let is_error = |level: &str| level == "ERROR" || level == "unreadable";
        self.end.logs.iter().filter(|((level, _), _)| is_error(level)).map(|(_, count)| count).sum()
    }

    /// Is everything as it should be?
    pub(crate) fn is_good(&self) -> bool {
        self.lacking.is_empty()
            && self.surplus.is_empty()
            && self.memory.is_flat()
            && self.errors_logged() == 0
            && self.end.status.is_some_and(|status| status.success())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Memory { first, last, rss_bytes_max, fds_max, slope_bytes_per_hour } = &self.memory;
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        let (lacking, surplus) = (self.lacking.len(), self.surplus.len());
        writeln!(
            f,
            "events: {} wanted, {lacking} lacking, {surplus} too much, {:?} after all relays were well",
            self.wanted, self.recovery
        )?;
        for line in self.lacking.iter().chain(&self.surplus).take(10) {
            writeln!(f, "  {line}")?;
        }
        writeln!(
            f,
            "memory: {:.1} MiB at {:.0} s, {:.1} MiB at {:.0} s ({:.1} at most), {:+.1} MiB an hour, with {} events more: {}",
            mib(first.rss_bytes as f64),
            first.secs,
            mib(last.rss_bytes as f64),
            last.secs,
            mib(*rss_bytes_max as f64),
            mib(*slope_bytes_per_hour),
            last.events - first.events,
            if self.memory.is_flat() { "flat" } else { "NOT flat" },
        )?;
        writeln!(
            f,
            "file descriptors: {} then {}, {fds_max} at most; threads: {} then {}",
            first.fds, last.fds, first.threads, last.threads
        )?;
        writeln!(f, "end: {:?} in {:?}", self.end.status, self.end.took)?;
        writeln!(f, "status ({:?}):\n{}", self.status.1, self.status.0)?;
        writeln!(f, "log lines:")?;
        for ((level, kind), count) in &self.end.logs {
            writeln!(f, "{count:>8} {level:5} {kind}")?;
        }
        write!(f, "{}", if self.is_good() { "All is well." } else { "NOT all is well." })
    }
}
