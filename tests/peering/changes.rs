//! Changes take effect on live connections, at once.

use std::time::Duration;

use relaysync::peer::Capability::{SyncRead, SyncWrite};
use tokio::time::Instant;

use crate::certificate::Dates;
use crate::client::{ids, until};
use crate::side::{Side, synced};

/// A change that takes effect later than this comes too late.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Two sides that sync, the first with the second.
async fn two(changes: &str) -> (Side, Side) {
    let (a, b) = (Side::start().await, Side::start().await);
    a.trust(&b).await;
    b.trust(&a).await;
    a.put(&b, changes).await;
    b.publish(&synced(0, 10)).await;
    a.holds(&synced(0, 10)).await;
    a.is_well().await;
    (a, b)
}

/// How long it takes until `is_so`, from now on; within the bound even where other tests have the machine, too.
async fn within(what: &str, is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    until(what, is_so).await;
    let took = begun.elapsed();
    println!("{what}: {took:?}");
    assert!(took < AT_ONCE, "{what}: {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_rule_of_the_peer() {
    let (a, b) = two("{}").await;
    b.revoke(a.key().await, SyncRead).await;
    within("the peer's revoked rule is seen", async || !a.health().servers_failing.is_empty()).await;
    b.publish(&synced(10, 5)).await;
    // Where something could flow, this would have come after it.
    b.grant(a.key().await, SyncWrite).await;
    assert_eq!(a.held().await, ids(&synced(0, 10)));

    b.grant(a.key().await, SyncRead).await;
    within("what was missed comes with the new grant", async || a.held().await == ids(&synced(0, 15))).await;
    a.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_rule_of_our_own() {
    let (a, b) = two("{}").await;
    a.revoke(b.key().await, SyncWrite).await;
    within("our revoked rule is seen", async || !a.health().servers_failing.is_empty()).await;
    a.fails_by("access_denied").await;
    b.publish(&synced(10, 5)).await;
    assert_eq!(a.held().await, ids(&synced(0, 10)));

    a.grant(b.key().await, SyncWrite).await;
    within("what was missed comes with our new grant", async || a.held().await == ids(&synced(0, 15))).await;
    a.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_of_ours() {
    let (a, b) = two("{}").await;
    let old = a.key().await;
    let new = a.daemon.control().identity().rotate().await.unwrap().pubkey;
    assert_ne!(new, old);
    within("the new key has no grants yet", async || !a.health().servers_failing.is_empty()).await;
    b.publish(&synced(10, 5)).await;
    assert_eq!(a.held().await, ids(&synced(0, 10)));

    let access = b.daemon.control().access();
    assert_eq!(access.list().iter().filter(|grant| grant.rule.principal == old).count(), 2, "they are still seen");
    assert_eq!(access.move_grants(old, new).await.unwrap(), 2);
    within("what was missed comes to the new key", async || a.held().await == ids(&synced(0, 15))).await;
    a.is_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_of_the_peer() {
    let (a, b) = two("{}").await;
    let old = b.key().await;
    let new = b.daemon.control().identity().rotate().await.unwrap().pubkey;
    within("the peer's new key is seen", async || !a.health().servers_failing.is_empty()).await;
    a.fails_by("wrong_identity").await;
    a.put(&b, "{}").await;
    within("nothing is granted to the peer's new key", async || !a.health().servers_failing.is_empty()).await;
    b.publish(&synced(10, 5)).await;
    assert_eq!(a.held().await, ids(&synced(0, 10)));
    assert_eq!(a.daemon.control().access().move_grants(old, new).await.unwrap(), 2);
    within("what was missed comes from the new key", async || a.held().await == ids(&synced(0, 15))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pins() {
    let (a, mut b) = two("{}").await;
    let old = b.pin;
    let new = b.certificate.renew(Dates::Now);
    let both = format!(
        r#"{{"tls":{{"pins":[{{"type":"spki_sha256","value":"{old}"}},{{"type":"spki_sha256","value":"{new}"}}]}}}}"#
    );
    a.put(&b, &both).await;
    a.is_well().await;
    b.reload().await;
    b.pin = new;
    a.put(&b, "{}").await;
    b.publish(&synced(10, 5)).await;
    within("it goes on with the new key", async || a.held().await == ids(&synced(0, 15))).await;

    let wrong = format!(r#"{{"tls":{{"pins":[{{"type":"spki_sha256","value":"{old}"}}]}}}}"#);
    a.put(&b, &wrong).await;
    within("the live connection ends", async || !a.health().servers_failing.is_empty()).await;
    a.fails_by("wrong_pin").await;
    b.publish(&synced(15, 5)).await;
    assert_eq!(a.held().await, ids(&synced(0, 15)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_is_stopped_and_started() {
    let (a, b) = two(r#"{"direction":"both"}"#).await;
    let peers = a.daemon.control().peers();
    peers.stop("other").await.unwrap();
    within("the peer is let go", async || a.health().servers_connected == 0).await;
    b.publish(&synced(10, 5)).await;
    a.publish(&synced(100, 5)).await;
    assert_eq!(a.held().await, ids(synced(0, 10).iter().chain(&synced(100, 5))));
    peers.start("other").await.unwrap();
    let all = || [synced(0, 15), synced(100, 5)].concat();
    a.holds(&all()).await;
    b.holds(&all()).await;
    assert!(peers.remove("other").await.unwrap());
    b.publish(&synced(15, 5)).await;
    assert_eq!(a.held().await, ids(&all()));
}
