//! Signed events of a small world of repositories (NIP-34) that all seeds draw from, made once a process.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::draft::{Draft, note};
use super::pool::authors;
use super::world::NOW_SECS;
use crate::engine::Rng;
use crate::protocol::{Address, Event, RelayUrl, hex};

/// The service whose daemon discovers.
pub const OUR_SERVICE: &str = "wss://ours.example";
/// Relays that announcements list: `wss://grasp0.example` and so on.
pub const LISTED_RELAYS: u64 = 5;

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
/// Authors of repositories: 1 to this. The others write to them.
const OWNERS: u8 = 4;
const WRITERS: u64 = 6;
const IDENTIFIERS: [&str; 2] = ["alpha", "beta:b"];
const VERSIONS: u64 = 4;
const ROOTS: u64 = 36;
const REPLIES: u64 = 120;

/// The address of one of the relays that announcements list.
///
/// # Panics
/// Never: it is a URL.
pub fn listed_relay(number: u64) -> RelayUrl {
    RelayUrl::parse(&format!("wss://grasp{number}.example")).expect("a host makes a URL")
}

/// All events: announcements in versions that list other relays, states, lists of grasp servers, issues, patches and pull
/// requests, what refers to them by each tag, deletions, and what has nothing to do with any of it. Some are dated within
/// the next three hours.
pub fn repository_pool() -> &'static Arc<[Event]> {
    static POOL: OnceLock<Arc<[Event]>> = OnceLock::new();
    POOL.get_or_init(|| Maker { rng: Rng::new(34_617), events: Vec::new() }.make().into())
}

/// The event of that pool with this id.
pub(super) fn repository_event(id: &[u8; 32]) -> Option<&'static Event> {
    static BY_ID: OnceLock<BTreeMap<[u8; 32], usize>> = OnceLock::new();
    let pool = repository_pool();
    let by_id =
        BY_ID.get_or_init(|| pool.iter().enumerate().map(|(index, event)| (event.id.to_bytes(), index)).collect());
    by_id.get(id).map(|index| &pool[*index])
}

struct Maker {
    rng: Rng,
    events: Vec<Event>,
}

impl Maker {
    fn make(mut self) -> Vec<Event> {
        let announcements = self.announcements();
        self.states();
        self.lists();
        let roots: Vec<Event> = (0..ROOTS).map(|number| self.root(number)).collect();
        (0..REPLIES).for_each(|number| self.reply(number, &roots));
        self.deletions(&announcements, &roots);
        (0..12).for_each(|number| {
            let at = self.any_time();
            self.push(note(at).by(1 + number % 6).content(format!("of nothing in particular {number}")));
        });
        self.events
    }

    fn below(&mut self, most: u64) -> u64 {
        self.rng.bits() % most.max(1)
    }

    fn chance(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }

    fn writer(&mut self) -> u8 {
        1 + self.below(WRITERS) as u8
    }

    /// Of the last month, or now and then of the next hours.
    fn any_time(&mut self) -> u64 {
        if self.chance(1, 4) { NOW_SECS + self.below(3 * HOUR) } else { NOW_SECS - self.below(30 * DAY) }
    }

    fn repository(&mut self) -> String {
        let (owner, identifier) = (self.below(u64::from(OWNERS)), self.below(IDENTIFIERS.len() as u64));
        address(1 + owner as u8, IDENTIFIERS[identifier as usize])
    }

    fn push(&mut self, draft: Draft) -> Event {
        let event = draft.sign();
        self.events.push(event.clone());
        event
    }

    fn announcements(&mut self) -> Vec<Event> {
        let mut made = Vec::new();
        for owner in 1..=OWNERS {
            for identifier in IDENTIFIERS {
                for version in 0..VERSIONS {
                    let at = match version {
                        0 => NOW_SECS - 20 * DAY,
                        1 => NOW_SECS - self.below(10 * DAY),
                        _ => NOW_SECS + self.below(3 * HOUR),
                    };
                    let draft = note(at).by(owner).kind(30_617).tag("d", identifier);
                    let draft = self.with_relays(draft, owner);
                    let draft = self.with_maintainer(draft, owner);
                    made.push(self.push(draft.content(format!("version {version}"))));
                }
            }
        }
        made
    }

