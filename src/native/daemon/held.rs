//! What is held, told to an engine that does not know it.

use std::collections::BTreeMap;

use futures_util::SinkExt;

use super::shared::{Commands, Shared};
use crate::discover::Discovery;
use crate::engine::{Command, Origin};
use crate::peer::View;
use crate::protocol::{Event, Filter};
use crate::runtime::Clock;
use crate::store::{Query, Record, Store};

/// Gives the engine a command.
///
/// # Errors
/// There is no engine any more.
pub(super) async fn tell(commands: &mut Commands, command: Command) -> Result<(), String> {
    commands.send(command).await.map_err(|_| "the engine has ended".to_owned())
}

/// Tells the engine all that discovery has to know of what is held, page by page, announcements first: with these,
/// nothing that follows has to wait. Gives the number of events.
///
/// # Errors
/// The store cannot be read, or there is no engine any more.
pub(super) async fn replay(shared: &Shared, commands: &mut Commands) -> Result<u64, String> {
    let mut events = 0;
    for kind in Discovery::KINDS {
        events += replay_kind(shared, commands, kind).await?;
    }
    tell(commands, Command::AllHeld).await?;
    Ok(events)
}

async fn replay_kind(shared: &Shared, commands: &mut Commands, kind: u16) -> Result<u64, String> {
    let settings = shared.settings();
    let (mut count, mut after) = (0, None);
    loop {
        let query = Query {
            filter: Filter::new().kind(kind.into()),
            after,
            limit: settings.daemon.held_page_events,
            bytes_max: settings.daemon.held_page_bytes,
            now_secs: shared.clock.now().unix_secs,
            view: View::all(),
        };
        let page = shared.disk.query(query).await.map_err(|error| error.to_string())?;
        let events: Vec<Event> = page.records.into_iter().filter_map(parse).collect();
        count += events.len() as u64;
        tell(commands, Command::Accepted { events, origin: Origin::Held, brought: BTreeMap::new() }).await?;
        after = page.next;
        if after.is_none() {
            return Ok(count);
        }
    }
}

fn parse(record: Record) -> Option<Event> {
    Event::parse(record.json)
        .inspect_err(|error| tracing::error!("the store holds something that is no event: {error}"))
        .ok()
}
