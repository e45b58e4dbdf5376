//! Is an event wanted?

use std::fmt;

use super::announcement::{Announcement, Version, decode_32, first_values, identifier, values};
use super::memory::{Reference, references};
use super::requests::{KIND_DELETION, KIND_VANISH, concerns_us, own_repositories};
use super::{Discovery, KIND_GRASP_LIST, KIND_STATE, ROOT_KINDS, read_root};
use crate::protocol::{Address, Event, RelayUrl};
use crate::store::rules::address_of;

/// What conversations about repositories consist of beside roots: replies, comments, reactions, updates, states (NIPs 01,
/// 22, 25 and 34). The index does not know which of them are held.
const CONVERSATION_KINDS: [u16; 11] = [1, 7, 1111, 1619, 1622, 1630, 1631, 1632, 1633, KIND_STATE, KIND_GRASP_LIST];

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
    /// wanted if it is about any of these, or says that it is about something that conversations consist of, because
    /// the index does not know which comments are held. A request to vanish is wanted if it is addressed to us, from
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
