//! What the sample's events say, before they are signed: kinds, tags, contents and how they refer to each other.

use std::collections::VecDeque;

use nostr::event::{EventId, Kind, Tag, Tags};
use nostr::key::PublicKey;
use nostr::types::Timestamp;

use super::dice::Dice;
use super::words::{prose, relay, topic};
use super::{SampleConfig, SampleKinds};

/// How many events back a reply, a reaction or a deletion may refer.
const MEMORY_EVENTS_MAX: usize = 512;

/// Regular kinds and how often each comes.
const REGULAR: &[(u16, u64)] = &[(1, 46), (7, 20), (1111, 8), (6, 5), (1617, 4), (1621, 4), (1618, 1)];
/// All kinds and how often each comes: regular, replaceable, addressable, deletions.
#[rustfmt::skip]
const MIXED: &[(u16, u64)] = &[
    (1, 42), (7, 17), (1111, 7), (6, 4), (1617, 3), (1621, 3), (1618, 1),
    (0, 5), (3, 4), (10002, 4),
    (30023, 3), (30617, 2), (30618, 2),
    (5, 3),
];
/// What `d` tags say. A colon is allowed there, and makes addresses hard to split.
const IDENTIFIERS: &[&str] = &["relaysync", "notes", "a:b:c", "größe", ""];

/// An event that only lacks its signature.
pub(super) struct Draft {
    pub(super) id: EventId,
    pub(super) author: usize,
    pub(super) created_at: Timestamp,
    pub(super) kind: Kind,
    pub(super) tags: Tags,
    pub(super) content: String,
}

/// An earlier event that a later one can refer to.
#[derive(Clone)]
struct Earlier {
    id: EventId,
    author: usize,
    kind: u16,
    created_at: u64,
    identifier: Option<String>,
}

/// Makes the drafts, oldest first.
pub(super) struct Drafts {
    dice: Dice,
    authors: Vec<PublicKey>,
    kinds: SampleKinds,
    burst_second: Option<u64>,
    deleted_at_secs: Option<u64>,
    to_secs: u64,
    expires_at_secs: u64,
    times: std::vec::IntoIter<u64>,
    earlier: VecDeque<Earlier>,
}

impl Drafts {
    pub(super) fn new(config: &SampleConfig, authors: Vec<PublicKey>, mut dice: Dice) -> Self {
        let times = times(config, &mut dice).into_iter();
        Self {
            dice,
            authors,
            kinds: config.kinds,
            burst_second: config.burst.map(|burst| burst.second),
            deleted_at_secs: None,
            to_secs: config.to_secs,
            // Twenty years: nothing of the sample expires while it is used.
            expires_at_secs: config.to_secs.saturating_add(20 * 365 * 86_400),
            times,
            earlier: VecDeque::with_capacity(MEMORY_EVENTS_MAX),
        }
    }

    fn draft(&mut self, at_secs: u64) -> Draft {
        // Two equal reactions in one second would be one event; both would still be remembered.
        loop {
            let draft = self.attempt(at_secs);
            if self.earlier.iter().all(|earlier| earlier.id != draft.id) {
                self.remember(&draft);
                return draft;
            }
        }
    }

    fn attempt(&mut self, at_secs: u64) -> Draft {
        let in_burst = self.burst_second == Some(at_secs);
        let kinds = if in_burst || self.kinds == SampleKinds::Regular { REGULAR } else { MIXED };
        let kind = weighted(&mut self.dice, kinds);
        let mut parts = self.parts(kind, at_secs);
        if Kind::from_u16(parts.kind).is_regular() && parts.kind != 5 && self.dice.once_in(50) {
            parts.tags.push(tag(["expiration", &self.expires_at_secs.to_string()]));
        }
        let Parts { kind, author, created_at, tags, content } = parts;
        let (created_at, kind, tags) = (Timestamp::from(created_at), Kind::from_u16(kind), Tags::from_list(tags));
        let id = EventId::compute(&self.authors[author], &created_at, &kind, &tags, &content);
        Draft { id, author, created_at, kind, tags, content }
    }

