//! Calls over the unix socket.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use relaysync::native::rpc::{RpcConfig, RpcSocket};
use serde_json::{Value, json};
use tokio::net::UnixStream;

use crate::world::{Answer, Call, STRANGER, World, body, public_key};

async fn call(path: &Path, method: &str, params: Value) -> Answer {
    Call::new(&body(method, params)).over(UnixStream::connect(path).await.unwrap()).await
}

#[tokio::test]
async fn whoever_can_use_it_governs() {
    let world = World::governed_by([], RpcConfig::default()).await;
    let path = world.directory.path().join("control");
    let socket = RpcSocket::bind(&path, world.rpc.clone()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(call(&path, "synchealth", json!([])).await.result()["status"], "idle");
    let imported = call(&path, "importidentity", json!([STRANGER])).await.result();
    assert_eq!(imported["pubkey"], public_key(STRANGER).to_hex());
    for params in [json!([format!("{STRANGER}ff")]), json!([{"secret": STRANGER}]), json!([[STRANGER]])] {
        let answer = call(&path, "importidentity", params).await;
        answer.is_refused(if answer.status == 409 { 409 } else { 400 }, "secret key");
        assert!(!answer.json.to_string().contains(&STRANGER[..16]), "{answer:?}");
    }
    let wrong = Call::typed("text/plain", "{}").over(UnixStream::connect(&path).await.unwrap()).await;
    wrong.is_refused(415, "application/nostr+json+rpc");
    drop(socket);
    assert!(!path.exists(), "it is removed at the end");
}

#[tokio::test]
async fn one_that_nobody_listens_at_is_replaced_and_others_are_respected() {
    let world = World::new(RpcConfig::default()).await;
    let path = world.directory.path().join("control");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "as after a kill");
    let first = RpcSocket::bind(&path, world.rpc.clone()).unwrap();
    let error = RpcSocket::bind(&path, world.rpc.clone()).unwrap_err().to_string();
    assert!(error.contains("another daemon listens there") && error.contains("control"), "{error}");
    call(&path, "synchealth", json!([])).await.result();

    // What somebody else has put there meanwhile stays.
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    drop(first);
    assert!(path.exists());
    drop(other);

    let file = world.directory.path().join("file");
    fs::write(&file, "kept").unwrap();
    let error = RpcSocket::bind(&file, world.rpc.clone()).unwrap_err().to_string();
    assert!(error.contains("no socket"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    let long = world.directory.path().join("x".repeat(120));
    let error = RpcSocket::bind(&long, world.rpc.clone()).unwrap_err().to_string();
    assert!(error.contains("control.socket") && error.contains("bytes"), "{error}");
}
