//! Which events a daemon that discovers wants, and of which relays, worked out from nothing each time: so that what
//! [`discover`](crate::discover) says can be held against it.

use std::collections::{BTreeMap, BTreeSet};

use crate::discover::{Accept, DiscoverConfig, ROOT_KINDS};
use crate::plan::Interest;
use crate::protocol::{Address, Event, RelayUrl, hex};

const STATE: u16 = 30_618;
const GRASP_LIST: u16 = 10_317;
const DELETION: u16 = 5;
const VANISH: u16 = 62;

/// Kinds of which conversations consist, as a request to delete may name them.
const CONVERSATION_KINDS: [&str; 15] = [
    "1", "7", "1111", "1617", "1618", "1619", "1621", "1622", "1630", "1631", "1632", "1633", "30617", "30618", "10317",
];

/// Which of several announcements of one repository count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Versions {
    /// The newest.
    Newest,
    /// All: for what may have been accepted at some time.
    All,
}

/// What follows from some announcements, issues, patches and pull requests.
#[derive(Debug)]
pub(super) struct Acceptance<'e> {
    config: &'e DiscoverConfig,
    announcements: Vec<&'e Event>,
    roots: Vec<&'e Event>,
    accepted: BTreeMap<Address, Vec<&'e Event>>,
    /// Those of accepted repositories.
    accepted_roots: BTreeSet<[u8; 32]>,
    versions: Versions,
}

impl<'e> Acceptance<'e> {
    pub(super) fn new(
        config: &'e DiscoverConfig,
        held: impl IntoIterator<Item = &'e Event>,
        versions: Versions,
    ) -> Self {
        let relevant = held.into_iter().filter(|event| is_indexed(event));
        let (announcements, roots): (Vec<&Event>, Vec<&Event>) = relevant.partition(|event| is_announcement(event));
        let mut acceptance =
            Self { config, announcements, roots, accepted: BTreeMap::new(), accepted_roots: BTreeSet::new(), versions };
        let is_accepted = |one: &&Event| acceptance.counts(one) && acceptance.accepts(one);
        let accepted: Vec<&Event> = acceptance.announcements.iter().copied().filter(is_accepted).collect();
        for event in accepted {
            acceptance.accepted.entry(address_of(event)).or_default().push(event);
        }
        let roots = acceptance.roots.iter().filter(|root| acceptance.accepts_root(root));
        acceptance.accepted_roots = roots.map(|root| root.id.to_bytes()).collect();
        acceptance
    }

    fn counts(&self, event: &Event) -> bool {
        self.versions == Versions::All || !self.has_newer(event)
    }

    /// Is there a newer announcement of the same repository?
    fn has_newer(&self, event: &Event) -> bool {
        let others = self.announcements.iter().filter(|other| address_of(other) == address_of(event));
        others.into_iter().any(|other| is_newer(other, event))
    }

    fn accepts(&self, event: &Event) -> bool {
        let address = address_of(event);
        let is_allowed = self.config.allow_authors.contains(&address.author)
            || self.config.allow_repositories.contains(&address)
            || self.config.accept == Accept::All
            || self.config.accept == Accept::Listed && listed(event).iter().any(|url| self.is_ours(url));
        is_allowed && !self.blocks(&address)
    }

    fn blocks(&self, address: &Address) -> bool {
        self.config.block_authors.contains(&address.author) || self.config.block_repositories.contains(address)
    }

    fn accepts_root(&self, root: &Event) -> bool {
        !self.config.block_authors.contains(&root.pubkey.to_bytes())
            && values(root, "a")
                .filter_map(|value| Address::parse(value).ok())
                .any(|of| self.accepted.contains_key(&of))
    }

    fn is_ours(&self, url: &RelayUrl) -> bool {
        self.config.service_urls.iter().any(|ours| ours.host() == url.host())
    }

    fn may_be_target(&self, url: &RelayUrl) -> bool {
        !self.is_ours(url) && !self.config.block_relays.iter().any(|blocked| blocked.host() == url.host())
    }

    /// What is wanted of each relay.
    pub(super) fn targets(&self) -> BTreeMap<RelayUrl, BTreeSet<Interest>> {
        let mut targets: BTreeMap<RelayUrl, BTreeSet<Interest>> = BTreeMap::new();
        for relay in self.config.bootstrap.iter().filter(|url| self.may_be_target(url)) {
            targets.entry(relay.clone()).or_default().insert(Interest::Announcements);
        }
        for (address, versions) in &self.accepted {
            let is_of = |root: &&&Event| {
                self.accepted_roots.contains(root.id.as_bytes())
                    && values(root, "a").any(|value| Address::parse(value).is_ok_and(|of| of == *address))
            };
            let roots: Vec<[u8; 32]> = self.roots.iter().filter(is_of).map(|root| root.id.to_bytes()).collect();
            let relays = versions.iter().flat_map(|version| listed(version));
            for relay in relays.filter(|url| self.may_be_target(url)) {
                let interests = targets.entry(relay).or_default();
                interests.extend([Interest::Announcements, Interest::Repo(address.clone())]);
                interests.extend(roots.iter().map(|id| Interest::Root(*id)));
            }
        }
        targets
    }