    fn remember(&mut self, draft: &Draft) {
        if self.earlier.len() == MEMORY_EVENTS_MAX {
            self.earlier.pop_front();
        }
        self.earlier.push_back(Earlier {
            id: draft.id,
            author: draft.author,
            kind: draft.kind.as_u16(),
            created_at: draft.created_at.as_secs(),
            identifier: draft.tags.identifier(),
        });
        if draft.kind == Kind::EventDeletion {
            self.forget(draft);
        }
    }

    /// Nothing refers any more to what `deletion` deletes. A version dated before it would be kept or not depending
    /// on which of the two came first, on relays that do not remember deletions.
    fn forget(&mut self, deletion: &Draft) {
        self.deleted_at_secs = Some(deletion.created_at.as_secs());
        let ids: Vec<EventId> = deletion.tags.event_ids().collect();
        let addresses: Vec<_> = deletion.tags.coordinates().collect();
        self.earlier.retain(|earlier| {
            let kind = Kind::from_u16(earlier.kind);
            let author = self.authors[earlier.author];
            let named = |address: &nostr::nips::nip01::Coordinate| {
                address.kind == kind
                    && address.public_key == author
                    && Some(&address.identifier) == earlier.identifier.as_ref()
            };
            !ids.contains(&earlier.id) && !addresses.iter().any(named)
        });
    }

    fn parts(&mut self, kind: u16, at_secs: u64) -> Parts {
        let author = self.dice.index(self.authors.len());
        let parts = Parts { kind, author, created_at: at_secs, tags: Vec::new(), content: String::new() };
        match kind {
            0 => self.profile(parts),
            3 => self.follows(parts),
            // None in the future: some relays compare a deletion's date with the clock instead of the event's date.
            5 if at_secs <= self.to_secs => self.deletion(parts),
            6 | 7 => self.reaction(parts),
            1111 => self.comment(parts),
            1617 | 1618 | 1621 => self.proposal(parts),
            10002 => self.relay_list(parts),
            // A deletion reaches as far as its own second, which not all relays know.
            30023 | 30617 | 30618 if self.deleted_at_secs == Some(at_secs) => self.note(Parts { kind: 1, ..parts }),
            30023 => self.article(parts),
            30617 | 30618 => self.repository(parts),
            _ => self.note(Parts { kind: 1, ..parts }),
        }
    }

    fn note(&mut self, mut parts: Parts) -> Parts {
        parts.content = prose(&mut self.dice, 130);
        if self.dice.once_in(3) {
            parts.tags.push(tag(["t", topic(&mut self.dice)]));
        }
        if self.dice.once_in(8) {
            parts.tags.push(tag(["r", "https://example.com/artikel/größe?x=1"]));
        }
        let Some(other) = self.any_earlier() else { return parts };
        match self.dice.below(6) {
            0 => parts.tags.push(tag(["q", &other.id.to_hex(), relay(&mut self.dice), &self.key(other.author)])),
            1 | 2 => {
                parts.tags.push(tag(["e", &other.id.to_hex(), relay(&mut self.dice), "root"]));
                parts.tags.push(tag(["p", &self.key(other.author)]));
            }
            _ => {}
        }
        parts
    }

    fn reaction(&mut self, mut parts: Parts) -> Parts {
        let Some(other) = self.any_earlier() else { return self.note(Parts { kind: 1, ..parts }) };
        parts.tags.push(tag(["e", &other.id.to_hex(), relay(&mut self.dice)]));
        parts.tags.push(tag(["p", &self.key(other.author)]));
        parts.tags.push(tag(["k", &other.kind.to_string()]));
        if parts.kind == 7 {
            parts.content = self.dice.pick(&["+", "-", "🤙", "❤️", ":soapbox:"]).into();
        }
        parts
    }

