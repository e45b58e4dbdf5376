//! The trace of one seed, on stdout as it happens.

use std::io::{self, Write};
use std::sync::OnceLock;

/// The first fault while printing; nothing is printed after it.
static FAULT: OnceLock<io::Error> = OnceLock::new();

/// Prints a line.
pub(super) fn print(line: &str) {
    if FAULT.get().is_none()
        && let Err(error) = writeln!(io::stdout(), "{line}")
    {
        FAULT.get_or_init(|| error);
    }
}

/// Whether all lines could be printed. That nobody reads any more is a clean end: `relaysync sim … | head`.
pub(super) fn result() -> Result<(), &'static io::Error> {
    match FAULT.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
