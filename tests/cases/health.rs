//! The states of a relay's health and what leads from one to another, in virtual time.

use std::time::Duration;

use relaysync::engine::RelayReport;
use relaysync::protocol::{Filter, RelayUrl};
use relaysync::relay::HealthState;
use relaysync::runtime::ConnectError;
use relaysync::sim::{Connects, EngineId, NetFaults, RateLimit, RateLimitBy, Remote, Seen, Turn, World};

use crate::support::{LIVE, daemon, history};

const HOUR: Duration = Duration::from_secs(3_600);

struct Watched {
    world: World,
    engine: EngineId,
    relay: RelayUrl,
}

impl Watched {
    fn new(remote: Remote) -> Self {
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", remote);
        let engine = world.add_engine(daemon());
        world.sync_with(engine, &relay, [Filter::new()], LIVE);
        Self { world, engine, relay }
    }

    /// Connected for so long that it counts as healthy.
    fn healthy() -> Self {
        let mut watched = Self::new(Remote::with(&history(20)));
        watched.run(Duration::from_secs(310));
        watched.is(HealthState::Healthy);
        watched
    }

    fn run(&mut self, duration: Duration) {
        self.world.run(duration);
    }

    fn report(&self) -> RelayReport {
        self.world.node(self.engine).reports().remove(0)
    }

    fn attempts(&self) -> usize {
        self.world.relay(&self.relay).attempts.len()
    }

    fn set(&mut self, connects: Connects) {
        self.world.relay_mut(&self.relay).connects = connects;
    }

    fn cut(&mut self) {
        self.world.cut(&self.relay, "");
        self.run(Duration::from_millis(100));
    }

    #[track_caller]
    fn is(&self, health: HealthState) {
        assert_eq!(self.report().health, health, "{}", self.world.trace());
    }

    /// Runs until the health is this. How long did it take?
    #[track_caller]
    fn becomes(&mut self, health: HealthState, within: Duration) -> Duration {
        let began = self.world.now().instant;
        let engine = self.engine;
        // A state may be entered by the clock alone, without anything that happens.
        while self.world.node(engine).reports()[0].health != health {
            assert!(self.world.now().instant - began <= within, "{health:?} never came: {:#?}", self.report());
            self.world.run(Duration::from_secs(1));
        }
        self.world.now().instant - began
    }
}

fn refused() -> Connects {
    Connects::Refused(ConnectError::Refused("nobody listens".into()))
}

#[test]
fn a_new_relay_is_disconnected_and_healthy_once_it_has_been_stable_for_five_minutes() {
    let mut watched = Watched::new(Remote::with(&history(20)));
    watched.is(HealthState::Disconnected);
    watched.run(Duration::from_secs(290));
    watched.is(HealthState::Disconnected);
    assert!(watched.report().connected);
    watched.run(Duration::from_secs(20));
    watched.is(HealthState::Healthy);
}

#[test]
fn a_healthy_relay_that_goes_is_disconnected_and_one_that_returns_is_healthy_again() {
    let mut watched = Watched::healthy();
    watched.cut();
    watched.is(HealthState::Disconnected);
    let took = watched.becomes(HealthState::Healthy, Duration::from_secs(320));
    assert!(took > Duration::from_secs(295), "stable after {took:?}");
    assert_eq!(watched.report().counters.connections, 2);
}

#[test]
fn a_disconnected_relay_that_cannot_be_reached_is_degraded() {
    let mut watched = Watched::healthy();
    watched.set(refused());
    watched.cut();
    watched.is(HealthState::Disconnected);
    watched.becomes(HealthState::Degraded, Duration::from_secs(10));
    assert!(!watched.report().connected);
}

#[test]
fn a_new_relay_that_cannot_be_reached_is_degraded() {
    let mut watched = Watched::new(Remote::with(&[]).connecting(refused()));
    watched.run(Duration::from_secs(1));
    watched.is(HealthState::Degraded);
}

