//! Wrong calls: one clear line, status 2; help and version: status 0.

use super::call::run;

#[test]
fn help_and_version_go_to_stdout() {
    let directory = tempfile::tempdir().unwrap();
    let help = run(directory.path(), &["--help"], "");
    assert_eq!((help.status, help.stderr.as_str()), (0, ""));
    for word in ["sync", "serve", "import", "export", "query", "count", "status", "demo", "status 0", "RUST_LOG"] {
        assert!(help.stdout.contains(word), "{word}: {}", help.stdout);
    }
    for command in ["sync", "serve", "import", "export", "query", "count"] {
        let help = run(directory.path(), &[command, "--help"], "");
        assert_eq!(help.status, 0);
        assert!(help.stdout.contains("--store <PATH>"), "{}", help.stdout);
    }
    assert_eq!(run(directory.path(), &["--version"], "").stdout.split(' ').next(), Some("relaysync"));
}

#[test]
fn wrong_filters_are_one_line() {
    let directory = tempfile::tempdir().unwrap();
    for (filter, word) in [
        ("{\"kind\":[1]}", "unknown field \"kind\""),
        ("{\"kinds\":[]}", "empty list"),
        ("{\"search\":\"x\"}", "NIP-50"),
        ("{\"kinds\":\"1\"}", "sequence"),
        ("[]", "one JSON object"),
        ("{", "EOF"),
    ] {
        for command in ["export", "query", "count"] {
            run(directory.path(), &[command, "--filter", filter], "").assert_one_line(2, word);
        }
    }
}

#[test]
fn wrong_arguments_are_status_2() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["no-such-command"][..], &["import", "--no-such-option"], &["query", "--limit"]] {
        let call = run(directory.path(), arguments, "");
        assert_eq!((call.status, call.stdout.as_str()), (2, ""), "{call:?}");
        assert!(call.stderr.contains("--help"), "{call:?}");
    }
    let nothing = run(directory.path(), &[], "");
    assert!(nothing.status == 2 && nothing.stderr.contains("Usage: relaysync <COMMAND>"), "{nothing:?}");
    run(directory.path(), &["query", "--limit", "many"], "").assert_one_line(2, "many");
}

#[test]
fn wrong_relays_are_one_line() {
    let directory = tempfile::tempdir().unwrap();
    for (relay, word) in [
        ("https://relay.example", "the scheme must be ws or wss"),
        ("relay.example", "write it like wss://relay.example"),
        ("wss://", "invalid relay URL"),
    ] {
        run(directory.path(), &["sync", relay], "").assert_one_line(2, word);
    }
    run(directory.path(), &["sync", "wss://a.example", "--key", "none"], "").assert_one_line(2, "key file none");
    let nobody = run(directory.path(), &["sync"], "");
    assert!(nobody.status == 2 && nobody.stderr.contains("<RELAY>"), "{nobody:?}");
}

/// Reported as nostr-protocol/nips#1876: `wss://x` and `wss://x/` became two connections.
#[test]
fn spellings_of_one_relay_are_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    // Nobody listens there any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let spellings = ["ws://LOCALHOST:PORT", "ws://localhost:PORT/", "WS://localhost.:PORT/?utm_source=x#top"];
    let spellings = spellings.map(|spelling| spelling.replace("PORT", &port.to_string()));
    let arguments: Vec<&str> = ["sync", "--json"].into_iter().chain(spellings.iter().map(String::as_str)).collect();
    let call = run(directory.path(), &arguments, "");
    let report: serde_json::Value = serde_json::from_str(&call.stdout).unwrap();
    let relays = report["relays"].as_array().unwrap();
    assert_eq!(relays.len(), 1, "{call:?}");
    assert_eq!(relays[0]["relay"], format!("ws://localhost:{port}"));
    assert_eq!(relays[0]["health"], "degraded");
}
