//! The world's claims are true, and there is something of everything.

use std::collections::BTreeSet;

use super::naive::crawl;
use super::*;

fn relays(count: usize) -> Vec<RelayUrl> {
    (0..count).map(|number| RelayUrl::parse(&format!("ws://127.0.0.1:{}", 7001 + number)).unwrap()).collect()
}

fn small(relays_count: usize, seed: u64) -> World {
    World::new(WorldConfig { seed, ..WorldConfig::small(relays(relays_count)) })
}

/// What is wrong about a set, in words.
#[track_caller]
fn assert_held(world: &World, held: &BTreeSet<[u8; 32]>) {
    let wanted = world.wanted();
    let of = |ids: BTreeSet<&[u8; 32]>| -> Vec<String> {
        let tell = |id: &&[u8; 32]| world.events().iter().find(|held| held.event.id.to_bytes() == **id);
        ids.iter().filter_map(tell).map(|held| format!("{:?} {}", held.claim, held.event.json_str())).collect()
    };
    let (lacking, surplus) = (of(wanted.difference(held).collect()), of(held.difference(&wanted).collect()));
    assert!(lacking.is_empty() && surplus.is_empty(), "lacking {lacking:#?}, too much {surplus:#?}");
}

#[test]
fn who_begins_at_the_first_relay_gets_exactly_what_is_wanted() {
    for (relays_count, seed) in [(1, 1), (2, 2), (3, 3), (3, 4), (5, 5), (8, 6)] {
        let world = small(relays_count, seed);
        let (held, known) = crawl(&world);
        assert_held(&world, &held);
        assert_eq!(known, relays(relays_count).into_iter().collect(), "all relays are found, and no others");
    }
}

#[test]
fn what_is_posted_later_is_wanted_too() {
    let mut world = small(3, 1);
    let now_secs = world.config().to_secs + 10;
    let (before, wanted_before) = (world.events().len(), world.wanted().len());
    for relay in 0..3 {
        let posted = world.post(relay, 40, now_secs);
        assert_eq!(posted.len(), 40);
        assert!(posted.iter().all(|posted| posted.relays == [relay].into()), "only there");
        assert!(posted.iter().all(|posted| posted.event.created_at_secs() == now_secs));
    }
    let founded = world.found(&[1, 2], now_secs).len();
    assert_eq!(world.events().len(), before + 120 + founded);
    assert_eq!(world.wanted().len(), wanted_before + 120 + founded, "each is an event of its own, and wanted");
    assert_held(&world, &crawl(&world).0);
}

#[test]
fn each_form_of_reference_alone_leads_to_something() {
    let world = small(3, 1);
    for form in Form::ALL {
        assert!(world.reached_only_by(form).len() >= 3, "{form}: {}", world.reached_only_by(form).len());
    }
}

#[test]
fn there_is_something_of_everything_that_must_not_be_held() {
    let world = small(3, 1);
    let reasons: BTreeSet<Reason> = world
        .events()
        .iter()
        .filter_map(|held| match held.claim {
            Claim::Unwanted(reason) => Some(reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons.len(), 7, "{reasons:?}");
    let passing = world.events().iter().filter(|held| held.claim == Claim::Passing).count();
    assert!(passing >= 4, "{passing}");
}

#[test]
fn a_forged_copy_is_never_where_the_honest_one_is() {
    let world = small(3, 1);
    let mut forged = 0;
    for copy in world.events().iter().filter(|held| held.event.verify().is_err()) {
        let Claim::Unwanted(Reason::ForgedContent | Reason::ForgedSignature) = copy.claim else {
            panic!("{copy:?} does not verify");
        };
        let mut originals =
            world.events().iter().filter(|held| held.event.id == copy.event.id && held.claim != copy.claim);
        let original = originals.next().expect("there is an original");
        assert!(original.relays.is_disjoint(&copy.relays) && original.event.verify().is_ok());
        assert!(matches!(world.claim(&copy.event.id.to_bytes()), Some(Claim::Wanted(_))));
        forged += 1;
    }
    assert!(forged >= 4, "{forged}");
}

#[test]
fn the_first_relay_does_not_know_the_last() {
    let world = small(4, 1);
    let last = world.relays()[3].as_str();
    let hidden: BTreeSet<Address> = world
        .repositories()
        .into_iter()
        .filter(|(_, relays)| relays.contains(&3))
        .map(|(address, _)| address)
        .collect();
    assert!(!hidden.is_empty());
    for event in world.held_by(0).filter(|event| event.kind_number() == 30617 && event.verify().is_ok()) {
        let address = Address::repository(event.pubkey.to_bytes(), &event.tags.identifier().unwrap());
        assert!(!hidden.contains(&address), "{last}: {}", event.json_str());
    }
}

#[test]
fn the_same_configuration_makes_the_same_world() {
    let bytes = |world: World| world.events().iter().map(|held| held.event.json().clone()).collect::<Vec<_>>();
    assert_eq!(bytes(small(3, 9)), bytes(small(3, 9)));
    assert_ne!(bytes(small(3, 9)), bytes(small(3, 10)));
}

#[test]
fn a_burst_is_wanted_and_of_one_second() {
    let burst = crate::sample::Burst { second: 1_710_000_000, events: 100 };
    let world = World::new(WorldConfig { burst: Some(burst), ..WorldConfig::small(relays(3)) });
    let dated = world.events().iter().filter(|held| held.event.created_at_secs() == burst.second);
    let wanted = dated.filter(|held| matches!(held.claim, Claim::Wanted(_) | Claim::Passing)).count();
    assert!((90..=110).contains(&wanted), "forged copies and all but regular kinds aside: {wanted}");
    assert_held(&world, &crawl(&world).0);
}

#[test]
fn a_large_world_has_its_size() {
    let world = World::new(WorldConfig::large(relays(8)));
    assert_eq!((world.events().len(), world.repositories().len()), (20_000, 200));
    for relay in 0..8 {
        let held = world.held_by(relay).count();
        assert!(held > 1_000, "relay {relay} holds {held}");
    }
}
