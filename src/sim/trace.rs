//! What happened, for people to read and as a hash to compare.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::runtime::Instant;

/// Lines that are kept, and characters of each.
const LINES_KEPT: usize = 200;
const CHARS_MAX: usize = 160;

/// The last lines, and a hash over all of them.
#[derive(Debug, Default)]
pub(super) struct Trace {
    lines: VecDeque<(Duration, String)>,
    hash: u64,
    /// Told every line, as it happens.
    pub tell: Option<fn(&str)>,
}

impl Trace {
    /// Something happened: `what` to, or with, `whom`. A long text is kept only in part, but hashed as a whole.
    pub(super) fn note(&mut self, at: Instant, whom: impl fmt::Display, what: &str, text: &str) {
        let at = at.since_origin();
        self.mix(&(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX)).to_le_bytes());
        self.mix(what.as_bytes());
        self.mix(text.as_bytes());
        let mut line = format!("{whom} {what} ");
        self.mix(line.as_bytes());
        let room = CHARS_MAX.saturating_sub(line.len());
        line.push_str(&text[..text.floor_char_boundary(room)]);
        if let Some(tell) = self.tell {
            tell(&format!("{at:>16.6?} {line}"));
        }
        if self.lines.len() == LINES_KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back((at, line));
    }

    /// A hash over everything that was noted.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// What happened last.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.lines.iter().map(|(at, line)| format!("{at:>16.6?} {line}"))
    }

    fn mix(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let word = u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 56);
            self.hash = (self.hash.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
}
