//! What is written about an accepted repository: announcements, issues, patches, pull requests, and what refers to
//! them in each form.

use std::collections::BTreeSet;

use nostr::event::Tag;

use super::repository::Root;
use super::scribe::Scribe;
use super::tags::{Target, clone_url, tag};
use super::{Claim, Form};
use crate::sample::dice::Dice;
use crate::sample::words::{prose, topic};

const ISSUE: u16 = 1621;
const PATCH: u16 = 1617;
const PULL_REQUEST: u16 = 1618;
/// The most events that one act writes, with a root and a comment that it may need first.
const ACT_EVENTS_MAX: usize = 6;

/// Something that people do around a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Issue,
    PatchSeries,
    PullRequest,
    Update,
    UpdateByRootOnly,
    Status,
    StatusByRootOnly,
    Comment,
    CommentOnComment,
    CommentOnRepository,
    CommentOnRepositoryComment,
    Reply,
    LegacyComment,
    Reaction,
    ReactionToRepository,
    Quote,
    QuoteOfRepository,
    Deletion,
}

/// How often each happens.
const WEIGHTS: &[(Act, usize)] = &[
    (Act::Issue, 14),
    (Act::PatchSeries, 8),
    (Act::PullRequest, 6),
    (Act::Update, 4),
    (Act::UpdateByRootOnly, 2),
    (Act::Status, 8),
    (Act::StatusByRootOnly, 3),
    (Act::Comment, 12),
    (Act::CommentOnComment, 8),
    (Act::CommentOnRepository, 3),
    (Act::CommentOnRepositoryComment, 2),
    (Act::Reply, 8),
    (Act::LegacyComment, 3),
    (Act::Reaction, 8),
    (Act::ReactionToRepository, 2),
    (Act::Quote, 4),
    (Act::QuoteOfRepository, 2),
    (Act::Deletion, 1),
];

/// All acts as often as they happen, in an order that chance decides. Each pass through it has everything.
pub(super) fn deck(dice: &mut Dice) -> Vec<Act> {
    let mut deck: Vec<Act> = WEIGHTS.iter().flat_map(|(act, weight)| std::iter::repeat_n(*act, *weight)).collect();
    for last in (1..deck.len()).rev() {
        deck.swap(last, dice.index(last + 1));
    }
    deck
}

impl Scribe {
    /// Does something around a repository, with at most `events_max` events.
    pub(super) fn act(&mut self, act: Act, number: usize, events_max: usize) {
        // What needs more than one event waits for another time.
        match if events_max < ACT_EVENTS_MAX { Act::Issue } else { act } {
            Act::Issue => _ = self.root(number, ISSUE),
            Act::PatchSeries => self.patch_series(number),
            Act::PullRequest => _ = self.root(number, PULL_REQUEST),
            Act::Update => self.update(number, true),
            Act::UpdateByRootOnly => self.update(number, false),
            Act::Status => self.status(number, true),
            Act::StatusByRootOnly => self.status(number, false),
            Act::Comment => _ = self.comment(number),
            Act::CommentOnComment => self.comment_on_comment(number),
            Act::CommentOnRepository => _ = self.comment_on_repository(number),
            Act::CommentOnRepositoryComment => self.comment_on_repository_comment(number),
            Act::Reply => self.refer_to_root(number, 1, |root| vec![root.marked("root"), root.author()]),
            Act::LegacyComment => self.refer_to_root(number, 1622, |root| vec![root.marked("root"), root.author()]),
            Act::Reaction => self.refer_to_root(number, 7, |root| root.as_parent().into()),
            Act::ReactionToRepository => self.refer_to_repository(number, 7, "a", &[Form::LowerA]),
            Act::Quote => self.quote(number),
            Act::QuoteOfRepository => self.refer_to_repository(number, 1, "q", &[Form::QuoteOfRepository]),
            Act::Deletion => self.deletion(number),
        }
    }

    /// The announcement of a repository and states of it, for some with an older version elsewhere.
    pub(super) fn announce(&mut self, number: usize) {
        let repository = self.repository(number).clone();
        if let Some(older_at) = self.older_at(number).filter(|_| number % 5 == 3) {
            self.announce_older(number, older_at);
        }
        self.announce_newest(number, repository.announced_at.clone());
        let helpers = repository.maintainers.iter().copied().take(usize::from(number.is_multiple_of(3)));
        let authors: BTreeSet<usize> = helpers.chain([repository.owner]).collect();
        for author in authors {
            if number % 4 == 1 {
                self.state(number, author, Claim::Passing);
            }
            self.state(number, author, Claim::Wanted(&[Form::Kind]));
        }
    }