    /// Three in four list our service, as relay or as git host.
    fn with_relays(&mut self, draft: Draft, owner: u8) -> Draft {
        let listed = (0..LISTED_RELAYS).filter(|_| self.chance(2, 5)).map(|number| listed_relay(number).to_string());
        let mut relays: Vec<String> = ["relays".to_owned()].into_iter().chain(listed.collect::<Vec<_>>()).collect();
        let npub = format!("npub1{}", ["q", "p", "z", "r"][usize::from(owner) % 4].repeat(58));
        let clone = |host: &str| format!("https://{host}/{npub}/repository.git");
        let draft = match self.below(4) {
            0 => draft,
            1 => draft.tag("clone", &clone("ours.example")),
            _ => {
                relays.push(OUR_SERVICE.to_owned());
                draft
            }
        };
        let draft = if self.chance(1, 4) { draft.tag("clone", &clone("grasp3.example")) } else { draft };
        draft.tags(&relays)
    }

    fn with_maintainer(&mut self, draft: Draft, owner: u8) -> Draft {
        if !self.chance(1, 3) {
            return draft;
        }
        let other = authors()[usize::from(owner) % authors().len()];
        draft.tag("maintainers", &hex::encode(&other.to_bytes()))
    }

    /// States, some by maintainers and some by strangers.
    fn states(&mut self) {
        for number in 0..24 {
            let (author, at) = (self.writer(), self.any_time());
            let identifier = IDENTIFIERS[number % IDENTIFIERS.len()];
            self.push(note(at).by(author).kind(30_618).tag("d", identifier).content(format!("state {number}")));
        }
    }

    /// Lists of grasp servers; some name our service.
    fn lists(&mut self) {
        for number in 0..10 {
            let (author, at) = (self.writer(), self.any_time());
            let draft = note(at).by(author).kind(10_317).content(format!("list {number}"));
            let service = if self.chance(1, 3) { OUR_SERVICE } else { "wss://elsewhere.example" };
            self.push(draft.tag("g", service));
        }
    }

    fn root(&mut self, number: u64) -> Event {
        let (author, at, repository) = (self.writer(), self.any_time(), self.repository());
        let kind = [1617, 1618, 1621][number as usize % 3];
        let draft = note(at).by(author).kind(kind).tag("a", &repository).content(format!("root {number}"));
        let draft = if self.chance(1, 5) { draft.tag("a", &self.repository()) } else { draft };
        self.push(draft)
    }

    /// By each tag in turn; some refer to other replies only, and belong to nobody.
    fn reply(&mut self, number: u64, roots: &[Event]) {
        let (author, at, repository) = (self.writer(), self.any_time(), self.repository());
        let root = roots[self.below(roots.len() as u64) as usize].id.to_hex();
        let kind = [1, 1111, 1619, 1630, 7][number as usize % 5];
        let draft = note(at).by(author).kind(kind).content(format!("reply {number}"));
        let draft = match number % 8 {
            0 => draft.tag("e", &root),
            1 => draft.tag("E", &root),
            2 => draft.tag("q", &root),
            3 => draft.tag("a", &repository),
            4 => draft.tag("A", &repository),
            5 => draft.tag("q", &repository),
            6 => draft.tag("e", &root).tag("A", &repository),
            _ => {
                let other = self.below(self.events.len() as u64) as usize;
                let other = self.events[other].id.to_hex();
                draft.tag("e", &other)
            }
        };
        self.push(draft);
    }

    /// Authors take back issues and patches, replies, versions of announcements, and whole repositories.
    fn deletions(&mut self, announcements: &[Event], roots: &[Event]) {
        for number in 0..10 {
            let at = self.any_time().max(NOW_SECS - DAY);
            let (victim, by_address) = match number % 4 {
                0 => (announcements[self.below(announcements.len() as u64) as usize].clone(), true),
                1 => (announcements[self.below(announcements.len() as u64) as usize].clone(), false),
                _ => (roots[self.below(roots.len() as u64) as usize].clone(), false),
            };
            let author = number_of(&victim);
            let draft = note(at).by(author).kind(5).content(format!("deletion {number}"));
            let identifier = victim.tags.identifier().unwrap_or_default().to_owned();
            let draft = match by_address {
                true => draft.tag("a", &address(author, &identifier)),
                false => draft.tag("e", &victim.id.to_hex()).tag("k", &victim.kind_number().to_string()),
            };
            self.push(draft);
        }
    }
}

fn address(owner: u8, identifier: &str) -> String {
    Address::repository(authors()[usize::from(owner) - 1].to_bytes(), identifier).to_string()
}

fn number_of(event: &Event) -> u8 {
    1 + authors().iter().position(|author| *author == event.pubkey).unwrap_or_default() as u8
}
