//! `relaysync count`.

use clap::Args;

use super::arguments::{FilterArguments, StoreArguments};
use super::{Exit, Failure, lines, store};
use crate::native::clock::unix_secs;
use crate::peer::View;
use crate::store::Store;

/// Count the events that filters select; one that several filters select counts once.
#[derive(Debug, Clone, Args)]
pub(super) struct CountArguments {
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    filters: FilterArguments,
}

pub(super) async fn run(arguments: CountArguments) -> Result<Exit, Failure> {
    let filters = arguments.filters.into_unlimited_filters()?;
    let store = store::open_existing(&arguments.store.path).await?;
    let count = store.count(filters, &View::all(), unix_secs()).await.map_err(Failure::new)?;
    lines::write(format!("{count}\n").into_bytes()).await?;
    Ok(Exit::Complete)
}
