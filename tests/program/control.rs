//! `relaysync peer`, `identity` and `access`: on the files of a daemon, and over the socket of one that runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::call::{Call, run};
use super::run::Daemon;

const NPUB: &str = "npub14f8usejl26twx0dhuxjh9cas7keav9vr0v8nvtwtrjqx3vycc76qqh9nsy";
const HEX: &str = "aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4";
const SECRET: &str = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa";
const NSEC: &str = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
const PIN: &str = "sha256/rHH8tQB1jOfXbwXxBPjqW6dmzP5dSxnZ6EWJFQ1kWWA=";

/// Where the daemon of [`Daemon::start`] has its events.
const STORE: [&str; 2] = ["--store", "events.db"];

fn relaysync(directory: &Path, arguments: &[&str]) -> Call {
    run(directory, &[arguments, &STORE].concat(), "")
}

/// The flags of a peer that can be.
fn put(id: &str, url: &str) -> Vec<String> {
    let flags = ["peer", "put", "--id", id, "--url", url, "--auth-pubkey", NPUB, "--pin", PIN];
    flags.iter().chain(&["--filter", "{\"kinds\":[5000]}"]).map(ToString::to_string).collect()
}

fn put_with(directory: &Path, more: &[&str]) -> Call {
    let flags = put("a", "wss://a.example");
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
    relaysync(directory, &flags)
}

#[track_caller]
fn json(call: &Call) -> Value {
    serde_json::from_str(&call.stdout).unwrap_or_else(|error| panic!("{error}: {call:?}"))
}

#[track_caller]
fn says(call: &Call, lines: &[&str]) {
    assert_eq!((call.status, call.lines()), (0, lines.to_vec()), "{call:?}");
}

#[test]
fn without_a_daemon_peers_are_kept_in_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    says(&relaysync(directory, &["peer", "list"]), &["there are no peers; `relaysync peer put` adds one"]);
    let health = relaysync(directory, &["peer", "health"]);
    says(&health, &["idle: no peer is enabled, 0 of 0 peers connected"]);
    assert!(health.stderr.contains("no daemon runs"), "{health:?}");

    let flags = ["--direction", "both", "--mode", "negentropy", "--overlap", "60", "--verify", "pin"];
    let flags = [&flags[..], &["--pin-scope", "chain", "--tls-hostname", "b.example"]].concat();
    says(&put_with(directory, &flags), &["a is configured"]);
    let got = relaysync(directory, &["peer", "get", "a"]);
    for line in [
        "id            a",
        "url           wss://a.example",
        &format!("key           {HEX}"),
        "filter        {\"kinds\":[5000]}",
        "tls           required, verify pin",
        "tls hostname  b.example",
        &format!("pin           {PIN}"),
    ] {
        assert!(got.lines().contains(&line), "{line}: {got:?}");
    }
    let spec = json(&relaysync(directory, &["peer", "get", "a", "--json"]));
    let spec = &spec["spec"];
    assert_eq!((&spec["overlap_window_seconds"], &spec["mode"]), (&60.into(), &"negentropy".into()));
    assert_eq!(spec["tls"]["pin_scope"], "chain");

    // The same again from a file, or as it comes.
    fs::write(directory.join("peer.json"), spec.to_string()).unwrap();
    let renamed = spec.to_string().replace("\"id\":\"a\"", "\"id\":\"b\"").replace("wss://a.", "wss://b.");
    says(&relaysync(directory, &["peer", "put", "--file", "peer.json"]), &["a is configured"]);
    let piped = run(directory, &["peer", "put", "--file", "-", "--store", "events.db"], &renamed);
    says(&piped, &["b is configured"]);
    says(&relaysync(directory, &["peer", "stop", "b"]), &["b is stopped"]);
    let both = ["a  waiting  both  wss://a.example", "b  stopped  both  wss://b.example"];
    says(&relaysync(directory, &["peer", "list"]), &both);
    let health = relaysync(directory, &["peer", "health"]);
    assert_eq!((health.status, health.lines()[0]), (3, "degraded, 0 of 2 peers connected"), "{health:?}");
    says(&relaysync(directory, &["peer", "start", "b"]), &["b is synced with"]);
    assert_eq!(json(&relaysync(directory, &["peer", "stats", "--json"]))["servers_enabled"], 2);
    assert!(relaysync(directory, &["peer", "stats", "b"]).lines()[0].starts_with("events received "));
    says(&relaysync(directory, &["peer", "remove", "b"]), &["b is removed"]);
    says(&relaysync(directory, &["peer", "remove", "b"]), &["there was no peer b"]);
    relaysync(directory, &["peer", "get", "b"]).assert_one_line(1, "no peer \"b\"");
    relaysync(directory, &["peer", "sync", "a"]).assert_one_line(1, "no daemon runs");
    relaysync(directory, &["peer", "origin", HEX]).assert_one_line(1, "no store");
}

