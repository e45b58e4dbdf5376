//! What a seed makes of a daemon that discovers: a bootstrap relay, relays that repositories list, perhaps its own relay
//! beside it, and what it accepts.

use std::time::Duration;

use super::chaos::Chaos;
use super::dice::Dice;
use super::setup::{Setup, engine_config};
use crate::discover::{Accept, DiscoverConfig, service_url};
use crate::engine::{Config, Direction, RelayOptions, Rng};
use crate::protocol::{Address, Event, Filter, RelayUrl};
use crate::sim::{EngineId, LISTED_RELAYS, NOW_SECS, OUR_SERVICE, authors, listed_relay, repository_pool};

/// Seeds of such worlds are drawn apart from those of others, so that both stay what they are.
const APART: u64 = 0x4752_4153_5030_3200;

/// How an own relay beside the daemon is synced.
const BESIDE: RelayOptions = RelayOptions { direction: Direction::Both, method: None, live: true, trusted: true };

/// Is such a world played for this seed?
pub(super) fn is_drawn(seed: u64) -> bool {
    seed % 3 == 1
}

/// Makes such a world.
pub(super) fn draw(seed: u64, options: &super::Options) -> Setup {
    let mut dice = Dice(Rng::new(seed ^ APART));
    let mut setup = Setup::new(dice.seed(), options);
    let (early, later) = some_events(&mut dice);
    setup.events = early.len() as u64;
    let relays = dice.between(3, LISTED_RELAYS);
    for number in 0..relays {
        let share = dice.between(1, 8);
        let held: Vec<Event> = early.iter().filter(|_| dice.chance(share, 10)).cloned().collect();
        // The bootstrap relay has no fault.
        setup.place(&mut dice, listed_relay(number).as_str(), &held, (number > 0).then(repository_pool), |_| {});
    }
    let engine = add_daemon(&mut setup, &mut dice, &early, options);
    if dice.chance(1, 3) {
        add_own_relay(&mut setup, &mut dice, &early, engine);
    }
    setup.world.begin_discovering(engine);
    setup.chaos = Chaos::draw_discovering(&mut dice, engine, &setup.relays, &later, &mut setup.faults);
    // How it is configured when it starts again.
    let config = &mut setup.world.node_mut(engine).config;
    config.awaits_held = dice.chance(1, 2);
    config.relays_kept_max = dice.pick(&[3, 5_000]);
    setup
}

/// What relays hold at first, and what is published while the faults last.
fn some_events(dice: &mut Dice) -> (Vec<Event>, Vec<Event>) {
    let share = dice.pick(&[1, 3, 6, 10]);
    let (mut early, mut later) = (Vec::new(), Vec::new());
    for event in repository_pool().iter() {
        if !dice.chance(share, 10) {
            continue;
        }
        // Some is published long after its date.
        let is_late = event.created_at_secs() >= NOW_SECS || dice.chance(1, 10);
        if is_late { later.push(event.clone()) } else { early.push(event.clone()) }
    }
    (early, later)
}

fn add_daemon(setup: &mut Setup, dice: &mut Dice, early: &[Event], options: &super::Options) -> EngineId {
    let config = Config {
        one_shot: false,
        planted: options.planted,
        discovery: Some(discover_config(dice)),
        values_per_filter_max: dice.pick(&[2, 5, 100, 100]),
        filters_per_request_max: dice.pick(&[1, 3, 10]),
        live_filters_max: dice.pick(&[8, 20, 70]),
        refused_ids_max: dice.pick(&[200, 100_000]),
        outbox_events_max: dice.pick(&[3, 10_000]),
        attempts_max: Config::default().attempts_max,
        backoff_base: Config::default().backoff_base,
        ..engine_config(dice)
    };
    setup.faults.push(format!("accepts {:?}", config.discovery));
    let engine = setup.world.add_engine(config);
    let held: Vec<Event> = early.iter().filter(|_| dice.chance(1, 3)).cloned().collect();
    let held = if dice.chance(1, 3) { held } else { Vec::new() };
    setup.equip(dice, engine, &held, "discovers");
    engine
}

/// A relay of the operator's beside the daemon: it judges for itself what it takes from clients, and is to have
/// everything.
fn add_own_relay(setup: &mut Setup, dice: &mut Dice, early: &[Event], engine: EngineId) {
    let share = dice.between(0, 3);
    let held: Vec<Event> = early.iter().filter(|_| dice.chance(share, 10)).cloned().collect();
    setup.place(dice, OUR_SERVICE, &held, None, |_| {});
    let own = RelayUrl::parse(OUR_SERVICE).expect("it is a URL");
    setup.world.sync_with(engine, &own, [Filter::new()], BESIDE);
}

/// What is accepted, and where discovery begins.
pub(super) fn discover_config(dice: &mut Dice) -> DiscoverConfig {
    let author = |number: u64| authors()[number as usize].to_bytes();
    let mut sometimes = |part: u64| dice.chance(part, 12).then(|| dice.below(4));
    let (allowed, blocked) = (sometimes(2), sometimes(1));
    let (allowed_repository, blocked_repository) = (sometimes(1), sometimes(1));
    let repository = |owner: u64| Address::repository(author(owner), "alpha");
    let blocked_relay = sometimes(1).map(|number| listed_relay(1 + number));
    DiscoverConfig {
        service_urls: vec![service_url(OUR_SERVICE).expect("it is a URL")],
        accept: dice.pick(&[Accept::Listed, Accept::Listed, Accept::Listed, Accept::Allowed, Accept::All]),
        allow_authors: allowed.map(author).into_iter().collect(),
        allow_repositories: allowed_repository.map(repository).into_iter().collect(),
        block_authors: blocked.map(author).into_iter().collect(),
        block_repositories: blocked_repository.map(repository).into_iter().collect(),
        block_relays: blocked_relay.into_iter().collect(),
        bootstrap: (0..dice.pick(&[1, 1, 1, 2])).map(listed_relay).collect(),
        batch_window: Duration::from_secs(dice.pick(&[1, 5, 5, 60])),
        batch_interests_max: dice.pick(&[3, 100_000]) as usize,
        ..DiscoverConfig::default()
    }
}
