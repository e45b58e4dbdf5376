//! Interests that are fetched together, in one filter.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use nostr::event::Kind;
use nostr::filter::SingleLetterTag;

use super::Interest;
use crate::protocol::filter::matches;
use crate::protocol::{Address, Event, Filter, FilterKey, Window, hex};

/// The kinds of layer 1 (NIP-34): repository announcements and states, and lists of grasp servers.
pub const ANNOUNCEMENT_KINDS: [u16; 3] = [30617, 30618, 10317];

/// One filter: what is fetched as a whole, has one live subscription and one coverage mark. Cheap to clone. Filters
/// that name many things are made when they are needed, and not kept.
#[derive(Clone)]
pub struct Pack(Arc<Body>);

struct Body {
    key: FilterKey,
    content: Content,
}

/// What a pack selects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Announcements,
    Repos(RepoForm, Arc<[Address]>),
    Roots(RootForm, Arc<[[u8; 32]]>),
    Opaque(Arc<Filter>),
}

/// The ways in which what belongs to a repository is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RepoForm {
    /// What names it in an `a` tag.
    LowerA,
    /// What names it in an `A` tag: comments on it (NIP-22).
    UpperA,
    /// What quotes it (NIP-18).
    Quote,
    /// Its states, which have its identifier, and may be from any of its maintainers.
    States,
    /// Its author's list of grasp servers.
    GraspList,
}

/// The ways in which what belongs to an issue, patch or pull request is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RootForm {
    /// What names it in an `e` tag.
    LowerE,
    /// What names it in an `E` tag: comments on it (NIP-22).
    UpperE,
    /// What quotes it (NIP-18).
    Quote,
}

impl Pack {
    /// Layer 1.
    pub fn announcements() -> Self {
        Self::new(Content::Announcements)
    }

    /// Layer 2, in all of its forms.
    pub fn of_repositories(addresses: Vec<Address>) -> Vec<Self> {
        let addresses: Arc<[Address]> = addresses.into();
        let forms = [RepoForm::LowerA, RepoForm::UpperA, RepoForm::Quote, RepoForm::States, RepoForm::GraspList];
        forms.into_iter().map(|form| Self::new(Content::Repos(form, addresses.clone()))).collect()
    }

    /// Layer 3, in all of its forms.
    pub fn of_roots(ids: Vec<[u8; 32]>) -> Vec<Self> {
        let ids: Arc<[[u8; 32]]> = ids.into();
        let forms = [RootForm::LowerE, RootForm::UpperE, RootForm::Quote];
        forms.into_iter().map(|form| Self::new(Content::Roots(form, ids.clone()))).collect()
    }

    /// A filter of the caller's.
    pub fn opaque(filter: Arc<Filter>) -> Self {
        Self::new(Content::Opaque(filter))
    }

    /// The filter, if it is the one by which all packs of the same interests are known.
    pub fn packed(&self) -> Option<Box<Filter>> {
        let is_first =
            matches!(self.0.content, Content::Repos(RepoForm::LowerA, _) | Content::Roots(RootForm::LowerE, _));
        is_first.then(|| Box::new(Filter::clone(&self.filter())))
    }

    /// What such a filter was made of; nothing if it is none.
    pub(super) fn unpack(filter: &Filter) -> Vec<Interest> {
        let values = |tag| filter.generic_tags.get(&tag).into_iter().flatten();
        let repositories = values(SingleLetterTag::LOWERCASE_A).filter_map(|value| Address::parse(value).ok());
        let roots = values(SingleLetterTag::LOWERCASE_E).filter_map(|value| hex::decode(value)?.try_into().ok());
        repositories.map(Interest::Repo).chain(roots.map(Interest::Root)).collect()
    }

    fn new(content: Content) -> Self {
        Self(Arc::new(Body { key: content.key(), content }))
    }

    /// The filter.
    pub fn filter(&self) -> Arc<Filter> {
        self.0.content.filter()
    }

    /// The name of the filter.
    pub fn key(&self) -> &FilterKey {
        &self.0.key
    }

    /// The window that the filter itself asks for.
    pub fn window(&self) -> Window {
        match &self.0.content {
            Content::Opaque(filter) => Window::of(filter),
            _ => Window::ALL,
        }
    }

    /// Is this layer 1?
    pub fn is_announcements(&self) -> bool {
        self.0.content == Content::Announcements
    }

    /// Is this a filter of the caller's?
    pub fn is_opaque(&self) -> bool {
        matches!(self.0.content, Content::Opaque(_))
    }

    /// The layer whose packs can be merged with this one: 2 for repositories, 3 for roots.
    pub fn layer(&self) -> Option<u8> {
        match self.0.content {
            Content::Repos(..) => Some(2),
            Content::Roots(..) => Some(3),
            Content::Announcements | Content::Opaque(_) => None,
        }
    }

