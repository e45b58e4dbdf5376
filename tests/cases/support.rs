//! One engine and its relays.

use std::collections::BTreeSet;
use std::time::Duration;

use relaysync::engine::{Config, Direction, Gap, GapReason, Phase, RelayOptions, RelayReport};
use relaysync::protocol::{ClientMessage, Event, Filter, RelayUrl, Window};
use relaysync::runtime::{CloseReason, Instant};
use relaysync::sim::{EngineId, NOW_SECS, Remote, World, note, notes};
use relaysync::store::Method;

/// One engine, one relay, and what became of it.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) world: World,
    pub(crate) engine: EngineId,
    pub(crate) relay: RelayUrl,
    pub(crate) report: RelayReport,
    pub(crate) took: Duration,
}

/// How to play.
#[derive(Debug, Default)]
pub(crate) struct Play {
    pub(crate) config: Option<Config>,
    pub(crate) options: RelayOptions,
    pub(crate) filters: Vec<Filter>,
    /// What the engine holds before it starts.
    pub(crate) held: Vec<Event>,
    pub(crate) signs_as: Option<u8>,
}

impl Play {
    pub(crate) fn holding(held: &[Event]) -> Self {
        Self { held: held.to_vec(), ..Self::default() }
    }

    pub(crate) fn by(method: Method) -> Self {
        Self { options: RelayOptions { method: Some(method), ..RelayOptions::default() }, ..Self::default() }
    }

    pub(crate) fn towards(direction: Direction, held: &[Event]) -> Self {
        let options = RelayOptions { direction, ..RelayOptions::default() };
        Self { options, held: held.to_vec(), ..Self::default() }
    }

    pub(crate) fn config(self, config: Config) -> Self {
        Self { config: Some(config), ..self }
    }

    pub(crate) fn filters(self, filters: impl IntoIterator<Item = Filter>) -> Self {
        Self { filters: filters.into_iter().collect(), ..self }
    }

    pub(crate) fn signing(self) -> Self {
        Self { signs_as: Some(7), ..self }
    }

    /// Syncs with one relay, to the end.
    pub(crate) fn with(self, remote: Remote) -> Played {
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", remote);
        let engine = world.add_engine(self.config.unwrap_or_else(one_shot));
        world.give(engine, &self.held);
        world.node_mut(engine).signs_as = self.signs_as;
        let filters = if self.filters.is_empty() { vec![Filter::new()] } else { self.filters };
        let began = world.now().instant;
        world.sync_with(engine, &relay, filters, self.options);
        let report = world.finish(engine).remove(0);
        let took = world.now().instant - began;
        Played { world, engine, relay, report, took }
    }
}

/// Syncs into an empty store.
pub(crate) fn play(remote: Remote) -> Played {
    Play::default().with(remote)
}

impl Played {
    /// Complete, and the same is held on both sides.
    #[track_caller]
    pub(crate) fn is_equal(&self) -> &Self {
        self.holds_all();
        assert!(self.report.complete, "{:#?}\n{}", self.report, self.world.trace());
        self
    }

    /// The same is held on both sides, complete or not.
    #[track_caller]
    pub(crate) fn holds_all(&self) -> &Self {
        let (here, there) = (self.world.held(self.engine), self.world.held_by(&self.relay));
        assert!(
            here == there,
            "{} here, {} there: {:#?}\n{}",
            here.len(),
            there.len(),
            self.report,
            self.world.trace()
        );
        self
    }

    /// Not complete, with these gaps and no others.
    #[track_caller]
    pub(crate) fn has_gaps(&self, gaps: &[(Window, GapReason)]) -> &Self {
        let found: Vec<(Window, GapReason)> =
            self.report.gaps.iter().map(|gap: &Gap| (gap.window, gap.reason.clone())).collect();
        assert_eq!(found, gaps, "{}", self.world.trace());
        assert!(!self.report.complete);
        self
    }

    #[track_caller]
    pub(crate) fn within(&self, most: Duration) -> &Self {
        assert!(self.took <= most, "took {:?}\n{}", self.took, self.world.trace());
        self
    }

    pub(crate) fn asked(&self, kind: &str) -> usize {
        self.world.relay(&self.relay).heard_of(kind).len()
    }

    /// The filters of all REQs, in order.
    pub(crate) fn filters_asked(&self) -> Vec<Filter> {
        filters_asked(&self.world, &self.relay)
    }
}