    fn comment(&mut self, mut parts: Parts) -> Parts {
        let Some(other) = self.any_earlier() else { return self.note(Parts { kind: 1, ..parts }) };
        let (id, key, kind) = (other.id.to_hex(), self.key(other.author), other.kind.to_string());
        for [e, p, k] in [["E", "P", "K"], ["e", "p", "k"]] {
            parts.tags.extend([tag([e, &id]), tag([p, &key]), tag([k, &kind])]);
        }
        parts.content = prose(&mut self.dice, 80);
        parts
    }

    fn proposal(&mut self, mut parts: Parts) -> Parts {
        let owner = self.dice.index(self.authors.len());
        let owner_key = self.key(owner);
        parts.tags.push(tag(["a", &format!("30617:{owner_key}:{}", self.dice.pick(IDENTIFIERS))]));
        parts.tags.push(tag(["p", &owner_key]));
        parts.tags.push(tag(["subject", &prose(&mut self.dice, 24)]));
        parts.tags.push(tag(["t", topic(&mut self.dice)]));
        parts.content = prose(&mut self.dice, 160);
        parts
    }

    fn profile(&mut self, parts: Parts) -> Parts {
        let mut parts = self.perhaps_tie(parts);
        let (name, about) = (prose(&mut self.dice, 12), prose(&mut self.dice, 80));
        parts.content = serde_json::json!({ "name": name, "about": about }).to_string();
        parts
    }

    fn follows(&mut self, parts: Parts) -> Parts {
        let mut parts = self.perhaps_tie(parts);
        for _ in 0..self.dice.within(0, 6) {
            let followed = self.dice.index(self.authors.len());
            parts.tags.push(tag(["p", &self.key(followed), relay(&mut self.dice), ""]));
        }
        parts
    }

    fn relay_list(&mut self, parts: Parts) -> Parts {
        let mut parts = self.perhaps_tie(parts);
        parts.tags.push(tag(["r", relay(&mut self.dice)]));
        parts.tags.push(tag(["r", relay(&mut self.dice), self.dice.pick(&["read", "write"])]));
        // Makes each version another event, even in the second of the last one.
        parts.tags.push(tag(["alt", &prose(&mut self.dice, 20)]));
        parts
    }

    fn article(&mut self, parts: Parts) -> Parts {
        let mut parts = self.perhaps_tie(parts);
        self.identify(&mut parts);
        parts.tags.push(tag(["title", &prose(&mut self.dice, 24)]));
        parts.tags.push(tag(["t", topic(&mut self.dice)]));
        parts.content = prose(&mut self.dice, 240);
        parts
    }

    fn repository(&mut self, parts: Parts) -> Parts {
        let mut parts = self.perhaps_tie(parts);
        self.identify(&mut parts);
        let commit = self.dice.hex();
        if parts.kind == 30618 {
            parts.tags.push(tag(["refs/heads/main", &commit[..40]]));
            parts.tags.push(tag(["HEAD", "ref: refs/heads/main"]));
        } else {
            parts.tags.push(tag(["name", &prose(&mut self.dice, 10)]));
            parts.tags.push(tag(["clone", &format!("https://git.example.net/{}.git", &commit[..12])]));
            parts.tags.push(tag(["relays", relay(&mut self.dice), "wss://git.example.net"]));
            parts.tags.push(tag(["r", &commit[..40], "euc"]));
        }
        parts
    }

    /// A deletion by the author of what is deleted (NIP-09). It leaves alone the burst, identifiers with a colon, which
    /// some relays split wrongly, and empty ones, which some take for all: there each relay would keep something else.
    fn deletion(&mut self, mut parts: Parts) -> Parts {
        let burst_second = self.burst_second;
        let target = self.find_earlier(|earlier| {
            let kind = Kind::from_u16(earlier.kind);
            let clear = |identifier: &String| !identifier.is_empty() && !identifier.contains(':');
            let deletable = match &earlier.identifier {
                Some(identifier) => kind.is_addressable() && clear(identifier),
                None => kind.is_regular() && kind != Kind::EventDeletion,
            };
            deletable && burst_second != Some(earlier.created_at)
        });
        let Some(target) = target else { return self.note(Parts { kind: 1, ..parts }) };
        parts.author = target.author;
        parts.tags.push(match &target.identifier {
            Some(identifier) => tag(["a", &format!("{}:{}:{identifier}", target.kind, self.key(target.author))]),
            None => tag(["e", &target.id.to_hex()]),
        });
        parts.tags.push(tag(["k", &target.kind.to_string()]));
        parts.content = prose(&mut self.dice, 20);
        parts
    }

