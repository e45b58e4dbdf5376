//! Import, export, query and count over one store.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::call::{lines_of, run, start, start_logging};
use super::events::{event, json, notes};

fn import(directory: &Path, lines: &[String]) {
    let call = run(directory, &["import"], &lines.join("\n"));
    assert_eq!((call.status, call.stdout.as_str()), (0, ""), "{call:?}");
}

#[test]
fn what_goes_in_comes_out_newest_first_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    // White space and the order of fields are the sender's own.
    let mut lines = notes(3_000);
    lines[0] = lines[0].replacen('{', "{ ", 1);
    let call = run(directory.path(), &["import"], &format!("\n{}\n\n", lines.join("\r\n")));
    assert_eq!(call.status, 0, "{call:?}");
    assert!(call.stderr.contains("read 3,000 lines, 3,000 stored"), "{call:?}");
    let export = run(directory.path(), &["export"], "");
    assert_eq!((export.status, export.stderr.as_str()), (0, ""));
    lines.reverse();
    assert_eq!(export.lines(), lines);
    assert_eq!(run(directory.path(), &["count"], "").stdout, "3000\n");
}

#[test]
fn importing_again_stores_nothing() {
    let directory = tempfile::tempdir().unwrap();
    import(directory.path(), &notes(300));
    let again = run(directory.path(), &["import"], &notes(301).join("\n"));
    assert!(again.stderr.contains("1 stored") && again.stderr.contains("300 known already"), "{again:?}");
    assert_eq!(again.status, 0);
}

#[test]
fn faulty_lines_are_reported_by_number_and_the_rest_is_imported() {
    let directory = tempfile::tempdir().unwrap();
    let good = notes(200);
    let mut lines = good.clone();
    lines.insert(3, "{\"id\":".into());
    lines.insert(50, good[7].replace("\"note\"", "\"forged\""));
    let signature_at = good[9].find("\"sig\":\"").unwrap() + 7;
    let mut forged = json(&event(1, 1, 500, "new"));
    let other = &good[9][signature_at..signature_at + 128];
    let own_at = forged.find("\"sig\":\"").unwrap() + 7;
    forged.replace_range(own_at..own_at + 128, other);
    lines.insert(150, forged);
    lines.push("[\"EVENT\"]".into());
    let call = run(directory.path(), &["import"], &lines.join("\n"));
    assert_eq!(call.status, 3, "{call:?}");
    for word in [
        "line 4: not a Nostr event",
        "line 51: the id",
        "line 151: the signature",
        "line 204: ",
        "200 stored",
        "4 faulty",
    ] {
        assert!(call.stderr.contains(word), "{word}: {call:?}");
    }
    assert_eq!(run(directory.path(), &["count"], "").stdout, "200\n");
}

#[test]
fn many_faulty_lines_are_summed_up() {
    let directory = tempfile::tempdir().unwrap();
    let call = run(directory.path(), &["import"], &"x\n".repeat(1000));
    assert_eq!(call.status, 3);
    assert_eq!(call.stderr.lines().count(), 12, "{call:?}");
    assert!(call.stderr.contains("and 990 more faulty lines"), "{call:?}");
    assert!(call.stderr.contains("read 1,000 lines, 0 stored, 1,000 faulty"), "{call:?}");
}

#[test]
fn no_verify_takes_what_the_file_says() {
    let directory = tempfile::tempdir().unwrap();
    let forged = notes(1)[0].replace("\"note\"", "\"changed\"");
    assert_eq!(run(directory.path(), &["import"], &forged).status, 3);
    assert_eq!(run(directory.path(), &["import", "--no-verify"], &forged).status, 0);
    assert_eq!(run(directory.path(), &["export"], "").lines(), [forged]);
}

