//! Every bound and timeout of the sockets, by name.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Bounds and timeouts of client sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketConfig {
    /// Time for the whole of name look-up, TCP, TLS and WebSocket handshake.
    pub connect_timeout: Duration,
    /// How long one address of a host is tried before the next is tried beside it.
    pub address_stagger: Duration,
    /// The largest frame or message taken from a relay, in bytes, whatever is dialled with. Events have up to 1 MiB,
    /// reconciliation messages of 1 MB are common.
    pub frame_bytes_max: usize,
    /// What may wait to be sent on one connection, in bytes on the wire.
    pub outbound_bytes_max: usize,
    /// How long a relay may take nothing of what waits to be sent.
    pub write_timeout: Duration,
    /// Time for sending what is left, and saying goodbye, once a connection is to end.
    pub close_timeout: Duration,
    /// Bytes read from a socket at once, at most.
    pub read_buffer_bytes: usize,
    /// Frames handed over at once, at most.
    pub receive_frames_max: usize,
    /// Bytes of frames after which no more are added to those handed over at once.
    pub receive_bytes_max: usize,
    /// The largest relay information document (NIP-11), in bytes.
    pub info_bytes_max: usize,
    /// Time for fetching a relay information document, connecting included.
    pub info_timeout: Duration,
    /// Send small frames at once (TCP_NODELAY).
    pub nodelay: bool,
    /// Idle time after which the system probes whether the other side still lives.
    pub keepalive_idle: Duration,
    /// Time between two such probes.
    pub keepalive_interval: Duration,
    /// PEM file with certificate authorities to be trusted besides the usual ones.
    pub ca_file: Option<PathBuf>,
    /// Distinct [terms](crate::peer::TlsTerms) that TLS is kept set up for; for others it is set up anew when they are
    /// needed.
    pub tls_terms_max: usize,
}

impl Default for SocketConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(20),
            address_stagger: Duration::from_millis(250),
            frame_bytes_max: 4 << 20,
            outbound_bytes_max: 8 << 20,
            write_timeout: Duration::from_secs(30),
            close_timeout: Duration::from_millis(500),
            read_buffer_bytes: 128 << 10,
            receive_frames_max: 512,
            receive_bytes_max: 1 << 20,
            info_bytes_max: 128 << 10,
            info_timeout: Duration::from_secs(10),
            nodelay: true,
            keepalive_idle: Duration::from_secs(60),
            keepalive_interval: Duration::from_secs(20),
            ca_file: None,
            tls_terms_max: 256,
        }
    }
}

/// The sockets cannot be set up as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ConfigError {}
