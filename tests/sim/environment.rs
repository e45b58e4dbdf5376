//! What the environment asks for.

use std::env;

/// The seed of `SEED=n`: it alone is played then.
pub(crate) fn replayed_seed() -> Option<u64> {
    variable("SEED").map(|seed| seed.parse().unwrap_or_else(|error| panic!("SEED={seed}: {error}")))
}

/// The seed of `COMMIT_SEED`, sixteen hexadecimal digits: the first ones of the commit's hash.
pub(crate) fn commit_seed() -> Option<u64> {
    variable("COMMIT_SEED").map(|digits| {
        assert_eq!(digits.len(), 16, "COMMIT_SEED={digits}: sixteen hexadecimal digits");
        u64::from_str_radix(&digits, 16).unwrap_or_else(|error| panic!("COMMIT_SEED={digits}: {error}"))
    })
}

fn variable(name: &str) -> Option<String> {
    match env::var(name) {
        Ok(value) => Some(value),
        Err(env::VarError::NotPresent) => None,
        Err(error) => panic!("{name}: {error}"),
    }
}
