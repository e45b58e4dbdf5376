//! Plans the repositories, and writes, places and signs the events around them.

use std::collections::BTreeSet;

use nostr::event::{Event as Fields, EventId, Kind, Signature, Tag, Tags};
use nostr::key::PublicKey;
use nostr::types::Timestamp;

use super::events::{Act, deck};
use super::repository::{Listing, Repository, Root};
use super::tags::Target;
use super::{Claim, Form, WorldConfig, WorldEvent};
use crate::protocol::Event;
use crate::sample::dice::Dice;
use crate::sample::{Draft, Signer};

/// One event in so many is a stranger's.
const STRANGERS_SHARE: usize = 12;
/// People who have no accepted repository, but write issues, patches and replies, and help to maintain.
const CONTRIBUTORS: usize = 24;
/// People who have nothing to do with accepted repositories.
const STRANGERS: usize = 12;

/// An event that is to be signed, and where it is to be.
pub(super) struct Sketch {
    pub(super) draft: Draft,
    pub(super) relays: BTreeSet<usize>,
    pub(super) claim: Claim,
    pub(super) forgery: Option<Forgery>,
}

/// What a forger does to an honest event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forgery {
    Content,
    Signature,
}

/// Writes the events.
pub(super) struct Scribe {
    config: WorldConfig,
    pub(super) dice: Dice,
    signer: Signer,
    authors: Vec<PublicKey>,
    owners: usize,
    repositories: Vec<Repository>,
    deck: Vec<Act>,
    next_act: usize,
    /// Makes contents and identifiers differ.
    serial: u64,
    /// The date of everything, if it is posted now.
    now_secs: Option<u64>,
    /// The one relay that gets everything, if there is but one.
    only_at: Option<usize>,
    pub(super) sketches: Vec<Sketch>,
}

impl Scribe {
    pub(super) fn new(mut config: WorldConfig) -> Self {
        assert!(!config.relays.is_empty(), "a world has at least one relay");
        config.repositories = config.repositories.max(config.relays.len());
        config.events = config.events.max(25 * config.repositories);
        let mut dice = Dice::new(config.seed);
        let owners = (config.repositories * 2 / 3).max(1);
        let signer = Signer::new(owners + CONTRIBUTORS + STRANGERS, &mut dice);
        let mut scribe = Self {
            authors: signer.authors(),
            signer,
            owners,
            deck: deck(&mut dice),
            dice,
            config,
            repositories: Vec::new(),
            next_act: 0,
            serial: 0,
            now_secs: None,
            only_at: None,
            sketches: Vec::new(),
        };
        scribe.repositories = (0..scribe.config.repositories).map(|number| scribe.plan(number)).collect();
        scribe
    }

    pub(super) fn config(&self) -> &WorldConfig {
        &self.config
    }

    pub(super) fn repositories(&self) -> &[Repository] {
        &self.repositories
    }

    pub(super) fn repository(&self, number: usize) -> &Repository {
        &self.repositories[number]
    }

    pub(super) fn roots_mut(&mut self, number: usize) -> &mut Vec<Root> {
        &mut self.repositories[number].roots
    }

    pub(super) fn write_world(&mut self) -> Vec<WorldEvent> {
        for number in 0..self.repositories.len() {
            self.announce(number);
        }
        self.list_servers();
        let strangers = self.config.events / STRANGERS_SHARE;
        self.act_until(self.config.events - strangers, &(0..self.repositories.len()).collect::<Vec<_>>());
        self.write_strangers(self.config.events);
        self.take_signed()
    }

    pub(super) fn post(&mut self, relay: usize, events: usize, now_secs: u64) -> Vec<WorldEvent> {
        assert!(relay < self.config.relays.len(), "there is no relay {relay}");
        let lists = |number: &usize| self.repositories[*number].relays.contains(&relay);
        let repositories: Vec<usize> = (0..self.repositories.len()).filter(lists).collect();
        (self.now_secs, self.only_at) = (Some(now_secs), Some(relay));
        self.act_until(events, &repositories);
        self.take_signed()
    }

