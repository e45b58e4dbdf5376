//! What calls do, and what is said to those that are wrong.

use std::time::Duration;

use relaysync::native::rpc::RpcConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{ADMIN, Call, Signature, World, body, patiently, public_key};

const PIN: &str = "sha256/rHH8tQB1jOfXbwXxBPjqW6dmzP5dSxnZ6EWJFQ1kWWA=";

fn peer(id: &str) -> Value {
    json!({
        "id": id,
        "url": format!("wss://{id}.example"),
        "auth_pubkey": public_key(ADMIN).to_hex(),
        "filters": [{"kinds": [5000]}],
        "tls": {"pins": [{"type": "spki_sha256", "value": PIN}]},
    })
}

#[tokio::test]
async fn every_method_does_what_it_says() {
    let world = World::new(RpcConfig::default()).await;
    let call = async |method: &str, params: Value| world.call(method, params).await.result();
    let methods = call("supportedmethods", json!([])).await;
    assert!(methods.as_array().unwrap().contains(&json!("putpeer")), "{methods}");
    assert!(!methods.as_array().unwrap().contains(&json!("importidentity")), "{methods}");

    assert_eq!(call("getidentity", json!([])).await, Value::Null);
    let first = call("ensureidentity", json!([])).await;
    assert_eq!(call("getidentity", json!([])).await, first);
    let second = call("rotateidentity", json!([])).await;
    assert_eq!(second["previous"], json!([first["pubkey"]]));

    let rule = json!({"principal": first["pubkey"], "capability": "sync_read", "match": {"kinds": [5000]}});
    assert_eq!(call("protectevents", json!([{"kinds": [5000]}])).await, json!({"changed": true}));
    assert_eq!(call("grantaccess", json!([rule])).await, json!({"changed": true}));
    assert_eq!(call("grantaccess", json!([rule,])).await, json!({"changed": false}));
    assert_eq!(call("listaccess", json!([])).await[0]["whose"], json!({"owner": "previously_us"}));
    assert_eq!(call("moveaccess", json!([first["pubkey"], second["pubkey"]])).await, json!({"moved": 1}));
    assert_eq!(call("listaccess", json!([])).await[0]["whose"], json!({"owner": "us"}));
    let rule = json!({"principal": second["pubkey"], "capability": "sync_read", "match": {"kinds": [5000]}});
    assert_eq!(call("revokeaccess", json!([rule])).await, json!({"changed": true}));
    let protected = call("listprotected", json!([])).await;
    assert_eq!(protected, json!([{"filter": {"kinds": [5000]}, "configured": false}]));
    assert_eq!(call("unprotectevents", json!([{"kinds": [5000]}])).await, json!({"changed": true}));

    let put = call("putpeer", json!([peer("a")])).await;
    assert_eq!((&put["spec"]["id"], &put["runtime"]["server_id"]), (&json!("a"), &json!("a")));
    call("putpeer", json!([peer("b")])).await;
    assert_eq!(call("getpeer", json!(["a"])).await["spec"], put["spec"]);
    assert_eq!(call("stoppeer", json!(["a"])).await["runtime"]["state"], "stopped");
    assert_eq!(call("startpeer", json!(["a"])).await["runtime"]["state"], "starting");
    assert_eq!(call("listpeers", json!([])).await.as_array().unwrap().len(), 2);
    assert_eq!(call("peerstats", json!(["a"])).await["events_received"], 0);
    assert_eq!(call("syncstats", json!([])).await["servers_total"], 2);
    assert_eq!(call("synchealth", json!([])).await["status"], "degraded");
    assert_eq!(call("removepeer", json!(["a"])).await, json!({"changed": true}));
    assert_eq!(call("removepeer", json!(["a"])).await, json!({"changed": false}));
    // Nothing runs here that could.
    world.call("syncpeer", json!(["b"])).await.is_refused(409, "no daemon runs");
    world.call("eventcontext", json!(["00".repeat(32)])).await.is_refused(409, "no daemon runs");
}

