//! `relaysync sim`: what it prints where, and how it ends. (Tests build the program with feature `testing`.)

use std::process::{Command, Stdio};

use super::call::{Call, run};

fn sim(arguments: &[&str]) -> Call {
    let directory = tempfile::tempdir().unwrap();
    run(directory.path(), &[&["sim"], arguments].concat(), "")
}

#[test]
fn seeds_are_summed_up() {
    let text = sim(&["--seeds", "3", "--from", "7"]);
    assert_eq!(text.status, 0, "{text:?}");
    assert!(text.stdout.starts_with("3 seeds: 3 passed, 0 failed, in "), "{text:?}");
    for word in ["virtual hours", "events", "handles", "slowest convergence"] {
        assert!(text.stdout.contains(word), "{word}: {text:?}");
    }
    let json = sim(&["--seeds", "3", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json.status, &value["passed"], &value["failed"]), (0, &3.into(), &serde_json::json!([])));
}

#[test]
fn hashes_are_in_order_and_alone_and_the_same_each_time() {
    let [first, second] = [(); 2].map(|()| sim(&["--seeds", "6", "--from", "2", "--hashes"]));
    assert_eq!((first.status, first.lines().len()), (0, 6), "{first:?}");
    for (line, seed) in first.lines().into_iter().zip(2_u64..) {
        let (number, hash) = line.split_once(' ').unwrap();
        assert_eq!(number.parse(), Ok(seed));
        assert!(hash.len() == 16 && u64::from_str_radix(hash, 16).is_ok(), "{line}");
    }
    assert!(first.stderr.contains("6 passed"), "{first:?}");
    assert_eq!(first.stdout, second.stdout);
}

#[test]
fn the_environment_asks_for_one_seed_with_its_trace() {
    let asked = sim(&["--seeds", "1", "--from", "5", "--trace"]);
    assert_eq!(asked.status, 0, "{asked:?}");
    let replayed = Command::new(env!("CARGO_BIN_EXE_relaysync"))
        .args(["sim", "--seeds", "1000"])
        .env("SEED", "5")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let until_summary = |text: &str| text.split("1 seed: 1 passed").next().unwrap().to_owned();
    let replayed = String::from_utf8(replayed.stdout).unwrap();
    assert!(replayed.contains("1 seed: 1 passed"), "{replayed}");
    assert_eq!(until_summary(&replayed), until_summary(&asked.stdout));
}

#[test]
fn wrong_calls_are_told() {
    sim(&[]).assert_one_line(2, "--seeds N");
    sim(&["--seeds", "2", "--trace"]).assert_one_line(2, "one seed");
    sim(&["--seeds", "2", "--from", "18446744073709551615"]).assert_one_line(2, "2^64");
    sim(&["--seeds", "few"]).assert_one_line(2, "few");
    sim(&["--seeds", "1", "--planted", "tree"]).assert_one_line(2, "oldest-minus-one");
    assert_eq!(sim(&["--seeds", "1", "--hashes", "--json"]).status, 2);
}
