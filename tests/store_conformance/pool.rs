//! A pool of few events that have much to do with each other, for random batches.

use relaysync::protocol::hex;

use crate::events::*;

/// So many different events there are, in so few seconds that ties are the rule.
pub(crate) const POOL: u32 = 300;
pub(crate) const SECS: u32 = 12;

/// Event number `n` of the pool: always the same, and as mixed as its digits.
pub(crate) fn pooled(n: u32) -> Draft {
    let mixed = n.wrapping_mul(2_654_435_761) >> 4;
    let digit = |place: u32, bound: u32| mixed.rotate_right(place * 5).wrapping_mul(40_503) / 7 % bound;
    let kinds = [1, 1, 7, 0, 3, 5, 5, 62, 10_002, 20_001, 30_023, 30_023];
    let kind = kinds[digit(0, kinds.len() as u32) as usize];
    let mut event = draft(n, u64::from(digit(1, SECS))).by(1 + digit(2, 3) as u8).kind(kind);
    for place in 3..3 + digit(3, 4) {
        event = match digit(place + 1, 7) {
            0 | 1 => event.tag("e", &hex::encode(&id_of(digit(place, POOL)))),
            2 => {
                let kind = [0, 10_002, 30_023, 30_023][digit(place, 4) as usize];
                let author = hex::encode(&author_of(1 + digit(place + 2, 3) as u8));
                let identifier = if kind == 30_023 { ["a", "b", ""][digit(place + 1, 3) as usize] } else { "" };
                event.tag("a", &format!("{kind}:{author}:{identifier}"))
            }
            3 => event.tag("t", ["x", "y"][digit(place, 2) as usize]),
            4 => event.tag("d", ["a", "b"][digit(place, 2) as usize]),
            5 => event.tag("expiration", &digit(place, 2 * SECS).to_string()),
            _ if digit(place, 8) == 0 => event.tag("relay", "ALL_RELAYS"),
            _ => event.tag("T", "x"),
        };
    }
    event
}
