//! What a seed makes of engines with configured peers: relays and engines with access rules, keys, and terms.

use std::sync::Arc;

use super::chaos::Chaos;
use super::dice::Dice;
use super::setup::{SIGNER, Setup, engine_config, filters, r_filter, relay_options, some_events, wish};
use crate::engine::Rng;
use crate::peer::{AccessRules, Capability, IdentityField, Peering, Rule, Terms};
use crate::protocol::{Event, Filter, PublicKey, RelayUrl};
use crate::sim::tamper::Info;
use crate::sim::{EngineId, World, authors, key_of, pool};

/// Seeds of such worlds are drawn apart from those of others, so that both stay what they are.
const APART: u64 = 0x5045_4552_5300_0000;

/// The author whose key the first relay has; the others have those after it.
const FIRST_RELAY: u8 = 40;

/// Nobody's key in such worlds.
const STRANGER: u8 = 77;

/// Is such a world played for this seed?
pub(super) fn is_drawn(seed: u64) -> bool {
    seed % 5 == 2
}

/// Makes such a world.
pub(super) fn draw(seed: u64, options: &super::Options) -> Setup {
    let mut dice = Dice(Rng::new(seed ^ APART));
    let mut setup = Setup::new(dice.seed(), options);
    let most = dice.pick(&[10, 60, 60, 150]);
    let events = some_events(&mut dice, most);
    setup.events = events.len() as u64;
    let relays = dice.between(1, 4) as usize;
    for number in 0..relays {
        add_relay(&mut setup, &mut dice, number as u8, &events);
    }
    for _ in 0..dice.pick(&[1, 1, 2]) {
        add_engine(&mut setup, &mut dice, options);
    }
    setup.chaos = Chaos::draw_peers(&mut dice, &setup.engines, &setup.relays, &mut setup.faults);
    setup
}

fn add_relay(setup: &mut Setup, dice: &mut Dice, number: u8, events: &[Event]) {
    let url = format!("wss://relay{number}.example");
    let share = dice.between(1, 10);
    let held: Vec<Event> = events.iter().filter(|_| dice.chance(share, 10)).cloned().collect();
    let (access, identity) = (rules_there(dice), key_of(FIRST_RELAY + number));
    setup.place(dice, &url, &held, (number > 0).then(pool), |config| {
        config.auth_attempts_max = usize::MAX;
        config.identity = Some(identity);
        config.judged = number.is_multiple_of(2);
        config.access = access.into();
    });
    // The first relay has no fault.
    if number == 0 {
        setup.world.relay_mut(&setup.relays[0]).info = Info::True;
    }
}

fn add_engine(setup: &mut Setup, dice: &mut Dice, options: &super::Options) {
    let mut config = engine_config(dice);
    config.planted = options.planted;
    config.access = rules_here(dice, setup.relays.len()).into();
    let one_shot = config.one_shot;
    let engine = setup.world.add_engine(config);
    let held = some_events(dice, setup.events.max(10));
    let held = if dice.chance(1, 2) { held } else { Vec::new() };
    setup.equip(dice, engine, &held, if one_shot { "one shot with peers" } else { "daemon with peers" });
    let first = dice.below(setup.relays.len() as u64) as usize;
    for (number, relay) in setup.relays.clone().into_iter().enumerate() {
        match dice.below(6) {
            0 if number != first => {}
            1 if number != first => wish(&mut setup.world, dice, engine, &relay),
            _ => join(&mut setup.world, dice, engine, &relay),
        }
    }
}

/// Draws on which terms a relay is a peer of an engine, and tells it.
pub(super) fn join(world: &mut World, dice: &mut Dice, engine: EngineId, relay: &RelayUrl) {
    let live = !world.node(engine).config.one_shot;
    let terms = Terms {
        id: relay.as_str().into(),
        principal: world.relay(relay).honest().config().identity.unwrap_or_else(|| key_of(STRANGER)),
        identity: dice.pick(&[IdentityField::OwnKey, IdentityField::AdministratorKey]),
        authenticates: !dice.chance(1, 6),
        tls: Arc::default(),
        overlap_secs: dice.pick(&[0, 300, 300, 3_000]),
    };
    let options = relay_options(world, dice, relay, live);
    let filters = filters(dice).into_iter().map(Arc::new).collect();
    world.set_peer(engine, relay, Some(Peering { terms, filters, options }));
}

