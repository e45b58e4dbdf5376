//! Is an event wanted?

use std::fmt;

use super::announcement::{Announcement, Version, decode_32, first_values, identifier, values};
use super::memory::{Reference, references};
use super::requests::{KIND_DELETION, KIND_VANISH, concerns_us, own_repositories};
use super::{Discovery, KIND_GRASP_LIST, KIND_STATE, ROOT_KINDS, read_root};
use crate::protocol::{Address, Event, RelayUrl};
use crate::store::rules::address_of;

/// What repositories and conversations about them consist of (NIPs 01, 22, 25 and 34). The index does not know which
/// comments are held, nor what may still come.
const CONVERSATION_KINDS: [u16; 15] = [
    1,
    7,
    1111,
    ROOT_KINDS[0],
    ROOT_KINDS[1],
    ROOT_KINDS[2],
    1619,
    1622,
    1630,
    1631,
    1632,
    1633,
    Address::REPOSITORY,
    KIND_STATE,
    KIND_GRASP_LIST,
];

/// Why an event is not wanted. As text it is the reason of an OK answer (NIP-01).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Objection {
    /// Its author or its repository is on a block-list.
    Blocked,
    /// It announces a repository that is none of ours.
    NotAccepted,
    /// It has to do with none of our repositories.
    Unrelated,
    /// It announces a repository whose identifier is too long.
    Invalid,
    /// It announces a repository too many.
    Full,
}

impl Objection {
    /// One word, for counters.
    pub fn label(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::NotAccepted => "not_accepted",
            Self::Unrelated => "unrelated",
            Self::Invalid => "invalid",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocked => "blocked: nothing is accepted from this author or for this repository",
            Self::NotAccepted => {
                "blocked: the announcement does not list this service, nor is it otherwise accepted here"
            }
            Self::Unrelated => "blocked: this has to do with no repository that is accepted here",
            Self::Invalid => "invalid: the identifier of the repository is too long",
            Self::Full => "blocked: no further repository is accepted here",
        })
    }
}

impl Discovery {
    /// Is `event` wanted, by what is held and by what was judged good before? An announcement, issue, patch or pull
    /// request that is wanted counts as accepted from now on, so that what belongs to it is wanted as well.
    ///
    /// Wanted are announcements by the rules of the configuration, and a newer version of an accepted one in any case,
    /// so that we learn how it goes on; states by author or maintainers; lists of grasp servers by those, or that list
    /// our service; whatever refers to an accepted repository or root, or is referred to by one. A request to delete is
    /// wanted if it is about any of these, or says by `k` that it is about something that conversations consist of,
    /// because the index does not know which comments are held. A request to vanish is wanted if it is addressed to us, from
    /// anybody: that right must not depend on what an index remembers.
    ///
    /// # Errors
    /// Says why not.
    pub fn judge(&mut self, event: &Event) -> Result<(), Objection> {
        let verdict = self.consider(event);
        if verdict.is_ok() {
            self.promise(event);
        }
        verdict
    }

    /// The same for an event whose signature is not checked yet: nothing follows from it for others.
    ///
    /// # Errors
    /// Says why not.
    pub fn consider(&mut self, event: &Event) -> Result<(), Objection> {
        let verdict = self.verdict(event);
        let counters = &mut self.index.counters;
        *match verdict {
            Ok(()) => &mut counters.wanted,
            Err(Objection::Blocked) => &mut counters.objections_blocked,
            Err(Objection::NotAccepted) => &mut counters.objections_not_accepted,
            Err(Objection::Unrelated) => &mut counters.objections_unrelated,
            Err(Objection::Invalid) => &mut counters.objections_invalid,
            Err(Objection::Full) => &mut counters.objections_full,
        } += 1;
        verdict
    }

    fn verdict(&self, event: &Event) -> Result<(), Objection> {
        let author = event.pubkey.to_bytes();
        let unless_related = |wanted: bool| if wanted { Ok(()) } else { Err(Objection::Unrelated) };
        match event.kind_number() {
            KIND_VANISH => unless_related(concerns_us(event, &self.index)),
            KIND_DELETION => unless_related(self.wants_deletion(event)),
            _ if self.index.config.block_authors.contains(&author) => Err(Objection::Blocked),
            Address::REPOSITORY => self.judge_announcement(event),
            KIND_STATE => self.judge_state(event),
            KIND_GRASP_LIST => unless_related(self.wants_grasp_list(event)),
            _ => unless_related(self.is_related(event)),
        }
    }

