//! `config init` and `config check`, and settings from file, environment and flags.

use std::fs;
use std::process::Command;

use super::call::run;

#[test]
fn what_init_writes_is_checked_clean_and_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let written = run(directory.path(), &["config", "init"], "");
    assert_eq!((written.status, written.stderr.as_str()), (0, ""), "{written:?}");
    assert!(written.stdout.contains("relaysync config check relaysync.toml"), "{written:?}");
    let path = directory.path().join("relaysync.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\n#backoff_base = \"5s\"\n"), "{text}");
    assert_eq!(run(directory.path(), &["config", "init", "-"], "").stdout, text);

    let checked = run(directory.path(), &["config", "check"], "");
    assert_eq!((checked.status, checked.stdout.as_str()), (0, "relaysync.toml: no mistakes, 0 settings set\n"));

    fs::write(&path, "").unwrap();
    run(directory.path(), &["config", "init"], "").assert_one_line(1, "--force");
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    assert_eq!(run(directory.path(), &["config", "init", "--force"], "").status, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    run(directory.path(), &["config", "init", "no/such/folder"], "").assert_one_line(1, "cannot write");
}

#[test]
fn every_mistake_has_a_line_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.toml"), "[sync]\nstal = 5\nstall = 'x'\n").unwrap();
    let checked = run(directory.path(), &["config", "check", "a.toml", "--set", "sync.probe_after=0"], "");
    let lines: Vec<&str> = checked.stderr.lines().collect();
    assert_eq!((checked.status, checked.stdout.as_str(), lines.len()), (2, "", 4), "{checked:?}");
    let begins = ["a.toml:2: sync.stal: ", "a.toml:3: sync.stall: ", "--set sync.probe_after: ", "error: 3 mistakes"];
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line}");
    }
    run(directory.path(), &["config", "check", "none.toml"], "").assert_one_line(2, "relaysync config init none.toml");
    run(directory.path(), &["config", "check", "--set", "x"], "").assert_one_line(2, "SECTION.KEY=VALUE");
    fs::write(directory.path().join("b.toml"), [0xff]).unwrap();
    run(directory.path(), &["config", "check", "b.toml"], "").assert_one_line(2, "UTF-8");
}

#[test]
fn what_holds_is_printed_with_where_it_was_set() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.toml"), "[sync]\nstall = 7\nprobe_after = 7\ndead_after = 7\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_relaysync"))
        .args(["config", "check", "--print", "--set", "sync.dead_after=9"])
        .current_dir(directory.path())
        .env("RELAYSYNC_CONFIG", "a.toml")
        .env("RELAYSYNC_SYNC_PROBE_AFTER", "8")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "stall = \"7s\"  # line 2",
        "probe_after = \"8s\"  # RELAYSYNC_SYNC_PROBE_AFTER",
        "dead_after = \"9s\"  # --set sync.dead_after",
        "backoff_base = \"5s\"  # default",
        "#beside is not set",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[test]
fn unit_and_container_file_are_printed_and_use_what_the_program_has() {
    let directory = tempfile::tempdir().unwrap();
    let unit = run(directory.path(), &["config", "init", "--systemd"], "").stdout;
    for line in ["ExecReload=/bin/kill -HUP $MAINPID", "DynamicUser=yes", "StateDirectory=relaysync"] {
        assert!(unit.lines().any(|found| found == line), "{line}: {unit}");
    }
    let container = run(directory.path(), &["config", "init", "--container"], "").stdout;
    assert!(container.contains("ENTRYPOINT [\"relaysync\"]"), "{container}");
    let words = container.split_whitespace().chain(unit.split_whitespace());
    let variables = words.filter_map(|word| word.trim_start_matches("#Environment=").split_once('='));
    let variables: Vec<_> = variables.filter(|(name, _)| name.starts_with("RELAYSYNC_")).collect();
    assert!(variables.len() >= 3, "{variables:?}");
    let checked = Command::new(env!("CARGO_BIN_EXE_relaysync"))
        .args(["config", "check", "--set", "relay.urls=wss://relay.example"])
        .current_dir(directory.path())
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    assert!(!directory.path().join("relaysync.toml").exists());
}
