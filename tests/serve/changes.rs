//! Access rules and identity of a service that runs: changed without a restart, on connections that are open.

use std::sync::Arc;

use relaysync::native::serve::RelayService;
use relaysync::peer::{AccessRules, Capability};
use relaysync::protocol::message::client;
use relaysync::protocol::{RelayInfo, RelayMessage};

use crate::access::{READER, filter, guarded, key, rule, rules, secret};
use crate::client::{Client, http, service_with};
use crate::events::{NOW_SECS, note};
use crate::world::{ids, story};

const SECRET: &str = r##"["REQ","a",{"kinds":[5000],"#r":["x"]}]"##;

async fn document(service: &RelayService) -> RelayInfo {
    let request = "GET / HTTP/1.1\r\nhost: x\r\naccept: application/nostr+json\r\nconnection: close\r\n\r\n";
    RelayInfo::parse(&http(service, request).await.1).unwrap()
}

/// Asks, is refused and challenged, and answers that.
async fn authenticate(client: &mut Client, service: &RelayService, now_secs: u64) {
    client.say(SECRET).await;
    let challenged = client.hear().await;
    let RelayMessage::Auth { challenge } = RelayMessage::parse(&challenged).unwrap() else { panic!("{challenged}") };
    assert!(client.hear().await.contains("auth-required:"));
    let event =
        note(now_secs).by(READER).kind(22_242).tag("relay", service.url().as_str()).tag("challenge", &challenge);
    client.say(client::auth(event.sign().json_str())).await;
    let answer = client.hear().await;
    assert!(answer.contains(",true,"), "{answer}");
}

#[tokio::test]
async fn rules_that_change_take_effect_on_open_connections() {
    let mut config = guarded(rules());
    // The service's clock is this machine's; the events' is fixed.
    config.auth_age_max = std::time::Duration::from_secs(u64::MAX / 4);
    config.challenges_early = false;
    let events = [secret(1, "x").sign(), note(2).sign()];
    let service = service_with(config, &events).await;
    let (mut reader, mut stranger) = (Client::connect(&service).await, Client::connect(&service).await);
    authenticate(&mut reader, &service, NOW_SECS).await;
    reader.say(SECRET).await;
    assert_eq!(story(&reader.hear_until("[\"EOSE\"").await), [ids(&events[..1]), vec!["EOSE".into()]].concat());
    stranger.say(r#"["REQ","wide",{}]"#).await;
    assert_eq!(story(&stranger.hear_until("[\"EOSE\"").await), [ids(&events[1..]), vec!["EOSE".into()]].concat());

    let mut fewer = rules();
    fewer.revoke(&rule(READER, Capability::SyncRead, r##"{"kinds":[5000],"#r":["x"]}"##));
    assert!(service.set_access(Arc::new(fewer)).await);
    // Both are judged by the new rules: this was accepted only after they held.
    assert!(service.accepted(vec![secret(3, "x").verified(), note(4).verified()]).await);
    assert!(reader.hear().await.starts_with(r#"["CLOSED","a","restricted: "#));
    assert_eq!(story(&[stranger.hear().await]), ids([&note(4).sign()]));

    assert!(service.set_access(Arc::new(rules())).await);
    assert!(reader.hear().await.starts_with(r#"["AUTH","#), "it is told that to ask again is worth it");
    reader.say(SECRET).await;
    assert_eq!(reader.hear_until("[\"EOSE\"").await.len(), 2);
    assert_eq!(service.counters().await.reads_forbidden, 2);
    service.shutdown().await;
}

#[tokio::test]
async fn the_information_document_follows() {
    let service = service_with(relaysync::serve::ServeConfig::default(), &[]).await;
    let before = document(&service).await;
    assert_eq!((before.relay_key, before.limitation.restricted_writes), (None, Some(false)));
    let identity = key(READER);
    assert!(service.set_identity(Some(identity)).await);
    assert!(service.set_access(Arc::new(AccessRules::new([filter(r#"{"kinds":[5000]}"#)], []))).await);
    let after = document(&service).await;
    assert_eq!((after.relay_key, after.limitation.restricted_writes), (Some(identity.to_hex()), Some(true)));
    assert!(service.set_identity(None).await);
    assert_eq!(document(&service).await.relay_key, None);
    service.shutdown().await;
}