    pub(super) fn found(&mut self, relays: &[usize], now_secs: u64) -> Vec<WorldEvent> {
        assert!(relays.iter().all(|relay| *relay < self.config.relays.len()), "there is such a relay");
        let number = self.repositories.len();
        let mut repository = self.plan(number);
        repository.relays = relays.iter().copied().collect();
        self.repositories.push(repository);
        (self.now_secs, self.only_at) = (Some(now_secs), relays.first().copied());
        self.announce_newest(number, [].into());
        self.root(number, 1621);
        self.take_signed()
    }

    /// Writes about these repositories until there are so many events.
    fn act_until(&mut self, events: usize, repositories: &[usize]) {
        while self.sketches.len() < events {
            let number = repositories[self.dice.index(repositories.len())];
            let act = self.deck[self.next_act % self.deck.len()];
            self.next_act += 1;
            self.act(act, number, events - self.sketches.len());
        }
    }

    /// Every relay has repositories, the last (of three or more) only such as the first has never heard of.
    fn plan(&mut self, number: usize) -> Repository {
        let relays = self.config.relays.len();
        let owner = number % self.owners;
        let (hidden, home) = (self.hidden(), number % relays);
        let listing = [Listing::Both, Listing::Relays, Listing::Both, Listing::Clone];
        let (mut relays_listed, mut places) = (listing[number / 3 % 4], BTreeSet::from([home]));
        let announced_at = if Some(home) == hidden {
            relays_listed = Listing::Clone;
            let other = 1 + self.dice.index(relays - 2);
            places.insert(other);
            [other].into()
        } else {
            for _ in 0..self.dice.below(3) {
                places.insert(self.dice.index(hidden.unwrap_or(relays)));
            }
            match number % 4 == 3 && number >= relays {
                true => [home].into(),
                false => [0].into(),
            }
        };
        Repository {
            owner,
            owner_key: self.authors[owner],
            identifier: self.identifier(number),
            maintainers: (0..self.dice.below(3)).map(|_| self.contributor()).collect(),
            relays: places,
            announced_at,
            relays_listed,
            service_listed: [Listing::Both, Listing::Both, Listing::Relays, Listing::Both, Listing::Clone][number % 5],
            euc: self.dice.hex()[..40].to_owned(),
            roots: Vec::new(),
        }
    }

    /// The relay that only repositories list of which the first relay has never heard, where there are enough relays.
    pub(super) fn hidden(&self) -> Option<usize> {
        let relays = self.config.relays.len();
        (relays >= 3).then_some(relays - 1)
    }

    /// Forks have the identifier of the original. A colon is allowed, and makes addresses hard to split.
    fn identifier(&mut self, number: usize) -> String {
        match (number % 10, number % 15) {
            (7, _) => self.identifier(number - 1),
            (_, 4) => format!("team:repo:{number}"),
            (_, 9) => format!("größe-{number}"),
            _ => format!("repo-{number}"),
        }
    }

    pub(super) fn key(&self, author: usize) -> PublicKey {
        self.authors[author]
    }

    pub(super) fn owner(&mut self) -> usize {
        self.dice.index(self.owners)
    }

    pub(super) fn contributor(&mut self) -> usize {
        self.owners + self.dice.index(CONTRIBUTORS)
    }

    pub(super) fn stranger(&mut self) -> usize {
        self.owners + CONTRIBUTORS + self.dice.index(STRANGERS)
    }

    pub(super) fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// The next date: later and later for a world, but for its burst; always now for what is posted.
    fn date(&mut self, kind: u16) -> u64 {
        if self.now_secs.is_none() && self.is_in_burst(kind) {
            return self.config.burst.map_or(0, |burst| burst.second);
        }
        let (from, to) = (self.config.from_secs, self.config.to_secs);
        let step = (to - from) / self.config.events as u64;
        let in_order = from + step * self.sketches.len() as u64 + self.dice.below(step.max(1));
        self.now_secs.unwrap_or(in_order.min(to))
    }

