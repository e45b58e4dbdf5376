//! Peers and access rules: what is told is there, and whoever runs hears of it.

use relaysync::native::control::{ControlError, Whose};
use relaysync::peer::{HealthStatus, PeerSpec, WorkerState};

use crate::support::{config, file, key, kind, open, patiently, rule, spec};

#[tokio::test]
async fn a_peer_is_put_changed_stopped_started_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    let peers = control.peers();
    let info = peers.put(spec("b", 1)).await.unwrap();
    assert_eq!((info.spec, info.runtime.state), (spec("b", 1), WorkerState::Starting));
    peers.put(spec("a", 2)).await.unwrap();
    let names = |peers: &relaysync::native::control::Peers| -> Vec<String> {
        peers.list().into_iter().map(|info| info.spec.id).collect()
    };
    assert_eq!(names(&peers), ["a", "b"]);

    let info = peers.put(spec("b", 3)).await.unwrap();
    assert_eq!((info.spec.auth_pubkey, info.previous_auth_pubkeys), (key(3), vec![key(1)]));
    assert_eq!(peers.stop("b").await.unwrap().runtime.state, WorkerState::Stopped);
    assert_eq!(control.desired().peerings().count(), 1);
    drop((peers, control));

    let control = open(folder.path()).await;
    let peers = control.peers();
    assert!(!peers.get("b").unwrap().spec.enabled, "it survives a restart");
    assert_eq!(peers.get("b").unwrap().spec, PeerSpec { enabled: false, ..spec("b", 3) });
    assert!(peers.start("b").await.unwrap().spec.enabled);
    assert!(peers.remove("b").await.unwrap());
    assert!(!peers.remove("b").await.unwrap());
    assert_eq!(names(&peers), ["a"]);
    assert!(matches!(peers.get("b"), Err(ControlError::UnknownPeer(id)) if id == "b"));
    assert!(peers.start("b").await.is_err() && peers.stats("b").is_err());
    assert_eq!(peers.health().status, HealthStatus::Degraded, "nothing works on it");
}

#[tokio::test]
async fn one_relay_is_one_peer() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    control.peers().put(spec("a", 1)).await.unwrap();
    let second = PeerSpec { id: "b".to_owned(), ..spec("a", 2) };
    let refused = control.peers().put(second).await.unwrap_err().to_string();
    assert!(refused.contains("\"a\""), "{refused}");
    control.peers().put(spec("a", 2)).await.unwrap();
}

#[tokio::test]
async fn whose_a_rule_is_can_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    let access = control.access();
    control.peers().put(spec("a", 1)).await.unwrap();
    control.peers().put(spec("a", 2)).await.unwrap();
    for number in 1..=3 {
        assert!(access.grant(rule(number, 5000)).await.unwrap());
        assert!(!access.grant(rule(number, 5000)).await.unwrap());
    }
    let whose: Vec<Whose> = access.list().into_iter().map(|grant| grant.whose).collect();
    let id = || "a".to_owned();
    assert_eq!(whose, [Whose::PreviousOfPeer { id: id() }, Whose::Peer { id: id() }, Whose::Unknown]);
    let json = serde_json::to_value(&access.list()[1]).unwrap();
    assert_eq!((&json["whose"]["owner"], &json["whose"]["id"]), (&"peer".into(), &"a".into()));
    assert_eq!((&json["capability"], &json["match"]["kinds"][0]), (&"sync_read".into(), &5000.into()));
    assert_eq!(access.move_grants(key(1), key(2)).await.unwrap(), 1, "what the other has already is there once");
    assert_eq!(access.list().len(), 2);
    assert!(access.revoke(rule(3, 5000)).await.unwrap() && !access.revoke(rule(3, 5000)).await.unwrap());
}

#[tokio::test]
async fn what_is_protected_by_configuration_stays_so() {
    let folder = tempfile::tempdir().unwrap();
    let config = relaysync::native::control::ControlConfig { protected: vec![kind(1)], ..config(folder.path()) };
    let control = relaysync::native::control::Control::open(config).await.unwrap();
    let access = control.access();
    assert!(access.protect(kind(2)).await.unwrap());
    let protected: Vec<_> = access.protected().into_iter().map(|info| (info.filter, info.configured)).collect();
    assert_eq!(protected, [(kind(1), true), (kind(2), false)]);
    assert_eq!(control.desired().access.protected(), [kind(1), kind(2)]);
    assert!(access.unprotect(kind(1)).await.unwrap_err().to_string().contains("access.protected"));
    assert!(access.unprotect(kind(2)).await.unwrap());
    let with_time: relaysync::protocol::Filter = serde_json::from_str(r#"{"kinds":[1],"since":5}"#).unwrap();
    assert!(access.protect(with_time).await.is_err());
    control.configure(vec![], [key(9)].into()).await.unwrap();
    assert!(control.desired().access.is_open() && control.desired().admins.contains(&key(9)));
}

#[tokio::test]
async fn whoever_runs_hears_of_what_is_on_disk_already() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    let mut watch = control.watch();
    watch.mark_unchanged();
    control.peers().put(spec("a", 1)).await.unwrap();
    patiently(watch.changed()).await.unwrap();
    assert_eq!(watch.borrow_and_update().peerings().count(), 1);
    let on_disk = std::fs::read_to_string(file(folder.path(), ".control.json")).unwrap();
    assert!(on_disk.contains("wss://a.example"));
    control.peers().put(spec("a", 1)).await.unwrap();
    assert!(!watch.has_changed().unwrap(), "nothing is other than it was");
}

#[tokio::test]
async fn without_a_daemon_nothing_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    control.peers().put(spec("a", 1)).await.unwrap();
    assert!(control.peers().sync_now("a").await.unwrap_err().to_string().contains("no daemon runs"));
    control.peers().stop("a").await.unwrap();
    assert!(control.peers().sync_now("a").await.unwrap_err().to_string().contains("stopped"));
}

#[tokio::test]
async fn bounds_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    (config.bounds.peers_max, config.bounds.rules_max, config.bounds.protected_max) = (1, 1, 1);
    let control = relaysync::native::control::Control::open(config).await.unwrap();
    control.peers().put(spec("a", 1)).await.unwrap();
    control.peers().put(spec("a", 2)).await.unwrap();
    control.peers().put(spec("b", 1)).await.unwrap_err();
    control.access().grant(rule(1, 1)).await.unwrap();
    control.access().grant(rule(1, 2)).await.unwrap_err();
    control.access().protect(kind(1)).await.unwrap();
    control.access().protect(kind(2)).await.unwrap_err();
    assert_eq!((control.peers().list().len(), control.access().list().len()), (1, 1));
}

#[tokio::test]
async fn what_could_not_be_read_again_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.bounds.file_bytes_max = 2_500;
    let control = relaysync::native::control::Control::open(config.clone()).await.unwrap();
    let mut taken = 0;
    let refused = loop {
        match control.peers().put(spec(&format!("p{taken}"), 1)).await {
            Ok(_) => taken += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(taken > 0 && refused.contains("control.file_bytes_max"), "{taken} {refused}");
    assert!(control.peers().remove("p0").await.unwrap(), "there is a way back");
    drop(control);
    let control = relaysync::native::control::Control::open(config).await.unwrap();
    assert_eq!(control.peers().list().len(), taken - 1);
}
