//! Bodies of events, packed into blobs.
//!
//! A blob begins with the number of its events; then a slot for each, ascending by sequence number (number, author,
//! end of the JSON); then the JSON, one after the other.

use bytes::Bytes;
use redb::{ReadOnlyTable, Table};

use super::error::StoreFault;
use crate::store::entry::Sequence;
use crate::store::tables::Body;

/// A blob with its key fits the four pages that the database would give it anyway.
const BLOB_BYTES_MAX: usize = 16_320;
const SLOT_BYTES: usize = 44;

/// A blob, to be read.
pub(super) struct Packed<'b> {
    slots: &'b [[u8; SLOT_BYTES]],
    json: &'b [u8],
}

impl<'b> Packed<'b> {
    fn open(blob: &'b [u8]) -> Option<Self> {
        let (count, rest) = blob.split_first_chunk::<4>()?;
        let slots_bytes = (u32::from_le_bytes(*count) as usize).checked_mul(SLOT_BYTES)?;
        let (slots, json) = rest.split_at_checked(slots_bytes)?;
        Some(Self { slots: slots.as_chunks().0, json })
    }

    fn find(&self, sequence: Sequence) -> Option<usize> {
        self.slots.binary_search_by_key(&sequence, sequence_of).ok()
    }

    fn read(&self, slot: usize) -> Option<([u8; 32], &'b [u8])> {
        let start = slot.checked_sub(1).map_or(0, |before| end_of(&self.slots[before]));
        let json = self.json.get(start..end_of(&self.slots[slot]))?;
        Some((self.slots[slot][8..40].try_into().ok()?, json))
    }
}

fn sequence_of(slot: &[u8; SLOT_BYTES]) -> Sequence {
    u64::from_le_bytes(slot[..8].try_into().expect("eight bytes"))
}

fn end_of(slot: &[u8; SLOT_BYTES]) -> usize {
    u32::from_le_bytes(slot[40..].try_into().expect("four bytes")) as usize
}

fn damaged(sequence: Sequence) -> StoreFault {
    StoreFault::Damaged(format!("the body of event number {sequence}"))
}

/// Packs bodies that come in order of their sequence numbers.
#[derive(Default)]
pub(super) struct Packer {
    first: Sequence,
    slots: Vec<u8>,
    json: Vec<u8>,
}

impl Packer {
    pub(super) fn push(
        &mut self,
        table: &mut Table<u64, &'static [u8]>,
        sequence: Sequence,
        author: &[u8; 32],
        json: &[u8],
    ) -> Result<(), StoreFault> {
        if !self.slots.is_empty() && 4 + self.slots.len() + SLOT_BYTES + self.json.len() + json.len() > BLOB_BYTES_MAX {
            self.flush(table)?;
        }
        if self.slots.is_empty() {
            self.first = sequence;
        }
        self.append(sequence, author, json)
    }

    fn append(&mut self, sequence: Sequence, author: &[u8; 32], json: &[u8]) -> Result<(), StoreFault> {
        self.json.extend_from_slice(json);
        let too_large = || StoreFault::Damaged(format!("event number {sequence} is larger than 4 GiB"));
        let end = u32::try_from(self.json.len()).map_err(|_| too_large())?;
        self.slots.extend_from_slice(&sequence.to_le_bytes());
        self.slots.extend_from_slice(author);
        self.slots.extend_from_slice(&end.to_le_bytes());
        Ok(())
    }

    pub(super) fn flush(&mut self, table: &mut Table<u64, &'static [u8]>) -> Result<(), StoreFault> {
        let count = (self.slots.len() / SLOT_BYTES) as u32;
        if count == 0 {
            return Ok(());
        }
        let mut blob = table.insert_reserve(self.first, 4 + self.slots.len() + self.json.len())?;
        let (head, rest) = blob.as_mut().split_at_mut(4);
        let (slots, json) = rest.split_at_mut(self.slots.len());
        head.copy_from_slice(&count.to_le_bytes());
        slots.copy_from_slice(&self.slots);
        json.copy_from_slice(&self.json);
        drop(blob);
        self.slots.clear();
        self.json.clear();
        Ok(())
    }
}

/// The body of an event, if it has one.
pub(super) fn find(table: &ReadOnlyTable<u64, &'static [u8]>, sequence: Sequence) -> Result<Option<Body>, StoreFault> {
    let Some(row) = table.range(..=sequence)?.next_back() else { return Ok(None) };
    let blob = row?.1;
    let packed = Packed::open(blob.value()).ok_or_else(|| damaged(sequence))?;
    let Some(slot) = packed.find(sequence) else { return Ok(None) };
    let (author, json) = packed.read(slot).ok_or_else(|| damaged(sequence))?;
    Ok(Some(Body { author, json: Bytes::copy_from_slice(json) }))
}

/// Cuts out the bodies of `gone`, ascending, which `old` may have.
pub(super) fn remove(
    table: &mut Table<u64, &'static [u8]>,
    old: &ReadOnlyTable<u64, &'static [u8]>,
    gone: impl Iterator<Item = Sequence>,
) -> Result<(), StoreFault> {
    let mut gone = gone.peekable();
    while let Some(first) = gone.peek().copied() {
        let Some(row) = old.range(..=first)?.next_back() else {
            gone.next();
            continue;
        };
        let (key, blob) = row?;
        let packed = Packed::open(blob.value()).ok_or_else(|| damaged(first))?;
        let last = packed.slots.last().map_or(first, sequence_of).max(first);
        let mut cut = Vec::new();
        while let Some(sequence) = gone.next_if(|sequence| *sequence <= last) {
            cut.extend(packed.find(sequence));
        }
        rewrite(table, key.value(), &packed, &cut)?;
    }
    Ok(())
}

fn rewrite(table: &mut Table<u64, &'static [u8]>, key: u64, packed: &Packed, cut: &[usize]) -> Result<(), StoreFault> {
    if cut.is_empty() {
        return Ok(());
    }
    if cut.len() == packed.slots.len() {
        table.remove(key)?;
        return Ok(());
    }
    let mut packer = Packer { first: key, ..Packer::default() };
    for (slot, bytes) in packed.slots.iter().enumerate() {
        if cut.binary_search(&slot).is_err() {
            let sequence = sequence_of(bytes);
            let (author, json) = packed.read(slot).ok_or_else(|| damaged(sequence))?;
            packer.append(sequence, &author, json)?;
        }
    }
    packer.flush(table)
}
