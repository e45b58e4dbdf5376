//! What a seed makes: relays with their events and faults, engines with their wishes.

use std::sync::Arc;
use std::time::Duration;

use super::chaos::Chaos;
use super::dice::Dice;
use super::faults;
use crate::engine::{Config, Direction, RelayOptions, Rng};
use crate::protocol::{Event, Filter, RelayUrl};
use crate::serve::ServeConfig;
use crate::sim::{DiskFaults, EngineId, NOW_SECS, NetFaults, Remote, World, authors, pool};
use crate::store::Method;

/// The author whose key answers challenges.
pub(super) const SIGNER: u8 = 9;

/// No second of the pool has more events.
const PAGE_OF_ALL: usize = 250;

/// A world that is about to begin.
#[derive(Debug)]
pub(super) struct Setup {
    pub world: World,
    pub engines: Vec<EngineId>,
    pub relays: Vec<RelayUrl>,
    /// What is to happen while the faults last.
    pub chaos: Chaos,
    /// The set of faults, one a line.
    pub faults: Vec<String>,
    /// Different events that relays hold at first.
    pub events: u64,
}

impl Setup {
    /// Without anybody.
    pub(super) fn new(seed: u64, options: &super::Options) -> Self {
        let mut world = World::with_seed(seed);
        world.tell_trace(options.tell);
        let (engines, relays, faults) = (Vec::new(), Vec::new(), Vec::new());
        Self { world, engines, relays, chaos: Chaos::default(), faults, events: 0 }
    }

    pub(super) fn draw(seed: u64, options: &super::Options) -> Self {
        let mut dice = Dice(Rng::new(seed));
        let mut setup = Self::new(dice.seed(), options);
        let most = dice.pick(&[10, 60, 60, 150, 150, 400]);
        let events = some_events(&mut dice, most);
        setup.events = events.len() as u64;
        for number in 0..dice.between(2, 6) {
            // One relay has no fault at all: whatever the others do, what it holds arrives.
            setup.add_relay(&mut dice, number, &events);
        }
        for _ in 0..dice.pick(&[1, 1, 1, 2, 2, 3]) {
            setup.add_engine(&mut dice, options);
        }
        setup.chaos = Chaos::draw(&mut dice, &setup.engines, &setup.relays, &mut setup.faults);
        setup
    }

    fn add_relay(&mut self, dice: &mut Dice, number: u64, events: &[Event]) {
        let url = format!("wss://relay{number}.example");
        let share = dice.between(1, 10);
        let held: Vec<Event> = events.iter().filter(|_| dice.chance(share, 10)).cloned().collect();
        self.place(dice, &url, &held, (number > 0).then(pool), |_| {});
    }

    /// Adds a relay that holds these events; with faults, if `pool` has all events that it may come to have.
    pub(super) fn place(
        &mut self,
        dice: &mut Dice,
        url: &str,
        held: &[Event],
        pool: Option<&Arc<[Event]>>,
        adjust: impl FnOnce(&mut ServeConfig),
    ) {
        let mut config = relay_config(dice, url);
        adjust(&mut config);
        let mut remote = Remote::configured(config.clone(), held);
        remote.is_recorded = false;
        let mut names = vec![format!("{} events", held.len())];
        if let Some(pool) = pool {
            let drawn = faults::draw(&mut Rng::new(dice.seed()), pool);
            names.extend(drawn.names);
            remote = drawn.tampers.into_iter().fold(remote, Remote::tamper_boxed);
            remote.info = drawn.info;
            if drawn.hides {
                remote = remote.unchecked();
            }
            remote.network = net_faults(dice);
            if remote.network.is_faulty() {
                names.push(format!("{:?}", remote.network));
            }
        }
        let negentropy = if config.negentropy { "NIP-77" } else { "no NIP-77" };
        self.faults.push(format!("{url}: {negentropy}, pages of {}, {}", config.page_events_max, names.join(", ")));
        let url = self.world.add_relay(url, remote);
        self.relays.push(url);
    }