/// A daemon that stays subscribed to everything at one relay.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) world: World,
    pub(crate) engine: EngineId,
    pub(crate) relay: RelayUrl,
    sent: u64,
}

impl Daemon {
    /// After its first 40 s.
    pub(crate) fn new(remote: Remote) -> Self {
        Self::configured(daemon(), remote)
    }

    pub(crate) fn configured(config: Config, remote: Remote) -> Self {
        Self::with(config, [Filter::new()], remote, None)
    }

    /// The same with these filters, answering challenges (NIP-42) by the key of this author.
    pub(crate) fn wanting(filters: impl IntoIterator<Item = Filter>, remote: Remote, signs_as: Option<u8>) -> Self {
        Self::with(daemon(), filters, remote, signs_as)
    }

    fn with(config: Config, filters: impl IntoIterator<Item = Filter>, remote: Remote, signs_as: Option<u8>) -> Self {
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", remote);
        let engine = world.add_engine(config);
        world.node_mut(engine).signs_as = signs_as;
        world.sync_with(engine, &relay, filters, LIVE);
        world.run(Duration::from_secs(40));
        Self { world, engine, relay, sent: 0 }
    }

    pub(crate) fn secs(&mut self, secs: u64) {
        self.world.run(Duration::from_secs(secs));
    }

    /// Others publish a note dated now.
    pub(crate) fn publish_now(&mut self) -> Event {
        self.sent += 1;
        let event = note(self.world.now().unix_secs).content(format!("live {}", self.sent)).sign();
        self.world.publish(&self.relay, std::slice::from_ref(&event));
        event
    }

    /// The same is held on both sides, and live.
    #[track_caller]
    pub(crate) fn is_equal(&self) {
        let (here, there) = (self.world.held(self.engine), self.world.held_by(&self.relay));
        assert!(here == there, "{} here, {} there\n{}", here.len(), there.len(), self.world.trace());
        let report = self.report();
        assert!(report.complete && report.phase == Phase::Live, "{report:#?}\n{}", self.world.trace());
    }

    pub(crate) fn report(&self) -> RelayReport {
        self.world.node(self.engine).reports().remove(0)
    }

    /// When the relay was probed.
    pub(crate) fn probes(&self) -> Vec<Instant> {
        let heard = self.world.relay(&self.relay).heard.iter();
        heard.filter(|(_, frame)| is_probe(frame)).map(|(at, _)| *at).collect()
    }

    /// Has this side closed a connection because nothing came?
    pub(crate) fn has_cut(&self) -> bool {
        has_cut(&self.world, self.engine)
    }
}

pub(crate) fn has_cut(world: &World, engine: EngineId) -> bool {
    world.node(engine).closed.contains(&CloseReason::Silent)
}

/// Does this REQ ask for an event that cannot be?
pub(crate) fn is_probe(frame: &str) -> bool {
    frame.starts_with("[\"REQ\"") && frame.contains(&"0".repeat(64))
}

/// The filters of all REQs but probes, in order.
pub(crate) fn filters_asked(world: &World, relay: &RelayUrl) -> Vec<Filter> {
    let filters = |frame: &str| match ClientMessage::parse(frame) {
        Ok(ClientMessage::Req { filters, .. }) => filters,
        _ => Vec::new(),
    };
    world.relay(relay).heard_of("REQ").into_iter().filter(|frame| !is_probe(frame)).flat_map(filters).collect()
}

/// A job without progress reports: they would only lengthen the trace.
pub(crate) fn one_shot() -> Config {
    Config { progress_interval: Duration::ZERO, ..Config::one_shot() }
}

pub(crate) fn daemon() -> Config {
    Config::default()
}

/// Events of the last `count` × 10 seconds.
pub(crate) fn history(count: u64) -> Vec<Event> {
    notes((0..count).map(|n| NOW_SECS - 10 * count + 10 * n))
}

pub(crate) fn ids<'e>(events: impl IntoIterator<Item = &'e Event>) -> BTreeSet<[u8; 32]> {
    events.into_iter().map(|event| event.id.to_bytes()).collect()
}

pub(crate) const STALL: Duration = Duration::from_secs(15);

pub(crate) const LIVE: RelayOptions =
    RelayOptions { direction: Direction::Down, method: None, live: true, trusted: false };
