//! The demo ends by itself, with success, and leaves nothing behind.

#[test]
fn demo_finds_and_checks_everything_and_removes_its_store() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_relaysync"));
    let output = command.arg("demo").env("TMPDIR", directory.path()).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(stdout.matches(", which an announcement names").count(), 2, "both other relays are found: {stdout}");
    for words in [
        "can compare sets",
        "at most 100 events a page",
        "wanted events are held after",
        "has gone away",
        "have arrived within",
        "back under its old address",
        "exactly those wanted",
        "with a false signature",
        "Started anew",
    ] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the folder is empty again");
}
