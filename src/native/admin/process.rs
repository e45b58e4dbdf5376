//! What the system says of this process, under the names that all exporters of metrics use.

use super::exposition::{Exposition, Kind};

/// What the system says of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Process {
    /// Memory in use, in bytes; `None` where the system does not tell.
    resident_bytes: Option<u64>,
    /// Open files and sockets.
    open_files: Option<u64>,
}

impl Process {
    /// Asks the system. Only Linux tells in a way that needs no more than reading files, none of which is on a disk.
    pub(super) fn read() -> Self {
        Self { resident_bytes: resident_bytes(), open_files: open_files() }
    }

    pub(super) fn write(self, page: &mut Exposition, started_at_secs: u64) {
        let rows = [
            ("process_start_time_seconds", "When the process started, in seconds since 1970.", Some(started_at_secs)),
            ("process_resident_memory_bytes", "Memory in use, in bytes.", self.resident_bytes),
            ("process_open_fds", "Open files and sockets.", self.open_files),
        ];
        for (name, help, value) in rows {
            let mut family = page.family(name.to_owned(), Kind::Gauge, help);
            if let Some(value) = value {
                family.sample(&[], value);
            }
        }
    }
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

fn open_files() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn linux_tells_memory_and_files() {
        let process = super::Process::read();
        assert!(process.resident_bytes.is_some_and(|bytes| bytes > 1 << 20), "{process:?}");
        assert!(process.open_files.is_some_and(|files| files >= 3), "{process:?}");
    }
}