    /// How many interests are in it.
    pub fn len(&self) -> usize {
        match &self.0.content {
            Content::Repos(_, addresses) => addresses.len(),
            Content::Roots(_, ids) => ids.len(),
            Content::Announcements | Content::Opaque(_) => 1,
        }
    }

    /// About how many bytes the filter has, written out.
    pub fn filter_bytes(&self) -> usize {
        match &self.0.content {
            Content::Announcements => 40,
            Content::Opaque(filter) => filter.as_json().len(),
            Content::Repos(_, addresses) => {
                32 + addresses.iter().map(|address| 74 + address.identifier.len()).sum::<usize>()
            }
            Content::Roots(_, ids) => 32 + ids.len() * 67,
        }
    }

    /// Never, as packs are made of interests.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is in it.
    pub fn interests(&self) -> Vec<Interest> {
        match &self.0.content {
            Content::Announcements => vec![Interest::Announcements],
            Content::Opaque(filter) => vec![Interest::Opaque(filter.clone())],
            Content::Repos(_, addresses) => addresses.iter().cloned().map(Interest::Repo).collect(),
            Content::Roots(_, ids) => ids.iter().copied().map(Interest::Root).collect(),
        }
    }

    /// Does this event satisfy the filter, if it is one of the caller's or that of the announcements? What refers to
    /// repositories and roots is found by [`Packs::want`](super::Packs::want), for all packs at once.
    pub fn want(&self, event: &Event) -> bool {
        match &self.0.content {
            Content::Announcements => ANNOUNCEMENT_KINDS.contains(&event.kind_number()),
            Content::Opaque(filter) => matches(filter, event),
            Content::Repos(..) | Content::Roots(..) => false,
        }
    }

    /// Is what is new of this followed by a live subscription of its own? States and lists of grasp servers come with
    /// the announcements; they are fetched once more for a repository, since they were not wanted before it was.
    pub fn is_followed(&self) -> bool {
        !matches!(self.0.content, Content::Repos(RepoForm::States | RepoForm::GraspList, _))
    }
}

impl Content {
    /// States of two repositories with one identifier are found by the same filter, and wanted by different rules, and so
    /// are lists of one author: what is known of the one says nothing of the other.
    fn key(&self) -> FilterKey {
        match self {
            Self::Repos(form @ (RepoForm::States | RepoForm::GraspList), addresses) => {
                FilterKey::of_parts(form.name(), addresses.iter().map(Address::to_string))
            }
            _ => FilterKey::of(&self.filter()),
        }
    }

    fn filter(&self) -> Arc<Filter> {
        match self {
            Self::Announcements => Arc::new(Filter::new().kinds(ANNOUNCEMENT_KINDS.map(Kind::from))),
            Self::Opaque(filter) => filter.clone(),
            Self::Repos(form, addresses) => Arc::new(form.filter(addresses)),
            Self::Roots(form, ids) => {
                let letter = match form {
                    RootForm::LowerE => SingleLetterTag::LOWERCASE_E,
                    RootForm::UpperE => SingleLetterTag::UPPERCASE_E,
                    RootForm::Quote => SingleLetterTag::LOWERCASE_Q,
                };
                Arc::new(Filter::new().custom_tags(letter, ids.iter().map(|id| hex::encode(id))))
            }
        }
    }
}

impl RepoForm {
    fn name(self) -> &'static str {
        match self {
            Self::LowerA => "a",
            Self::UpperA => "A",
            Self::Quote => "q",
            Self::States => "states",
            Self::GraspList => "grasp lists",
        }
    }

    fn filter(self, addresses: &[Address]) -> Filter {
        let by_address = |letter| Filter::new().custom_tags(letter, addresses.iter().map(Address::to_string));
        match self {
            Self::LowerA => by_address(SingleLetterTag::LOWERCASE_A),
            Self::UpperA => by_address(SingleLetterTag::UPPERCASE_A),
            Self::Quote => by_address(SingleLetterTag::LOWERCASE_Q),
            Self::States => {
                let identifiers = addresses.iter().map(|address| address.identifier.as_ref());
                Filter::new().kind(Kind::from(30618)).custom_tags(SingleLetterTag::LOWERCASE_D, identifiers)
            }
            Self::GraspList => {
                let authors = addresses.iter().map(|address| nostr::key::PublicKey::from_byte_array(address.author));
                Filter::new().kind(Kind::from(10317)).authors(authors)
            }
        }
    }
}

impl fmt::Debug for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.content.fmt(f)
    }
}

impl PartialEq for Pack {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.key == other.0.key && self.0.content == other.0.content
    }
}

impl Eq for Pack {}

impl PartialOrd for Pack {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pack {
    fn cmp(&self, other: &Self) -> Ordering {
        match Arc::ptr_eq(&self.0, &other.0) {
            true => Ordering::Equal,
            false => self.0.content.cmp(&other.0.content),
        }
    }
}
