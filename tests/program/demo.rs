//! The demo: what the README begins with.

use super::call::run;

#[test]
fn the_demo_gets_everything_and_ends_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let call = run(directory.path(), &["demo"], "");
    assert_eq!(call.status, 0, "{call:?}");
    for word in ["no set reconciliation", "100 events a page", "700 events in one second", "3 relays, all complete"] {
        assert!(call.stdout.contains(word), "{word}: {call:?}");
    }
    assert!(call.lines().last().unwrap().contains("exactly what the relays have together"), "{call:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}