    fn add_engine(&mut self, dice: &mut Dice, options: &super::Options) {
        let mut config = engine_config(dice);
        config.planted = options.planted;
        let one_shot = config.one_shot;
        let engine = self.world.add_engine(config);
        let held = some_events(dice, self.events.max(10));
        let held = if dice.chance(1, 2) { held } else { Vec::new() };
        self.equip(dice, engine, &held, if one_shot { "one shot" } else { "daemon" });
        let first = dice.below(self.relays.len() as u64) as usize;
        for (number, relay) in self.relays.clone().into_iter().enumerate() {
            if number == first || dice.chance(2, 3) {
                wish(&mut self.world, dice, engine, &relay);
            }
        }
    }

    /// Gives an engine what it holds, and a machine that is slow and fails.
    pub(super) fn equip(&mut self, dice: &mut Dice, engine: EngineId, held: &[Event], what: &str) {
        self.world.give(engine, held);
        let disk = disk_faults(dice);
        let node = self.world.node_mut(engine);
        node.signs_as = Some(SIGNER);
        node.supervised = true;
        node.work_takes = Duration::from_millis(dice.pick(&[0, 1, 1, 5, 40]));
        node.disk = disk.clone();
        node.late_max = Duration::from_millis(dice.pick(&[0, 0, 0, 10, 1_000, 10_000]));
        self.faults.push(format!(
            "{engine}: {what}, holds {}, {disk:?}, timers up to {:?} late",
            held.len(),
            node.late_max
        ));
        self.engines.push(engine);
    }
}

/// Draws what an engine is to sync with a relay, and tells it.
pub(super) fn wish(world: &mut World, dice: &mut Dice, engine: EngineId, relay: &RelayUrl) {
    let one_shot = world.node(engine).config.one_shot;
    let options = relay_options(world, dice, relay, !one_shot);
    world.sync_with(engine, relay, filters(dice), options);
}

/// Draws how to sync with a relay.
pub(super) fn relay_options(world: &World, dice: &mut Dice, relay: &RelayUrl, live: bool) -> RelayOptions {
    let direction = dice.pick(&[Direction::Down, Direction::Down, Direction::Down, Direction::Both, Direction::Up]);
    // By pages alone, a second that overflows one stays a gap.
    let has_large_pages = world.relay(relay).honest().config().page_events_max >= PAGE_OF_ALL;
    let method = dice.pick(&[None, None, None, None, Some(Method::Req)]).filter(|_| has_large_pages);
    RelayOptions { direction, method, live, trusted: false }
}

pub(super) fn some_events(dice: &mut Dice, most: u64) -> Vec<Event> {
    let pool = pool();
    // What is dated in the next hours is published later.
    let early: Vec<&Event> =
        pool.iter().filter(|event| !(NOW_SECS..NOW_SECS + 3 * 3600).contains(&event.created_at_secs())).collect();
    let count = dice.between(0, most);
    // Neighbours in the pool are of one kind: whole seconds come together.
    let mut events = Vec::new();
    while (events.len() as u64) < count {
        let from = dice.below(early.len() as u64) as usize;
        let run = dice.between(1, 60) as usize;
        events.extend(early.iter().skip(from).take(run).map(|event| (*event).clone()));
    }
    let mut seen = std::collections::BTreeSet::new();
    events.retain(|event| seen.insert(event.id.to_bytes()));
    events
}

fn relay_config(dice: &mut Dice, url: &str) -> ServeConfig {
    let negentropy = dice.chance(2, 3);
    // Where there is no reconciliation, no second may hold more than a page, or it remains a gap for good.
    let least = if negentropy { 20 } else { PAGE_OF_ALL as u64 };
    let page_events_max = dice.pick(&[least, least + 30, 300, 500, 5_000]) as usize;
    ServeConfig {
        urls: crate::protocol::RelayUrl::parse(url).into_iter().collect(),
        auth_required: dice.chance(1, 8),
        negentropy,
        eose_hints: dice.chance(1, 3),
        subscriptions_max: dice.pick(&[1, 2, 3, 5, 20, 200]),
        page_events_max,
        page_events_default: dice.pick(&[100, 500]).min(page_events_max),
        read_bytes_max: dice.pick(&[2_000, 20_000, 256 * 1024]),
        negentropy_records_max: dice.pick(&[200, 1_000, 1_000_000]),
        negentropy_frame_bytes_max: dice.pick(&[4_096, 60_000]),
        ..ServeConfig::default()
    }
}