    /// A relay that may have an older version of the announcement, and know of no newer.
    fn older_at(&self, number: usize) -> Option<usize> {
        let repository = self.repository(number);
        let is_hidden = self.hidden().is_some_and(|hidden| repository.relays.contains(&hidden));
        match repository.announced_at.contains(&0) {
            true => repository.relays.difference(&repository.announced_at).next().copied(),
            false => (!is_hidden).then_some(0),
        }
    }

    /// An older version, which lists only the relays at which the newest is found.
    fn announce_older(&mut self, number: usize, older_at: usize) {
        let repository = self.repository(number).clone();
        let found_at: BTreeSet<usize> = match older_at {
            0 => repository.announced_at.clone(),
            _ => [older_at].into(),
        };
        let tags = self.announcement(number, &found_at);
        self.write(repository.owner, 30617, tags, String::new(), [older_at].into(), Claim::Passing);
    }

    pub(super) fn announce_newest(&mut self, number: usize, announced_at: BTreeSet<usize>) {
        let repository = self.repository(number).clone();
        let tags = self.announcement(number, &repository.relays);
        self.write(repository.owner, 30617, tags, String::new(), announced_at, Claim::Wanted(&[Form::Kind]));
    }

    fn announcement(&mut self, number: usize, relays: &BTreeSet<usize>) -> Vec<Tag> {
        let repository = self.repository(number).clone();
        let service = self.config().service_url.clone();
        let urls: Vec<_> = relays.iter().map(|relay| self.config().relays[*relay].clone()).collect();
        let (mut clones, mut listed) = (vec!["clone".to_owned()], vec!["relays".to_owned()]);
        let lists = urls.iter().map(|url| (url, repository.relays_listed));
        for (url, listing) in lists.chain([(&service, repository.service_listed)]) {
            // One relay in several spellings.
            let slash = if self.dice.once_in(3) { "/" } else { "" };
            clones.extend(listing.in_clone().then(|| clone_url(url, &repository.owner_key, &repository.identifier)));
            listed.extend(listing.in_relays().then(|| format!("{url}{slash}")));
        }
        clones.push(format!("https://git.example/{number}.git"));
        let maintainers: Vec<String> = repository.maintainers.iter().map(|author| self.key(*author).to_hex()).collect();
        let mut tags = vec![
            tag(["d", &repository.identifier]),
            tag(["name", &format!("Repository {number}")]),
            tag(["description", &prose(&mut self.dice, 60)]),
            tag(["r", &repository.euc, "euc"]),
            tag(clones),
            tag(["t", topic(&mut self.dice)]),
            tag(["serial", &self.serial().to_string()]),
        ];
        tags.extend((listed.len() > 1).then(|| tag(listed)));
        tags.extend((!maintainers.is_empty()).then(|| tag([vec!["maintainers".to_owned()], maintainers].concat())));
        tags
    }

    /// What the branches of a repository are at (30618).
    fn state(&mut self, number: usize, author: usize, claim: Claim) {
        let (commit, relays) = (self.dice.hex(), self.places(number));
        let tags = vec![
            tag(["d", &self.repository(number).identifier]),
            tag(["refs/heads/main", &commit[..40]]),
            tag(["HEAD", "ref: refs/heads/main"]),
        ];
        self.write(author, 30618, tags, String::new(), relays, claim);
    }

    /// Lists of grasp servers (10317): of all owners, and of a few others that use ours.
    pub(super) fn list_servers(&mut self) {
        let mut done = BTreeSet::new();
        for number in 0..self.repositories().len() {
            let owner = self.repository(number).owner;
            if done.insert(owner) {
                let servers = if number % 2 == 0 { "wss://elsewhere.example".to_owned() } else { self.service() };
                let tags = vec![tag(["g", &servers])];
                self.wanted(number, owner, 10317, tags, String::new(), &[Form::Kind]);
            }
        }
        for number in 0..3 {
            let author = self.stranger();
            if done.insert(author) {
                let tags = vec![tag(["g", "wss://elsewhere.example"]), tag(["g", &self.service()])];
                let number = number % self.repositories().len();
                self.wanted(number, author, 10317, tags, String::new(), &[Form::Kind]);
            }
        }
    }

    fn service(&self) -> String {
        self.config().service_url.to_string()
    }

