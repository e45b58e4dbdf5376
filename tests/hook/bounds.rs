//! Every bound, and that what does not fit is not lost without a word.

use std::time::Duration;

use crate::events::draft;
use crate::world::*;

#[tokio::test]
async fn a_repository_with_too_many_ids_is_handed_on_alone() {
    let (target, mut told) = taker();
    let world = World::new(target, |config| {
        config.batch = Duration::from_millis(200);
        config.ids_per_repository_max = 3;
        config.ids_max = 5;
    })
    .await;
    world.commit(&[patch(1, "x"), patch(2, "x"), patch(3, "x"), patch(4, "x")]).await;
    world.commit(&[patch(5, "y"), patch(6, "y"), patch(7, "y"), patch(8, "z")]).await;
    let told = [next(&mut told).await, next(&mut told).await, next(&mut told).await];
    let told = told.each_ref().map(|told| (told.repository.as_str(), &told.ids[..], told.complete));
    assert_eq!(told, [("1/x", &[1, 2, 3][..], false), ("1/y", &[5, 6], false), ("1/z", &[], false)]);
    world.settled().await;
    let counters = world.counters();
    assert_eq!((counters.ids_unlisted, counters.ids_waiting), (3, 0), "{counters:?}");
}

#[tokio::test]
async fn that_a_repository_is_incomplete_outlives_a_restart() {
    let (hanging, mut told) = callback(|_| std::future::pending());
    let world = World::new(hanging, |config| {
        config.ids_per_repository_max = 1;
        config.shutdown_max = Duration::ZERO;
    })
    .await;
    world.commit(&[patch(1, "x"), patch(2, "x")]).await;
    assert!(!next(&mut told).await.complete);
    let (target, mut told) = taker();
    let world = world.restart(target).await;
    let again = next(&mut told).await;
    assert_eq!((again.ids, again.complete), (vec![1], false));
    world.settled().await;
}

#[tokio::test]
async fn repositories_and_addresses_are_bounded() {
    let (target, mut told) = taker();
    let world = World::new(target, |config| {
        config.batch = Duration::from_millis(200);
        config.repositories_max = 2;
        config.repositories_per_event_max = 2;
        config.address_bytes_max = 10;
    })
    .await;
    let long = "x".repeat(11);
    world.commit(&[patch(1, &long), patch(2, "a")]).await;
    let many = ["a", "b", "c", "a"]
        .iter()
        .fold(draft(3, 100).kind(1621), |issue, identifier| issue.tag("a", &address(1, identifier).to_string()));
    world.commit(&[many, patch(4, "d")]).await;
    world.settled().await;
    assert_eq!(all(&mut told), [("1/a".into(), [2, 3].into()), ("1/b".into(), [3].into())].into());
    let counters = world.counters();
    assert_eq!((counters.addresses_skipped, counters.repositories_refused), (2, 1), "{counters:?}");
    world.commit(&[patch(5, "d")]).await;
    world.settled().await;
    assert_eq!(all(&mut told), [("1/d".into(), [5].into())].into(), "there is room again");
}