#[tokio::test]
async fn what_is_wrong_is_said_with_the_name_of_the_parameter() {
    let world = World::new(RpcConfig::default()).await;
    let secret = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
    let mut wrong = peer("a");
    wrong["tls"]["pins"][0]["value"] = json!("abc");
    for (method, params, status, words) in [
        ("getpeer", json!([]), 400, "getpeer: id is missing; write the name of a peer"),
        ("getpeer", json!([1]), 400, "getpeer: id: 1 does not fit here"),
        ("getpeer", json!(["a", "b"]), 400, "getpeer takes only id, and 2 were given"),
        ("getpeer", json!(["nobody"]), 404, "no peer \"nobody\""),
        ("synchealth", json!([{}]), 400, "synchealth takes no parameters, and 1 were given"),
        ("moveaccess", json!([public_key(ADMIN).to_hex()]), 400, "moveaccess: to is missing"),
        ("moveaccess", json!([secret, "x"]), 400, "moveaccess: from: a secret key does not fit here"),
        ("eventcontext", json!(["xyz"]), 400, "eventcontext: id"),
        ("putpeer", json!(["a"]), 400, "putpeer: peer"),
        ("putpeer", json!([wrong]), 400, "tls.pins[0].value"),
        ("grantaccess", json!([{"principal": "x"}]), 400, "grantaccess: rule: principal"),
        ("protectevents", json!([{"limit": 1}]), 400, "protectevents: filter: limit"),
        ("importidentity", json!([secret]), 404, "over its socket"),
        ("GetPeer", json!(["a"]), 404, "there is no method \"GetPeer\""),
        ("", json!([]), 404, "there is no method"),
    ] {
        let answer = world.call(method, params.clone()).await;
        answer.is_refused(status, words);
        assert!(!answer.json.to_string().contains("nsec1"), "{answer:?}");
    }
    for text in [
        "",
        "[]",
        "{}",
        "{\"method\":1}",
        "{\"method\":\"getpeer\",\"param\":[]}",
        "{\"method\":\"a\",\"params\":{}}",
        secret,
    ] {
        let answer = Call::new(text).signed(&Signature::of(&world.url(), text)).send(world.admin.local_addr()).await;
        answer.is_refused(400, "this is no call");
        assert!(!answer.json.to_string().contains("nsec1"), "{answer:?}");
    }
}

#[tokio::test]
async fn bodies_have_bounds() {
    let config = RpcConfig { body_bytes_max: 1000, body_time_max: Duration::from_millis(200), ..RpcConfig::default() };
    let world = World::new(config).await;
    let to = world.admin.local_addr();
    let large = body("getpeer", json!(["x".repeat(1000)]));
    let announced = Call::new(&large).signed(&Signature::of(&world.url(), &large)).send(to).await;
    announced.is_refused(413, "1000 bytes");
    let mut chunked = Call::new(&large).signed(&Signature::of(&world.url(), &large));
    chunked.head = chunked.head.replace(&format!("content-length: {}", large.len()), "transfer-encoding: chunked");
    chunked.body = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    chunked.send(to).await.is_refused(413, "1000 bytes");
    let mut slow = Call::new(&large).signed(&Signature::of(&world.url(), &large));
    slow.head = slow.head.replace(&format!("content-length: {}", large.len()), "content-length: 900");
    slow.body.truncate(10);
    slow.send(to).await.is_refused(408, "in time");
    // Nothing of a stranger's is read at all.
    let mut socket = TcpStream::connect(to).await.unwrap();
    let head = Call::typed("application/nostr+json+rpc", "").head.replace("content-length: 0", "content-length: 900");
    socket.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    patiently(socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[tokio::test]
async fn what_is_no_call_is_answered_as_before() {
    let world = World::new(RpcConfig::default()).await;
    let text = body("synchealth", json!([]));
    let signature = Signature::of(&world.url(), &text);
    let typed = Call::typed("application/json", &text).signed(&signature).send(world.admin.local_addr()).await;
    typed.is_refused(415, "application/nostr+json+rpc");
    let relay = Call::typed("application/json", &text).signed(&signature).send(world.relay.local_addr()).await;
    assert_eq!(relay.status, 405);
    let mut elsewhere = Call::new(&text).signed(&signature);
    elsewhere.head = elsewhere.head.replace("POST / ", "POST /status ");
    assert_eq!(elsewhere.send(world.admin.local_addr()).await.status, 405);
    let with_charset = Call::typed("Application/nostr+json+rpc; charset=utf-8", &text).signed(&signature);
    with_charset.send(world.admin.local_addr()).await.result();
}

#[tokio::test]
async fn many_call_at_once() {
    let world = World::new(RpcConfig { calls_max: 2, ..RpcConfig::default() }).await;
    let all = (0..40).map(|number| {
        let world = &world;
        async move { world.call("putpeer", json!([peer(&format!("p{number:02}"))])).await.result() }
    });
    futures_util::future::join_all(all).await;
    assert_eq!(world.control.peers().list().len(), 40);
}