pub(super) fn engine_config(dice: &mut Dice) -> Config {
    let base = if dice.chance(1, 5) { Config::one_shot() } else { Config::default() };
    Config {
        page_events: dice.pick(&[20, 100, 500]),
        ids_per_request: dice.pick(&[5, 50, 256]),
        subscriptions_max: dice.pick(&[2, 4, 16]),
        histories_active_max: dice.pick(&[1, 2, 4]),
        negentropy_window_items: dice.pick(&[20, 250_000, 250_000]),
        negentropy_frame_bytes_max: dice.pick(&[4_096, 60_000]),
        verify_events_max: dice.pick(&[1, 16, 128]),
        commit_events_min: dice.pick(&[1, 100, 2_048]),
        commit_events_max: dice.pick(&[10, 8_192]),
        // Days in which nothing happens are to cost little.
        probe_after: Duration::from_secs(dice.pick(&[60, 600, 1_800, 1_800])),
        live_retry: Duration::from_secs(dice.pick(&[600, 3_600, 7_200])),
        negentropy_rounds_max: dice.pick(&[50, 500]) as u32,
        ingest_bytes_max: dice.pick(&[20_000, 4 << 20]),
        progress_interval: Duration::ZERO,
        ..base
    }
}

fn disk_faults(dice: &mut Dice) -> DiskFaults {
    if dice.chance(1, 2) {
        return DiskFaults::default();
    }
    DiskFaults {
        slow_max: Duration::from_millis(dice.pick(&[0, 20, 2_000, 20_000])),
        commit_errors: dice.pick(&[0, 0, 10, 200]) as u32,
        read_errors: dice.pick(&[0, 0, 10, 100]) as u32,
        full: false,
    }
}

fn net_faults(dice: &mut Dice) -> NetFaults {
    if dice.chance(1, 3) {
        return NetFaults::default();
    }
    let mut sometimes = |values: &[u64]| if dice.chance(1, 3) { dice.pick(values) } else { 0 };
    NetFaults {
        refused: sometimes(&[50, 300, 900]) as u32,
        hangs: sometimes(&[50, 300, 900]) as u32,
        connect_max: Duration::from_millis(sometimes(&[100, 3_000, 9_000])),
        latency_max: Duration::from_millis(sometimes(&[50, 500, 3_000])),
        jitter_max: Duration::from_millis(sometimes(&[20, 500])),
        breaks: sometimes(&[5, 50, 500]) as u32,
        half_opens: sometimes(&[5, 50, 500]) as u32,
        tarpits: sometimes(&[100, 500, 1000]) as u32,
        tarpit_max: Duration::from_millis(dice.pick(&[500, 5_000, 20_000])),
    }
}

/// One to four filters, as callers give them.
pub(super) fn filters(dice: &mut Dice) -> Vec<Filter> {
    let authors = authors();
    let mut some = Vec::new();
    for _ in 0..dice.pick(&[1, 1, 1, 2, 4]) {
        let (a, b) = (NOW_SECS - dice.below(30 * 86_400), NOW_SECS - dice.below(30 * 86_400));
        some.push(match dice.below(8) {
            0 | 1 => Filter::new(),
            2 => Filter::new().kinds([0_u16, 3, 5, 30_617].map(Into::into)),
            3 => Filter::new().kinds([1_u16, 7].map(Into::into)).authors(authors[..3].iter().copied()),
            4 => Filter::new().kind(5000_u16.into()).hashtag("none"),
            5 => r_filter(dice.pick(&["x", "y"])),
            6 => Filter::new().since(a.min(b).into()).until(a.max(b).into()),
            _ => Filter::new().authors([dice.pick(authors)]),
        });
    }
    some
}

pub(super) fn r_filter(value: &str) -> Filter {
    let tag = nostr::filter::SingleLetterTag::from_char('r').expect("r is a letter");
    Filter::new().kind(5000_u16.into()).custom_tag(tag, value)
}
