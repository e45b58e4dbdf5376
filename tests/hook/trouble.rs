//! Hooks that fail, hang and panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::world::*;

#[tokio::test]
async fn what_was_refused_is_delivered_again_with_what_came_meanwhile() {
    let tries = Arc::new(AtomicU32::new(0));
    let (target, mut told) = callback(move |_| {
        let is_early = tries.fetch_add(1, Ordering::SeqCst) < 3;
        async move { if is_early { Err("not now".to_owned()) } else { Ok(()) } }
    });
    let world = World::new(target, |_| {}).await;
    world.commit(&[patch(1, "x")]).await;
    assert_eq!(next(&mut told).await.ids, [1]);
    world.commit(&[patch(2, "x")]).await;
    world.settled().await;
    let counters = world.counters();
    assert_eq!((counters.failed, counters.delivered), (3, 1), "{counters:?}");
    let mut last = next(&mut told).await;
    while let Ok(later) = told.try_recv() {
        last = later;
    }
    assert_eq!(last.ids, [1, 2]);
}

#[tokio::test]
async fn a_panic_is_a_refusal() {
    let tries = AtomicU32::new(0);
    let (target, mut told) = callback(move |_| {
        let is_first = tries.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            assert!(!is_first, "on purpose");
            Ok(())
        }
    });
    let world = World::new(target, |_| {}).await;
    world.commit(&[patch(1, "x")]).await;
    assert_eq!([next(&mut told).await.ids, next(&mut told).await.ids], [[1], [1]]);
    world.settled().await;
}

/// The hook of one repository never answers; commits take as long as without, and other repositories get theirs.
#[tokio::test]
async fn a_hook_that_hangs_delays_nobody_else() {
    let (target, mut told) = callback(|told| {
        let hangs = told.repository == "1/hangs";
        async move { if hangs { std::future::pending().await } else { Ok(()) } }
    });
    let world = World::new(target, |config| config.timeout = Duration::from_millis(300)).await;
    world.commit(&[patch(1, "hangs")]).await;
    assert_eq!(next(&mut told).await.repository, "1/hangs");
    let mut longest = Duration::ZERO;
    for id in 2..60 {
        let begun = tokio::time::Instant::now();
        world.commit(&[patch(id, "hangs"), patch(1_000 + id, &format!("r{id}"))]).await;
        longest = longest.max(begun.elapsed());
    }
    println!("the longest commit beside a hook that hangs: {longest:?}");
    assert!(longest < Duration::from_secs(2), "a commit took {longest:?}");
    world.until("the others are told", |counters| counters.delivered == 58).await;
    world.until("it is tried again", |counters| counters.timed_out >= 2).await;
    let waiting = world.counters();
    assert_eq!((waiting.repositories_waiting, waiting.ids_waiting), (1, 59), "{waiting:?}");
}
