//! The faults of a relay, drawn: a random subset, each with a rate of its own.
//!
//! Each kind of fault says whether it *hides*: whether a client that hears nothing else from the relay cannot notice
//! that an event was withheld. What a client proves of such a relay is not checked against what the relay holds. All
//! others must show: by a gap, by a request that is never answered, by an answer that contradicts another.

mod kind;

use std::sync::Arc;

pub use kind::{Kind, SessionKind};

use crate::engine::Rng;
use crate::protocol::Event;
use crate::sim::tamper::{Chance, Info, Tamper};

/// The faults of one relay.
#[derive(Debug)]
pub struct Drawn {
    /// From the inside out: the last one stands nearest to the clients.
    pub tampers: Vec<Box<dyn Tamper>>,
    /// What they are, for people: `eose lost 30‰`.
    pub names: Vec<String>,
    /// The relay may withhold an event in a way that no client could notice.
    pub hides: bool,
    /// What becomes of requests for its relay information document.
    pub info: Info,
}

/// Faults of one relay, at most.
const FAULTS_MAX: u64 = 9;

/// Draws the faults of a relay: none, often a few, sometimes many. About one relay in four may hide events. `pool` has
/// every event that the relay may come to have.
pub fn draw(rng: &mut Rng, pool: &Arc<[Event]>) -> Drawn {
    let mut chance = Chance::always(rng.bits());
    let many = match chance.below(8) {
        0 => 0,
        1..=5 => chance.within(1, 3),
        _ => chance.within(4, FAULTS_MAX),
    };
    let may_hide = chance.below(4) == 0;
    let mut kinds: Vec<Kind> = Vec::new();
    // What does not go with the others is not drawn again: then there are fewer.
    for _ in 0..many {
        let Some(kind) = chance.pick(&Kind::ALL).copied() else { break };
        if !kinds.contains(&kind) && (may_hide || !hides(&kinds, kind)) {
            kinds.push(kind);
        }
    }
    let hides = kinds.iter().any(|kind| hides(&kinds, *kind));
    let (mut tampers, mut names) = (Vec::new(), Vec::new());
    for kind in kinds {
        let rate = kind.draw_rate(&mut chance);
        let (tamper, name) = kind.make(rate, pool, &mut chance);
        tampers.push(tamper);
        names.push(name);
    }
    let info = draw_info(&mut chance, &mut names);
    Drawn { tampers, names, hides, info }
}

/// Does `kind` hide events, alone or together with one of these?
fn hides(kinds: &[Kind], kind: Kind) -> bool {
    kind.hides() || kinds.iter().any(|other| kind.hides_with(*other))
}

fn draw_info(chance: &mut Chance, names: &mut Vec<String>) -> Info {
    let (info, name) = match chance.below(16) {
        0..=5 => return Info::True,
        6..=8 => (Info::Missing, "information missing"),
        9..=11 => (Info::wrong(chance), "information wrong"),
        12 => (Info::huge(), "information huge"),
        13 => (Info::garbage(chance), "information garbage"),
        _ => (Info::Silent, "information never given"),
    };
    names.push(name.to_owned());
    info
}
