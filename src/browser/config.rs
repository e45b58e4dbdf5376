//! Every bound and timeout of the browser runtime, by name.

use std::time::Duration;

/// Bounds and timeouts of what the browser gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserConfig {
    /// Time for connecting to a relay, until its socket is open.
    pub connect_timeout: Duration,
    /// The largest frame taken from a relay, in bytes, whatever is dialled with.
    pub frame_bytes_max: usize,
    /// What may wait to be sent on one connection, in bytes of text.
    pub outbound_bytes_max: usize,
    /// What may wait to be taken from one connection, in UTF-16 units of text. A browser cannot be told to stop
    /// reading, so a relay that sends more, unasked, is left.
    pub waiting_units_max: usize,
    /// Frames handed over at once, at most.
    pub receive_frames_max: usize,
    /// Bytes of frames after which no more are added to those handed over at once.
    pub receive_bytes_max: usize,
    /// The largest relay information document (NIP-11), in bytes.
    pub info_bytes_max: usize,
    /// Time for fetching a relay information document.
    pub info_timeout: Duration,
    /// How long signatures are checked on this thread without a break in which frames and timers get their turn.
    pub verify_slice: Duration,
    /// Signatures checked at once, without a break: 100 of them take about 8 milliseconds. More at once are faster.
    pub verify_at_once_max: usize,
    /// From how many signatures on the host's workers are worth the way to them.
    pub verify_host_events_min: usize,
    /// Events given out by one call, if it does not say how many.
    pub take_events_max: usize,
    /// Bytes of events after which no more are given out by one call, if it does not say.
    pub take_bytes_max: usize,
    /// How long relays may take to answer what is published, if the call does not say.
    pub publish_timeout: Duration,
    /// The host is told of changes by themselves not more often than this.
    pub status_interval: Duration,
}

impl Default for BrowserConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(20),
            frame_bytes_max: 4 << 20,
            outbound_bytes_max: 8 << 20,
            waiting_units_max: 64 << 20,
            receive_frames_max: 512,
            receive_bytes_max: 1 << 20,
            info_bytes_max: 128 << 10,
            info_timeout: Duration::from_secs(10),
            verify_slice: Duration::from_millis(8),
            verify_at_once_max: 128,
            verify_host_events_min: 8,
            take_events_max: 1_000,
            take_bytes_max: 1 << 20,
            publish_timeout: Duration::from_secs(30),
            status_interval: Duration::from_millis(100),
        }
    }
}
