//! An existing relay beside the daemon.

use crate::events::note;
use crate::world::{Client, SERVICE, announcement, holds, of_repository, relay, settings, start};

#[tokio::test]
async fn what_is_found_elsewhere_is_published_to_the_relay_beside_and_what_it_gets_is_acted_on() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = relay(&[]).await;
    let ours = announcement(1, "ours", &[SERVICE, elsewhere.url().as_str()]);
    let issue = of_repository(&ours, "ours", 1621).sign();
    let mut client = Client::connect(&elsewhere.url()).await;
    for event in [&issue, &note(1).sign()] {
        assert_eq!(client.publish(event).await, "");
    }
    // A relay of ours takes whatever its own rules say, and all of it counts.
    let policy = note(5).content("rules of this relay").sign();
    let beside = relay(std::slice::from_ref(&policy)).await;
    let lines = format!("[relay]\nurls = ['{SERVICE}']\nbeside = '{}'\n", beside.url());
    let daemon = start(settings(directory.path(), &lines)).await;

    let mut client = Client::connect(&beside.url()).await;
    assert_eq!(client.publish(&ours).await, "");
    holds(&beside.url(), &[&policy, &ours, &issue]).await;
    assert!(daemon.shutdown().await);
}
