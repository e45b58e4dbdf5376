//! What is handed on, and for which repositories.

use std::time::Duration;

use relaysync::native::hook::{Delivery, HookTarget};
use relaysync::protocol::hex;
use relaysync::store::Outcome;

use crate::events::{author_of, commit, draft, id_of};
use crate::world::*;

#[tokio::test]
async fn what_arrives_within_the_batch_window_is_one_delivery_a_repository() {
    let (target, mut told) = taker();
    let world = World::new(target, |config| config.batch = Duration::from_millis(500)).await;
    let begun = tokio::time::Instant::now();
    world.commit(&[announcement(1, 1, "x"), patch(2, "x")]).await;
    world.commit(&[patch(3, "x"), patch(4, "y"), draft(5, 100)]).await;
    let expect = |identifier: &str, ids: &[u32]| Told {
        repository: format!("1/{identifier}"),
        ids: ids.to_vec(),
        complete: true,
    };
    assert_eq!([next(&mut told).await, next(&mut told).await], [expect("x", &[1, 2, 3]), expect("y", &[4])]);
    assert!(begun.elapsed() >= Duration::from_millis(500), "{:?}", begun.elapsed());
    world.settled().await;
    assert_eq!((world.counters().events, world.counters().delivered), (4, 2));
}

#[tokio::test]
async fn kinds_and_tags_decide() {
    let (target, mut told) = taker();
    let world = World::new(target, |_| {}).await;
    let (x, y) = (address(1, "x").to_string(), address(2, "a:b").to_string());
    let issue = draft(1, 100).kind(1621).tag("A", &x).tag("a", &y).tag("a", &x);
    let wrong_kind = draft(2, 100).kind(1111).tag("A", &x);
    let other_address = draft(3, 100).kind(1617).tag("a", &format!("30023:{}:x", "ab".repeat(32))).tag("a", "nonsense");
    let pull_request = draft(4, 100).kind(1618).tag("a", &y).tag("e", "x");
    let nameless = draft(5, 100).kind(30617);
    world.commit(&[issue, wrong_kind, other_address, pull_request, nameless]).await;
    world.settled().await;
    let expected = [("1/".into(), [5].into()), ("1/x".into(), [1].into()), ("2/a:b".into(), [1, 4].into())];
    assert_eq!(all(&mut told), expected.into());
}

#[tokio::test]
async fn a_state_is_news_of_all_repositories_that_follow_its_author() {
    let (target, mut told) = taker();
    let world = World::new(target, |_| {}).await;
    let (author, other) = (hex::encode(&author_of(3)), hex::encode(&author_of(4)));
    let mut follower = announcement(1, 1, "x");
    follower.tags.push(vec!["maintainers".into(), other.clone(), author.clone()]);
    let mut stranger = announcement(2, 2, "x");
    stranger.tags.push(vec!["maintainers".into(), other]);
    let mut elsewhere = announcement(3, 1, "y");
    elsewhere.tags.push(vec!["maintainers".into(), author]);
    world.commit(&[follower, stranger, elsewhere]).await;
    world.settled().await;
    all(&mut told);
    world.commit(&[state(4, 3, "x")]).await;
    world.until("it is looked up", |counters| counters.states_resolved == 1).await;
    world.settled().await;
    assert_eq!(all(&mut told), [("1/x".into(), [4].into()), ("3/x".into(), [4].into())].into());
}

#[tokio::test]
async fn only_what_is_stored_is_news() {
    let (target, mut told) = taker();
    let world = World::new(target, |_| {}).await;
    world.commit(&[announcement(5, 1, "x"), patch(2, "x")]).await;
    world.settled().await;
    all(&mut told);
    let outcomes = world.commit(&[announcement(5, 1, "x"), announcement(4, 1, "x"), patch(2, "x")]).await;
    assert_eq!(outcomes, [Outcome::Duplicate, Outcome::Superseded, Outcome::Duplicate]);
    world.settled().await;
    assert_eq!((all(&mut told), world.counters().delivered), ([].into(), 1));
}

#[tokio::test]
async fn what_is_gone_before_it_is_delivered_is_not_delivered() {
    let (target, mut told) = taker();
    let world = World::new(target, |config| config.batch = Duration::from_millis(200)).await;
    world.commit(&[patch(1, "x"), patch(2, "x"), patch(3, "y")]).await;
    let deletion = draft(4, 100).by(9).kind(5);
    let deletion = deletion.tag("e", &hex::encode(&id_of(2))).tag("e", &hex::encode(&id_of(3)));
    world.commit(&[deletion]).await;
    world.settled().await;
    assert_eq!(all(&mut told), [("1/x".into(), [1].into())].into());
    assert_eq!(world.counters().gone, 1);
}

#[tokio::test]
async fn a_restart_delivers_what_was_left_and_nothing_again() {
    let (hanging, mut told) = callback(|_| std::future::pending());
    let world = World::new(hanging, |config| config.shutdown_max = Duration::ZERO).await;
    let mut follower = announcement(1, 1, "x");
    follower.tags.push(vec!["maintainers".into(), hex::encode(&author_of(3))]);
    world.commit(&[follower, patch(2, "x")]).await;
    assert_eq!(next(&mut told).await.ids, [1, 2]);
    world.commit(&[state(3, 3, "x")]).await;
    let (target, mut told) = taker();
    let world = world.restart(target).await;
    world.until("it is looked up", |counters| counters.states_resolved == 1 || counters.delivered >= 2).await;
    world.settled().await;
    assert_eq!(all(&mut told), [("1/x".into(), [1, 2, 3].into()), ("3/x".into(), [3].into())].into());
    let (target, mut told) = taker();
    let world = world.restart(target).await;
    world.settled().await;
    assert_eq!((all(&mut told), world.counters().delivered), ([].into(), 0));
}

#[tokio::test]
async fn a_hook_that_has_ended_leaves_its_outbox_to_the_next_one() {
    let (target, _told) = taker();
    let world = World::new(target, |_| {}).await;
    let old = world.store.clone();
    let (target, mut told) = taker();
    let world = world.restart(target).await;
    commit(&old, &[patch(1, "x")]).await;
    world.commit(&[patch(2, "x")]).await;
    world.settled().await;
    assert_eq!(all(&mut told), [("1/x".into(), [2].into())].into(), "it is held by {old:?}, and handed on by nobody");
}

#[test]
fn a_delivery_is_json() {
    let ids = [id_of(1), id_of(2)];
    let delivery = Delivery { repository: address(1, "a\"\0b"), ids: ids.into(), complete: false };
    let json: serde_json::Value = serde_json::from_str(&delivery.to_json()).unwrap();
    let expected = serde_json::json!({
        "repository": format!("30617:{}:a\"\0b", hex::encode(&author_of(1))),
        "events": ids.map(|id| hex::encode(&id)),
        "complete": false,
    });
    assert_eq!(json, expected);
}

#[tokio::test]
async fn an_empty_command_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = relaysync::native::hook::HookConfig::new(HookTarget::Command(Vec::new()));
    let store = std::sync::Arc::new(relaysync::store::MemoryStore::default());
    let opened = relaysync::native::hook::Hook::open(folder.path().join("o"), config, Default::default(), store).await;
    assert!(opened.is_err_and(|error| error.to_string().contains("names no program")));
}
