//! Arguments that several commands share.

use std::path::PathBuf;

use clap::Args;

use super::Failure;
use crate::protocol::filter::{Filter, parse_strict};

/// Where the events are held.
#[derive(Debug, Clone, Args)]
pub struct StoreArguments {
    /// The event store: a file, or a directory to have it in. One process uses it at a time.
    #[arg(long = "store", value_name = "PATH", default_value = "relaysync.db")]
    pub path: PathBuf,
}

/// Which events are meant.
#[derive(Debug, Clone, Default, Args)]
pub struct FilterArguments {
    /// A NIP-01 filter, like '{"kinds":[1],"since":1700000000}'. Repeat it for events that satisfy any of several;
    /// leave it out for all events.
    #[arg(long = "filter", value_name = "JSON", value_parser = parse_filter)]
    filters: Vec<Filter>,
}

impl FilterArguments {
    /// The filters; one that selects everything if none was given.
    pub fn into_filters(self) -> Vec<Filter> {
        if self.filters.is_empty() { vec![Filter::new()] } else { self.filters }
    }
}

impl FilterArguments {
    /// The same for commands that deal with all that a filter selects, to which a limit means nothing.
    ///
    /// # Errors
    /// A filter has a limit.
    pub fn into_unlimited_filters(self) -> Result<Vec<Filter>, Failure> {
        if self.filters.iter().any(|filter| filter.limit.is_some()) {
            return Err(Failure::usage(
                "a filter of this command takes no \"limit\": it deals with all that is selected",
            ));
        }
        Ok(self.into_filters())
    }
}

fn parse_filter(json: &str) -> Result<Filter, String> {
    parse_strict(json).map_err(|error| error.reason)
}
