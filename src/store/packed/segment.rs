//! Segments: bodies of events, packed in the order in which the events were stored.
//!
//! A segment begins with the number of its bodies; then a slot for each, ascending by sequence number (number, author,
//! end of the JSON); then the JSON, one after the other.

use bytes::Bytes;

use super::layout::SegmentName;
use super::record;
use crate::store::entry::Sequence;
use crate::store::tables::{Body, Damaged};

const SLOT_BYTES: usize = 44;

/// A segment that was read, or was just made.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    slots: Bytes,
    json: Bytes,
}

impl Segment {
    /// Opens what was read under `name`.
    pub(super) fn open(name: &SegmentName, bytes: &Bytes) -> Result<Self, Damaged> {
        let text = name.text();
        let content = record::open(&text, bytes)?;
        Self::decode(content, name.bodies).ok_or_else(|| Damaged { what: format!("segment {text}") })
    }

    fn decode(content: Bytes, bodies: u32) -> Option<Self> {
        let (count, rest) = content.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*count) != bodies {
            return None;
        }
        let slots_bytes = (bodies as usize).checked_mul(SLOT_BYTES)?;
        rest.split_at_checked(slots_bytes)?;
        Some(Self { slots: content.slice(4..4 + slots_bytes), json: content.slice(4 + slots_bytes..) })
    }

    fn slots(&self) -> &[[u8; SLOT_BYTES]] {
        self.slots.as_chunks().0
    }

    /// What it takes in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.len() + self.json.len()
    }

    /// The body of an event, if it is in here.
    pub(super) fn find(&self, sequence: Sequence) -> Option<Body> {
        let slot = self.slots().binary_search_by_key(&sequence, sequence_of).ok()?;
        self.body(slot)
    }

    /// All bodies, in order.
    pub(super) fn bodies(&self) -> impl Iterator<Item = (Sequence, Body)> {
        (0..self.slots().len()).filter_map(|slot| Some((sequence_of(&self.slots()[slot]), self.body(slot)?)))
    }

    fn body(&self, slot: usize) -> Option<Body> {
        let start = slot.checked_sub(1).map_or(0, |before| end_of(&self.slots()[before]));
        let end = end_of(&self.slots()[slot]);
        self.json.get(start..end)?;
        let author = self.slots()[slot][8..40].try_into().ok()?;
        Some(Body { author, json: self.json.slice(start..end) })
    }
}

fn sequence_of(slot: &[u8; SLOT_BYTES]) -> Sequence {
    u64::from_le_bytes(slot[..8].try_into().expect("eight bytes"))
}

fn end_of(slot: &[u8; SLOT_BYTES]) -> usize {
    u32::from_le_bytes(slot[40..].try_into().expect("four bytes")) as usize
}

/// A segment that was packed, with its record.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    pub(super) name: SegmentName,
    pub(super) record: Bytes,
    pub(super) segment: Segment,
}

/// Packs bodies that come in order of their sequence numbers.
#[derive(Debug, Default)]
pub(super) struct Packer {
    bytes_max: usize,
    first: Sequence,
    last: Sequence,
    slots: Vec<u8>,
    json: Vec<u8>,
    packed: Vec<Packed>,
}

impl Packer {
    /// Makes segments of up to `bytes_max` bytes, or of one body.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max: bytes_max.min(u32::MAX as usize / 2), ..Self::default() }
    }

    pub(super) fn push(&mut self, sequence: Sequence, author: &[u8; 32], json: &[u8]) -> Result<(), Damaged> {
        if !self.slots.is_empty() && self.slots.len() + SLOT_BYTES + self.json.len() + json.len() > self.bytes_max {
            self.flush();
        }
        if self.slots.is_empty() {
            self.first = sequence;
        }
        self.last = sequence;
        self.json.extend_from_slice(json);
        let too_large = || Damaged { what: format!("event number {sequence} is larger than 2 GiB") };
        let end = u32::try_from(self.json.len()).ok().filter(|end| *end <= u32::MAX / 2).ok_or_else(too_large)?;
        self.slots.extend_from_slice(&sequence.to_le_bytes());
        self.slots.extend_from_slice(author);
        self.slots.extend_from_slice(&end.to_le_bytes());
        Ok(())
    }

    fn flush(&mut self) {
        let bodies = (self.slots.len() / SLOT_BYTES) as u32;
        if bodies == 0 {
            return;
        }
        let mut content = Vec::with_capacity(4 + self.slots.len() + self.json.len() + 8);
        content.extend_from_slice(&bodies.to_le_bytes());
        content.append(&mut self.slots);
        content.append(&mut self.json);
        let name = SegmentName { first: self.first, last: self.last, bodies, bytes: (content.len() + 8) as u32 };
        let record = record::seal(&name.text(), content);
        let segment = Segment::decode(record.slice(..record.len() - 8), bodies).expect("it was just packed");
        self.packed.push(Packed { name, record, segment });
    }

    pub(super) fn finish(mut self) -> Vec<Packed> {
        self.flush();
        self.packed
    }
}
