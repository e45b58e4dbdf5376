//! `relaysync query`.

use clap::Args;

use super::arguments::{FilterArguments, StoreArguments};
use super::{Exit, Failure, export, store};

/// Show events that filters select: JSON on stdout, one a line, newest first.
///
/// A filter's own "limit" counts for that filter, --limit for all of them together.
#[derive(Debug, Clone, Args)]
pub(super) struct QueryArguments {
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    filters: FilterArguments,
    /// Show so many events at most.
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
}

pub(super) async fn run(arguments: QueryArguments) -> Result<Exit, Failure> {
    let store = store::open_existing(&arguments.store.path).await?;
    export::print_all(&store, arguments.filters.into_filters(), arguments.limit.unwrap_or(usize::MAX)).await
}
