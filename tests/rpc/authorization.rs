//! Who may call over HTTP (NIP-98).

use std::time::Duration;

use relaysync::native::rpc::RpcConfig;
use serde_json::json;
use url::Url;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{ADMIN, Answer, Call, STRANGER, Signature, World, body, now_secs, public_key};

async fn send(world: &World, body: &str, signature: &Signature) -> Answer {
    Call::new(body).signed(signature).send(world.admin.local_addr()).await
}

#[tokio::test]
async fn a_key_that_governs_is_heard_at_both_places() {
    let urls = vec![Url::parse("wss://relay.example/x").unwrap()];
    let world = World::new(RpcConfig { urls, ..RpcConfig::default() }).await;
    let body = body("synchealth", json!([]));
    let relay = world.relay.local_addr();
    for (to, url) in [
        (world.admin.local_addr(), world.url()),
        (world.admin.local_addr(), format!("http://localhost:{}", world.admin.local_addr().port())),
        (relay, format!("http://{relay}")),
        (relay, format!("ws://{relay}/")),
        // As others know it, whatever a proxy makes of that.
        (relay, "https://relay.example/x".to_owned()),
        (relay, "wss://Relay.example:443/x".to_owned()),
    ] {
        let answer = Call::new(&body).signed(&Signature::of(&url, &body)).send(to).await;
        assert_eq!(answer.result()["status"], "idle", "{url}");
    }
    // A page of any origin may call, and its browser asks first.
    let answer = Call::new(&body).signed(&Signature::of(&format!("http://{relay}"), &body)).send(relay).await;
    assert!(answer.head.contains("access-control-allow-origin: *"), "{answer:?}");
    assert!(answer.head.contains("access-control-allow-headers: *, authorization"), "{answer:?}");
}

#[tokio::test]
async fn what_is_not_signed_for_this_very_call_is_not_carried_out() {
    let world = World::new(RpcConfig::default()).await;
    let text = body("rotateidentity", json!([]));
    let right = Signature::of(&world.url(), &text);
    let other = body("ensureidentity", json!([]));
    let age = Duration::from_secs(62).as_secs();
    for (signature, status, words) in [
        (right.clone().with("u", "http://127.0.0.1:1/"), 401, "not where this came to"),
        (right.clone().with("u", &world.url().replace("http", "https")), 401, "not where this came to"),
        (right.clone().with("u", &format!("{}status", world.url())), 401, "not where this came to"),
        (right.clone().with("u", ""), 401, "not where this came to"),
        (right.clone().with("method", "GET"), 401, "another method"),
        (right.clone().with("payload", &"0".repeat(64)), 401, "payload"),
        (Signature::of(&world.url(), &other), 401, "payload"),
        (Signature { created_at: now_secs() - age, ..right.clone() }, 401, "behind our clock"),
        (Signature { created_at: now_secs() + age, ..right.clone() }, 401, "ahead of our clock"),
        (Signature { created_at: 0, ..right.clone() }, 401, "clock"),
        (Signature { created_at: now_secs() - 30, ..right.clone() }, 401, "before this daemon was started"),
        (Signature { kind: 22242, ..right.clone() }, 401, "27235"),
        (Signature { secret: STRANGER, ..right.clone() }, 403, "may not govern"),
        (Signature { tags: right.tags[1..].to_vec(), ..right.clone() }, 401, "\"u\""),
        (Signature { tags: right.tags[..2].to_vec(), ..right.clone() }, 401, "\"payload\""),
        (Signature { tags: [&right.tags[..], &right.tags[2..]].concat(), ..right.clone() }, 401, "two tags"),
    ] {
        let answer = send(&world, &text, &signature).await;
        answer.is_refused(status, words);
        assert!(status != 401 || answer.head.contains("www-authenticate: nostr"), "{answer:?}");
    }
    assert_eq!(world.control.identity().get(), None, "nothing was carried out");
}

#[tokio::test]
async fn a_forged_or_garbled_signature_is_refused() {
    let world = World::new(RpcConfig::default()).await;
    let text = body("ensureidentity", json!([]));
    let event = Signature::of(&world.url(), &text).event().json_str().to_owned();
    let stranger = Signature { secret: STRANGER, ..Signature::of(&world.url(), &text) }.event().json_str().to_owned();
    let forged = stranger.replace(&public_key(STRANGER).to_hex(), &public_key(ADMIN).to_hex());
    let base64 = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    for (header, words) in [
        (format!("Nostr {}", base64(&forged)), "nobody has signed"),
        (format!("Nostr {}", base64(&event.replace("\"content\":\"\"", "\"content\":\"x\""))), "nobody has signed"),
        (format!("Nostr {}", base64("{}")), "no event"),
        ("Nostr !".to_owned(), "base64"),
        ("Bearer abc".to_owned(), "NIP-98"),
        ("Nostr".to_owned(), "NIP-98"),
    ] {
        let answer = Call::new(&text).authorized(&header).send(world.admin.local_addr()).await;
        answer.is_refused(401, words);
    }
    Call::new(&text).send(world.admin.local_addr()).await.is_refused(401, "NIP-98");
    let twice = Call::new(&text).signed(&Signature::of(&world.url(), &text)).authorized("Nostr x");
    twice.send(world.admin.local_addr()).await.is_refused(401, "twice");
    assert_eq!(world.control.identity().get(), None);
}

