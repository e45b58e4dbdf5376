//! Whatever is wrong with a peer, nothing flows, and the health says what it is.

use std::collections::BTreeSet;

use relaysync::peer::Capability;

use crate::certificate::Dates;
use crate::side::{Side, synced};

/// Two sides that trust each other, of which the second holds events that the first is to get.
async fn two(dates: Dates) -> (Side, Side) {
    let (a, b) = (Side::start().await, Side::start_with(dates).await);
    b.publish(&synced(0, 20)).await;
    a.publish(&synced(100, 20)).await;
    a.trust(&b).await;
    b.trust(&a).await;
    (a, b)
}

/// `a` fails by `reason`, which `words` explain, and nothing has flown either way.
async fn nothing_flows(a: &Side, b: &Side, reason: &str, words: &str) {
    let failing = a.fails_by(reason).await;
    assert!(failing.detail.contains(words), "{failing:?}");
    let ids = |events: &[_]| crate::client::ids(events);
    assert_eq!(a.held().await, ids(&synced(100, 20)), "{reason}");
    assert_eq!(b.held().await, ids(&synced(0, 20)), "{reason}");
    assert!(!a.health().is_working(), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_wrong_pin() {
    let (a, b) = two(Dates::Now).await;
    let changes = format!(r#"{{"direction":"both","tls":{{"pins":[{{"type":"spki_sha256","value":"{}"}}]}}}}"#, a.pin);
    a.put(&b, &changes).await;
    nothing_flows(&a, &b, "wrong_pin", &b.pin.to_string()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_wrong_host_name() {
    let (a, b) = two(Dates::Now).await;
    a.put(&b, r#"{"direction":"both","tls":{"hostname":"relay.example"}}"#).await;
    nothing_flows(&a, &b, "wrong_host_name", "relay.example").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_expired_certificate() {
    let (a, b) = {
        let (a, b) = (Side::start().await, Side::start_with(Dates::Past).await);
        (a, b)
    };
    a.trust(&b).await;
    b.trust(&a).await;
    a.put(&b, r#"{"direction":"both"}"#).await;
    let failing = a.fails_by("certificate_expired").await;
    assert!(failing.detail.contains("certificate"), "{failing:?}");
    assert_eq!(a.held().await, BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_certificate_that_no_authority_vouches_for() {
    let (a, b) = two(Dates::Now).await;
    a.put(&b, r#"{"direction":"both","tls":{"verify":"full"}}"#).await;
    nothing_flows(&a, &b, "tls_failed", "certificate").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_wrong_identity() {
    let (a, b) = two(Dates::Now).await;
    let wrong = a.key().await;
    a.trust(&a).await;
    a.put(&b, &format!(r#"{{"direction":"both","auth_pubkey":"{}"}}"#, wrong.to_hex())).await;
    nothing_flows(&a, &b, "wrong_identity", &b.key().await.to_hex()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_a_downgraded_url() {
    let (a, b) = two(Dates::Now).await;
    a.put(&b, r#"{"direction":"both","url":"ws://localhost:PORT"}"#).await;
    nothing_flows(&a, &b, "tls_required", "wss://").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_rules_of_our_own() {
    let (a, b) = two(Dates::Now).await;
    for capability in [Capability::SyncRead, Capability::SyncWrite] {
        a.revoke(b.key().await, capability).await;
    }
    a.put(&b, r#"{"direction":"both"}"#).await;
    nothing_flows(&a, &b, "access_denied", "our access rules do not allow 2 filters").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_rules_of_the_peer() {
    let (a, b) = two(Dates::Now).await;
    for capability in [Capability::SyncRead, Capability::SyncWrite] {
        b.revoke(a.key().await, capability).await;
    }
    a.put(&b, r#"{"direction":"both"}"#).await;
    nothing_flows(&a, &b, "access_denied", "restricted").await;
}