#[test]
fn a_relay_that_recovers_is_disconnected_and_healthy_five_minutes_later() {
    let mut watched = Watched::healthy();
    watched.set(refused());
    watched.cut();
    watched.becomes(HealthState::Degraded, Duration::from_secs(10));
    watched.set(Connects::Always);
    watched.becomes(HealthState::Disconnected, Duration::from_secs(60));
    assert!(watched.report().connected, "it has recovered, and is not stable yet");
    let took = watched.becomes(HealthState::Healthy, Duration::from_secs(320));
    assert!(took > Duration::from_secs(290), "stable after {took:?}");
}

#[test]
fn a_relay_that_fails_within_five_minutes_of_its_recovery_begins_again() {
    let mut watched = Watched::new(Remote::with(&history(20)).connecting(refused()));
    watched.run(Duration::from_secs(1));
    watched.set(Connects::Always);
    watched.becomes(HealthState::Disconnected, Duration::from_secs(20));
    watched.run(Duration::from_secs(200));
    watched.cut();
    watched.run(Duration::from_secs(200));
    watched.is(HealthState::Disconnected);
    watched.becomes(HealthState::Healthy, Duration::from_secs(120));
}

#[test]
fn a_day_of_failures_makes_a_relay_dead_and_it_is_tried_once_a_day() {
    let mut watched = Watched::healthy();
    watched.set(refused());
    watched.cut();
    watched.becomes(HealthState::Degraded, Duration::from_secs(10));
    let took = watched.becomes(HealthState::Dead, 25 * HOUR);
    assert!(took >= 23 * HOUR + HOUR / 2, "dead after {took:?}");
    watched.run(2 * HOUR);
    let before = watched.attempts();
    for day in 1..=5 {
        watched.run(24 * HOUR);
        assert_eq!(watched.attempts(), before + day, "one attempt a day");
        watched.is(HealthState::Dead);
    }
}

#[test]
fn a_dead_relay_that_answers_again_recovers() {
    let mut watched = Watched::new(Remote::with(&history(20)).connecting(refused()));
    watched.becomes(HealthState::Dead, 26 * HOUR);
    watched.set(Connects::Always);
    watched.becomes(HealthState::Disconnected, 26 * HOUR);
    watched.becomes(HealthState::Healthy, Duration::from_secs(320));
    assert_eq!(watched.world.held(watched.engine).len(), 20);
}

/// By each way in which a relay says that it has had enough, before anything useful has come of it.
#[test]
fn a_rate_limit_lasts_65_seconds_and_the_state_before_it_returns() {
    for (by, before) in [
        (RateLimitBy::Notice, HealthState::Disconnected),
        (RateLimitBy::Closed, HealthState::Disconnected),
        (RateLimitBy::Close, HealthState::Degraded),
    ] {
        let mut watched = Watched::new(Remote::with(&history(20)).tamper(RateLimit::new(0, by)));
        watched.becomes(HealthState::RateLimited, Duration::from_secs(2));
        let asked = |watched: &Watched| watched.world.relay(&watched.relay).heard_of("REQ").len();
        let asked_before = asked(&watched);
        watched.run(Duration::from_secs(62));
        watched.is(HealthState::RateLimited);
        assert_eq!(asked(&watched), asked_before, "{by:?}: it is left alone");
        // Hanging, it neither answers nor fails.
        watched.set(Connects::Hangs);
        watched.world.relay_mut(&watched.relay).network = NetFaults { half_opens: 10_000, ..NetFaults::default() };
        watched.becomes(before, Duration::from_secs(4));
    }
}

#[test]
fn a_healthy_relay_that_limits_the_rate_is_healthy_again_afterwards() {
    let plain = Seen(|_, frame: String, _: &mut Turn| Some(frame));
    let mut watched = Watched::new(Remote::with(&history(20)).tamper(plain));
    watched.becomes(HealthState::Healthy, Duration::from_secs(310));
    let notice = r#"["NOTICE","rate-limited: slow down"]"#;
    watched.world.say(&watched.relay, notice);
    watched.run(Duration::from_millis(100));
    watched.is(HealthState::RateLimited);
    watched.run(Duration::from_secs(64));
    watched.is(HealthState::RateLimited);
    watched.run(Duration::from_secs(2));
    watched.is(HealthState::Healthy);
    assert_eq!(watched.report().counters.connections, 1);
}
