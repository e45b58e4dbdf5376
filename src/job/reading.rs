//! Reading what was stored for one job, behind a cursor.

use super::related::Related;
use super::shared::Shared;
use super::{JobError, JobsConfig, Taken};
use crate::protocol::filter::matches;
use crate::protocol::{Event, Filter};
use crate::runtime::{Clock, Now, Runtime};
use crate::store::Sequence;
use crate::store::Store;

/// Where the reader of a job is, and what it is to get.
pub(super) struct Reading {
    cursor: Sequence,
    selection: Selection,
}

/// What a job selects.
pub(super) enum Selection {
    /// What satisfies one of these.
    Filters(Vec<Filter>),
    /// What belongs to repositories.
    Repos(Box<Related>),
}

impl Selection {
    /// Is this event for the job? What it says of repositories is known from now on.
    fn selects(&mut self, event: &Event, now: Now, config: &JobsConfig) -> bool {
        match self {
            Self::Filters(filters) => filters.iter().any(|filter| matches(filter, event)),
            Self::Repos(related) => related.selects(event, now, config.passed_over_max),
        }
    }

    /// Learns what has to be known of what is held.
    async fn prepare<R: Runtime>(&mut self, shared: &Shared<R>) -> Result<(), JobError> {
        match self {
            Self::Filters(_) => Ok(()),
            Self::Repos(related) => related.prepare(shared).await,
        }
    }
}

impl Reading {
    pub(super) fn new(cursor: Sequence, selection: Selection) -> Self {
        Self { cursor, selection }
    }

    /// Everything up to this number was given out.
    pub(super) fn cursor(&self) -> Sequence {
        self.cursor
    }

    /// What is there now; `None` if there is nothing. The cursor moves when everything is at hand, and nothing is awaited
    /// any more: whoever gives up waiting loses nothing.
    pub(super) async fn read<R: Runtime>(
        &mut self,
        shared: &Shared<R>,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Option<Taken>, JobError> {
        self.selection.prepare(shared).await?;
        let (config, store) = (&shared.config, shared.runtime.store());
        let mut taken = Taken { cursor: self.cursor, ..Taken::default() };
        let mut bytes = 0;
        // Where most is for others, more and more is looked at in one go.
        let mut looks_at = events_max.max(1);
        let is_full = |taken: &Taken, bytes: usize| taken.records.len() >= events_max.max(1) || bytes >= bytes_max;
        while !is_full(&taken, bytes) {
            let limit = looks_at.min(config.arrivals_events_max.max(1));
            let arrivals = store.arrivals(taken.cursor, limit, config.arrivals_bytes_max).await;
            let arrivals = arrivals.map_err(JobError::of_store)?;
            looks_at = looks_at.saturating_mul(2);
            if arrivals.records.is_empty() {
                taken.cursor = taken.cursor.max(arrivals.last);
                break;
            }
            let now = shared.runtime.clock().now();
            let mut last = arrivals.last;
            for (number, record) in arrivals.records {
                if is_full(&taken, bytes) {
                    break;
                }
                last = number;
                let Some(event) = super::courier::parse(record.clone()) else { continue };
                let has_expired = event.expires_at_secs().is_some_and(|at| at <= now.unix_secs);
                if self.selection.selects(&event, now, config) && !has_expired {
                    bytes += record.json.len();
                    taken.records.push(record);
                }
            }
            taken.cursor = if is_full(&taken, bytes) { last } else { arrivals.last };
        }
        self.look_again(&mut taken, shared, events_max).await?;
        self.cursor = taken.cursor;
        if taken.records.is_empty() {
            return Ok(None);
        }
        self.name_origins(&mut taken, shared);
        Ok(Some(taken))
    }

    /// Adds what was passed over, and belongs to something by what has become known since.
    async fn look_again<R: Runtime>(
        &mut self,
        taken: &mut Taken,
        shared: &Shared<R>,
        events_max: usize,
    ) -> Result<(), JobError> {
        let Selection::Repos(related) = &mut self.selection else { return Ok(()) };
        related.look_again(shared).await?;
        let found = related.take_found(shared, events_max.saturating_sub(taken.records.len())).await?;
        taken.records.extend(found);
        Ok(())
    }

    fn name_origins<R: Runtime>(&self, taken: &mut Taken, shared: &Shared<R>) {
        let state = shared.lock();
        for record in &taken.records {
            let origin = state.origins.of(&record.id);
            taken.from.push(origin.map(|origin| origin.relay.clone()));
            taken.live.push(origin.is_some_and(|origin| origin.live));
        }
    }
}
