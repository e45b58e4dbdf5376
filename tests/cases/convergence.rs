//! Both sides agree in the end, and then are silent.

use std::time::Duration;

use relaysync::engine::{Direction, RelayOptions};
use relaysync::protocol::{Event, Filter};
use relaysync::sim::{Draft, NOW_SECS, Remote, World, note};

use crate::support::{Daemon, LIVE, ids, one_shot};

/// Two versions of one timestamp of each kind of replaceable event, the one with the lower id first.
fn rivals() -> Vec<[Event; 2]> {
    let drafts: [Draft; 3] = [
        note(NOW_SECS - 100).kind(0),
        note(NOW_SECS - 100).kind(10_002),
        note(NOW_SECS - 100).kind(30_023).tag("d", "article"),
    ];
    let versions = |draft: Draft| {
        let mut versions = ["one", "two"].map(|content| draft.clone().content(content).sign());
        versions.sort_by_key(|event| event.id);
        versions
    };
    drafts.into_iter().map(versions).collect()
}

/// Reported as nostr-protocol/nips#540: two replaceable events of one timestamp never converged.
#[test]
fn of_two_replaceable_events_of_one_timestamp_the_lowest_id_wins_on_both_sides_and_silence_follows() {
    let both = RelayOptions { direction: Direction::Both, ..RelayOptions::default() };
    for [low, high] in rivals() {
        for (here, there) in [(&low, &high), (&high, &low)] {
            let mut world = World::new();
            let relay = world.add_relay("wss://relay.example", Remote::with(std::slice::from_ref(there)));
            let engine = world.add_engine(one_shot());
            world.give(engine, std::slice::from_ref(here));
            world.sync_with(engine, &relay, [Filter::new()], both);
            assert!(world.finish(engine)[0].complete);
            let winner = ids([&low]);
            for held in [world.held(engine), world.held_by(&relay)] {
                assert_eq!(held.items().iter().map(|item| item.id).collect::<Vec<_>>(), Vec::from_iter(winner.clone()));
            }
            let sent = world.relay(&relay).heard_of("EVENT").len();
            assert_eq!(sent, usize::from(here == &low), "only the winner is offered");
            // Soon, when little is asked again, and later, when everything is.
            for pause_secs in [10, 2_000] {
                world.restart(engine);
                world.run(Duration::from_secs(pause_secs));
                world.sync_with(engine, &relay, [Filter::new()], both);
                let report = world.finish(engine).remove(0);
                assert!(report.complete, "{report:?}");
                assert_eq!((report.counters.received, report.counters.published), (0, 0), "after {pause_secs} s");
                assert_eq!(world.relay(&relay).heard_of("EVENT").len(), sent, "after {pause_secs} s");
            }
        }
    }
}

/// The same with a relay on each side of the store: whichever is asked first, and whichever version comes live.
#[test]
fn rivals_that_come_from_two_relays_end_the_same_in_any_order() {
    let both = RelayOptions { direction: Direction::Both, ..RelayOptions::default() };
    for [low, high] in rivals() {
        for order in [[&low, &high], [&high, &low]] {
            let mut world = World::new();
            let engine = world.add_engine(one_shot());
            let relays = ["wss://one.example", "wss://two.example"];
            let relays = [0, 1].map(|n| world.add_relay(relays[n], Remote::with(std::slice::from_ref(order[n]))));
            relays.iter().for_each(|relay| world.sync_with(engine, relay, [Filter::new()], both));
            assert!(world.finish(engine).iter().all(|report| report.complete));
            for held in [world.held(engine), world.held_by(&relays[0]), world.held_by(&relays[1])] {
                assert_eq!(held.items().iter().map(|item| item.id).collect::<Vec<_>>(), [low.id.to_bytes()]);
            }
        }
        for order in [[&low, &high], [&high, &low]] {
            let mut daemon = Daemon::new(Remote::with(&[]));
            let options = RelayOptions { direction: Direction::Both, ..LIVE };
            daemon.world.sync_with(daemon.engine, &daemon.relay.clone(), [Filter::new()], options);
            for event in order {
                daemon.secs(5);
                daemon.world.publish(&daemon.relay, std::slice::from_ref(event));
            }
            daemon.secs(3_600);
            daemon.is_equal();
            assert_eq!(daemon.world.held(daemon.engine).items()[0].id, low.id.to_bytes());
            assert_eq!(daemon.world.relay(&daemon.relay).heard_of("EVENT").len(), 0, "nothing to be offered");
        }
    }
}
