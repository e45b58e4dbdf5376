//! The operator wants us to end.

use tokio::signal;

use super::Failure;

/// Waits for Ctrl-C or SIGTERM; says which.
///
/// # Errors
/// The system does not let us listen for signals.
pub async fn interrupted() -> Result<&'static str, Failure> {
    let fault = |error: std::io::Error| Failure::new(format!("cannot listen for signals: {error}"));
    #[cfg(unix)]
    {
        let mut terminate = signal::unix::signal(signal::unix::SignalKind::terminate()).map_err(fault)?;
        tokio::select! {
            result = signal::ctrl_c() => result.map(|()| "interrupted").map_err(fault),
            _ = terminate.recv() => Ok("terminated"),
        }
    }
    #[cfg(not(unix))]
    signal::ctrl_c().await.map(|()| "interrupted").map_err(fault)
}

/// The operator wants the settings to be read again: SIGHUP, where there is such a thing.
pub(super) struct Reloads {
    #[cfg(unix)]
    signal: signal::unix::Signal,
}

impl Reloads {
    /// From now on SIGHUP does not end the program.
    ///
    /// # Errors
    /// The system does not let us listen for signals.
    pub(super) fn new() -> Result<Self, Failure> {
        #[cfg(unix)]
        {
            let signal = signal::unix::signal(signal::unix::SignalKind::hangup());
            Ok(Self { signal: signal.map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))? })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        if self.signal.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}