    /// Now and then dates a replaceable event as an earlier version is dated, so that only the ids decide which of
    /// them stays (nostr-protocol/nips#540).
    fn perhaps_tie(&mut self, mut parts: Parts) -> Parts {
        if self.dice.once_in(6) {
            let (kind, to_secs) = (parts.kind, self.to_secs);
            // An event of the future stays there.
            let in_future = parts.created_at > to_secs;
            let is_like = |earlier: &Earlier| earlier.kind == kind && (earlier.created_at > to_secs) == in_future;
            if let Some(version) = self.find_earlier(is_like) {
                parts.author = version.author;
                parts.created_at = version.created_at;
                parts.tags.extend(version.identifier.map(|identifier| tag(["d", &identifier])));
            }
        }
        parts
    }

    fn identify(&mut self, parts: &mut Parts) {
        if parts.tags.is_empty() {
            parts.tags.push(tag(["d", self.dice.pick(IDENTIFIERS)]));
        }
    }

    fn any_earlier(&mut self) -> Option<Earlier> {
        let len = self.earlier.len();
        if len == 0 { None } else { self.earlier.get(self.dice.index(len)).cloned() }
    }

    /// The first that `wanted` accepts, looking on from a place that chance decides.
    fn find_earlier(&mut self, wanted: impl Fn(&Earlier) -> bool) -> Option<Earlier> {
        let len = self.earlier.len();
        let begin = self.dice.index(len.max(1));
        (0..len).map(|step| &self.earlier[(begin + step) % len]).find(|earlier| wanted(earlier)).cloned()
    }

    fn key(&self, author: usize) -> String {
        self.authors[author].to_hex()
    }
}

impl Iterator for Drafts {
    type Item = Draft;

    fn next(&mut self) -> Option<Draft> {
        let at_secs = self.times.next()?;
        Some(self.draft(at_secs))
    }
}

/// What the kind decides about an event.
struct Parts {
    kind: u16,
    author: usize,
    created_at: u64,
    tags: Vec<Tag>,
    content: String,
}

fn tag<const N: usize>(values: [&str; N]) -> Tag {
    Tag::parse(values).expect("a tag with a name is well-formed")
}

fn weighted(dice: &mut Dice, kinds: &[(u16, u64)]) -> u16 {
    let mut left = dice.below(kinds.iter().map(|(_, weight)| weight).sum());
    for (kind, weight) in kinds {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return *kind,
        }
    }
    unreachable!("below() stays below the sum of the weights")
}

/// When each event is dated, oldest first.
fn times(config: &SampleConfig, dice: &mut Dice) -> Vec<u64> {
    let burst = config.burst.map_or(0, |burst| burst.events);
    let scattered = config.events.saturating_sub(burst + config.future_events);
    let mut times: Vec<u64> = (0..scattered)
        .map(|_| match dice.within(config.from_secs, config.to_secs) {
            // So that the burst has exactly the size that was asked for.
            second if config.burst.is_some_and(|burst| burst.second == second) => second + 1,
            second => second,
        })
        .collect();
    times.extend(config.burst.iter().flat_map(|burst| std::iter::repeat_n(burst.second, burst.events)));
    let future = config.to_secs.saturating_add(1)..=config.to_secs.saturating_add(config.future_secs.max(1));
    times.extend((0..config.future_events).map(|_| dice.within(*future.start(), *future.end())));
    times.sort_unstable();
    times
}
