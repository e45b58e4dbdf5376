//! What happens to a world while the faults last: events are published, engines crash and sleep, clocks are set wrong,
//! relays go away and come back, wishes change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::dice::Dice;
use super::discovering::discover_config;
use super::peers;
use super::setup::wish;
use crate::discover::DiscoverConfig;
use crate::engine::{Command, Rng};
use crate::peer::AccessRules;
use crate::protocol::{Event, RelayUrl};
use crate::sim::tamper::Info;
use crate::sim::{Connects, EngineId, NOW_SECS, World, pool};

/// One thing that is done to a world.
#[derive(Debug, Clone)]
enum Deed {
    Publish(RelayUrl, Vec<Event>),
    Crash(EngineId, Duration),
    /// Crashes after so many more inputs, in the middle of what it then does.
    CrashIn(EngineId, u64),
    Sleep(EngineId, Duration, bool),
    SetClock(EngineId, i64),
    Cut(RelayUrl),
    GoAway(RelayUrl, Connects),
    ComeBack(RelayUrl),
    FillDisk(EngineId),
    FreeDisk(EngineId),
    Wish(EngineId, RelayUrl, u64),
    /// Discovery goes on by another configuration.
    Reload(EngineId, Box<DiscoverConfig>),
    /// Clients of an engine's own relay service publish these.
    PublishTo(EngineId, Vec<Event>),
    /// Other access rules hold at an engine.
    Rule(EngineId, Arc<AccessRules>),
    /// Other access rules hold at a relay.
    RuleThere(RelayUrl, Arc<AccessRules>),
    /// An engine has another key.
    Renew(EngineId),
    /// A relay is a peer on terms that this seed makes.
    Peer(EngineId, RelayUrl, u64),
    /// A relay's URL is handed over to another key.
    HandOver(EngineId, RelayUrl, u8, Vec<Event>),
    /// A relay is expected to be somebody else.
    Mistake(EngineId, RelayUrl),
    Unpeer(EngineId, RelayUrl),
    SyncNow(EngineId, RelayUrl),
    /// A relay says that it is somebody else.
    Mask(RelayUrl, Info),
    Unmask(RelayUrl),
}

/// All of it, by when it is done after the beginning.
#[derive(Debug, Default)]
pub(super) struct Chaos {
    deeds: BTreeMap<(Duration, usize), Deed>,
    /// How long the faults last.
    pub lasts: Duration,
}

impl Chaos {
    pub(super) fn draw(dice: &mut Dice, engines: &[EngineId], relays: &[RelayUrl], faults: &mut Vec<String>) -> Self {
        let lasts = dice.pick(&[30, 120, 600, 1_800, 7_200]);
        let mut chaos = Self { deeds: BTreeMap::new(), lasts: Duration::from_secs(lasts) };
        for _ in 0..dice.pick(&[0, 3, 10, 40]) {
            let events = later_events(dice, lasts);
            for (at_secs, event) in events {
                let relay = dice.pick(relays);
                chaos.add(at_secs, Deed::Publish(relay, vec![event]));
            }
        }
        chaos.add_trouble(dice, &["wish"], engines, relays, faults);
        chaos
    }

    /// The same with peers.
    pub(super) fn draw_peers(
        dice: &mut Dice,
        engines: &[EngineId],
        relays: &[RelayUrl],
        faults: &mut Vec<String>,
    ) -> Self {
        let lasts = dice.pick(&[30, 120, 600, 1_800, 7_200]);
        let mut chaos = Self { deeds: BTreeMap::new(), lasts: Duration::from_secs(lasts) };
        for _ in 0..dice.pick(&[0, 3, 10, 40]) {
            for (at_secs, event) in later_events(dice, lasts) {
                let relay = dice.pick(relays);
                chaos.add(at_secs, Deed::Publish(relay, vec![event]));
            }
        }
        let kinds = ["rules", "rules there", "key", "terms", "mistake", "end of peering", "sync now", "mask"];
        chaos.add_trouble(dice, &kinds, engines, relays, faults);
        chaos
    }