#[test]
fn filters_select_and_limits_hold() {
    let directory = tempfile::tempdir().unwrap();
    let mut lines = notes(1_200);
    lines.extend((1..=10).map(|second| json(&event(1, 7, second * 100, "like"))));
    import(directory.path(), &lines);
    let query = |arguments: &[&str]| run(directory.path(), &[&["query"], arguments].concat(), "");
    let seconds = |arguments: &[&str]| -> Vec<u64> {
        let call = query(arguments);
        assert_eq!(call.status, 0, "{call:?}");
        let value = |line: &&str| serde_json::from_str::<serde_json::Value>(line).unwrap()["created_at"].as_u64();
        call.lines().iter().map(|line| value(line).unwrap()).collect()
    };
    assert_eq!(seconds(&["--filter", r#"{"kinds":[7],"limit":3}"#]), [1000, 900, 800]);
    assert_eq!(seconds(&["--filter", r#"{"kinds":[7]}"#, "--limit", "2"]), [1000, 900]);
    assert_eq!(seconds(&["--filter", r#"{"kinds":[7],"since":300,"until":400}"#]), [400, 300]);
    // Two filters together: in one order, what both select once, each with its own limit.
    let both = ["--filter", r#"{"kinds":[1],"limit":2}"#, "--filter", r##"{"#t":["test"],"limit":3}"##];
    assert_eq!(seconds(&both), [1200, 1199, 1198]);
    assert_eq!(seconds(&["--filter", r#"{"kinds":[1]}"#, "--filter", r#"{"kinds":[7]}"#]).len(), 1_210);
    assert_eq!(seconds(&["--limit", "0"]), [0; 0]);
    let count = |arguments: &[&str]| run(directory.path(), &[&["count"], arguments].concat(), "").stdout;
    assert_eq!(count(&["--filter", r#"{"kinds":[7]}"#]), "10\n");
    assert_eq!(count(&["--filter", r#"{"kinds":[1,7]}"#, "--filter", r#"{"kinds":[7]}"#]), "1210\n");
    assert_eq!(count(&["--filter", r#"{"kinds":[9]}"#]), "0\n");
}

#[test]
fn a_store_that_is_not_there_or_cannot_be_made() {
    let directory = tempfile::tempdir().unwrap();
    for command in ["export", "query", "count"] {
        run(directory.path(), &[command, "--store", "none"], "").assert_one_line(1, "there is no store at none");
    }
    std::fs::write(directory.path().join("file"), "text").unwrap();
    run(directory.path(), &["import", "--store", "file/db"], "").assert_one_line(1, "file/db");
}

#[test]
fn a_reader_that_leaves_is_a_clean_end() {
    let directory = tempfile::tempdir().unwrap();
    import(directory.path(), &notes(3_000));
    let mut child = start(directory.path(), &["export"]);
    let mut first = String::new();
    BufReader::with_capacity(100, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("\"created_at\":3000"), "{first}");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_an_import_soon_and_keeps_what_was_committed() {
    for signal in ["INT", "TERM"] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = start_logging(directory.path(), &["import"], "relaysync=debug");
        let mut input = child.stdin.take().unwrap();
        input.write_all(notes(50).join("\n").as_bytes()).unwrap();
        input.write_all(b"\n{\"half a line\"").unwrap();
        // The input stays open, and yet what has come is committed soon.
        let mut stderr = lines_of(child.stderr.take().unwrap());
        stderr.find(|line| line.contains("committed 50 events")).expect("a commit");
        // The store belongs to the import until that ends.
        run(directory.path(), &["count"], "").assert_one_line(1, "in use by another process");
        let kill = std::process::Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let signalled = Instant::now();
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert!(signalled.elapsed() < Duration::from_secs(2), "{:?}", signalled.elapsed());
        let last = stderr.last().unwrap();
        assert!(last.starts_with("error: ") && last.ends_with("what was committed is kept"), "{last}");
        assert_eq!(run(directory.path(), &["count"], "").stdout, "50\n");
        drop(input);
    }
}