#[test]
fn what_is_wrong_with_a_peer_is_one_line_that_names_the_flag() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let wrong = |arguments: &[&str], words: &str| {
        relaysync(directory, &[&["peer", "put"], arguments].concat()).assert_one_line(2, words);
    };
    wrong(&[], "--id: it is missing; write");
    wrong(&[], "--pin: ");
    wrong(&["--id", "a", "--url", "http://a.example"], "--url: ");
    wrong(&["--auth-pubkey", "npub1"], "--auth-pubkey: \"npub1\" does not fit here");
    wrong(&["--auth-pubkey", NSEC], "--auth-pubkey: this is a secret key");
    wrong(&["--pin", "abc"], "--pin (tls.pins[0].value): ");
    wrong(&["--filter", "{kinds}"], "--filter: this is no JSON");
    wrong(&["--filter", "{\"limit\":1}"], "--filter (filters[0].limit): ");
    wrong(&["--direction", "sideways"], "--direction: \"sideways\" does not fit here; write \"down\"");
    wrong(&["--verify", "no"], "--verify: ");
    wrong(&["--metadata", "5"], "--metadata: ");
    wrong(&["--file", "none"], "none cannot be read");
    let both = relaysync(directory, &["peer", "put", "--file", "x", "--id", "a"]);
    assert!(both.status == 2 && both.stderr.contains("cannot be used with"), "{both:?}");
    fs::write(directory.join("wrong.json"), "{\"id\":\"a\"}").unwrap();
    wrong(&["--file", "wrong.json"], "wrong.json: url: it is missing");
    assert!(!relaysync(directory, &["peer", "put", "--auth-pubkey", NSEC]).stderr.contains(NSEC));

    says(&put_with(directory, &[]), &["a is configured"]);
    let flags = put("b", "wss://A.example/");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    relaysync(directory, &flags).assert_one_line(1, "wss://a.example is the peer \"a\" already");
    let plain = relaysync(directory, &put("c", "ws://c.example").iter().map(String::as_str).collect::<Vec<_>>());
    assert!(plain.status == 0 && plain.stderr.starts_with("warning: "), "{plain:?}");
    assert_eq!(relaysync(directory, &["peer", "list", "--socket", "x"]).status, 2, "either, not both");
    run(directory, &["peer", "list", "--socket", "none"], "").assert_one_line(1, "no daemon listens at none");
}

#[test]
fn the_secret_key_goes_in_and_never_comes_out() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let nobody = relaysync(directory, &["identity", "show"]);
    says(&nobody, &["nobody yet; `relaysync identity ensure` generates a key"]);
    let imported = run(directory, &["identity", "import", "--json", "--store", "events.db"], &format!("{NSEC}\n"));
    let key = json(&imported)["pubkey"].as_str().unwrap().to_owned();
    fs::write(directory.join("key"), SECRET).unwrap();
    assert_eq!(json(&relaysync(directory, &["identity", "import", "key", "--json"]))["pubkey"], *key);
    let shown = relaysync(directory, &["identity", "show"]);
    assert!(shown.lines()[0].ends_with(&key) && shown.lines()[2] == "source  imported", "{shown:?}");
    let rotated = json(&relaysync(directory, &["identity", "rotate", "--json"]));
    assert_eq!(rotated["previous"], serde_json::json!([key]));

    for (input, words) in [(String::new(), "no secret key in"), (format!("{SECRET}ff"), "secret key")] {
        let call = run(directory, &["identity", "import", "--store", "events.db"], &input);
        assert!(call.status != 0 && call.stderr.contains(words) && !call.stderr.contains(SECRET), "{call:?}");
    }
    run(directory, &["identity", "import", "none"], "").assert_one_line(2, "none cannot be read");
    for call in [imported, shown] {
        assert!(!format!("{call:?}").contains(SECRET) && !format!("{call:?}").contains(NSEC));
    }
}