    fn judge_announcement(&self, event: &Event) -> Result<(), Objection> {
        let announcement = Announcement::read(event, &self.index.config).ok_or(Objection::Invalid)?;
        let address = &announcement.address;
        if self.index.config.blocks(address) {
            return Err(Objection::Blocked);
        }
        let is_ours = self.index.is_accepted(address);
        let held = self.index.version(address);
        if held.is_some_and(|held| held >= Version::of(event)) {
            // Nothing new. The store will say that it has a newer one, or this one.
            return if is_ours { Ok(()) } else { Err(Objection::NotAccepted) };
        }
        match self.index.accepts(&announcement) {
            true if !is_ours && self.index.is_full() => Err(Objection::Full),
            true => Ok(()),
            false if is_ours || self.promises.has_address(address) => Ok(()),
            false => Err(Objection::NotAccepted),
        }
    }

    fn judge_state(&self, event: &Event) -> Result<(), Objection> {
        let (author, identifier) = (event.pubkey.to_bytes(), identifier(event));
        let address = Address::repository(author, identifier);
        if self.index.config.block_repositories.contains(&address) {
            return Err(Objection::Blocked);
        }
        let wanted = self.is_accepted(&address)
            || !self.index.maintained(identifier, &author).is_empty()
            || self.promises.has_maintainer(identifier, &author)
            || self.is_related(event);
        if wanted { Ok(()) } else { Err(Objection::Unrelated) }
    }

    fn wants_grasp_list(&self, event: &Event) -> bool {
        let author = event.pubkey.to_bytes();
        self.index.has_accepted(&author)
            || self.promises.has_person(&author)
            || first_values(event, "g").any(|url| RelayUrl::parse(url).is_ok_and(|url| self.index.is_own(&url)))
            || self.is_related(event)
    }

    /// An announcement or a root of an accepted repository is on its way: what belongs to it is wanted from now on.
    fn promise(&mut self, event: &Event) {
        match event.kind_number() {
            Address::REPOSITORY => self.promise_announcement(event),
            kind if ROOT_KINDS.contains(&kind) => self.promise_root(event),
            _ => {}
        }
    }

    fn promise_announcement(&mut self, event: &Event) {
        let Some(announcement) = Announcement::read(event, &self.index.config) else { return };
        let is_news = self.index.version(&announcement.address).is_none_or(|held| held < Version::of(event));
        if is_news && self.index.accepts(&announcement) {
            let promises_max = self.index.config.promises_max;
            self.index.counters.promises_dropped += self.promises.make_announcement(&announcement, promises_max);
            self.note_references(event);
        }
    }

    fn promise_root(&mut self, event: &Event) {
        let (root, _) = read_root(event, &self.index.config);
        if root.repositories.iter().any(|address| self.is_accepted(address)) {
            let promises_max = self.index.config.promises_max;
            self.index.counters.promises_dropped += self.promises.make_root(root.id, promises_max);
            self.note_references(event);
        }
    }

    fn wants_deletion(&self, event: &Event) -> bool {
        let author = event.pubkey.to_bytes();
        let is_own = |id: &[u8; 32]| {
            self.index.root_author(id) == Some(&author)
                || self.index.announcement_at(id).is_some_and(|address| address.author == author)
                || self.references.has_id(id)
        };
        let is_announced =
            |address: &Address| self.index.version(address).is_some() || self.promises.has_address(address);
        let says_kind = |kind: &str| kind.parse().is_ok_and(|kind| CONVERSATION_KINDS.contains(&kind));
        own_repositories(event, &self.index.config).iter().any(is_announced)
            || first_values(event, "e").filter_map(decode_32).any(|id| is_own(&id))
            || values(event, "k").any(says_kind)
            || self.is_related(event)
    }

    /// Does it refer to an accepted repository or root, or does one refer to it?
    fn is_related(&self, event: &Event) -> bool {
        let refers = references(event, &self.index.config).any(|reference| match reference {
            Reference::Id(id) => self.is_accepted_id(&id),
            Reference::Address(address) => self.is_accepted(&address),
        });
        refers || self.references.has_id(event.id.as_bytes()) || self.is_referred_to_by_address(event)
    }

