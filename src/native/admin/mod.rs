//! The admin server: what an operator's machines and `relaysync status` ask of a running daemon.
//!
//! | path | what |
//! |---|---|
//! | `/metrics` | metrics in the text format of Prometheus |
//! | `/healthz` | 200 while the engine's loop moves, else 503 and why |
//! | `/readyz` | 200 once the store is open, the index rebuilt and the relay service listening, else 503 and why |
//! | `/status` | all of the report, as JSON |
//! | `/` | a POST is a call to the [control plane](super::rpc) |
//!
//! Everything is made from the last [`DaemonReport`] that the daemon has published, so no question, and no number of
//! them, touches the engine. Calls to the control plane are signed, the rest is not: whoever reaches the address may ask: bind it to an address that only those reach who may
//! know.

mod exposition;
mod health;
mod http;
mod metrics;
mod process;
mod report;
#[cfg(test)]
pub(crate) mod samples;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use self::exposition::{MetricPrefix, MetricPrefixError};
pub use self::report::{
    DaemonReport, DiscoveryReport, EngineReport, FeedReport, PeerReport, PeersReport, Readiness, ServiceReport, Stage,
    StoreReport, Verdict,
};
pub(crate) use self::report::{Standing, gaps_of};
use super::NativeClock;
use super::rpc::Rpc;
use super::serve::BindError;

/// A dashboard for Grafana, to be imported there. It asks for the prefix of the metrics.
pub const GRAFANA_DASHBOARD: &str = include_str!("grafana.json");

/// How the admin server behaves, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminConfig {
    /// The first part of the names of all metrics.
    pub prefix: MetricPrefix,
    /// Relays, and peers, that have labels of their own in the metrics; those beyond are taken together as `other`, or
    /// `all others`.
    pub relays_named_max: usize,
    /// Connections open at once; others wait to be accepted.
    pub connections_max: usize,
    /// The size of a request's head, in bytes; at least 8,192.
    pub request_bytes_max: usize,
    /// How long a connection may last, from the first byte of the one request to the last of its answer.
    pub connection_time_max: Duration,
    /// How long to wait after the system could not accept a connection, as when it is out of file descriptors.
    pub accept_retry: Duration,
    /// A daemon that has published no report for this long is not alive.
    pub report_age_max: Duration,
    /// An engine whose loop has not moved for this long is not alive. Longer than the time it takes to be built anew after
    /// the store has failed.
    pub engine_silence_max: Duration,
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self {
            prefix: MetricPrefix::default(),
            relays_named_max: 200,
            connections_max: 32,
            request_bytes_max: 8 << 10,
            connection_time_max: Duration::from_secs(10),
            accept_retry: Duration::from_millis(100),
            report_age_max: Duration::from_secs(15),
            engine_silence_max: Duration::from_secs(60),
        }
    }
}

/// An admin server that listens. Dropping it shuts it down.
#[derive(Debug)]
pub struct AdminServer {
    local_addr: SocketAddr,
    task: JoinHandle<()>,
}

impl AdminServer {
    /// Listens on `addr` (port 0 for any that is free) and answers from the newest of `reports`, whose moments are those
    /// of `clock`. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn bind(
        addr: SocketAddr,
        config: AdminConfig,
        clock: NativeClock,
        reports: watch::Receiver<Arc<DaemonReport>>,
    ) -> Result<Self, BindError> {
        Self::bind_with(addr, config, clock, reports, None).await
    }

    /// The same; calls to the control plane are answered by `rpc`.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn bind_with(
        addr: SocketAddr,
        config: AdminConfig,
        clock: NativeClock,
        reports: watch::Receiver<Arc<DaemonReport>>,
        rpc: Option<Rpc>,
    ) -> Result<Self, BindError> {
        let fault = |error| BindError { addr, error };
        let listener = TcpListener::bind(addr).await.map_err(fault)?;
        let local_addr = listener.local_addr().map_err(fault)?;
        let task = tokio::spawn(http::Desk::new(config, clock, reports, rpc).run(listener));
        Ok(Self { local_addr, task })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        // Its connections are its tasks, and end with it.
        self.task.abort();
    }
}
