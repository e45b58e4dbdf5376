//! Where relays may be that somebody else has named.

use std::collections::BTreeMap;
use std::time::Duration;

use relaysync::discover::DiscoverConfig;
use relaysync::engine::{Command, Config, Effect, Engine, Input, Origin, RelayOptions};
use relaysync::plan::Interest;
use relaysync::protocol::RelayUrl;
use relaysync::runtime::{Instant, Now};
use relaysync::sim::NOW_SECS;
use relaysync::store::Snapshot;

use super::support::{OURS, announcement, config, url};

/// Is each relay that is connected to confined to public addresses?
fn confined(config: Config) -> BTreeMap<RelayUrl, bool> {
    let mut now = Now { instant: Instant::ZERO, unix_secs: NOW_SECS };
    let mut engine = Engine::new(config, Snapshot::default(), 7, now);
    let announced = announcement("ours", &[OURS, "wss://second.example"]);
    let commands = [
        Command::Accepted { events: vec![announced], origin: Origin::Held, brought: Default::default() },
        Command::SetInterests {
            relay: url("third"),
            interests: [Interest::Announcements].into(),
            options: RelayOptions::default(),
        },
    ];
    commands.into_iter().for_each(|command| engine.handle(Input::Command(command), now));
    let mut confined = BTreeMap::new();
    while now.instant < Instant::ZERO + Duration::from_secs(30) {
        engine.handle(Input::Tick, now);
        while let Some(effect) = engine.poll_effect() {
            if let Effect::Connect { dial, .. } = effect {
                confined.insert(dial.url, dial.public_only);
            }
        }
        now = Now { instant: now.instant + Duration::from_secs(1), unix_secs: now.unix_secs + 1 };
    }
    confined
}

#[test]
fn relays_that_others_have_named_are_at_public_addresses_unless_private_ones_are_allowed() {
    let confines = |second| [(url("first"), false), (url("second"), second), (url("third"), false)].into();
    assert_eq!(confined(config()), confines(true));
    let discovery = config().discovery.map(|config| DiscoverConfig { private_relays: true, ..config });
    assert_eq!(confined(Config { discovery, ..config() }), confines(false));
}