#[test]
fn access_is_granted_moved_and_revoked() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let filter = "{\"kinds\":[5000]}";
    says(&relaysync(directory, &["access", "list"]), &["nothing is granted to anybody"]);
    says(&relaysync(directory, &["access", "protected"]), &["nothing is protected"]);
    says(&relaysync(directory, &["access", "protect", filter]), &["protected"]);
    says(&relaysync(directory, &["access", "protect", filter]), &["it was protected already"]);
    says(&relaysync(directory, &["access", "protected"]), &[filter]);
    put_with(directory, &[]);
    says(&relaysync(directory, &["access", "grant", NPUB, "read", filter]), &["granted"]);
    says(&relaysync(directory, &["access", "grant", HEX, "write", filter]), &["granted"]);
    let [read, write] = ["read ", "write"].map(|word| format!("{HEX}  peer a  {word}  {filter}"));
    says(&relaysync(directory, &["access", "list"]), &[&read, &write]);
    let us = json(&relaysync(directory, &["identity", "ensure", "--json"]))["pubkey"].as_str().unwrap().to_owned();
    says(&relaysync(directory, &["access", "move", NPUB, &us]), &["2 rules moved"]);
    assert_eq!(json(&relaysync(directory, &["access", "list", "--json"]))[0]["whose"]["owner"], "us");
    says(&relaysync(directory, &["access", "revoke", &us, "write", filter]), &["revoked"]);
    says(&relaysync(directory, &["access", "revoke", NPUB, "write", filter]), &["there was no such rule"]);
    says(&relaysync(directory, &["access", "unprotect", filter]), &["not protected any more"]);

    relaysync(directory, &["access", "grant", "npub1", "read", filter]).assert_one_line(2, "npub1… or 64");
    relaysync(directory, &["access", "grant", NSEC, "read", filter]).assert_one_line(2, "secret key");
    relaysync(directory, &["access", "grant", NPUB, "read", "{\"since\":1}"]).assert_one_line(2, "since");
    let unknown = relaysync(directory, &["access", "grant", NPUB, "all", filter]);
    assert!(unknown.status == 2 && unknown.stderr.contains("read, write"), "{unknown:?}");
}

#[test]
fn a_daemon_that_runs_is_told_over_its_socket() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let socket = directory.join("events.db.socket");
    let quiet = ["--set", "discovery.enabled=false"];
    let mut daemon = Daemon::start(directory, &quiet);
    daemon.says("commands are taken at ");
    let us = json(&relaysync(directory, &["identity", "show", "--json"]));
    assert_eq!(us["source"], "generated");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);

    // Nobody listens at the peer's address.
    says(&put_with(directory, &["--disabled"]), &["a is configured"]);
    says(&relaysync(directory, &["peer", "list"]), &["a  stopped  down  wss://a.example"]);
    assert!(!relaysync(directory, &["peer", "list"]).stderr.contains("no daemon runs"));
    relaysync(directory, &["peer", "sync", "a"]).assert_one_line(1, "start it first");
    says(&relaysync(directory, &["peer", "origin", HEX]), &["no peer has brought it"]);
    says(&relaysync(directory, &["access", "protect", "{\"kinds\":[5000]}"]), &["protected"]);
    let by_path = run(directory, &["access", "protected", "--socket", "events.db.socket"], "");
    says(&by_path, &["{\"kinds\":[5000]}"]);
    let wrong = relaysync(directory, &["peer", "get", "b"]);
    wrong.assert_one_line(1, "no peer \"b\"");

    // After a kill its socket is left behind, and what it was told is not lost.
    daemon.signal("KILL");
    drop(daemon);
    assert!(socket.exists());
    says(&relaysync(directory, &["access", "protected"]), &["{\"kinds\":[5000]}"]);
    let mut daemon = Daemon::start(directory, &quiet);
    daemon.says("commands are taken at ");
    let again = json(&relaysync(directory, &["identity", "show", "--json"]));
    assert_eq!(again["pubkey"], us["pubkey"]);
    let (status, log) = daemon.end();
    assert_eq!(status, Some(0), "{log:#?}");
    assert!(!socket.exists());
    says(&relaysync(directory, &["peer", "list"]), &["a  stopped  down  wss://a.example"]);
}