#[tokio::test]
async fn each_signature_is_good_for_one_call() {
    let world = World::new(RpcConfig::default()).await;
    let text = body("rotateidentity", json!([]));
    let signature = Signature::of(&world.url(), &text);
    let first = send(&world, &text, &signature).await.result();
    send(&world, &text, &signature).await.is_refused(401, "used already");
    // Nor is it good for the other door.
    let at_relay = Call::new(&text).signed(&signature).send(world.relay.local_addr()).await;
    at_relay.is_refused(401, "not where");
    assert_eq!(world.control.identity().get().unwrap().pubkey.to_hex(), first["pubkey"]);
    // Of many at once, one is carried out.
    let text = body("rotateidentity", json!([]));
    let signature = Signature { created_at: now_secs() + 1, ..Signature::of(&world.url(), &text) };
    let all = (0..20).map(|_| send(&world, &text, &signature));
    let all = futures_util::future::join_all(all).await;
    assert_eq!(all.iter().filter(|answer| answer.status == 200).count(), 1);
}

#[tokio::test]
async fn without_keys_that_govern_nobody_is_heard() {
    let world = World::governed_by([], RpcConfig::default()).await;
    let text = body("synchealth", json!([]));
    send(&world, &text, &Signature::of(&world.url(), &text)).await.is_refused(403, "control.admins");
    // Until the settings say otherwise, and then at once.
    world.control.configure(Vec::new(), [public_key(ADMIN)].into()).await.unwrap();
    send(&world, &text, &Signature::of(&world.url(), &text)).await.result();
}

#[tokio::test]
async fn too_many_calls_are_told_so() {
    let world = World::new(RpcConfig { calls_per_minute_max: 2, ..RpcConfig::default() }).await;
    for _ in 0..10 {
        // Nobody else's count.
        Call::new("{}").send(world.admin.local_addr()).await.is_refused(401, "NIP-98");
    }
    for params in [json!([]), json!([1])] {
        assert_ne!(world.call("synchealth", params).await.status, 429);
    }
    world.call("synchealth", json!([3])).await.is_refused(429, "in this minute");
    let world = World::new(RpcConfig { auth_ids_max: 1, ..RpcConfig::default() }).await;
    world.call("synchealth", json!([])).await.result();
    world.call("syncstats", json!([])).await.is_refused(429, "signed lately");
}

#[tokio::test]
async fn strangers_are_refused_without_end_only_in_few_words_and_keep_nobody_out() {
    let world = World::new(RpcConfig { refusals_per_minute_max: 2, ..RpcConfig::default() }).await;
    let text = body("synchealth", json!([]));
    let stranger = Signature { secret: STRANGER, ..Signature::of(&world.url(), &text) };
    for _ in 0..2 {
        send(&world, &text, &stranger).await.is_refused(403, "may not govern");
    }
    for _ in 0..3 {
        let answer = send(&world, &text, &stranger).await;
        assert!(answer.head.contains("connection: close"), "{answer:?}");
        answer.is_refused(429, "too many calls were refused");
    }
    world.call("synchealth", json!([])).await.result();
}

#[tokio::test]
async fn so_many_signatures_are_checked_in_vain_and_no_more() {
    let world = World::new(RpcConfig { refusals_per_minute_max: 2, ..RpcConfig::default() }).await;
    let text = body("synchealth", json!([]));
    let right = Signature::of(&world.url(), &text).event().json_str().to_owned();
    let forged = right.replace("\"content\":\"\"", "\"content\":\"x\"");
    let header = format!("Nostr {}", base64::Engine::encode(&base64::engine::general_purpose::STANDARD, forged));
    for status in [401, 401, 429] {
        let answer = Call::new(&text).authorized(&header).send(world.admin.local_addr()).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
}

#[tokio::test]
async fn who_is_taken_out_does_not_finish_the_call_that_he_is_at() {
    let world = World::new(RpcConfig::default()).await;
    let text = body("rotateidentity", json!([]));
    let call = Call::new(&text).signed(&Signature::of(&world.url(), &text));
    let mut socket = TcpStream::connect(world.admin.local_addr()).await.unwrap();
    let head = format!("{}expect: 100-continue\r\n\r\n", call.head);
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut goes_on = [0; 25];
    crate::world::patiently(socket.read_exact(&mut goes_on)).await.unwrap();
    assert_eq!(&goes_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    world.control.configure(Vec::new(), [public_key(STRANGER)].into()).await.unwrap();
    socket.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    crate::world::patiently(socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.contains("403") && answer.contains("may not govern"), "{answer}");
    assert_eq!(world.control.identity().get(), None, "nothing was carried out");
}
