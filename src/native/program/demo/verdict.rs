//! Whether the daemon holds what it should, and nothing else.

use std::collections::BTreeMap;

use super::super::numbers::{count, counted};
use super::super::{Exit, Failure};
use super::mirror::Mirror;
use crate::protocol::hex;
use crate::sample::world::{Claim, Form, Reason, World};

/// Events told of where something is wrong.
const TOLD_MAX: usize = 5;

/// Compares what a client of the daemon's relay has with the world.
pub(super) async fn pronounce(world: &World, mirror: &Mirror) -> Result<(String, Exit), Failure> {
    let (held, wanted) = (mirror.held().await?, world.wanted());
    if held == wanted {
        return Ok((praise(world, mirror), Exit::Complete));
    }
    let mut text = format!("\nThat is not as it should be: {} held, {} wanted.\n", held.len(), wanted.len());
    let wrong = [("lacking", wanted.difference(&held)), ("too much", held.difference(&wanted))];
    for (how, ids) in wrong {
        let all: Vec<&[u8; 32]> = ids.collect();
        text += &format!("{how}: {}\n", counted(all.len() as u64, "event"));
        for id in all.iter().take(TOLD_MAX) {
            text += &format!("  {} {:?}\n", hex::encode(*id), world.claim(id));
        }
    }
    Ok((text, Exit::Failed))
}

fn praise(world: &World, mirror: &Mirror) -> String {
    let mut forms: BTreeMap<Form, u64> = BTreeMap::new();
    let mut reasons: BTreeMap<Reason, u64> = BTreeMap::new();
    for event in world.events() {
        match event.claim {
            Claim::Wanted(of_it) => of_it.iter().for_each(|form| *forms.entry(*form).or_default() += 1),
            Claim::Unwanted(reason) => *reasons.entry(reason).or_default() += 1,
            Claim::Passing => {}
        }
    }
    let list = |numbers: Vec<String>| numbers.join(", ");
    let forms = list(forms.into_iter().map(|(form, number)| format!("{form}: {}", count(number))).collect());
    let reasons = list(reasons.into_iter().map(|(reason, number)| format!("{reason}: {}", count(number))).collect());
    format!(
        "\nChecked: the daemon's relay, {}, holds {}, exactly those wanted.\n\
         What led to them, some in several ways: {forms}.\n\
         What the relays hold and the daemon does not: {reasons}.\n",
        mirror.relay(),
        counted(world.wanted().len() as u64, "event"),
    )
}
