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
