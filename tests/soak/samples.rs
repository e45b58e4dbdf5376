//! What is measured of the daemon every few seconds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use crate::Fault;
use crate::process::Daemon;

/// One look at the daemon's process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) secs: f64,
    pub(crate) rss_bytes: u64,
    pub(crate) fds: usize,
    pub(crate) threads: usize,
    /// Events of the world by then.
    pub(crate) events: usize,
}

/// Samples, in memory and as a file of comma-separated values.
pub(crate) struct Samples {
    file: BufWriter<File>,
    begun: Instant,
    /// The metrics that have columns: those that were there at first.
    columns: Vec<String>,
    taken: Vec<Sample>,
}

impl Samples {
    pub(crate) fn create(path: &Path) -> Result<Self, Fault> {
        Ok(Self {
            file: BufWriter::new(File::create(path)?),
            begun: Instant::now(),
            columns: Vec::new(),
            taken: Vec::new(),
        })
    }

    pub(crate) async fn take(&mut self, daemon: &Daemon, events: usize) -> Result<(), Fault> {
        let process = format!("/proc/{}", daemon.pid());
        let status = std::fs::read_to_string(format!("{process}/status"))?;
        let sample = Sample {
            secs: self.begun.elapsed().as_secs_f64(),
            rss_bytes: 1024 * number_in(&status, "VmRSS:")?,
            fds: std::fs::read_dir(format!("{process}/fd"))?.count(),
            threads: usize::try_from(number_in(&status, "Threads:")?)?,
            events,
        };
        let metrics = sums(&daemon.page("/metrics").await?);
        if self.columns.is_empty() {
            self.columns = metrics.keys().cloned().collect();
            writeln!(self.file, "secs,rss_bytes,fds,threads,events,{}", self.columns.join(","))?;
        }
        let Sample { secs, rss_bytes, fds, threads, events } = sample;
        write!(self.file, "{secs:.1},{rss_bytes},{fds},{threads},{events}")?;
        for column in &self.columns {
            write!(self.file, ",{}", metrics.get(column).copied().unwrap_or(f64::NAN))?;
        }
        writeln!(self.file)?;
        self.file.flush()?;
        self.taken.push(sample);
        Ok(())
    }

    pub(crate) fn taken(&self) -> &[Sample] {
        &self.taken
    }
}

fn number_in(status: &str, name: &str) -> Result<u64, Fault> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or(format!("no {name} in the status"))?;
    Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
}

/// Each metric with the sum over its labels.
fn sums(text: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        let name = name.split('{').next().unwrap_or_default();
        if let Ok(value) = value.parse::<f64>() {
            *sums.entry(name.to_owned()).or_default() += value;
        }
    }
    sums
}
