//! Connections, and what the network does to them.

use std::time::Duration;

use super::node::EngineId;
use crate::engine::{ConnId, Rng};
use crate::protocol::RelayUrl;
use crate::runtime::{ConnectError, Instant};

/// From one end of a connection to the other, where the network is as it should be.
pub(super) const LATENCY: Duration = Duration::from_millis(5);

/// What the network between engines and one relay does. The default is nothing: a fixed latency, and no faults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetFaults {
    /// Connection attempts that fail, per mille.
    pub refused: u32,
    /// Connection attempts of which nothing comes, per mille.
    pub hangs: u32,
    /// The longest that a connection attempt takes.
    pub connect_max: Duration,
    /// The longest latency; each connection has its own, so that connections overtake each other.
    pub latency_max: Duration,
    /// How much longer than that a frame may take. Frames of one connection keep their order.
    pub jitter_max: Duration,
    /// Frames at which the connection breaks, of 10,000.
    pub breaks: u32,
    /// Frames from which on nothing arrives at either end any more, and no end learns of it, of 10,000.
    pub half_opens: u32,
    /// Connections on which every frame takes up to [`NetFaults::tarpit_max`], per mille.
    pub tarpits: u32,
    /// See [`NetFaults::tarpits`].
    pub tarpit_max: Duration,
}

/// What becomes of one frame.
pub(super) enum Passage {
    /// It arrives after so long.
    Arrives(Duration),
    /// The connection breaks.
    Breaks,
    /// It is never seen again, and nor is what follows it.
    Lost,
}

impl NetFaults {
    pub(super) fn is_faulty(&self) -> bool {
        *self != Self::default()
    }

    /// What becomes of a connection attempt: how long it takes, or how it fails; `None` if nothing comes of it.
    pub(super) fn connect(&self, rng: &mut Rng) -> Option<Result<Duration, ConnectError>> {
        if happens(rng, self.hangs, 1000) {
            return None;
        }
        if happens(rng, self.refused, 1000) {
            return Some(Err(match rng.bits() % 5 {
                0 => ConnectError::Dns("no such name".into()),
                1 => ConnectError::Refused("nobody listens".into()),
                2 => ConnectError::Tls("certificate expired".into()),
                3 => ConnectError::Handshake("502".into()),
                _ => ConnectError::TimedOut,
            }));
        }
        Some(Ok(LATENCY + up_to(rng, self.connect_max)))
    }

    /// A new wire.
    pub(super) fn wire(&self, engine: EngineId, conn: ConnId, relay: RelayUrl, rng: &mut Rng) -> Wire {
        Wire {
            engine,
            conn,
            relay,
            latency: LATENCY + up_to(rng, self.latency_max),
            is_tarpit: happens(rng, self.tarpits, 1000),
            is_dead: false,
            up_free_at: Instant::ZERO,
            down_free_at: Instant::ZERO,
            bytes_up: 0,
        }
    }
}

/// One connection, between the engine's end and the relay's.
#[derive(Debug)]
pub(super) struct Wire {
    pub engine: EngineId,
    pub conn: ConnId,
    pub relay: RelayUrl,
    latency: Duration,
    pub is_tarpit: bool,
    /// Half open: nothing arrives, at either end.
    pub is_dead: bool,
    up_free_at: Instant,
    down_free_at: Instant,
    /// Bytes on their way to the relay.
    pub bytes_up: usize,
}

impl Wire {
    /// What becomes of a frame that goes `up` or down now, `delay` of which is the sender's own.
    pub(super) fn pass(
        &mut self,
        up: bool,
        now: Instant,
        delay: Duration,
        faults: &NetFaults,
        rng: &mut Rng,
    ) -> Passage {
        if self.is_dead {
            return Passage::Lost;
        }
        if !faults.is_faulty() {
            // What was sent while there were faults still goes first.
            let free_at = if up { self.up_free_at } else { self.down_free_at };
            return Passage::Arrives((now + self.latency + delay).max(free_at) - now);
        }
        if happens(rng, faults.breaks, 10_000) {
            return Passage::Breaks;
        }
        if happens(rng, faults.half_opens, 10_000) {
            self.is_dead = true;
            return Passage::Lost;
        }
        let tarpit = if self.is_tarpit { up_to(rng, faults.tarpit_max) } else { Duration::ZERO };
        let free_at = if up { &mut self.up_free_at } else { &mut self.down_free_at };
        let at = (now + self.latency + delay + up_to(rng, faults.jitter_max) + tarpit).max(*free_at);
        *free_at = at;
        Passage::Arrives(at - now)
    }
}

/// Does something happen that does so `part` times of `whole`? Without faults, no chance is taken.
pub(super) fn happens(rng: &mut Rng, part: u32, whole: u32) -> bool {
    part > 0 && rng.bits() % u64::from(whole) < u64::from(part)
}

/// A random duration up to `most`, in whole microseconds. Without one, no chance is taken.
pub(super) fn up_to(rng: &mut Rng, most: Duration) -> Duration {
    let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
    if micros == 0 { Duration::ZERO } else { Duration::from_micros(rng.bits() % micros.saturating_add(1).max(1)) }
}
