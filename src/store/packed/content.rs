//! What a store has in memory: everything but the bodies.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::cache::Cache;
use super::layout::{Contexts, Meta, SegmentName};
use super::ragged::Ragged;
use super::run::Run;
use super::segment::Segment;
use crate::protocol::{FilterKey, RelayUrl};
use crate::store::entry::{Entry, Range, Sequence};
use crate::store::fates::Fates;
use crate::store::tables::{Body, Damaged, Tables};
use crate::store::{Coverage, Outcome, RequestContext};

/// Stands for a body that is not in memory.
static BLANK: [u8; 4096] = [0; 4096];

/// The state of a store after one commit.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    pub(super) meta: Meta,
    pub(super) runs: Vec<Arc<Run>>,
    pub(super) fates: Fates,
    /// By their first numbers.
    pub(super) segments: BTreeMap<Sequence, SegmentName>,
    pub(super) ragged: Ragged,
    pub(super) coverage: BTreeMap<(RelayUrl, FilterKey), Coverage>,
    pub(super) contexts: Contexts,
    pub(super) swept_secs: u64,
}

impl Content {
    /// The segment that has the body of an event, if it has one.
    pub(super) fn segment_of(&self, sequence: Sequence) -> Option<&SegmentName> {
        self.segments.range(..=sequence).next_back().map(|(_, name)| name).filter(|name| sequence <= name.last)
    }

    /// What segments and index take in the backing; marks and fates are small.
    pub(super) fn bytes(&self) -> u64 {
        self.segments_bytes() + self.runs_bytes()
    }

    pub(super) fn segments_bytes(&self) -> u64 {
        self.segments.values().map(|name| u64::from(name.bytes)).sum()
    }

    pub(super) fn runs_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes() as u64).sum()
    }
}

/// Segments that one question has loaded: they stay until it is answered.
pub(super) type Loaded = BTreeMap<String, Segment>;

/// A content to be read. Bodies that are not in memory are noted; the answer that comes then is none: they are to be
/// loaded, and the question asked again.
pub(super) struct View<'c> {
    pub(super) content: &'c Content,
    pub(super) cache: &'c Cache,
    pub(super) loaded: &'c Loaded,
    pub(super) used: RefCell<BTreeSet<String>>,
    pub(super) missing: RefCell<BTreeMap<String, SegmentName>>,
}

impl<'c> View<'c> {
    pub(super) fn new(content: &'c Content, cache: &'c Cache, loaded: &'c Loaded) -> Self {
        Self { content, cache, loaded, used: RefCell::default(), missing: RefCell::default() }
    }

    /// A segment, if it is in memory.
    pub(super) fn segment(&self, name: &SegmentName) -> Option<&'c Segment> {
        let text = name.text();
        let found = self.loaded.get(&text).or_else(|| self.cache.find(&text));
        match found {
            Some(_) => drop(self.used.borrow_mut().insert(text)),
            None => drop(self.missing.borrow_mut().insert(text, *name)),
        }
        found
    }
}

impl Tables for View<'_> {
    type Error = Damaged;

    fn scan(&self, range: &Range, each: &mut dyn FnMut(&Entry) -> ControlFlow<()>) -> Result<(), Damaged> {
        if range.is_empty() {
            return Ok(());
        }
        self.content.runs.iter().try_for_each(|run| run.scan(range, each))
    }

    fn estimate(&self, range: &Range) -> Result<usize, Damaged> {
        if range.is_empty() {
            return Ok(0);
        }
        self.content.runs.iter().try_fold(0, |entries, run| Ok(entries + run.count(range)?))
    }

    fn fate(&self, sequence: Sequence) -> Option<Outcome> {
        self.content.fates.of(sequence)
    }

    fn body(&self, sequence: Sequence) -> Result<Option<Body>, Damaged> {
        let Some(name) = self.content.segment_of(sequence) else { return Ok(None) };
        match self.segment(name) {
            Some(segment) => Ok(segment.find(sequence)),
            // About as long, so that pages that end by their bytes ask for no more than they need.
            None => {
                let bytes = BLANK.len().min(name.body_bytes() as usize);
                Ok(Some(Body { author: [0; 32], json: Bytes::from_static(&BLANK[..bytes]) }))
            }
        }
    }

    fn context(&self, sequence: Sequence) -> Result<Option<RequestContext>, Damaged> {
        let before = self.content.contexts.range(..=sequence).next_back();
        Ok(before.filter(|(_, (last, _))| sequence <= *last).map(|(_, (_, context))| context.clone()))
    }

    fn next_sequence(&self) -> Sequence {
        self.content.meta.next_sequence
    }

    fn swept_secs(&self) -> u64 {
        self.content.swept_secs
    }
}
