//! Finding, judging, serving, and going on after a restart.

use crate::events::note;
use crate::world::{Client, SERVICE, announcement, embedded, holds, of_repository, patiently, relay, start};

#[tokio::test]
async fn repositories_are_found_from_one_bootstrap_relay_and_served() {
    let directory = tempfile::tempdir().unwrap();
    let stranger = announcement(2, "other", &["wss://elsewhere.example"]);
    // Its URL is known only once it listens: it gets its events from a client.
    let second = relay(&[]).await;
    let ours = announcement(1, "ours", &[SERVICE, second.url().as_str()]);
    let issue = of_repository(&ours, "ours", 1621).sign();
    let reply = note(3_000).by(8).kind(1111).tag("E", &issue.id.to_hex()).tag("e", &issue.id.to_hex()).sign();
    let mut client = Client::connect(&second.url()).await;
    for event in [&issue, &reply, &note(1).sign(), &of_repository(&stranger, "other", 1621).sign()] {
        assert_eq!(client.publish(event).await, "");
    }
    let first = relay(&[ours.clone(), stranger]).await;

    let daemon = start(embedded(directory.path(), &[first.url()])).await;
    holds(&daemon.relay_url().unwrap(), &[&ours, &issue, &reply]).await;
    let mut reports = daemon.reports();
    let report = patiently(reports.wait_for(|report| report.is_complete() && report.relays.len() == 2)).await.unwrap();
    assert!(report.relays.iter().all(|relay| relay.connected && relay.complete), "{report:?}");
    drop(report);

    // What comes later comes live.
    let late = of_repository(&ours, "ours", 1618).sign();
    assert_eq!(client.publish(&late).await, "");
    holds(&daemon.relay_url().unwrap(), &[&ours, &issue, &reply, &late]).await;
    assert!(daemon.shutdown().await);
}

#[tokio::test]
async fn clients_publish_what_is_wanted_and_nothing_else_also_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, stranger) = (announcement(1, "ours", &[SERVICE]), announcement(2, "other", &["wss://a.example"]));
    let issue = of_repository(&ours, "ours", 1621).sign();

    let daemon = start(embedded(directory.path(), &[])).await;
    let url = daemon.relay_url().unwrap();
    let mut client = Client::connect(&url).await;
    assert!(client.publish(&issue).await.starts_with("blocked: "), "nobody knows the repository yet");
    assert_eq!(client.publish(&ours).await, "");
    assert_eq!(client.publish(&issue).await, "", "the engine knows of the announcement before its author gets the OK");
    for unwanted in [&stranger, &of_repository(&stranger, "other", 1621).sign(), &note(1).sign()] {
        let words = client.publish(unwanted).await;
        assert!(words.starts_with("blocked: "), "{words}");
    }
    holds(&url, &[&ours, &issue]).await;
    assert!(daemon.shutdown().await);

    let daemon = start(embedded(directory.path(), &[])).await;
    let url = daemon.relay_url().unwrap();
    let mut client = Client::connect(&url).await;
    let patch = of_repository(&ours, "ours", 1617).sign();
    assert_eq!(client.publish(&patch).await, "", "it waits until the index is rebuilt");
    holds(&url, &[&ours, &issue, &patch]).await;
    assert!(daemon.shutdown().await);
}

/// An event that a relay has brought reaches who is subscribed to the daemon's own relay.
#[tokio::test]
async fn what_relays_bring_is_told_to_subscribers() {
    let directory = tempfile::tempdir().unwrap();
    let second = relay(&[]).await;
    let ours = announcement(1, "ours", &[SERVICE, second.url().as_str()]);
    let daemon = start(embedded(directory.path(), &[])).await;
    let url = daemon.relay_url().unwrap();
    let mut subscriber = Client::connect(&url).await;
    assert!(subscriber.subscribe().await.is_empty());
    assert_eq!(Client::connect(&url).await.publish(&ours).await, "");
    assert_eq!(subscriber.told().await, ours.id.to_hex());
    let issue = of_repository(&ours, "ours", 1621).sign();
    assert_eq!(Client::connect(&second.url()).await.publish(&issue).await, "");
    assert_eq!(subscriber.told().await, issue.id.to_hex());
    assert!(daemon.shutdown().await);
}
