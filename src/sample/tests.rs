//! The sample is what its documentation says.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const BURST: Burst = Burst { second: 1_710_000_000, events: 70 };

fn config() -> SampleConfig {
    SampleConfig { events: 2_000, burst: Some(BURST), future_events: 200, ..SampleConfig::default() }
}

fn sample(config: &SampleConfig) -> Vec<Event> {
    Sample::new(config).collect()
}

#[test]
fn same_seed_gives_same_bytes_and_another_seed_other_events() {
    let bytes = |config: &SampleConfig| sample(config).iter().map(|event| event.json().clone()).collect::<Vec<_>>();
    let short = SampleConfig { events: 200, ..SampleConfig::default() };
    assert_eq!(bytes(&short), bytes(&short));
    let other = SampleConfig { seed: 2, ..short.clone() };
    assert!(bytes(&short).iter().all(|json| !bytes(&other).contains(json)));
}

/// A change of the generator must be meant: it changes what every seed in every test stands for.
#[test]
fn the_first_event_is_pinned() {
    let first = Sample::new(&SampleConfig::default()).next().expect("it has events");
    assert_eq!(first.id.to_hex(), "8fced9a203fefa03cd8e89d2f44c403b493d5f4dddc7989c238997bd2ccf372b");
}

#[test]
fn all_events_verify_and_are_distinct() {
    let events = sample(&config());
    assert_eq!(events.len(), 2_000);
    for event in &events {
        event.verify().unwrap_or_else(|error| panic!("{error}: {}", event.json_str()));
        assert_eq!(&Event::parse(event.json().clone()).expect("it parses"), event);
    }
    assert_eq!(events.iter().map(|event| event.id).collect::<BTreeSet<_>>().len(), events.len());
}

#[test]
fn burst_and_future_have_the_size_asked_for() {
    let config = config();
    let events = sample(&config);
    let count = |wanted: &dyn Fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(&|event| event.created_at_secs() == BURST.second), BURST.events);
    assert_eq!(count(&|event| event.created_at_secs() > config.to_secs), config.future_events);
    assert!(events.iter().all(|event| event.created_at_secs() >= config.from_secs));
    assert!(events.iter().all(|event| event.created_at_secs() <= config.to_secs + config.future_secs));
}

#[test]
fn mixed_kinds_have_versions_ties_and_deletions() {
    let events = sample(&config());
    let mut kinds: BTreeMap<u16, usize> = BTreeMap::new();
    let mut versions: BTreeMap<(u16, PublicKey, Option<String>), Vec<u64>> = BTreeMap::new();
    for event in &events {
        *kinds.entry(event.kind_number()).or_default() += 1;
        if event.kind.is_replaceable() || event.kind.is_addressable() {
            let address = (event.kind_number(), event.pubkey, event.tags.identifier());
            versions.entry(address).or_default().push(event.created_at_secs());
        }
    }
    for kind in [0, 1, 3, 5, 6, 7, 1111, 1617, 1618, 1621, 10002, 30023, 30617, 30618] {
        assert!(kinds.get(&kind).is_some_and(|count| *count >= 3), "too few of kind {kind}: {kinds:?}");
    }
    let ties = versions.values().filter(|dates| dates.iter().collect::<BTreeSet<_>>().len() < dates.len()).count();
    assert!(ties >= 5, "{ties}");
    assert!(events.iter().filter(|event| event.expires_at_secs().is_some()).count() >= 5);
}

#[test]
fn deletions_are_by_the_author_of_what_they_delete() {
    let events = sample(&config());
    let by_id: BTreeMap<_, _> = events.iter().map(|event| (event.id, event)).collect();
    let (mut deletions, mut targets) = (0, 0);
    for deletion in events.iter().filter(|event| event.kind_number() == 5) {
        deletions += 1;
        for id in deletion.tags.event_ids() {
            let target = by_id[&id];
            assert_eq!(target.pubkey, deletion.pubkey);
            assert_ne!(target.created_at_secs(), BURST.second);
            targets += 1;
        }
        for address in deletion.tags.coordinates() {
            assert_eq!(address.public_key, deletion.pubkey);
            targets += 1;
        }
    }
    assert_eq!(targets, deletions, "each deletes something");
    assert!(targets >= 20, "{targets}");
}

#[test]
fn regular_sample_has_only_what_stores_keep() {
    let regular = SampleConfig { kinds: SampleKinds::Regular, ..config() };
    assert!(sample(&regular).iter().all(|event| event.kind.is_regular() && event.kind_number() != 5));
}

#[test]
fn events_are_of_the_usual_size() {
    let events = sample(&config());
    let mean = events.iter().map(|event| event.json().len()).sum::<usize>() / events.len();
    assert!((450..=650).contains(&mean), "{mean} bytes");
}

#[cfg(feature = "native")]
#[test]
fn threads_and_file_give_the_same_events() {
    let config = SampleConfig { events: 300, ..SampleConfig::default() };
    let expected = sample(&config);
    assert_eq!(generate(&config), expected);
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = cached_jsonl(&config, folder.path()).expect("it can be written");
    let text = std::fs::read_to_string(&path).expect("it was written");
    assert!(text.lines().eq(expected.iter().map(Event::json_str)));
    assert_eq!(cached_jsonl(&config, folder.path()).expect("it is there"), path);
}
