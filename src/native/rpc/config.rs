//! How calls are taken, and every bound.

use std::time::Duration;

use url::Url;

use crate::protocol::RelayUrl;

/// How calls over HTTP are taken, and every bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcConfig {
    /// The URLs under which we are reached, that a call may be signed for. A `ws` or `wss` URL means `http` or `https`,
    /// too. Beside these, a call may be signed for the address and port that it came to.
    pub urls: Vec<Url>,
    /// The size of a call, in bytes.
    pub body_bytes_max: usize,
    /// Within this time all of it must have come.
    pub body_time_max: Duration,
    /// A signature may be so old, by our clock.
    pub auth_age_max: Duration,
    /// A signature may be dated ahead of our clock by this. After a restart, signatures are taken that are dated so long
    /// after it: one that is dated before may have been used.
    pub auth_ahead_max: Duration,
    /// Signatures that are remembered, so that none is taken twice. Beyond that calls are refused.
    pub auth_ids_max: usize,
    /// Calls in a minute, of all keys together.
    pub calls_per_minute_max: u64,
    /// Calls in a minute that are refused with a reason, and signatures in a minute that are checked in vain, of all
    /// callers together. Beyond that calls are refused without a look; those who may govern are affected only if somebody
    /// signs in their name, and have the unix socket then.
    pub refusals_per_minute_max: u64,
    /// Calls that are carried out at once.
    pub calls_max: usize,
    /// Connections open at once to the unix socket; others wait to be accepted.
    pub socket_connections_max: usize,
    /// A connection to the unix socket lasts no longer than this.
    pub socket_time_max: Duration,
}

impl Default for RpcConfig {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            body_bytes_max: 256 << 10,
            body_time_max: Duration::from_secs(10),
            auth_age_max: Duration::from_secs(60),
            auth_ahead_max: Duration::from_secs(3),
            auth_ids_max: 10_000,
            calls_per_minute_max: 600,
            refusals_per_minute_max: 600,
            calls_max: 16,
            socket_connections_max: 32,
            socket_time_max: Duration::from_secs(60),
        }
    }
}

impl RpcConfig {
    /// Adds the URLs of a relay, under which calls may be signed, too.
    #[must_use]
    pub fn at(mut self, relays: &[RelayUrl]) -> Self {
        self.urls.extend(relays.iter().filter_map(|relay| Url::parse(relay.as_str()).ok()));
        self
    }
}
