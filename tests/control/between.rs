//! Two daemons that are peers: what is told to either takes effect on the connection between them.

use std::time::{Duration, Instant};

use relaysync::ingest::verify;
use relaysync::native::daemon::Daemon;
use relaysync::native::store::{NativeStore, NativeStoreConfig};
use relaysync::peer::{Health, HealthStatus, PeerSpec, Rule};
use relaysync::protocol::{EventId, PublicKey};
use relaysync::store::{Batch, Store};
use tempfile::TempDir;

use crate::daemon::start;
use crate::events::note;
use crate::support::{kind, patiently, until};

/// Behind the section [sync].
const LINES: &str = "backoff_floor = '20ms'\nbackoff_base = '50ms'\n[discovery]\nenabled = false\n";

/// A folder with a store that holds one event of kind 5000; gives its id, too.
async fn holding(author: u8) -> (TempDir, EventId) {
    let folder = tempfile::tempdir().unwrap();
    let store = NativeStore::open(folder.path().join("events.db"), NativeStoreConfig::default()).unwrap();
    let event = note(1_700_000_000).by(author).kind(5000).tag("r", "tribes.chat.tribe").sign();
    let id = event.id;
    store.commit(Batch { events: vec![verify(event).unwrap()], ..Batch::default() }).await.unwrap();
    (folder, id)
}

fn ours(daemon: &Daemon) -> PublicKey {
    daemon.control().identity().get().unwrap().pubkey
}

/// Lets `principal` read and write all that is protected at `daemon`.
async fn let_in(daemon: &Daemon, principal: PublicKey) {
    let access = daemon.control().access();
    access.protect(kind(5000)).await.unwrap();
    for capability in ["sync_read", "sync_write"] {
        let principal = principal.to_hex();
        let json = format!(r#"{{"principal":"{principal}","capability":"{capability}","match":{{"kinds":[5000]}}}}"#);
        access.grant(Rule::parse(&json).unwrap()).await.unwrap();
    }
}

/// How long it took until `is_so` of the health of `daemon`.
async fn until_health(daemon: &Daemon, is_so: impl Fn(&Health) -> bool) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "a test measures")]
    let begun = Instant::now();
    let mut seen = None;
    let waited = patiently(until(|| {
        let health = daemon.control().peers().health();
        let is_there = is_so(&health);
        seen = Some(health);
        is_there
    }));
    tokio::select! {
        () = waited => {}
        () = tokio::time::sleep(Duration::from_secs(20)) => panic!("{seen:?}"),
    }
    begun.elapsed()
}

fn is_reason(health: &Health, reason: &str) -> bool {
    health.servers_failing.iter().any(|failing| failing.reason.to_string() == reason)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_sync_both_ways_and_go_by_what_either_is_told() {
    let ((there_folder, theirs), (here_folder, mine)) = (holding(1).await, holding(2).await);
    let relay = format!("{LINES}[relay]\nlisten = '127.0.0.1:0'\nurls = ['wss://there.example']\n");
    let there = start(there_folder.path(), &relay).await;
    let here = start(here_folder.path(), LINES).await;
    let_in(&there, ours(&here)).await;
    let_in(&here, ours(&there)).await;

    let url = there.relay_url().unwrap();
    let spec = format!(
        r##"{{"id":"there","url":"{url}","auth_pubkey":"{}","direction":"both",
            "filters":[{{"kinds":[5000],"#r":["tribes.chat.tribe"]}}],"tls":{{"mode":"disabled"}}}}"##,
        ours(&there).to_hex()
    );
    let peers = here.control().peers();
    let info = peers.put(PeerSpec::parse(&spec).unwrap()).await.unwrap();
    assert!(info.warnings.iter().all(|warning| warning.contains("ws://")), "{:?}", info.warnings);
    let tally = || peers.stats("there").unwrap().tally;
    until(|| (tally().events_accepted, tally().events_published) == (1, 1)).await;
    until_health(&here, Health::is_working).await;
    let brought = patiently(peers.brought(theirs)).await.unwrap().expect("a peer has brought it");
    assert_eq!(&*brought.peer, "there");
    assert_eq!(patiently(peers.brought(mine)).await.unwrap(), None);
    assert!(tally().query_runs > 0);

    // Our key is another: nothing is granted to it there.
    let former = ours(&here);
    here.control().identity().rotate().await.unwrap();
    let refused = until_health(&here, |health| health.status == HealthStatus::Failing).await;
    let moved = there.control().access().move_grants(former, ours(&here)).await.unwrap();
    assert_eq!(moved, 2);
    let regained = until_health(&here, Health::is_working).await;

    // A rule of ours is taken away, and given back.
    let grants = here.control().access().list();
    let write = grants.into_iter().find(|grant| format!("{:?}", grant.rule.capability) == "SyncWrite").unwrap().rule;
    here.control().access().revoke(write.clone()).await.unwrap();
    let denied = until_health(&here, |health| is_reason(health, "access_denied")).await;
    here.control().access().grant(write).await.unwrap();
    let allowed = until_health(&here, Health::is_working).await;
    println!("refused after {refused:?}, regained {regained:?}, denied {denied:?}, allowed {allowed:?}");

    // Another key is expected of the relay.
    let other = PeerSpec { auth_pubkey: former, ..PeerSpec::parse(&spec).unwrap() };
    peers.put(other).await.unwrap();
    until_health(&here, |health| is_reason(health, "wrong_identity")).await;
    assert!(here.shutdown().await && there.shutdown().await);
}
