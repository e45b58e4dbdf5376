//! The way of what clients publish to the engine: it hears of what was stored, and decides about what is to be.

use std::sync::Arc;

use super::held::tell;
use super::shared::{Commands, Shared};
use crate::engine::{Command, Origin};
use crate::ingest::Verified;
use crate::native::feed::{Fed, read_again};
use crate::native::serve::{Docket, Judge, Matter};
use crate::protocol::Event;

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
        Matter::Fed(Fed::Events(events)) => tell(commands, accepted(&events)).await,
        Matter::Fed(Fed::Missed(ids)) => {
            for ids in ids.chunks(EVENTS_AT_ONCE_MAX) {
                let events = read_again(&*shared.disk, ids.to_vec()).await.map_err(|error| error.to_string())?;
                tell(commands, accepted(&events)).await?;
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

fn accepted(events: &[Verified<Event>]) -> Command {
    Command::Accepted { events: events.iter().map(|event| Event::clone(event)).collect(), origin: Origin::Client }
}
