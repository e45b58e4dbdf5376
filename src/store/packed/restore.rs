//! Opening: from records to a content. What can be made again from the rest is made again when it is damaged; what
//! cannot is an error that names the record.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::PackedFault;
use super::backing::{Contents, EPOCH, Name, epoch_of};
use super::build;
use super::content::Content;
use super::layout::{self, FORMAT, Kind, META, Meta, SegmentName};
use super::ragged;
use super::record;
use super::run::{Made, Run};
use super::segment::Segment;
use crate::ingest::Verified;
use crate::protocol::Event;
use crate::store::entry::{Entry, Range, Sequence};
use crate::store::fates;
use crate::store::tables::{Body, Damaged, Tables};
use crate::store::{Batch, Coverage, Outcome, RequestContext, StoreConfig, rules};

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Restored {
    pub(super) content: Content,
    pub(super) epoch: u64,
    /// Records that cannot be used and that nothing is lost with: to be removed.
    pub(super) useless: Vec<Name>,
    /// Are there runs among them? What they knew is to be found again in the segments.
    pub(super) has_lost_runs: bool,
}

/// Reads everything.
pub(super) fn restore(contents: Contents) -> Result<Restored, PackedFault> {
    let mut restored = Restored::default();
    let records: BTreeMap<String, Bytes> = contents.index.into_iter().collect();
    restored.epoch = epoch_of(records.get(EPOCH).map(|bytes| &bytes[..]));
    restored.content.meta = match records.get(META) {
        Some(bytes) => meta(bytes)?,
        None if records.len() <= 1 && contents.segments.is_empty() => Meta { format: FORMAT, ..Meta::default() },
        None => return Err(PackedFault::Damaged(format!("record {META} is missing"))),
    };
    for (name, bytes) in records.iter().filter(|(name, _)| name.as_str() != EPOCH) {
        if let Err(damaged) = restored.take(name, bytes)? {
            tracing::warn!("{damaged}: it is made anew");
            restored.useless.push(layout::index(name.clone()));
        }
    }
    for name in &contents.segments {
        let segment =
            SegmentName::parse(name).ok_or_else(|| Damaged { what: format!("the name of segment {name}") })?;
        restored.content.segments.insert(segment.first, segment);
    }
    restored.content.ragged = ragged::found(&restored.content);
    Ok(restored)
}

fn meta(bytes: &Bytes) -> Result<Meta, PackedFault> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
    }
    match layout::read_json::<Format>(META, bytes)?.format {
        FORMAT => Ok(layout::read_json(META, bytes)?),
        found => Err(PackedFault::NewerFormat { found, known: FORMAT }),
    }
}

impl Restored {
    /// Takes one record. The inner error is of one that can be done without.
    fn take(&mut self, name: &str, bytes: &Bytes) -> Result<Result<(), Damaged>, PackedFault> {
        let content = &mut self.content;
        match Kind::of(name) {
            Some(Kind::Meta) => {}
            Some(Kind::Run(number)) => match Run::open(number, bytes) {
                Ok(run) => content.runs.push(Arc::new(run)),
                Err(damaged) => {
                    self.has_lost_runs = true;
                    return Ok(Err(damaged));
                }
            },
            Some(Kind::Fates(block)) => {
                let bytes = record::open(name, bytes)?;
                if !fates::is_possible(block, content.meta.next_sequence) {
                    return Err(fates::damaged(block).into());
                }
                content.fates.restore(block, &bytes)?;
            }
            // A proof that is lost is proven again.
            Some(Kind::Mark) => match layout::read_json::<Coverage>(name, bytes) {
                Ok(mark) => drop(content.coverage.insert((mark.relay.clone(), mark.filter.clone()), mark)),
                Err(damaged) => return Ok(Err(damaged)),
            },
            // For statistics only.
            Some(Kind::Context) => match layout::read_json::<Vec<(Sequence, Sequence, RequestContext)>>(name, bytes) {
                Ok(rows) => content.contexts.extend(rows.into_iter().map(|(first, last, who)| (first, (last, who)))),
                Err(damaged) => return Ok(Err(damaged)),
            },
            None => return Err(PackedFault::Foreign(format!("it has a record {name}"))),
        }
        Ok(Ok(()))
    }
}

/// Makes a run of the events in `segments` that no run of `content` knows. What was gone, and has no body, is forgotten:
/// it is judged anew if it comes again.
pub(super) fn rebuilt(
    content: &Content,
    segments: &[Segment],
    number: u64,
    config: &StoreConfig,
) -> Result<Option<Made>, Damaged> {
    let known = build::sequences(&content.runs);
    let mut entries: Vec<Entry> = Vec::new();
    for (sequence, body) in segments.iter().flat_map(Segment::bodies) {
        if known.binary_search(&sequence).is_err() && content.fates.of(sequence).is_none() {
            entries.extend(entries_of(sequence, body, config)?);
        }
    }
    Ok(build::run_of(number, entries))
}

/// The entries of one event, as if it were the first that a store has ever got.
fn entries_of(sequence: Sequence, body: Body, config: &StoreConfig) -> Result<Vec<Entry>, Damaged> {
    let fault = |error| Damaged { what: format!("event number {sequence}: {error}") };
    let event = Verified::trust(Event::parse(body.json).map_err(fault)?);
    let changes = rules::apply(&Blank(sequence), Batch { events: vec![event], ..Batch::default() }, config)?;
    Ok(changes.points.into_iter().chain(changes.entries).collect())
}

/// Tables with nothing in them, where the next event gets this number.
struct Blank(Sequence);

impl Tables for Blank {
    type Error = Damaged;

    fn scan(&self, _: &Range, _: &mut dyn FnMut(&Entry) -> ControlFlow<()>) -> Result<(), Damaged> {
        Ok(())
    }

    fn estimate(&self, _: &Range) -> Result<usize, Damaged> {
        Ok(0)
    }

    fn fate(&self, _: Sequence) -> Option<Outcome> {
        None
    }

    fn body(&self, _: Sequence) -> Result<Option<Body>, Damaged> {
        Ok(None)
    }

    fn context(&self, _: Sequence) -> Result<Option<RequestContext>, Damaged> {
        Ok(None)
    }

    fn next_sequence(&self) -> Sequence {
        self.0
    }

    fn swept_secs(&self) -> u64 {
        0
    }
}
