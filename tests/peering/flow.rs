//! What flows where all is as it should be.

use crate::client::{ids, until};
use crate::events::note;
use crate::side::{NAMESPACES, Side, protected, synced};

/// As an application would use it: it lets two servers sync, and reads and writes at its own.
#[tokio::test(flavor = "multi_thread")]
async fn two_daemons_sync_both_ways_by_one_connection() {
    let (a, b) = (Side::start().await, Side::start().await);
    let (of_a, of_b) = (synced(0, 300), synced(1_000, 300));
    a.publish(&of_a).await;
    b.publish(&of_b).await;
    let elsewhere = protected(5_000).tag("r", NAMESPACES[0]).kind(1).sign();
    a.publish(std::slice::from_ref(&elsewhere)).await;

    a.trust(&b).await;
    b.trust(&a).await;
    a.put(&b, r#"{"direction": "both"}"#).await;
    let all = || of_a.iter().chain(&of_b);
    a.holds(all()).await;
    b.holds(all()).await;
    a.is_well().await;

    // Live, both ways.
    let (news_of_a, news_of_b) = (synced(2_000, 5), synced(3_000, 5));
    a.publish(&news_of_a).await;
    b.publish(&news_of_b).await;
    a.holds(all().chain(&news_of_a).chain(&news_of_b)).await;
    b.holds(all().chain(&news_of_a).chain(&news_of_b)).await;

    // What was not to be synced was not.
    assert_eq!(b.writer().await.fetch(r#"{"kinds":[1]}"#).await, Ok(ids([])));

    // Who has brought what is known, and the counters say as much.
    let peers = a.daemon.control().peers();
    let brought = peers.brought(of_b[0].id).await.unwrap().expect("the peer has brought it");
    assert_eq!(&*brought.peer, "other");
    assert_eq!(peers.brought(of_a[0].id).await.unwrap(), None);
    until("the counters are as the events", async || peers.stats("other").unwrap().tally.events_accepted == 305).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fetches_from_the_other_by_pages_and_by_reconciliation() {
    for mode in ["req_stream", "negentropy"] {
        let (a, b) = (Side::start().await, Side::start().await);
        let (of_a, of_b) = (synced(0, 40), synced(1_000, 40));
        a.publish(&of_a).await;
        b.publish(&of_b).await;
        a.trust(&b).await;
        b.trust(&a).await;
        let changes = format!(r#"{{"mode": "{mode}"}}"#);
        a.put(&b, &changes).await;
        b.put(&a, &changes).await;
        a.holds(of_a.iter().chain(&of_b)).await;
        b.holds(of_a.iter().chain(&of_b)).await;
        a.is_well().await;
        b.is_well().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_has_any_of_it() {
    let (a, b) = (Side::start().await, Side::start().await);
    a.publish(&synced(0, 10)).await;
    a.trust(&b).await;
    b.trust(&a).await;
    b.put(&a, "{}").await;
    b.holds(&synced(0, 10)).await;
    for side in [&a, &b] {
        let mut stranger = side.stranger().await;
        for filter in [r#"{"kinds":[5000]}"#, r#"{"kinds":[1,5000]}"#] {
            let refusal = stranger.fetch(filter).await.unwrap_err();
            assert!(refusal.starts_with("auth-required:"), "{refusal}");
        }
        assert_eq!(stranger.fetch("{}").await, Ok(ids([])));
        assert!(stranger.publish(&synced(90, 1)[0]).await.starts_with("auth-required:"));
        // A key that was granted nothing is no better off.
        stranger.authenticate(3).await;
        let refusal = stranger.fetch(r#"{"kinds":[5000]}"#).await.unwrap_err();
        assert!(refusal.starts_with("restricted:"), "{refusal}");
        assert_eq!(stranger.publish(&note(1).by(3).sign()).await, "", "what is not protected is free");
    }
}

/// Filters keep their own times.
#[tokio::test(flavor = "multi_thread")]
async fn filters_reach_as_far_as_they_say() {
    let (a, b) = (Side::start().await, Side::start().await);
    let all = synced(0, 40);
    b.publish(&all).await;
    a.trust(&b).await;
    b.trust(&a).await;
    let filter = format!(
        r##"{{"filters":[{{"kinds":[5000],"#r":["{}","{}"],"since":1700000010,"until":1700000019}}]}}"##,
        NAMESPACES[0], NAMESPACES[1]
    );
    a.put(&b, &filter).await;
    a.holds(&all[10..20]).await;
    a.is_well().await;
    b.publish(&synced(40, 1)).await;
    a.holds(&all[10..20]).await;
}
