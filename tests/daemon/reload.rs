//! What changes while the daemon runs.

use std::slice::from_ref;

use relaysync::discover::Accept;

use crate::world::{Client, SERVICE, announcement, embedded, holds, relay, start};

#[tokio::test]
async fn rules_and_bootstrap_relays_change_at_once_and_the_rest_with_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, stranger) = (announcement(1, "ours", &[SERVICE]), announcement(2, "other", &["wss://a.example"]));
    let (first, second) = (relay(from_ref(&ours)).await, relay(from_ref(&stranger)).await);
    let settings = embedded(directory.path(), &[first.url()]);
    let daemon = start(settings.clone()).await;
    let url = daemon.relay_url().unwrap();
    holds(&url, &[&ours]).await;

    let mut changed = settings.clone();
    changed.discovery.config.accept = Accept::All;
    changed.discovery.config.bootstrap.push(second.url());
    changed.relay.service.clients_max = 7;
    changed.discovery.enabled = false;
    let reloaded = daemon.reload(&changed).await;
    assert_eq!(reloaded.changed, ["discovery.bootstrap", "discovery.accept"]);
    assert_eq!(reloaded.waiting, ["discovery.enabled", "relay_limits.clients_max"]);
    holds(&url, &[&ours, &stranger]).await;

    let again = daemon.reload(&changed).await;
    assert!(again.changed.is_empty());
    assert_eq!(again.waiting, reloaded.waiting, "they still wait");

    changed.discovery.config.block_authors.insert([9; 32]);
    changed.discovery.config.accept = Accept::Listed;
    daemon.reload(&changed).await;
    let third = announcement(3, "third", &["wss://a.example"]);
    let words = Client::connect(&url).await.publish(&third).await;
    assert!(words.starts_with("blocked: "), "{words}");
    assert!(daemon.shutdown().await);
}