    /// The same around a daemon that discovers: `later` is what is published meanwhile, by others and by its own clients.
    pub(super) fn draw_discovering(
        dice: &mut Dice,
        engine: EngineId,
        relays: &[RelayUrl],
        later: &[Event],
        faults: &mut Vec<String>,
    ) -> Self {
        let lasts = dice.pick(&[30, 120, 600, 1_800, 7_200, 14_400]);
        let mut chaos = Self { deeds: BTreeMap::new(), lasts: Duration::from_secs(lasts) };
        for event in later {
            let at_secs = moment(dice, event, lasts);
            let deed = match dice.chance(1, 4) {
                true => Deed::PublishTo(engine, vec![event.clone()]),
                false => Deed::Publish(dice.pick(relays), vec![event.clone()]),
            };
            chaos.add(at_secs, deed);
        }
        for _ in 0..dice.pick(&[0, 1, 3]) {
            let from = dice.below(later.len() as u64) as usize;
            let some: Vec<Event> = later.iter().skip(from).take(5).cloned().collect();
            chaos.add(dice.below(lasts), Deed::PublishTo(engine, some));
        }
        chaos.add_trouble(dice, &["reload"], &[engine], relays, faults);
        chaos
    }

    fn add_trouble(
        &mut self,
        dice: &mut Dice,
        more: &[&'static str],
        engines: &[EngineId],
        relays: &[RelayUrl],
        faults: &mut Vec<String>,
    ) {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let kinds = ["crash", "crash in the middle", "sleep", "clock", "cut", "absence", "full disk"];
        for kind in kinds.into_iter().chain(more.iter().copied()) {
            if !dice.chance(1, 3) {
                continue;
            }
            let times = dice.pick(&[1, 2, 5]);
            counts.insert(kind, times);
            (0..times).for_each(|_| self.add_kind(dice, kind, engines, relays));
        }
        let counts: Vec<String> = counts.iter().map(|(kind, times)| format!("{times} × {kind}")).collect();
        faults.push(format!(
            "{} within {:?}",
            if counts.is_empty() { "nothing".into() } else { counts.join(", ") },
            self.lasts
        ));
    }

    fn add(&mut self, at_secs: u64, deed: Deed) {
        let number = self.deeds.len();
        self.deeds.insert((Duration::from_secs(at_secs), number), deed);
    }

    fn add_kind(&mut self, dice: &mut Dice, kind: &str, engines: &[EngineId], relays: &[RelayUrl]) {
        let at = dice.below(self.lasts.as_secs());
        let (engine, relay) = (dice.pick(engines), dice.pick(relays));
        let deed = match kind {
            "crash" => Deed::Crash(engine, dice.secs(0, 1_200)),
            "crash in the middle" => Deed::CrashIn(engine, dice.below(400)),
            "sleep" => Deed::Sleep(engine, dice.secs(1, 5_000), dice.chance(1, 2)),
            "clock" => {
                let off = dice.pick(&[1_i64, 30, 400, 3_000, 90_000]) * dice.pick(&[1, -1]);
                Deed::SetClock(engine, off)
            }
            "cut" => Deed::Cut(relay),
            "absence" => {
                let back = at + dice.pick(&[2, 60, 800, 1_100, 4_000]);
                self.add(back, Deed::ComeBack(relay.clone()));
                let connects = dice.pick(&[
                    Connects::Hangs,
                    Connects::Refused(crate::runtime::ConnectError::Refused("nobody listens".into())),
                ]);
                Deed::GoAway(relay, connects)
            }
            "full disk" => {
                let freed = at + dice.between(1, 300);
                self.add(freed, Deed::FreeDisk(engine));
                Deed::FillDisk(engine)
            }
            "reload" => Deed::Reload(engine, Box::new(discover_config(dice))),
            "rules" => Deed::Rule(engine, peers::rules_here(dice, relays.len()).into()),
            "rules there" => Deed::RuleThere(relay, peers::rules_there(dice).into()),
            "key" => Deed::Renew(engine),
            "terms" => Deed::Peer(engine, relay, dice.seed()),
            "mistake" => {
                let (mended, terms) = (at + dice.between(1, 900), dice.seed());
                self.add(mended, Deed::Unmask(relay.clone()));
                self.add(mended, Deed::Peer(engine, relay.clone(), terms));
                if dice.chance(1, 2) {
                    let more = (0..dice.between(1, 4)).map(|_| dice.pick(pool())).collect();
                    Deed::HandOver(engine, relay, dice.below(6) as u8, more)
                } else {
                    Deed::Mistake(engine, relay)
                }
            }
            "end of peering" => {
                let (back, terms) = (at + dice.between(0, 900), dice.seed());
                if dice.chance(2, 3) {
                    self.add(back, Deed::Peer(engine, relay.clone(), terms));
                }
                Deed::Unpeer(engine, relay)
            }
            "sync now" => Deed::SyncNow(engine, relay),
            "mask" => {
                let back = at + dice.between(1, 900);
                self.add(back, Deed::Unmask(relay.clone()));
                Deed::Mask(relay, peers::mask(dice))
            }
            _ => Deed::Wish(engine, relay, dice.seed()),
        };
        self.add(at, deed);
    }

    /// Lets it all happen, and ends when the faults do.
    pub(super) fn play(&mut self, world: &mut World) {
        let began = world.now().instant;
        let end = began + self.lasts;
        for ((at, _), deed) in std::mem::take(&mut self.deeds) {
            let at = (began + at).min(end);
            world.run(at - world.now().instant);
            deed.perform(world);
        }
        world.run(end - world.now().instant);
    }
}

impl Deed {
    fn perform(self, world: &mut World) {
        match self {
            Self::Publish(relay, events) => world.publish(&relay, &events),
            Self::Crash(engine, down) => world.crash_for(engine, down),
            Self::CrashIn(engine, inputs) => world.node_mut(engine).crash_in = Some(inputs),
            Self::Sleep(engine, duration, clock_stands) => world.suspend(engine, duration, clock_stands),
            Self::SetClock(engine, offset_secs) => world.set_wall_offset(engine, offset_secs),
            Self::Cut(relay) => {
                world.inject("all connections of a relay cut");
                world.cut(&relay, "");
            }
            Self::GoAway(relay, connects) => {
                world.inject("relay away");
                world.relay_mut(&relay).connects = connects;
                world.cut(&relay, "going away");
            }
            Self::ComeBack(relay) => world.relay_mut(&relay).connects = Connects::Always,
            Self::FillDisk(engine) => world.node_mut(engine).disk.full = true,
            Self::FreeDisk(engine) => world.node_mut(engine).disk.full = false,
            Self::Wish(engine, relay, seed) => {
                world.inject("wish changed");
                wish(world, &mut Dice(crate::engine::Rng::new(seed)), engine, &relay);
            }
            Self::Reload(engine, config) => {
                world.inject("acceptance reloaded");
                world.command(engine, Command::Discover(config));
            }
            Self::PublishTo(engine, events) => world.publish_to(engine, &events),
            peers => peers.perform_with_peers(world),
        }
    }
}

impl Deed {
    fn perform_with_peers(self, world: &mut World) {
        match self {
            Self::Rule(engine, rules) => {
                world.inject("access rules changed");
                world.set_access(engine, rules);
            }
            Self::RuleThere(relay, rules) => {
                world.inject("access rules of a relay changed");
                world.set_relay_access(&relay, rules);
            }
            Self::Renew(engine) => {
                world.inject("key renewed");
                peers::renew(world, engine);
            }
            Self::Peer(engine, relay, seed) => {
                world.inject("terms changed");
                peers::join(world, &mut Dice(Rng::new(seed)), engine, &relay);
            }
            Self::HandOver(engine, relay, number, events) => {
                world.inject("handed over to another principal");
                peers::hand_over(world, engine, &relay, number, &events);
            }
            Self::Mistake(engine, relay) => {
                world.inject("another principal expected");
                peers::mistake(world, engine, &relay);
            }
            Self::Unpeer(engine, relay) => {
                world.inject("peer removed");
                world.set_peer(engine, &relay, None);
            }
            Self::SyncNow(engine, relay) => world.command(engine, Command::SyncNow { relay }),
            Self::Mask(relay, info) => {
                world.inject("another identity shown");
                world.relay_mut(&relay).info = info;
                world.cut(&relay, "");
            }
            Self::Unmask(relay) => world.relay_mut(&relay).info = Info::True,
            _ => unreachable!("it has nothing to do with peers"),
        }
    }
}

/// Events that relays get in the first `lasts` seconds, each when it is dated, or later.
fn later_events(dice: &mut Dice, lasts: u64) -> Vec<(u64, Event)> {
    let pool = pool();
    let mut events = Vec::new();
    for _ in 0..dice.between(1, 6) {
        let event = dice.pick(pool);
        events.push((moment(dice, &event, lasts), event));
    }
    events
}

/// When an event is published, in seconds after the beginning.
fn moment(dice: &mut Dice, event: &Event, lasts: u64) -> u64 {
    let dated = event.created_at_secs().saturating_sub(NOW_SECS);
    let at = if dated <= lasts && dice.chance(3, 4) { dated } else { dice.below(lasts + 1) };
    at.min(lasts)
}
