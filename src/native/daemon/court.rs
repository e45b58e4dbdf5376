//! The way of what clients publish to the engine: it hears of what was stored, and decides about what is to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::held::tell;
use super::shared::{Commands, Shared};
use crate::engine::{Bringer, Command, Origin};
use crate::ingest::Verified;
use crate::native::feed::{Fed, read_again};
use crate::native::serve::{Docket, Judge, Matter};
use crate::protocol::Event;
use crate::store::Store;

/// Events that were missed and are read from the store at a time.
const EVENTS_AT_ONCE_MAX: usize = 500;

/// Brings one matter after the other before the engine; while there is none, they wait. Ends with the judges that the
/// relay service has; where it has none, with `idle_judge`, which is for ever.
pub(super) async fn hold(shared: Arc<Shared>, mut docket: Docket, idle_judge: Option<Judge>) {
    let _kept = idle_judge;
    while let Some(matter) = docket.next().await {
        let mut commands = shared.linked().await;
        if let Err(error) = bring(&shared, &mut commands, matter).await {
            // A new engine reads all that is held; of what it was to judge, clients hear that nobody did.
            tracing::warn!("the engine does not hear of what clients publish: {error}");
        }
    }
}

async fn bring(shared: &Shared, commands: &mut Commands, matter: Matter) -> Result<(), String> {
    match matter {
        Matter::Fed(Fed::Events(events)) => accept(shared, commands, &events).await,
        Matter::Fed(Fed::Missed(ids)) => {
            for ids in ids.chunks(EVENTS_AT_ONCE_MAX) {
                let events = read_again(&*shared.disk, ids.to_vec()).await.map_err(|error| error.to_string())?;
                accept(shared, commands, &events).await?;
            }
            Ok(())
        }
        Matter::Fed(Fed::Lagged { events }) => {
            tracing::warn!(events, "the engine fell behind the clients; a new one reads all that is held");
            // Some of it may be deletions, and what is read again shows only what is left.
            shared.outdate();
            Ok(())
        }
        Matter::Case(case) => {
            let events = case.events.iter().map(|event| Event::clone(event)).collect();
            let ticket = shared.open_case(case);
            tell(commands, Command::Judge { ticket, events }).await
        }
    }
}

async fn accept(shared: &Shared, commands: &mut Commands, events: &[Verified<Event>]) -> Result<(), String> {
    let brought = bringers(shared, events).await?;
    let events = events.iter().map(|event| Event::clone(event)).collect();
    tell(commands, Command::Accepted { events, origin: Origin::Client, brought }).await
}

/// The names of the peers that have published some of these as clients.
async fn bringers(shared: &Shared, events: &[Verified<Event>]) -> Result<BTreeMap<[u8; 32], Bringer>, String> {
    if shared.control.desired().peers().next().is_none() {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<[u8; 32]> = events.iter().map(|event| event.id.to_bytes()).collect();
    let contexts = shared.disk.contexts(ids.clone()).await.map_err(|error| error.to_string())?;
    Ok(ids.into_iter().zip(contexts).filter_map(|(id, context)| Some((id, Bringer::Peer(context?.peer)))).collect())
}
