//! Signed events that all seeds draw from: signing and checking are pure, so both are done once a process.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::draft::{Draft, note};
use super::repositories::repository_event;
use super::world::NOW_SECS;
use crate::engine::Rng;
use crate::ingest::{Invalid, Verified, verify};
use crate::protocol::Event;
use crate::protocol::event::PublicKey;

/// Authors of events of the pool: 1 to this.
const AUTHORS: u64 = 6;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// What the pool holds.
#[derive(Debug)]
struct Pool {
    authors: Vec<PublicKey>,
    events: Arc<[Event]>,
    by_id: BTreeMap<[u8; 32], usize>,
}

fn the_pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| {
        let authors: Vec<PublicKey> = (1..=AUTHORS as u8).map(|author| note(0).by(author).sign().pubkey).collect();
        let events: Arc<[Event]> = make(&authors).into();
        let by_id = events.iter().enumerate().map(|(index, event)| (event.id.to_bytes(), index)).collect();
        Pool { authors, events, by_id }
    })
}

/// All events: notes of a month and of the last hour, seconds with many, versions of what is replaced, deletions, dates
/// of the future and of 1970, events that expire; and some that are dated within the next hours.
pub fn pool() -> &'static Arc<[Event]> {
    &the_pool().events
}

/// The authors of the pool's events.
pub fn authors() -> &'static [PublicKey] {
    &the_pool().authors
}

/// Checks an event as [`verify`] does; one of the pool, byte for byte, need not be checked again.
pub(super) fn check(event: Event) -> Result<Verified<Event>, Invalid> {
    let of_pool = the_pool().by_id.get(event.id.as_bytes()).map(|index| &the_pool().events[*index]);
    match of_pool.or_else(|| repository_event(event.id.as_bytes())) {
        Some(genuine) if genuine.json() == event.json() => Ok(Verified::trust(event)),
        _ => verify(event),
    }
}

fn make(authors: &[PublicKey]) -> Vec<Event> {
    let mut rng = Rng::new(34);
    let mut below = move |most: u64| rng.bits() % most.max(1);
    let mut drafts = plain(&mut below);
    drafts.extend(special(&mut below));
    let mut events: Vec<Event> = drafts.iter().map(Draft::sign).collect();
    for n in 0..12 {
        let victim = &events[below(400) as usize];
        let author = authors.iter().position(|author| *author == victim.pubkey).unwrap_or(0);
        let deletion = note(NOW_SECS - n * 100).by(1 + author as u8).kind(5).tag("e", &victim.id.to_hex());
        events.push(deletion.content(format!("deletion {n}")).sign());
    }
    events.push(note(NOW_SECS - 20 * DAY).by(AUTHORS as u8).kind(62).tag("relay", "ALL_RELAYS").sign());
    events
}

/// Notes and reactions: of a month, of the last hour, of a few crowded seconds, of the next hours.
fn plain(below: &mut impl FnMut(u64) -> u64) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for n in 0..300 {
        drafts.push(any(below(AUTHORS), n, NOW_SECS - below(30 * DAY)));
    }
    for n in 300..400 {
        drafts.push(any(below(AUTHORS), n, NOW_SECS - below(HOUR)));
    }
    for (second, count) in [(NOW_SECS - 2 * DAY, 120), (NOW_SECS - 5 * DAY, 40), (NOW_SECS - 30, 25)] {
        for n in 0..count {
            drafts.push(any(below(AUTHORS), 1000 + n, second));
        }
    }
    for n in 0..200 {
        drafts.push(any(below(AUTHORS), 2000 + n, NOW_SECS + below(3 * HOUR)));
    }
    drafts
}

/// Versions of what is replaced, events with tags, with odd dates, with an end.
fn special(below: &mut impl FnMut(u64) -> u64) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for version in 0..8 {
        for author in 1..=4_u8 {
            let at = NOW_SECS - (8 - version / 2) * DAY;
            drafts.push(note(at).by(author).kind(0).content(format!("profile {version}")));
            drafts.push(note(at).by(author).kind(30_617).tag("d", "repo").content(format!("repository {version}")));
        }
    }
    for n in 0..40 {
        drafts.push(
            note(NOW_SECS - below(DAY))
                .by(1 + n as u8 % 3)
                .kind(5000)
                .tag("r", ["x", "y"][n as usize % 2])
                .content(format!("r{n}")),
        );
    }
    for (n, at) in [0, 0, 1, NOW_SECS + DAY, NOW_SECS + 400 * DAY, 4_102_444_800].into_iter().enumerate() {
        drafts.push(note(at).by(2).content(format!("odd date {n}")));
    }
    for n in 0..10 {
        let expires = NOW_SECS + below(2 * HOUR);
        drafts
            .push(note(NOW_SECS - n * 50).by(3).tag("expiration", &expires.to_string()).content(format!("brief {n}")));
    }
    drafts
}

fn any(author: u64, number: u64, at: u64) -> Draft {
    let kind = if number.is_multiple_of(3) { 7 } else { 1 };
    note(at).by(1 + author as u8).kind(kind).content(format!("event {number}"))
}