    fn address(&self, number: usize) -> String {
        self.repository(number).address().to_string()
    }

    fn text(&mut self, chars: u64) -> String {
        format!("{} [{}]", prose(&mut self.dice, chars), self.serial())
    }

    /// The tags that name a repository and its owner.
    fn of_repository(&self, number: usize) -> Vec<Tag> {
        vec![tag(["a", &self.address(number)]), tag(["p", &self.repository(number).owner_hex()])]
    }

    /// An issue, patch or pull request.
    pub(super) fn root(&mut self, number: usize, kind: u16) -> Target {
        let mut tags = self.of_repository(number);
        tags.push(tag(["subject", &prose(&mut self.dice, 30)]));
        tags.push(tag(["t", topic(&mut self.dice)]));
        if kind == PULL_REQUEST {
            tags.extend(self.tip(number));
        }
        let (author, content) = (self.contributor(), self.text(200));
        let target = self.wanted(number, author, kind, tags, content, &[Form::LowerA]);
        self.roots_mut(number).push(Root { target: target.clone(), comments: Vec::new() });
        target
    }

    fn tip(&mut self, number: usize) -> [Tag; 3] {
        let (commit, euc) = (self.dice.hex(), self.repository(number).euc.clone());
        [tag(["r", &euc]), tag(["c", &commit[..40]]), tag(["clone", "https://git.example/fork.git"])]
    }

    /// Patches that answer each other. The second names the repository, too; later ones may leave it out.
    fn patch_series(&mut self, number: usize) {
        let first = self.patch(number, None);
        let second = self.patch(number, Some((&first, &first)));
        if self.dice.once_in(2) {
            let (author, content) = (self.contributor(), self.text(300));
            let tags = vec![first.marked("root"), second.marked("reply"), first.author()];
            self.wanted(number, author, PATCH, tags, content, &[Form::LowerE]);
        }
    }

    fn patch(&mut self, number: usize, after: Option<(&Target, &Target)>) -> Target {
        let (mut tags, commit) = (self.of_repository(number), self.dice.hex());
        tags.push(tag(["commit", &commit[..40]]));
        tags.push(tag(["r", &self.repository(number).euc]));
        let forms: &[Form] = match after {
            None => &[Form::LowerA],
            Some(_) => &[Form::LowerA, Form::LowerE],
        };
        match after {
            None => tags.push(tag(["t", "root"])),
            Some((first, last)) => tags.extend([first.marked("root"), last.marked("reply")]),
        }
        let (author, content) = (self.contributor(), format!("From {commit}\n\n{}", self.text(300)));
        let target = self.wanted(number, author, PATCH, tags, content, forms);
        self.roots_mut(number).push(Root { target: target.clone(), comments: Vec::new() });
        target
    }

    /// Some root of a repository: of this kind, if one is named. Written first if there is none.
    fn some_root(&mut self, number: usize, kind: Option<u16>) -> usize {
        let fits = |root: &Root| kind.is_none_or(|kind| root.target.kind == kind);
        let roots = &self.repository(number).roots;
        let fitting: Vec<usize> = (0..roots.len()).filter(|place| fits(&roots[*place])).collect();
        if fitting.is_empty() {
            self.root(number, kind.unwrap_or(ISSUE));
            return self.repository(number).roots.len() - 1;
        }
        self.dice.pick(&fitting)
    }

    fn some_target(&mut self, number: usize, kind: Option<u16>) -> Target {
        let place = self.some_root(number, kind);
        self.repository(number).roots[place].target.clone()
    }

    /// A new tip of a pull request (1619).
    fn update(&mut self, number: usize, names_repository: bool) {
        let root = self.some_target(number, Some(PULL_REQUEST));
        let mut tags = if names_repository { self.of_repository(number) } else { Vec::new() };
        let [e, _, p] = root.as_root();
        tags.extend([e, p]);
        tags.extend(self.tip(number));
        let forms: &[Form] = if names_repository { &[Form::LowerA, Form::UpperE] } else { &[Form::UpperE] };
        let author = self.contributor();
        self.wanted(number, author, 1619, tags, String::new(), forms);
    }

    /// Open, applied, closed or draft (1630 to 1633).
    fn status(&mut self, number: usize, names_repository: bool) {
        let root = self.some_target(number, None);
        let mut tags = vec![root.marked("root"), root.author()];
        tags.extend(names_repository.then(|| tag(["a", &self.address(number)])));
        let forms: &[Form] = if names_repository { &[Form::LowerA, Form::LowerE] } else { &[Form::LowerE] };
        let (author, kind, content) = (self.owner(), 1630 + self.dice.below(4) as u16, self.text(20));
        self.wanted(number, author, kind, tags, content, forms);
    }

