//! Keeps the outbox short, and looks up for whom states are news: one thing after the other, beside the deliveries.

use std::sync::Arc;

use super::Shared;
use crate::store::Store;

pub(super) async fn run<S: Store>(shared: Arc<Shared<S>>) {
    loop {
        if shared.board().has_removals() {
            shared.remove().await;
        }
        let state = shared.board().take_state();
        let Some(address) = state else {
            // Whatever came in between has left a permit.
            shared.chores.notified().await;
            continue;
        };
        let resolved = shared.resolve_state(&address).await;
        shared.board().finish_state(address.clone(), resolved.is_ok());
        if let Err(error) = resolved {
            tracing::warn!("for whom the state of {address:?} is news is looked up again later: {error}");
            tokio::time::sleep(shared.config.retry_base).await;
        }
    }
}
