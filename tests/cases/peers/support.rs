//! An engine and its peer.

use std::sync::Arc;
use std::time::Duration;

use relaysync::engine::{Config, Direction, RelayOptions, RelayReport};
use relaysync::peer::{AccessRules, Capability, IdentityField, Peering, Rule, Terms};
use relaysync::protocol::filter::parse_strict;
use relaysync::protocol::{Event, Filter, RelayUrl};
use relaysync::serve::ServeConfig;
use relaysync::sim::{EngineId, NOW_SECS, Remote, World, key_of, note, plain_relay};

use crate::support::{daemon, ids};

/// The author whose key the peer has.
pub(crate) const PEER: u8 = 20;
/// The author whose key the engine has.
pub(crate) const US: u8 = 7;

pub(crate) const URL: &str = "wss://peer.example";

/// What is protected.
pub(crate) fn secret() -> Filter {
    Filter::new().kind(5000.into())
}

/// Secrets of this name, one every ten seconds until a minute ago.
pub(crate) fn secrets(name: &str, count: u64) -> Vec<Event> {
    let at = |number: u64| note(NOW_SECS - 60 - 10 * number).kind(5000).tag("r", name);
    (0..count).map(|number| at(number).content(format!("{name} {number}")).sign()).collect()
}

/// What selects those.
pub(crate) fn named(name: &str) -> Filter {
    parse_strict(&format!("{{\"kinds\":[5000],\"#r\":[\"{name}\"]}}")).expect("a filter")
}

pub(crate) fn grant(author: u8, capability: Capability, events: Filter) -> Rule {
    Rule { principal: key_of(author), capability, events }
}

/// Secrets are protected, and these rules hold.
pub(crate) fn rules(rules: impl IntoIterator<Item = Rule>) -> AccessRules {
    AccessRules::new([secret()], rules)
}

/// Secrets are protected, and this author may read and write all of them.
pub(crate) fn open_to(author: u8) -> AccessRules {
    rules([grant(author, Capability::SyncRead, secret()), grant(author, Capability::SyncWrite, secret())])
}

pub(crate) fn terms() -> Terms {
    Terms {
        id: "peer".into(),
        principal: key_of(PEER),
        identity: IdentityField::OwnKey,
        authenticates: true,
        tls: Arc::default(),
        overlap_secs: 300,
    }
}

/// Stays in step both ways, with secrets alone.
pub(crate) fn peering() -> Peering {
    let options = RelayOptions { direction: Direction::Both, method: None, live: true, trusted: false };
    Peering { terms: terms(), filters: vec![Arc::new(secret())], options }
}

pub(crate) fn towards(direction: Direction) -> Peering {
    let whole = peering();
    Peering { options: RelayOptions { direction, ..whole.options }, ..whole }
}

pub(crate) fn wanting(filters: impl IntoIterator<Item = Filter>) -> Peering {
    Peering { filters: filters.into_iter().map(Arc::new).collect(), ..peering() }
}

/// The peer, whose rules let us read and write secrets.
pub(crate) fn peer(events: &[Event]) -> Remote {
    guarded(open_to(US), events)
}

pub(crate) fn guarded(access: AccessRules, events: &[Event]) -> Remote {
    let urls = vec![RelayUrl::parse(URL).expect("a relay URL")];
    let (identity, access, auth_attempts_max) = (Some(key_of(PEER)), access.into(), usize::MAX);
    let config = ServeConfig { identity, urls, access, auth_attempts_max, ..plain_relay() };
    Remote::configured(config, events).with_info()
}

/// A daemon and its peer.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) world: World,
    pub(crate) engine: EngineId,
    pub(crate) relay: RelayUrl,
}

impl Pair {
    /// Nothing is said to the engine yet, but that it lets the peer read and write secrets.
    pub(crate) fn new(remote: Remote) -> Self {
        Self::with(Config { access: open_to(PEER).into(), ..daemon() }, remote)
    }

    pub(crate) fn with(config: Config, remote: Remote) -> Self {
        let mut world = World::new();
        let relay = world.add_relay(URL, remote);
        let engine = world.add_engine(config);
        let node = world.node_mut(engine);
        node.signs_as = Some(US);
        // A challenge is there sooner than the answer to a request by HTTP.
        node.work_takes = Duration::from_millis(10);
        Self { world, engine, relay }
    }

    /// The same, after 20 seconds as peers.
    pub(crate) fn joined(remote: Remote, peering: Peering) -> Self {
        let mut pair = Self::new(remote);
        pair.join(peering);
        pair.secs(20);
        pair
    }

    pub(crate) fn join(&mut self, peering: Peering) {
        self.world.set_peer(self.engine, &self.relay.clone(), Some(peering));
    }

    pub(crate) fn secs(&mut self, secs: u64) {
        self.world.run(Duration::from_secs(secs));
    }

    pub(crate) fn millis(&mut self, millis: u64) {
        self.world.run(Duration::from_millis(millis));
    }

    pub(crate) fn report(&self) -> RelayReport {
        self.world.node(self.engine).reports().remove(0)
    }

    /// Others publish an event at the peer.
    pub(crate) fn publish_there(&mut self, event: &Event) {
        self.world.publish(&self.relay.clone(), std::slice::from_ref(event));
    }

    pub(crate) fn holds(&self, events: &[Event]) -> bool {
        let held: Vec<[u8; 32]> = self.world.held(self.engine).items().iter().map(|item| item.id).collect();
        ids(events).iter().all(|id| held.contains(id))
    }

    pub(crate) fn holds_any(&self, events: &[Event]) -> bool {
        events.iter().any(|event| self.holds(std::slice::from_ref(event)))
    }

    pub(crate) fn gave(&self, events: &[Event]) -> bool {
        let held: Vec<[u8; 32]> = self.world.held_by(&self.relay).items().iter().map(|item| item.id).collect();
        ids(events).iter().all(|id| held.contains(id))
    }

    pub(crate) fn gave_any(&self, events: &[Event]) -> bool {
        events.iter().any(|event| self.gave(std::slice::from_ref(event)))
    }

    /// Frames that the peer got of us, of whatever kind.
    pub(crate) fn heard(&self) -> usize {
        self.world.relay(&self.relay).heard.len()
    }

    pub(crate) fn heard_of(&self, kind: &str) -> usize {
        self.world.relay(&self.relay).heard_of(kind).len()
    }

    #[track_caller]
    pub(crate) fn is_complete(&self) {
        let report = self.report();
        assert!(report.complete, "{report:#?}\n{}", self.world.trace());
    }
}
