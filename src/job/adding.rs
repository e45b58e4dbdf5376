//! Events by other ways than relays: added by the caller, read from lines, written as lines.

use bytes::Bytes;

use super::shared::Shared;
use super::{Added, Exported, Imported, JobError};
use crate::ingest::{Verdict, Verified};
use crate::peer::View;
use crate::protocol::{Event, lines};
use crate::runtime::{Clock, Runtime};
use crate::store::Sequence;
use crate::store::{Batch, Outcome, Store};

impl<R: Runtime> Shared<R> {
    /// See [`Jobs::add`](super::Jobs::add).
    pub(super) async fn add(&self, events: Vec<Event>) -> Result<Vec<Added>, JobError> {
        let mut added = Vec::with_capacity(events.len());
        let mut events = events.into_iter();
        loop {
            let chunk: Vec<Event> = events.by_ref().take(self.config.add_events_max.max(1)).collect();
            if chunk.is_empty() {
                return Ok(added);
            }
            added.extend(self.add_chunk(chunk).await?);
        }
    }

    async fn add_chunk(&self, events: Vec<Event>) -> Result<Vec<Added>, JobError> {
        if self.lock().is_closed {
            return Err(JobError::Closed);
        }
        let verdicts = self.runtime.verify(events).await;
        let (mut genuine, mut added) = (Vec::new(), Vec::new());
        for verdict in verdicts {
            added.push(match verdict {
                Verdict::Valid(event) => {
                    genuine.push(event);
                    None
                }
                Verdict::Known => Some(Added::Committed(Outcome::Duplicate)),
                Verdict::Invalid(why) => Some(Added::Invalid(why)),
            });
        }
        let mut outcomes = self.commit(genuine).await?.into_iter();
        Ok(added.into_iter().map_while(|known| known.or_else(|| outcomes.next().map(Added::Committed))).collect())
    }

    async fn commit(&self, events: Vec<Verified<Event>>) -> Result<Vec<Outcome>, JobError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let batch = Batch { events, now_secs: self.runtime.clock().now().unix_secs, ..Batch::default() };
        let outcomes = self.runtime.store().commit(batch).await.map_err(JobError::of_store)?;
        if outcomes.contains(&Outcome::Stored) {
            self.arrivals.ring();
        }
        Ok(outcomes)
    }

    /// See [`Jobs::import`](super::Jobs::import).
    pub(super) async fn import(&self, text: &str) -> Result<Imported, JobError> {
        let mut imported = Imported::default();
        let mut chunk: Vec<(u64, Event)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            imported.lines += 1;
            match lines::parse(&Bytes::copy_from_slice(line.as_bytes())) {
                Ok(event) => chunk.push((number, event)),
                Err(why) => {
                    imported.malformed += 1;
                    imported.note(number, &why);
                }
            }
            if chunk.len() >= self.config.add_events_max.max(1) {
                self.import_chunk(std::mem::take(&mut chunk), &mut imported).await?;
            }
        }
        self.import_chunk(chunk, &mut imported).await?;
        Ok(imported)
    }

    /// What the store knows costs no signature.
    async fn import_chunk(&self, chunk: Vec<(u64, Event)>, imported: &mut Imported) -> Result<(), JobError> {
        let ids = chunk.iter().map(|(_, event)| event.id.to_bytes()).collect();
        let known = self.runtime.store().known(ids, &View::all()).await.map_err(JobError::of_store)?;
        let mut is_known = known.into_iter();
        let count = chunk.len() as u64;
        let (numbers, unknown): (Vec<u64>, Vec<Event>) =
            chunk.into_iter().filter(|_| !is_known.next().unwrap_or(false)).unzip();
        imported.duplicate += count - unknown.len() as u64;
        for (number, added) in numbers.into_iter().zip(self.add(unknown).await?) {
            match added {
                Added::Committed(Outcome::Stored) => imported.stored += 1,
                Added::Committed(Outcome::Duplicate) => imported.duplicate += 1,
                Added::Committed(_) => imported.unwanted += 1,
                Added::Invalid(why) => {
                    imported.invalid += 1;
                    imported.note(number, why.reason());
                }
            }
        }
        Ok(())
    }

    /// See [`Jobs::export`](super::Jobs::export).
    pub(super) async fn export(&self, after: Sequence, bytes_max: usize) -> Result<Exported, JobError> {
        let store = self.runtime.store();
        let after = self.cursor(Some(after)).await?;
        let arrivals = store.arrivals(after, usize::MAX, bytes_max).await.map_err(JobError::of_store)?;
        let mut text = Vec::new();
        arrivals.records.iter().for_each(|(_, record)| lines::push(&record.json, &mut text));
        let last = store.last_arrival().await.map_err(JobError::of_store)?;
        let is_all = arrivals.records.is_empty() || arrivals.last >= last;
        let text = String::from_utf8(text).map_err(JobError::of_store)?;
        Ok(Exported { text, next: (!is_all).then_some(arrivals.last) })
    }
}

impl Imported {
    /// The first mistake is the one that is told of.
    fn note(&mut self, line: u64, why: &str) {
        self.first_error.get_or_insert_with(|| format!("line {line}: {why}"));
    }
}
