//! Why events are gone: a byte for each sequence number, in blocks that are shared until they change.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Outcome;
use super::entry::Sequence;
use super::tables::Damaged;

const BLOCK_EVENTS: usize = 4000;

type Block = [u8; BLOCK_EVENTS];

/// The fates of all events. A clone is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fates {
    blocks: Vec<Option<Arc<Block>>>,
}

impl Fates {
    pub(crate) fn of(&self, sequence: Sequence) -> Option<Outcome> {
        let (block, offset) = place(sequence);
        let block = self.blocks.get(block)?.as_ref()?;
        outcome(block[offset])
    }

    /// How many of the events with numbers from `first` to `last` are gone.
    pub(crate) fn gone(&self, first: Sequence, last: Sequence) -> u64 {
        let (first_block, last_block) = (place(first).0, place(last).0);
        let mut gone = 0;
        for (number, block) in self.blocks.iter().enumerate().skip(first_block).take(last_block + 1 - first_block) {
            let Some(block) = block else { continue };
            let start = if number == first_block { place(first).1 } else { 0 };
            let end = if number == last_block { place(last).1 + 1 } else { BLOCK_EVENTS };
            gone += block[start..end].iter().filter(|byte| **byte != 0).count() as u64;
        }
        gone
    }

    /// Notes fates, and names the blocks that have changed.
    pub(crate) fn extend(&mut self, fates: &BTreeMap<Sequence, Outcome>) -> Vec<u64> {
        let mut changed = Vec::new();
        for (sequence, fate) in fates {
            let (block, offset) = place(*sequence);
            if self.blocks.len() <= block {
                self.blocks.resize(block + 1, None);
            }
            let bytes = self.blocks[block].get_or_insert_with(|| Arc::new([0; BLOCK_EVENTS]));
            Arc::make_mut(bytes)[offset] = number(*fate);
            if changed.last() != Some(&(block as u64)) {
                changed.push(block as u64);
            }
        }
        changed
    }

    /// The bytes of a block.
    pub(crate) fn block(&self, block: u64) -> Option<&[u8]> {
        let block = self.blocks.get(usize::try_from(block).ok()?)?.as_ref()?;
        Some(&block[..])
    }

    /// Takes a block that was written before.
    pub(crate) fn restore(&mut self, block: u64, bytes: &[u8]) -> Result<(), Damaged> {
        let damaged = || damaged(block);
        let bytes: Block = bytes.try_into().map_err(|_| damaged())?;
        let block = usize::try_from(block).map_err(|_| damaged())?;
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, None);
        }
        self.blocks[block] = Some(Arc::new(bytes));
        Ok(())
    }
}

/// This block cannot be what was written.
pub(crate) fn damaged(block: u64) -> Damaged {
    Damaged { what: format!("block {block} of fates") }
}

/// Can a store that has given out no more than `sequences` numbers have this block?
pub(crate) fn is_possible(block: u64, sequences: Sequence) -> bool {
    block <= sequences / BLOCK_EVENTS as u64
}

fn place(sequence: Sequence) -> (usize, usize) {
    let events = BLOCK_EVENTS as u64;
    ((sequence / events) as usize, (sequence % events) as usize)
}

fn number(fate: Outcome) -> u8 {
    match fate {
        Outcome::Superseded => 1,
        Outcome::Deleted => 2,
        Outcome::Vanished => 3,
        Outcome::Expired => 4,
        Outcome::Pruned => 5,
        Outcome::Stored | Outcome::Duplicate | Outcome::Ephemeral => 0,
    }
}

fn outcome(number: u8) -> Option<Outcome> {
    match number {
        1 => Some(Outcome::Superseded),
        2 => Some(Outcome::Deleted),
        3 => Some(Outcome::Vanished),
        4 => Some(Outcome::Expired),
        5 => Some(Outcome::Pruned),
        _ => None,
    }
}