    /// The burst comes last of what is wanted. Of states and the like, one date would make versions equal.
    fn is_in_burst(&self, kind: u16) -> bool {
        let burst = self.config.burst.map_or(0, |burst| burst.events);
        let end = self.config.events - self.config.events / STRANGERS_SHARE;
        let place = self.sketches.len();
        (end.saturating_sub(burst)..end).contains(&place) && Kind::from_u16(kind).is_regular()
    }

    pub(super) fn is_posting(&self) -> bool {
        self.now_secs.is_some()
    }

    /// Some of the relays of a repository: mostly one, now and then two or all.
    pub(super) fn places(&mut self, number: usize) -> BTreeSet<usize> {
        let of_it: Vec<usize> = self.repositories[number].relays.iter().copied().collect();
        match self.dice.below(9) {
            0 => of_it.into_iter().collect(),
            1 | 2 => [self.dice.pick(&of_it), self.dice.pick(&of_it)].into(),
            _ => [self.dice.pick(&of_it)].into(),
        }
    }

    /// Writes a wanted event of a repository and puts it on some of its relays.
    pub(super) fn wanted(
        &mut self,
        number: usize,
        author: usize,
        kind: u16,
        tags: Vec<Tag>,
        content: String,
        forms: &'static [Form],
    ) -> Target {
        let relays = self.places(number);
        self.write(author, kind, tags, content, relays, Claim::Wanted(forms))
    }

    pub(super) fn write(
        &mut self,
        author: usize,
        kind: u16,
        tags: Vec<Tag>,
        content: String,
        relays: BTreeSet<usize>,
        claim: Claim,
    ) -> Target {
        let (created_at, kind) = (Timestamp::from(self.date(kind)), Kind::from_u16(kind));
        let (tags, key) = (Tags::from_list(tags), self.authors[author]);
        let id = EventId::compute(&key, &created_at, &kind, &tags, &content);
        let target = Target { id: id.to_hex(), author: key.to_hex(), kind: kind.as_u16() };
        let relays = self.only_at.map_or(relays, |relay| [relay].into());
        let draft = Draft { id, author, created_at, kind, tags, content };
        self.sketches.push(Sketch { draft, relays, claim, forgery: None });
        target
    }

    fn take_signed(&mut self) -> Vec<WorldEvent> {
        let (mut drafts, mut rest) = (Vec::new(), Vec::new());
        for Sketch { draft, relays, claim, forgery } in self.sketches.drain(..) {
            drafts.push(draft);
            rest.push((relays, claim, forgery));
        }
        let events = sign(drafts, &self.signer).into_iter().zip(rest);
        let finished = events.map(|(event, (relays, claim, forgery))| {
            let event = match forgery {
                Some(forgery) => forge(&event, forgery),
                None => event,
            };
            WorldEvent { event, relays, claim }
        });
        finished.collect()
    }
}

#[cfg(feature = "native")]
fn sign(drafts: Vec<Draft>, signer: &Signer) -> Vec<Event> {
    crate::sample::many::sign_on_all_cores(drafts, signer)
}

#[cfg(not(feature = "native"))]
fn sign(drafts: Vec<Draft>, signer: &Signer) -> Vec<Event> {
    drafts.into_iter().map(|draft| signer.sign(draft)).collect()
}

fn forge(honest: &Fields, forgery: Forgery) -> Event {
    let Fields { id, pubkey, created_at, kind, tags, content, sig, .. } = honest.clone();
    match forgery {
        Forgery::Content => Fields::new(id, pubkey, created_at, kind, tags, content + " (or so)", sig),
        Forgery::Signature => {
            let mut bytes = sig.to_bytes();
            bytes[40] ^= 1;
            Fields::new(id, pubkey, created_at, kind, tags, content, Signature::from_byte_array(bytes))
        }
    }
    .into()
}
