//! Logs to the console of the browser, for who asks for them.

use std::str::FromStr;

use tracing::Level;
use tracing_wasm::{ConsoleConfig, WASMLayerConfigBuilder};

/// Begins to log what is of `level` or more important. All cores of a thread share one log: the first level that is
/// asked for holds.
///
/// # Errors
/// There is no such level.
pub(super) fn begin(level: &str) -> Result<(), String> {
    let level = Level::from_str(level)
        .map_err(|_| format!("{level:?} is no level of logging; there are error, warn, info, debug, trace"))?;
    let config = WASMLayerConfigBuilder::new()
        .set_max_level(level)
        .set_report_logs_in_timings(false)
        .set_console_config(ConsoleConfig::ReportWithoutConsoleColor)
        .build();
    if !tracing::dispatcher::has_been_set() {
        tracing_wasm::set_as_global_default_with_config(config);
    }
    Ok(())
}