/// An engine expects somebody else in a peer.
pub(super) fn mistake(world: &mut World, engine: EngineId, relay: &RelayUrl) {
    let Some(mut peering) = world.peering(engine, relay) else { return };
    peering.terms.principal = key_of(STRANGER);
    world.set_peer(engine, relay, Some(peering));
}

/// The URL of a relay is handed over to another relay's key, which holds more, and an engine knows.
pub(super) fn hand_over(world: &mut World, engine: EngineId, relay: &RelayUrl, number: u8, events: &[Event]) {
    let Some(mut peering) = world.peering(engine, relay) else { return };
    let principal = key_of(FIRST_RELAY + number);
    world.relay_mut(relay).info = Info::Text(format!("{{\"self\":\"{principal}\"}}"));
    world.cut(relay, "");
    world.publish(relay, events);
    peering.terms.principal = principal;
    world.set_peer(engine, relay, Some(peering));
}

/// Rules by which a relay grants all that it protects to the keys that engines have; `None` if it protects nothing.
pub(super) fn opened(rules: &AccessRules) -> Option<AccessRules> {
    let protected = rules.protected();
    let to = |key: u8| {
        let grant = move |(capability, events): (Capability, &Filter)| Rule {
            principal: key_of(key),
            capability,
            events: events.clone(),
        };
        let both = |events| [(Capability::SyncRead, events), (Capability::SyncWrite, events)];
        protected.iter().flat_map(both).map(grant).collect::<Vec<Rule>>()
    };
    let granted = to(SIGNER).into_iter().chain(to(SIGNER + 1));
    (!rules.is_open()).then(|| AccessRules::new(protected.iter().cloned(), granted))
}

/// An engine has its other key from now on.
pub(super) fn renew(world: &mut World, engine: EngineId) {
    let other = if world.node(engine).signs_as == Some(SIGNER) { SIGNER + 1 } else { SIGNER };
    world.renew(engine, other);
}

/// What a relay says that is not itself.
pub(super) fn mask(dice: &mut Dice) -> Info {
    let stranger = key_of(STRANGER).to_hex();
    dice.pick(&[
        Info::Missing,
        Info::Silent,
        Info::Text("{}".to_owned()),
        Info::Text(format!("{{\"self\":\"{stranger}\"}}")),
        Info::Text(format!("{{\"pubkey\":\"{stranger}\"}}")),
    ])
}

/// Rules of an engine, about its relays.
pub(super) fn rules_here(dice: &mut Dice, relays: usize) -> AccessRules {
    rules(dice, &(0..relays as u8).map(|number| key_of(FIRST_RELAY + number)).collect::<Vec<_>>())
}

/// Rules of a relay, about the keys that engines have.
pub(super) fn rules_there(dice: &mut Dice) -> AccessRules {
    rules(dice, &[key_of(SIGNER), key_of(SIGNER + 1)])
}

fn rules(dice: &mut Dice, keys: &[PublicKey]) -> AccessRules {
    let kinds = |kinds: &[u16]| Filter::new().kinds(kinds.iter().map(|kind| (*kind).into()));
    let by = |author: u64| Filter::new().authors([authors()[author as usize]]);
    let author = dice.below(6);
    let all = [kinds(&[5000]), r_filter("x"), r_filter("y"), kinds(&[1, 7]), kinds(&[0, 30_617]), by(author)];
    let protected: Vec<Filter> = match dice.pick(&[0, 1, 1, 2, 3]) {
        // Two of one kind, which are told from each other by a tag that an event can have twice.
        3 => vec![r_filter("x"), r_filter("y")],
        count => (0..count).map(|_| dice.pick(&all)).collect(),
    };
    let mut rules = Vec::new();
    for principal in keys {
        for capability in [Capability::SyncRead, Capability::SyncWrite] {
            let part = dice.below(5);
            for whole in &protected {
                let events = match part {
                    0 => continue,
                    1 => whole.clone().authors(authors()[..3].iter().copied()),
                    _ => whole.clone(),
                };
                rules.push(Rule { principal: *principal, capability, events });
            }
        }
    }
    AccessRules::new(protected, rules)
}
