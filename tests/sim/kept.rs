//! `seeds.txt`: seeds that once found a fault.

use std::collections::BTreeSet;

const TEXT: &str = include_str!("seeds.txt");

/// All of them, in the order of the file.
pub(crate) fn seeds() -> Vec<u64> {
    parse(TEXT).unwrap_or_else(|fault| panic!("tests/sim/seeds.txt: {fault}"))
}

/// Each line is empty, a comment, or `SEED # what it found`.
fn parse(text: &str) -> Result<Vec<u64>, String> {
    let (mut seeds, mut before) = (Vec::new(), BTreeSet::new());
    for (index, line) in text.lines().enumerate() {
        let fault = |what: &str| Err(format!("line {}: {what}: {line}", index + 1));
        let Some((seed, found)) = line.split_once('#') else {
            if line.trim().is_empty() {
                continue;
            }
            return fault("what did it find? Write `SEED # what`");
        };
        if seed.trim().is_empty() {
            continue;
        }
        match seed.trim().parse() {
            Err(_) => return fault("no seed"),
            Ok(_) if found.trim().is_empty() => return fault("what did it find?"),
            Ok(seed) if !before.insert(seed) => return fault("again"),
            Ok(seed) => seeds.push(seed),
        }
    }
    Ok(seeds)
}

#[test]
fn the_file_is_read_strictly() {
    assert_eq!(parse("# seeds\n\n17 # a gap too few\n  3# silence did not follow\n"), Ok(vec![17, 3]));
    for (text, fault) in [
        ("17", "line 1: what did it find? Write `SEED # what`: 17"),
        ("\n17 #", "line 2: what did it find?: 17 #"),
        ("0x11 # hexadecimal", "line 1: no seed: 0x11 # hexadecimal"),
        ("1 2 # two", "line 1: no seed: 1 2 # two"),
        ("-1 # below", "line 1: no seed: -1 # below"),
        ("1 # a\n1 # b", "line 2: again: 1 # b"),
    ] {
        assert_eq!(parse(text), Err(fault.to_owned()));
    }
}
