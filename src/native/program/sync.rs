//! `relaysync sync`: its arguments.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::arguments::{FilterArguments, StoreArguments};
use crate::protocol::RelayUrl;

/// Fetch what relays have and the store lacks, offer what they lack, and say what is complete.
///
/// Each relay ends as complete or with its gaps and their reasons. Run it again to continue: nothing that is held is
/// fetched twice.
#[derive(Debug, Clone, Args)]
pub struct SyncArguments {
    /// The relays, like wss://relay.example.
    #[arg(value_name = "RELAY", required = true)]
    pub relays: Vec<RelayUrl>,
    /// Where the events are held.
    #[command(flatten)]
    pub store: StoreArguments,
    /// Which events are kept in step.
    #[command(flatten)]
    pub filters: FilterArguments,
    /// Fetch (down), offer (up), or both.
    #[arg(long, value_enum, default_value_t = Direction::Down)]
    pub direction: Direction,
    /// How to find out what is missing: by set reconciliation (NIP-77), by pages of REQ, or by what suits each relay.
    #[arg(long, value_enum, default_value_t = MethodChoice::Auto)]
    pub method: MethodChoice,
    /// Only find out what would be fetched and offered.
    #[arg(long)]
    pub dry_run: bool,
    /// Stay connected and take new events as they come, until Ctrl-C.
    #[arg(long)]
    pub live: bool,
    /// Print the closing report as one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
    /// Give up what is not complete after so many seconds, and report it.
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// A file with the secret key, as nsec or hexadecimal, for relays that ask who we are (NIP-42).
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
}

/// Which way events go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// From the relays to the store.
    Down,
    /// From the store to the relays.
    Up,
    /// Both ways.
    Both,
}

/// How differences are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodChoice {
    /// What suits the relay and the counts.
    Auto,
    /// Set reconciliation (NIP-77).
    Negentropy,
    /// Pages by `until` (NIP-01).
    Req,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Direction, MethodChoice, SyncArguments};

    #[derive(Debug, Parser)]
    struct Harness {
        #[command(flatten)]
        sync: SyncArguments,
    }

    fn parse(arguments: &[&str]) -> Result<SyncArguments, String> {
        let arguments = std::iter::once(&"sync").chain(arguments);
        Harness::try_parse_from(arguments).map(|harness| harness.sync).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_the_common_case() {
        let sync = parse(&["wss://A.example/", "ws://b.example"]).unwrap();
        assert_eq!(
            sync.relays.iter().map(|relay| relay.as_str()).collect::<Vec<_>>(),
            ["wss://a.example", "ws://b.example"]
        );
        assert_eq!((sync.direction, sync.method), (Direction::Down, MethodChoice::Auto));
        assert!(!sync.dry_run && !sync.live && !sync.json);
        assert_eq!((sync.timeout, sync.key), (None, None));
        assert_eq!(sync.filters.into_filters(), [nostr::filter::Filter::new()]);
    }

    #[test]
    fn wrong_values_say_what_is_wrong() {
        for (arguments, word) in [
            (&["https://a.example"][..], "the scheme must be ws or wss"),
            (&["wss://a.example", "--filter", "{\"kind\":1}"], "unknown field \"kind\""),
            (&["wss://a.example", "--filter", "kinds"], "expected value"),
            (&["wss://a.example", "--direction", "sideways"], "sideways"),
            (&["wss://a.example", "--timeout", "0"], "0"),
            (&[], "RELAY"),
        ] {
            let error = parse(arguments).unwrap_err();
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}
