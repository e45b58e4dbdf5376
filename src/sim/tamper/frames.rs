//! Faults of frames, whatever is in them.

use super::{Chance, Tamper, Turn, name_of};
use crate::protocol::message::relay;

/// What may befall frames of a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFault {
    /// A frame comes twice.
    Twice,
    /// The connection closes instead of the next frame, without a word.
    Cut,
    /// The same, with words that may mean something.
    CutWithWords,
    /// A burst of what nobody asked for, some tens of kilobytes.
    Flood,
    /// A burst of 20 MB.
    BigFlood,
    /// Something that is no message comes first.
    Garbage,
    /// A message comes first whose text is no Unicode, or was none before somebody repaired it.
    BrokenText,
    /// A frame is cut off. EVENTs come whole behind the piece; whatever else is lost.
    Truncated,
    /// The last part of an EVENT is lost, and with it the event.
    TruncatedEvent,
    /// JSON that is nested deeply comes first.
    Deep,
    /// A frame of 5 MB comes first.
    Oversize,
    /// A NOTICE that means nothing comes first.
    Chatter,
    /// The subscription of an EVENT is closed before it, for no reason that anybody could understand.
    ClosedForNothing,
}

impl FrameFault {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Twice => "frame twice",
            Self::Cut => "cut in mid-stream",
            Self::CutWithWords => "cut with words",
            Self::Flood => "flood",
            Self::BigFlood => "flood of 20 MB",
            Self::Garbage => "garbage",
            Self::BrokenText => "broken text",
            Self::Truncated => "frame truncated",
            Self::TruncatedEvent => "event truncated",
            Self::Deep => "deep json",
            Self::Oversize => "oversize frame",
            Self::Chatter => "chatter",
            Self::ClosedForNothing => "closed for nothing",
        }
    }
}

/// A relay some of whose frames go wrong.
#[derive(Debug, Clone)]
pub struct Frames {
    fault: FrameFault,
    chance: Chance,
    /// How often it may still happen: what costs much is rare.
    left: u32,
}

/// Frames of a flood, at most.
const FLOOD_FRAMES_MAX: u64 = 200;

/// Frames of a flood of 20 MB, and the bytes of each.
const BIG_FLOOD_FRAMES: usize = 20;
const BIG_FLOOD_FRAME_BYTES: usize = 1 << 20;

/// Bytes of a frame that no client should take.
const OVERSIZE_BYTES: usize = 5 << 20;

/// How deep deep JSON is.
const DEPTH: usize = 2_000;

impl Frames {
    /// With this fault, so often.
    pub fn new(fault: FrameFault, chance: Chance) -> Self {
        let left = match fault {
            FrameFault::BigFlood | FrameFault::Oversize => 2,
            FrameFault::Cut | FrameFault::CutWithWords | FrameFault::Deep => 200,
            _ => u32::MAX,
        };
        Self { fault, chance, left }
    }

    /// Does it happen to this frame?
    fn happens(&mut self, frame: &str) -> bool {
        let is_event = frame.starts_with("[\"EVENT\"");
        let concerns = match self.fault {
            FrameFault::TruncatedEvent | FrameFault::ClosedForNothing => is_event,
            _ => true,
        };
        if !concerns || self.left == 0 || !self.chance.hits() {
            return false;
        }
        self.left -= 1;
        true
    }

    fn flood(&mut self, near: &str, turn: &mut Turn) {
        for number in 0..self.chance.within(20, FLOOD_FRAMES_MAX) {
            match self.chance.below(4) {
                0 => turn.say(relay::notice(&format!("spam {number}"))),
                1 => turn.say(format!("[\"EVENT\",\"s{}\",{{}}]", 1_000_000 + number)),
                2 => turn.say(format!("spam {number}")),
                // What came before, once more, under a name that was never opened.
                _ => turn.say(piece_of(near).replacen("\"s", "\"flood", 1)),
            }
        }
    }
}

impl Tamper for Frames {
    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        if !self.happens(&frame) {
            turn.say(frame);
            return;
        }
        turn.inject(self.fault.name());
        match self.fault {
            FrameFault::Twice => turn.say(frame.clone()),
            FrameFault::Cut => return turn.close(""),
            FrameFault::CutWithWords => return turn.close(self.chance.words(&LAST_WORDS)),
            FrameFault::Flood => self.flood(&frame, turn),
            FrameFault::BigFlood => {
                (0..BIG_FLOOD_FRAMES).for_each(|_| turn.say(relay::notice(&"~".repeat(BIG_FLOOD_FRAME_BYTES))));
            }
            FrameFault::Garbage => turn.say(self.chance.words(&GARBAGE)),
            FrameFault::BrokenText => turn.say(broken(&frame, self.chance.below(3))),
            FrameFault::Truncated => {
                turn.say(piece_of(&frame));
                if !frame.starts_with("[\"EVENT\"") {
                    return;
                }
            }
            FrameFault::TruncatedEvent => return turn.say(piece_of(&frame)),
            FrameFault::Deep => turn.say(format!("[\"NOTICE\",{}{}]", "[".repeat(DEPTH), "]".repeat(DEPTH))),
            FrameFault::Oversize => turn.say(relay::notice(&"~".repeat(OVERSIZE_BYTES))),
            FrameFault::Chatter => turn.say(relay::notice(self.chance.words(&CHATTER))),
            FrameFault::ClosedForNothing => {
                let closed = name_of(&frame, "EVENT").map(|name| relay::closed(name, self.chance.words(&REASONS)));
                closed.into_iter().for_each(|closed| turn.say(closed));
            }
        }
        turn.say(frame);
    }
}

/// The first two thirds of a frame, to the next whole character.
fn piece_of(frame: &str) -> &str {
    let end = (0..=frame.len() / 3 * 2).rev().find(|at| frame.is_char_boundary(*at)).unwrap_or(0);
    &frame[..end]
}

/// A copy of a frame with a text that is no Unicode: as replacement characters, as half of a pair of escapes, as an
/// escape that is cut off.
fn broken(frame: &str, how: u64) -> String {
    let text = ["\u{FFFD}\u{FFFD}", "\\ud800", "\\u12"][usize::try_from(how).unwrap_or(0).min(2)];
    match frame.rfind("\"content\":\"") {
        Some(at) => {
            let (head, tail) = frame.split_at(at + "\"content\":\"".len());
            format!("{head}{text}{tail}").replacen("\"s", "\"broken", 1)
        }
        None => format!("[\"NOTICE\",\"{text}\"]"),
    }
}

const LAST_WORDS: [&str; 5] =
    ["", "going away", "error: shutting down", "restart in 5 minutes", "policy violation: \u{FFFD}"];

const GARBAGE: [&str; 16] = [
    "",
    " ",
    "\u{0}",
    "[]",
    "{}",
    "null",
    "<html><body>502 Bad Gateway</body></html>",
    "[\"EVENT\"]",
    "[\"EVENT\",\"s1\",{}]",
    "[\"EOSE\",{}]",
    "[\"OK\",\"zz\",true,\"\"]",
    "[\"NEG-MSG\",\"s1\"]",
    "[\"AUTH\",7]",
    "[\"CLOSED\"]",
    "[\"COUNT\",\"s1\",{\"count\":-1}]",
    "[\"event\",\"s1\",[]]",
];

const CHATTER: [&str; 5] = [
    "welcome to the relay",
    "this relay moves next week",
    "your support keeps us running",
    "restricted: members only, on Tuesdays",
    "",
];

const REASONS: [&str; 5] =
    ["", "error: shutting down idle subscription", "blocked: spam", "mute: no", "unheard-of: \u{1F680}"];