    fn is_referred_to_by_address(&self, event: &Event) -> bool {
        let kind = event.kind_number();
        let addressable = (30_000..40_000).contains(&kind).then(|| address_of(event)).flatten();
        addressable.is_some_and(|identifier| {
            let author = event.pubkey.to_bytes();
            self.references.has_address(&Address { kind, author, identifier: identifier.into() })
        })
    }

    fn is_accepted(&self, address: &Address) -> bool {
        self.index.is_accepted(address) || self.promises.has_address(address)
    }

    fn is_accepted_id(&self, id: &[u8; 32]) -> bool {
        self.index.is_accepted_root(id) || self.index.is_accepted_announcement(id) || self.promises.has_id(id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::draft::{announcement, draft, hex_id, issue, repo};
    use super::super::{DiscoverConfig, service_url};
    use super::*;
    use crate::runtime::Instant;

    const OURS: &str = "wss://ours.example";
    const NOW: Instant = Instant::ZERO;

    fn config() -> DiscoverConfig {
        DiscoverConfig { service_urls: vec![service_url(OURS).unwrap()], ..DiscoverConfig::default() }
    }

    fn discovery(held: &[&Event]) -> Discovery {
        let mut discovery = Discovery::new(config(), NOW);
        held.iter().for_each(|event| discovery.observe(event, NOW));
        discovery
    }

    fn key(author: u8) -> String {
        crate::protocol::hex::encode(&[author; 32])
    }

    #[test]
    fn announcements_are_wanted_by_the_rules_and_the_next_version_of_what_is_ours() {
        let held = announcement(1, "x", &[OURS]).event();
        let mut discovery = discovery(&[&held]);
        let leaving = announcement(1, "x", &["wss://a.example"]).at(1_001).event();
        assert_eq!(discovery.judge(&announcement(2, "y", &[OURS]).event()), Ok(()));
        assert_eq!(discovery.judge(&announcement(3, "z", &[]).event()), Err(Objection::NotAccepted));
        assert_eq!(discovery.judge(&held), Ok(()));
        assert_eq!(discovery.judge(&leaving), Ok(()));
        discovery.observe(&leaving, NOW);
        // It has left: neither what it was nor what else it becomes concerns us, unless it comes back.
        assert_eq!(discovery.judge(&held), Err(Objection::NotAccepted));
        assert_eq!(discovery.judge(&announcement(1, "x", &[]).at(1_002).event()), Err(Objection::NotAccepted));
        assert_eq!(discovery.judge(&announcement(1, "x", &[OURS]).at(1_003).event()), Ok(()));
        let long = announcement(1, &"x".repeat(100_000), &[OURS]).event();
        assert_eq!(discovery.judge(&long), Err(Objection::Invalid));
    }

    #[test]
    fn states_and_grasp_lists_are_wanted_from_authors_and_maintainers() {
        let held = announcement(1, "x", &[OURS]).tag(&["maintainers", &key(2)]).event();
        let mut discovery = discovery(&[&held]);
        for (author, identifier, wanted) in [(1, "x", true), (2, "x", true), (3, "x", false), (2, "y", false)] {
            let state = draft(author, 30618).tag(&["d", identifier]).event();
            assert_eq!(discovery.judge(&state).is_ok(), wanted, "{author} {identifier}");
            let about: Vec<Address> = discovery.repositories_of(&state).into_iter().collect();
            assert_eq!(about, if wanted { vec![repo(1, "x")] } else { vec![] });
        }
        for (author, url, wanted) in [(1, "", true), (2, "", true), (3, "", false), (3, OURS, true)] {
            let list = draft(author, 10317).tag(&["g", url]).event();
            assert_eq!(discovery.judge(&list).is_ok(), wanted, "{author} {url}");
        }
    }

    #[test]
    fn what_tags_ours_or_is_tagged_by_it_is_wanted() {
        let announced = announcement(1, "x", &[OURS]).event();
        let earlier = draft(7, 1).content("the talk that led to it").event();
        let wiki = draft(7, 30818).tag(&["d", "design"]).event();
        let wiki_address = Address { kind: 30818, author: [7; 32], identifier: "design".into() };
        let rooted =
            issue(1, &[&repo(1, "x")]).tag(&["e", &hex_id(&earlier)]).tag(&["q", &wiki_address.to_string()]).event();
        let mut discovery = discovery(&[&announced, &rooted]);
        let address = repo(1, "x").to_string();
        for name in ["a", "A", "q"] {
            let event = draft(8, 1111).tag(&[name, &address]).event();
            assert_eq!(discovery.judge(&event), Ok(()), "{name}");
            assert_eq!(discovery.repositories_of(&event), [repo(1, "x")].into());
        }
        for (name, id) in [("e", &rooted), ("E", &rooted), ("q", &rooted), ("e", &announced)] {
            let event = draft(8, 1111).tag(&[name, &hex_id(id)]).event();
            assert_eq!(discovery.judge(&event), Ok(()), "{name}");
            assert_eq!(discovery.repositories_of(&event), [repo(1, "x")].into());
        }
        assert_eq!((discovery.judge(&earlier), discovery.judge(&wiki)), (Ok(()), Ok(())));
        for unrelated in [draft(8, 1), draft(8, 1).tag(&["e", &hex_id(&earlier)]), issue(2, &[&repo(2, "x")])] {
            assert_eq!(discovery.judge(&unrelated.event()), Err(Objection::Unrelated));
        }
        assert_eq!((discovery.counters().wanted, discovery.counters().objections_unrelated), (9, 3));
    }

    #[test]
    fn what_was_judged_good_counts_before_it_is_held() {
        let mut discovery = discovery(&[]);
        let announced = announcement(1, "x", &[OURS]).tag(&["maintainers", &key(2)]).event();
        let rooted = issue(1, &[&repo(1, "x")]).event();
        let comment = draft(8, 1111).tag(&["E", &hex_id(&rooted)]).event();
        let state = draft(2, 30618).tag(&["d", "x"]).event();
        for event in [&rooted, &comment, &state] {
            assert_eq!(discovery.judge(event), Err(Objection::Unrelated));
        }
        for event in [&announced, &rooted, &comment, &state] {
            assert_eq!(discovery.judge(event), Ok(()));
        }
        assert_eq!((discovery.sizes().promises, discovery.sizes().repositories), (2, 0));
        // What has arrived is what the index says, and nothing more.
        discovery.observe(&announced, NOW);
        discovery.observe(&rooted, NOW);
        discovery.observe(&announcement(1, "x", &[]).at(1_001).event(), NOW);
        assert_eq!(discovery.judge(&comment), Err(Objection::Unrelated));
        assert_eq!(discovery.sizes().promises, 0);
    }

    #[test]
    fn requests_are_wanted_if_they_remove_what_may_be_here() {
        let announced = announcement(1, "x", &[OURS]).event();
        let rooted = issue(1, &[&repo(1, "x")]).event();
        let mut discovery = discovery(&[&announced, &rooted]);
        let unknown = key(0x77);
        for (wanted, request) in [
            (true, draft(1, 5).tag(&["a", &repo(1, "x").to_string()])),
            (true, draft(90, 5).tag(&["e", &hex_id(&rooted)])),
            (true, draft(8, 5).tag(&["e", &unknown]).tag(&["k", "1111"])),
            (false, draft(8, 5).tag(&["e", &unknown]).tag(&["k", "30023"])),
            (false, draft(8, 5).tag(&["e", &unknown])),
            (true, draft(8, 62).tag(&["relay", "ALL_RELAYS"])),
            (true, draft(8, 62).tag(&["relay", "ws://OURS.example/"])),
            (false, draft(8, 62).tag(&["relay", "wss://a.example"])),
        ] {
            let request = request.event();
            assert_eq!(discovery.judge(&request).is_ok(), wanted, "{}", request.json_str());
        }
    }

    #[test]
    fn from_the_blocked_nothing_is_wanted() {
        let mut discovery = discovery(&[&announcement(1, "x", &[OURS]).event()]);
        let blocked =
            DiscoverConfig { block_authors: [[3; 32]].into(), block_repositories: [repo(2, "y")].into(), ..config() };
        discovery.reconfigure(blocked, NOW);
        for event in [
            announcement(3, "z", &[OURS]),
            announcement(2, "y", &[OURS]),
            draft(2, 30618).tag(&["d", "y"]),
            draft(3, 1111).tag(&["A", &repo(1, "x").to_string()]),
        ] {
            assert_eq!(discovery.judge(&event.event()), Err(Objection::Blocked));
        }
        assert_eq!(discovery.counters().objections_blocked, 4);
    }
}
