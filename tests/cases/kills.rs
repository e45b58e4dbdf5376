//! The process ends without warning.

use std::time::Duration;

use relaysync::engine::Config;
use relaysync::sim::{EngineId, NOW_SECS, NegentropyRefused, PageCap, Remote, World, note};

use crate::support::{history, one_shot};

/// Whatever a durable mark covers is held.
#[track_caller]
fn claims_only_what_it_holds(world: &World, engine: EngineId) {
    let (held, now_secs) = (world.held(engine), world.now().unix_secs);
    for mark in world.node(engine).coverage() {
        let there = world.held_by(&mark.relay);
        for proof in &mark.windows {
            assert!(proof.asked_at_secs <= now_secs);
            let claimed = &there.items()[there.range(proof.window)];
            let lacking = claimed.iter().filter(|item| held.items().binary_search(item).is_err()).count();
            assert_eq!(lacking, 0, "{} claimed, {} held\n{}", proof.window, held.len(), world.trace());
        }
    }
}

/// The cursor used to jump to the newest event in the middle of a catch-up from the newest downwards: a break then lost
/// the older tail.
#[test]
fn killed_at_every_step_of_a_catch_up_it_claims_only_what_is_durable_and_continues() {
    let events = history(120);
    // Every page is a commit of its own, so that marks are written from the beginning.
    let config = Config { commit_events_min: 1, commit_delay: Duration::from_millis(1), ..one_shot() };
    let (mut partial, mut kills) = (0, 0);
    for breaks in [false, true] {
        for after_ms in 0..1_000 {
            let mut world = World::new();
            let remote =
                Remote::with(&events).tamper(PageCap(12)).tamper(NegentropyRefused::notice("negentropy disabled"));
            let relay = world.add_relay("wss://relay.example", remote);
            let engine = world.add_engine(config.clone());
            world.sync(engine, &relay);
            if breaks {
                world.run(Duration::from_millis(40));
                world.cut(&relay, "");
            }
            world.run(Duration::from_millis(after_ms));
            let is_over = world.node(engine).ended.is_some();
            world.restart(engine);
            kills += 1;
            claims_only_what_it_holds(&world, engine);
            let held = world.held(engine).len();
            partial += usize::from(held > 0 && held < 120);
            world.publish(&relay, &[note(NOW_SECS + 1).content("meanwhile").sign()]);
            world.sync(engine, &relay);
            assert!(world.finish(engine)[0].complete, "after {after_ms} ms");
            claims_only_what_it_holds(&world, engine);
            assert!(world.held(engine) == world.held_by(&relay), "after {after_ms} ms\n{}", world.trace());
            if is_over {
                break;
            }
        }
    }
    assert!(kills > 150 && partial > 100, "{partial} of {kills} kills fell into the catch-up");
}
