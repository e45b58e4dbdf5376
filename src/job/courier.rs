//! Tells an engine of what others have stored: relays that are published to are to have it, and discovery is to know it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures_channel::mpsc;
use futures_util::SinkExt;

use super::runner::RunnerId;
use super::shared::Shared;
use crate::discover::Discovery;
use crate::engine::{Bringer, Command, Direction, Origin};
use crate::peer::View;
use crate::protocol::{Event, Filter};
use crate::runtime::{Clock, Runtime};
use crate::store::Sequence;
use crate::store::{Query, Record, Store};

/// Brings news to one engine, as long as that runs.
pub(super) struct Courier<'s, R: Runtime> {
    pub(super) shared: &'s Arc<Shared<R>>,
    pub(super) runner: RunnerId,
    pub(super) direction: Direction,
    pub(super) discovers: bool,
    /// What was stored up to this number, the engine finds in the store.
    pub(super) after: Sequence,
}

impl<R: Runtime> Courier<'_, R> {
    /// Goes on until it is dropped. A store that cannot be read fails the engine, too, which says so.
    pub(super) async fn run(mut self, mut commands: mpsc::Sender<Command>) -> Infallible {
        if self.discovers {
            match self.tell_held(&mut commands).await {
                Ok(()) => self.give(&mut commands, Command::AllHeld).await,
                Err(words) => {
                    self.shared.fail_runner(self.runner, &words);
                    return std::future::pending().await;
                }
            }
        }
        if !self.discovers && !self.direction.is_up() {
            return std::future::pending().await;
        }
        loop {
            let seen = self.shared.arrivals.count();
            match self.tell_arrivals(&mut commands).await {
                Ok(true) => {}
                Ok(false) => drop(self.shared.arrivals.past(seen).await),
                Err(words) => {
                    self.shared.fail_runner(self.runner, &words);
                    return std::future::pending().await;
                }
            }
        }
    }

    async fn give(&self, commands: &mut mpsc::Sender<Command>, command: Command) {
        // An engine that has ended takes this with it.
        if commands.send(command).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Tells discovery of what is held, announcements first: then nothing that follows has to wait.
    async fn tell_held(&self, commands: &mut mpsc::Sender<Command>) -> Result<(), String> {
        let mut pages = HeldPages::default();
        while let Some(events) = pages.next(self.shared).await? {
            self.give(commands, Command::Accepted { events, origin: Origin::Held, brought: BTreeMap::new() }).await;
        }
        Ok(())
    }

    /// Tells of what was stored since. Was there anything?
    async fn tell_arrivals(&mut self, commands: &mut mpsc::Sender<Command>) -> Result<bool, String> {
        let config = &self.shared.config;
        let store = self.shared.runtime.store();
        let arrivals = store.arrivals(self.after, config.arrivals_events_max, config.arrivals_bytes_max).await;
        let arrivals = arrivals.map_err(|error| error.to_string())?;
        self.after = arrivals.last;
        if arrivals.records.is_empty() {
            return Ok(false);
        }
        let (of_others, brought) = self.of_others(arrivals.records.into_iter().map(|(_, record)| record));
        let events: Vec<Event> = of_others.into_iter().filter_map(parse).filter(|event| self.is_news(event)).collect();
        if !events.is_empty() {
            self.give(commands, Command::Accepted { events, origin: Origin::Client, brought }).await;
        }
        Ok(true)
    }

    /// What the engine itself has stored, it knows. Of the rest, who has brought it, as far as that is known.
    fn of_others(&self, records: impl Iterator<Item = Record>) -> (Vec<Record>, BTreeMap<[u8; 32], Bringer>) {
        let state = self.shared.lock();
        let is_own = |record: &Record| state.origins.has_stored(self.runner, &record.id);
        let of_others: Vec<Record> = records.filter(|record| !is_own(record)).collect();
        let bringer = |record: &Record| {
            let origin = state.origins.of(&record.id)?;
            Some((record.id, Bringer::Relay(origin.relay.clone())))
        };
        let brought = of_others.iter().filter_map(bringer).collect();
        (of_others, brought)
    }

    fn is_news(&self, event: &Event) -> bool {
        self.direction.is_up() || Discovery::observes(event.kind_number())
    }
}

/// All that discovery has to know of what is held, page by page.
#[derive(Debug, Default)]
pub(super) struct HeldPages {
    kind: usize,
    after: Option<crate::store::Cursor>,
}

impl HeldPages {
    /// The next page; `None` after the last.
    pub(super) async fn next<R: Runtime>(&mut self, shared: &Shared<R>) -> Result<Option<Vec<Event>>, String> {
        let Some(kind) = Discovery::KINDS.get(self.kind) else { return Ok(None) };
        let query = Query {
            filter: Filter::new().kind((*kind).into()),
            after: self.after,
            limit: shared.config.arrivals_events_max,
            bytes_max: shared.config.arrivals_bytes_max,
            now_secs: shared.runtime.clock().now().unix_secs,
            view: View::all(),
        };
        let page = shared.runtime.store().query(query).await.map_err(|error| error.to_string())?;
        self.after = page.next;
        if self.after.is_none() {
            self.kind += 1;
        }
        Ok(Some(page.records.into_iter().filter_map(parse).collect()))
    }
}

/// What the store holds are events: what it reads as none is damaged, and not a reason to stop.
pub(super) fn parse(record: Record) -> Option<Event> {
    Event::parse(record.json)
        .inspect_err(|error| tracing::error!("the store holds something that is no event: {error}"))
        .ok()
}