    /// Is this event wanted?
    pub(super) fn wants(&self, event: &Event) -> bool {
        let (author, address) = (event.pubkey.to_bytes(), address_of(event));
        match event.kind_number() {
            VANISH => values(event, "relay").any(|relay| relay == "ALL_RELAYS"),
            DELETION => self.wants_deletion(event),
            _ if self.config.block_authors.contains(&author) => false,
            Address::REPOSITORY => self.wants_announcement(event),
            STATE if self.blocks(&address) => false,
            STATE => {
                let own = Address::repository(author, &address.identifier);
                !self.blocks(&own)
                    && (self.accepted.contains_key(&own) || self.has_maintainer(&address.identifier, author))
                    || self.is_related(event)
            }
            GRASP_LIST => {
                let is_person = |of: &Address| of.author == author || self.has_maintainer(&of.identifier, author);
                let names_us = |url: &str| RelayUrl::parse(url).is_ok_and(|url| self.is_ours(&url));
                self.accepted.keys().any(is_person) || values(event, "g").any(names_us) || self.is_related(event)
            }
            _ => self.is_related(event),
        }
    }

    fn wants_announcement(&self, event: &Event) -> bool {
        let address = address_of(event);
        let is_old = self.versions == Versions::Newest && self.has_newer(event);
        !self.blocks(&address) && (self.accepted.contains_key(&address) || !is_old && self.accepts(event))
    }

    fn has_maintainer(&self, identifier: &str, author: [u8; 32]) -> bool {
        let names = |event: &&Event| {
            let keys = event.tags.iter().filter(|tag| tag.kind() == "maintainers").flat_map(|tag| &tag.as_slice()[1..]);
            keys.into_iter().any(|key| *key == hex::encode(&author))
        };
        let of = self.accepted.iter().filter(|(address, _)| &*address.identifier == identifier);
        of.flat_map(|(_, versions)| versions).any(names)
    }

    fn wants_deletion(&self, event: &Event) -> bool {
        let is_own = |other: &&&Event| other.pubkey == event.pubkey;
        let own: Vec<&Event> = self.announcements.iter().chain(&self.roots).filter(is_own).copied().collect();
        values(event, "a").any(|value| own.iter().any(|one| address_of(one).to_string() == value))
            || values(event, "e").any(|value| own.iter().any(|one| one.id.to_hex() == value) || self.refers_to(value))
            || values(event, "k").any(|kind| CONVERSATION_KINDS.contains(&kind))
            || self.is_related(event)
    }

    /// Does it refer to something accepted, or is it referred to?
    fn is_related(&self, event: &Event) -> bool {
        let is_accepted_id = |value: &str| {
            let announced = self.accepted.values().flatten().any(|one| one.id.to_hex() == value);
            announced || self.accepted_roots.iter().any(|id| hex::encode(id) == value)
        };
        let is_accepted = |value: &str| Address::parse(value).is_ok_and(|address| self.accepted.contains_key(&address));
        let by_id = ["e", "E", "q"].into_iter().flat_map(|name| values(event, name)).any(is_accepted_id);
        let by_address = ["a", "A", "q"].into_iter().flat_map(|name| values(event, name)).any(is_accepted);
        by_id || by_address || self.refers_to(&event.id.to_hex()) || self.refers_to(&address_of(event).to_string())
    }

    /// Does something accepted refer to this? What did so once is remembered, but only as far as it was accepted then:
    /// so it counts for what may be wanted, and not for what has to be.
    fn refers_to(&self, value: &str) -> bool {
        let roots = self.roots.iter().filter(|root| self.accepted_roots.contains(root.id.as_bytes()));
        self.versions == Versions::All
            && roots.chain(self.accepted.values().flatten()).any(|event| {
                ["e", "E", "q", "a", "A"].into_iter().flat_map(|name| values(event, name)).any(|other| other == value)
            })
    }
}

/// Does discovery keep an index of such events?
pub(super) fn is_indexed(event: &Event) -> bool {
    is_announcement(event) || ROOT_KINDS.contains(&event.kind_number())
}

fn is_announcement(event: &Event) -> bool {
    event.kind_number() == Address::REPOSITORY
}

/// The address that an event has, or would have if its kind was an addressable one.
pub(super) fn address_of(event: &Event) -> Address {
    let identifier = values(event, "d").next().unwrap_or_default();
    Address { kind: event.kind_number(), author: event.pubkey.to_bytes(), identifier: identifier.into() }
}

/// Of two versions of one event, does the first one stand?
pub(super) fn is_newer(first: &Event, second: &Event) -> bool {
    let rank = |event: &Event| (event.created_at_secs(), std::cmp::Reverse(event.id.to_bytes()));
    rank(first) > rank(second)
}

/// The first values of tags of this name.
fn values<'e>(event: &'e Event, name: &'e str) -> impl Iterator<Item = &'e str> {
    event.tags.iter().filter(move |tag| tag.kind() == name).filter_map(|tag| tag.content())
}

/// The relays that an announcement lists, and those of the grasp servers from which it is cloned.
fn listed(announcement: &Event) -> BTreeSet<RelayUrl> {
    let relays = announcement.tags.iter().filter(|tag| tag.kind() == "relays").flat_map(|tag| &tag.as_slice()[1..]);
    let hosts = values(announcement, "clone").filter_map(|url| url.strip_prefix("https://")?.split_once("/npub1"));
    let servers = hosts.map(|(host, _)| format!("wss://{host}"));
    relays.cloned().chain(servers).filter_map(|url| RelayUrl::parse(&url).ok()).collect()
}
