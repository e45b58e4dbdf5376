//! Segments that were read or written last, bounded in bytes.

use std::collections::BTreeMap;

use super::segment::Segment;

/// Segments by their names.
#[derive(Debug)]
pub(super) struct Cache {
    bytes_max: usize,
    bytes: usize,
    turn: u64,
    segments: BTreeMap<String, (u64, Segment)>,
    /// By the turn at which they were used last.
    turns: BTreeMap<u64, String>,
}

impl Cache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, turn: 0, segments: BTreeMap::new(), turns: BTreeMap::new() }
    }

    pub(super) fn find(&self, name: &str) -> Option<&Segment> {
        self.segments.get(name).map(|(_, segment)| segment)
    }

    /// Notes that a segment is in use.
    pub(super) fn touch(&mut self, name: &str) {
        if let Some((turn, _)) = self.segments.get_mut(name) {
            self.turn += 1;
            self.turns.remove(turn);
            *turn = self.turn;
            self.turns.insert(self.turn, name.to_owned());
        }
    }

    /// Takes a segment, and lets go of those that were not used for longest.
    pub(super) fn insert(&mut self, name: String, segment: Segment) {
        self.remove(&name);
        self.turn += 1;
        self.bytes += segment.memory_bytes();
        self.turns.insert(self.turn, name.clone());
        self.segments.insert(name, (self.turn, segment));
        while self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.turns.pop_first() else { return };
            self.remove(&oldest);
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some((turn, segment)) = self.segments.remove(name) {
            self.turns.remove(&turn);
            self.bytes -= segment.memory_bytes();
        }
    }
}
