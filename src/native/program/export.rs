//! `relaysync export`.

use clap::Args;

use super::arguments::{FilterArguments, StoreArguments};
use super::selection::Selection;
use super::{Exit, Failure, lines, store};
use crate::native::clock::unix_secs;
use crate::protocol::Filter;
use crate::store::Store;

/// Write events to stdout as JSON, one a line, newest first, byte for byte as they were signed and sent.
#[derive(Debug, Clone, Args)]
pub(super) struct ExportArguments {
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    filters: FilterArguments,
}

pub(super) async fn run(arguments: ExportArguments) -> Result<Exit, Failure> {
    let store = store::open_existing(&arguments.store.path).await?;
    print_all(&store, arguments.filters.into_filters(), usize::MAX).await
}

/// Prints at most `limit` of the events that `filters` select.
pub(super) async fn print_all<S: Store>(store: &S, filters: Vec<Filter>, limit: usize) -> Result<Exit, Failure> {
    let mut selection = Selection::new(store, filters, unix_secs());
    let mut remaining = limit;
    while remaining > 0 {
        let mut page = selection.next_page().await?;
        page.truncate(remaining);
        remaining -= page.len();
        if page.is_empty() || !lines::print(&page).await? {
            break;
        }
    }
    Ok(Exit::Complete)
}
