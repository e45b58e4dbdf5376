//! Logs, on stderr.

use std::io;

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use super::Failure;
use crate::native::settings::{LogFormat, LogSettings};

/// The variable that overrides what is logged.
const VARIABLE: &str = "RUST_LOG";

/// Starts logs for a command; RUST_LOG overrides what is `usually` logged.
pub(super) fn start(usually: &str) {
    let filter = by_variable().unwrap_or_else(|| EnvFilter::new(usually));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(is_shown()).init();
}

/// Does somebody look at what is logged, and wants colours?
fn is_shown() -> bool {
    io::IsTerminal::is_terminal(&io::stderr()) && std::env::var_os("NO_COLOR").is_none()
}

/// What RUST_LOG asks for.
fn by_variable() -> Option<EnvFilter> {
    // Some of what is not ASCII makes the parser of tracing-subscriber 0.3.23 panic.
    std::env::var(VARIABLE).ok().filter(|text| text.is_ascii())?.parse().ok()
}

/// Changes what is logged while the program runs.
pub(super) struct LogControl {
    /// `None` where RUST_LOG decides.
    filter: Option<reload::Handle<EnvFilter, Registry>>,
}

impl LogControl {
    /// Starts logs as `settings` say; RUST_LOG overrides their filter.
    pub(super) fn start(settings: &LogSettings) -> Self {
        let by_variable = by_variable();
        let decides = by_variable.is_none();
        let (filter, handle) = reload::Layer::new(by_variable.unwrap_or_else(|| EnvFilter::new(&settings.filter.0)));
        let lines = match settings.format {
            LogFormat::Text => fmt::layer().with_writer(io::stderr).with_target(false).with_ansi(is_shown()).boxed(),
            LogFormat::Json => fmt::layer().with_writer(io::stderr).json().flatten_event(true).boxed(),
        };
        tracing_subscriber::registry().with(filter).with(lines).init();
        Self { filter: decides.then_some(handle) }
    }

    /// From now on, what `settings` say.
    ///
    /// # Errors
    /// Logs have ended.
    pub(super) fn set(&self, settings: &LogSettings) -> Result<(), Failure> {
        match &self.filter {
            Some(handle) => handle.reload(EnvFilter::new(&settings.filter.0)).map_err(Failure::new),
            None => Ok(()),
        }
    }
}
