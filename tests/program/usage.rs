//! Wrong calls: one clear line, status 2; help and version: status 0.

use super::call::run;

#[test]
fn help_and_version_go_to_stdout() {
    let directory = tempfile::tempdir().unwrap();
    let help = run(directory.path(), &["--help"], "");
    assert_eq!((help.status, help.stderr.as_str()), (0, ""));
    for word in ["sync", "serve", "import", "export", "query", "count", "demo", "status 0", "RUST_LOG"] {
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