    /// A comment (NIP-22) on a root: which root, and the comment.
    fn comment(&mut self, number: usize) -> (usize, Target) {
        let place = self.some_root(number, None);
        let root = self.repository(number).roots[place].target.clone();
        let tags = [root.as_root(), root.as_parent()].concat();
        let (author, content) = (self.contributor(), self.text(120));
        let comment = self.wanted(number, author, 1111, tags, content, &[Form::LowerE, Form::UpperE]);
        self.roots_mut(number)[place].comments.push(comment.clone());
        (place, comment)
    }

    fn comment_on_comment(&mut self, number: usize) {
        let place = self.some_root(number, None);
        let (place, parent) = match self.repository(number).roots[place].comments.last().cloned() {
            Some(comment) => (place, comment),
            None => self.comment(number),
        };
        let root = self.repository(number).roots[place].target.clone();
        let tags = [root.as_root(), parent.as_parent()].concat();
        let (author, content) = (self.contributor(), self.text(80));
        let comment = self.wanted(number, author, 1111, tags, content, &[Form::UpperE]);
        self.roots_mut(number)[place].comments.push(comment);
    }

    fn comment_on_repository(&mut self, number: usize) -> Target {
        let (address, owner) = (self.address(number), self.repository(number).owner_hex());
        let names = [["A", "K", "P"], ["a", "k", "p"]];
        let tags = names.map(|[a, k, p]| [tag([a, &address]), tag([k, "30617"]), tag([p, &owner])]).concat();
        let (author, content) = (self.contributor(), self.text(80));
        self.wanted(number, author, 1111, tags, content, &[Form::LowerA, Form::UpperA])
    }

    fn comment_on_repository_comment(&mut self, number: usize) {
        let parent = self.comment_on_repository(number);
        let (address, owner) = (self.address(number), self.repository(number).owner_hex());
        let mut tags = vec![tag(["A", &address]), tag(["K", "30617"]), tag(["P", &owner])];
        tags.extend(parent.as_parent());
        let (author, content) = (self.contributor(), self.text(60));
        self.wanted(number, author, 1111, tags, content, &[Form::UpperA]);
    }

    /// Anything that names a root in an `e` tag only.
    fn refer_to_root(&mut self, number: usize, kind: u16, tags: impl FnOnce(&Target) -> Vec<Tag>) {
        let root = self.some_target(number, None);
        let (author, content) = (self.contributor(), self.text(60));
        self.wanted(number, author, kind, tags(&root), content, &[Form::LowerE]);
    }

    /// Anything that names a repository in one tag only.
    fn refer_to_repository(&mut self, number: usize, kind: u16, name: &str, forms: &'static [Form]) {
        let tags = vec![tag([name, &self.address(number)]), tag(["p", &self.repository(number).owner_hex()])];
        let (author, content) = (self.contributor(), self.text(60));
        self.wanted(number, author, kind, tags, content, forms);
    }

    fn quote(&mut self, number: usize) {
        let root = self.some_target(number, None);
        let (author, content) = (self.contributor(), self.text(60));
        self.wanted(number, author, 1, vec![root.quoted(), root.author()], content, &[Form::QuoteOfRoot]);
    }

    /// An issue that its author deletes (NIP-09). It and its deletion are at two relays: who has both no longer gives
    /// the issue, without which nothing leads to its deletion.
    fn deletion(&mut self, number: usize) {
        let relays = self.repository(number).relays.clone();
        let keeps = |relay: &&usize| self.config().deletions_at.contains(relay);
        let deleted_at = relays.iter().find(keeps).copied();
        let written_at = relays.iter().find(|relay| Some(**relay) != deleted_at).copied();
        let (Some(deleted_at), Some(written_at), false) = (deleted_at, written_at, self.is_posting()) else {
            self.root(number, ISSUE);
            return;
        };
        let (author, content) = (self.contributor(), self.text(60));
        let tags = self.of_repository(number);
        let issue = self.write(author, ISSUE, tags, content, [written_at].into(), Claim::Passing);
        let tags = vec![tag(["e", &issue.id]), tag(["k", "1621"])];
        let claim = Claim::Wanted(&[Form::LowerE]);
        self.write(author, 5, tags, String::new(), [deleted_at].into(), claim);
    }
}
