//! Who may read and write which protected events.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use bitcoin_hashes::sha256;
use nostr::event::Kind;
use serde::de::Error as _;

use super::{View, subset};
use crate::protocol::filter::{is_void, matches, parse_strict};
use crate::protocol::{Filter, PublicKey};

/// What a rule allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// To read: to be answered, to be sent what is new, and to be published to.
    SyncRead,
    /// To write: to publish here, and to be fetched from.
    SyncWrite,
}

/// One rule: who may do what with which protected events.
///
/// Reading one is strict about its filter, since a field that is not known would be left out and the rule be wider than
/// was meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Rule {
    /// The authenticated key that is granted this.
    pub principal: PublicKey,
    /// What it may do.
    pub capability: Capability,
    /// With which events: `kinds`, `authors` and tags of a filter.
    #[serde(rename = "match", deserialize_with = "read_match")]
    pub events: Filter,
}

/// A filter that no rule can have, and by which nothing can be protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchError {
    /// What is wrong and what to write instead.
    pub reason: String,
}

impl fmt::Display for MatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid match: {}", self.reason)
    }
}

impl std::error::Error for MatchError {}

/// Checks a filter that is to be a rule's, or to say what is protected: it has `kinds`, `authors` and tags, no empty
/// list, and nothing else. Whether an event satisfies it never changes and depends on nothing else that is held.
///
/// # Errors
/// Says which field is at fault.
pub fn check_match(filter: &Filter) -> Result<(), MatchError> {
    let fields = [
        ("ids", filter.ids.is_some()),
        ("since", filter.since.is_some()),
        ("until", filter.until.is_some()),
        ("limit", filter.limit.is_some()),
        ("search", filter.search.is_some()),
    ];
    if let Some((field, _)) = fields.into_iter().find(|(_, is_there)| *is_there) {
        let reason = format!("{field:?} has no place in it; it says which events by kinds, authors and tags");
        return Err(MatchError { reason });
    }
    if is_void(filter) {
        return Err(MatchError { reason: "an empty list matches nothing; leave the field out to match all".into() });
    }
    Ok(())
}

fn read_match<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Filter, D::Error> {
    let json = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
    let filter = parse_strict(&json.to_string()).map_err(D::Error::custom)?;
    check_match(&filter).map_err(D::Error::custom)?;
    Ok(filter)
}

/// What the rules make of a reader's filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterVerdict {
    /// It selects nothing that the reader may not see.
    Whole,
    /// What it selects is to be shown through this view.
    Veiled(View),
    /// It asks for protected events by name, and not all of them may be read.
    Refused,
}

/// Which events are protected, and the rules that say who may read and write them. What is not protected is free to
/// all; of what is, nobody has anything unless a rule says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessRules {
    /// Sorted, each once.
    protected: Arc<[Filter]>,
    /// The kinds that protected events can have; `None` for any.
    kinds: Option<BTreeSet<Kind>>,
    rules: BTreeSet<Rule>,
    /// What each key may read.
    readable: BTreeMap<PublicKey, Arc<[Filter]>>,
}

impl AccessRules {
    /// Whatever satisfies one of `protected` is, and `rules` hold.
    pub fn new(protected: impl IntoIterator<Item = Filter>, rules: impl IntoIterator<Item = Rule>) -> Self {
        let mut made = Self { rules: rules.into_iter().collect(), ..Self::default() };
        made.set_protected(protected.into_iter().collect());
        let readers: BTreeSet<PublicKey> = made.rules.iter().map(|rule| rule.principal).collect();
        readers.into_iter().for_each(|reader| made.note_reader(reader));
        made
    }

    /// Is nothing protected, so that nobody is kept from anything?
    pub fn is_open(&self) -> bool {
        self.protected.is_empty()
    }

    /// The filters that say what is protected, sorted.
    pub fn protected(&self) -> &[Filter] {
        &self.protected
    }

    /// All rules, sorted by principal.
    pub fn rules(&self) -> &BTreeSet<Rule> {
        &self.rules
    }

    /// The rules of one key.
    pub fn rules_of(&self, principal: PublicKey) -> impl Iterator<Item = &Rule> {
        [Capability::SyncRead, Capability::SyncWrite].into_iter().flat_map(move |it| self.granted(principal, it))
    }

    /// Is this event protected?
    pub fn protects(&self, event: &nostr::event::Event) -> bool {
        !self.is_open()
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.kind))
            && self.protected.iter().any(|filter| matches(filter, event))
    }

    /// May whoever has authenticated as `keys` do this with this event?
    pub fn allows<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k PublicKey>,
        capability: Capability,
        event: &nostr::event::Event,
    ) -> bool {
        !self.protects(event) || self.grants(keys, capability, event)
    }

    /// Does a rule of `keys` allow this with this event? Of an event that is [protected](Self::protects), that is
    /// whether it is allowed.
    pub fn grants<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k PublicKey>,
        capability: Capability,
        event: &nostr::event::Event,
    ) -> bool {
        let mut rules = keys.into_iter().flat_map(|key| self.granted(*key, capability));
        rules.any(|rule| matches(&rule.events, event))
    }

    /// Do the rules of `keys` allow this with every protected event that satisfies `filter`?
    ///
    /// That is told from the conditions alone: kinds, authors and tags of the filter's protected part must lie within
    /// those of a rule, or, split by their values, of several. Never `true` if it is not so; `false` although it is so
    /// only where telling takes more than [`COVER_VALUES_MAX`](super::COVER_VALUES_MAX), or where the ids or the window
    /// of the filter exclude what is not allowed.
    pub fn covers<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k PublicKey> + Clone,
        capability: Capability,
        filter: &Filter,
    ) -> bool {
        let rules = || keys.clone().into_iter().flat_map(|key| self.granted(*key, capability)).map(|rule| &rule.events);
        self.protected.iter().all(|protected| subset::is_covered(filter, protected, rules()))
    }

    /// Does `filter` ask for protected events by name: for one of its kinds (or in all, if it has none), is everything
    /// that it selects protected, by one filter or by several together?
    ///
    /// That is told from the conditions alone, as in [`covers`](Self::covers) and within the same bound.
    pub fn names(&self, filter: &Filter) -> bool {
        subset::names(filter, &self.protected)
    }

    /// Is everything protected that `filter` selects? Told as in [`names`](Self::names).
    pub fn protects_all(&self, filter: &Filter) -> bool {
        subset::lies_within(filter, &self.protected)
    }

    /// May some of what `filter` selects be protected? Tags are not looked at: an event can have any beside those.
    pub fn may_protect(&self, filter: &Filter) -> bool {
        self.protected.iter().any(|protected| subset::meet(filter, protected))
    }

    /// How a filter of whoever has authenticated as `keys` is to be answered. It depends on filter and rules only, never
    /// on what is held.
    pub fn verdict<'k>(&self, keys: impl IntoIterator<Item = &'k PublicKey> + Clone, filter: &Filter) -> FilterVerdict {
        if self.is_open() || self.covers(keys.clone(), Capability::SyncRead, filter) {
            FilterVerdict::Whole
        } else if self.names(filter) {
            FilterVerdict::Refused
        } else {
            FilterVerdict::Veiled(self.view(keys))
        }
    }

    /// What whoever has authenticated as `keys` may see.
    pub fn view<'k>(&self, keys: impl IntoIterator<Item = &'k PublicKey>) -> View {
        if self.is_open() {
            return View::all();
        }
        let mut readable = keys.into_iter().filter_map(|key| self.readable.get(key));
        let shown = match (readable.next(), readable.next()) {
            (None, _) => Arc::default(),
            (Some(one), None) => one.clone(),
            (Some(one), Some(other)) => {
                let all = one.iter().chain(&**other).chain(readable.flat_map(|more| &**more));
                all.cloned().collect::<BTreeSet<Filter>>().into_iter().collect()
            }
        };
        View::new(self.protected.clone(), shown)
    }

    /// A number for what a key, or nobody, may write by these rules, the same wherever and whenever it is asked for: what
    /// was synced under other rules is known by it. Zero while nothing is protected.
    pub fn digest(&self, principal: Option<PublicKey>) -> u64 {
        if self.is_open() {
            return 0;
        }
        let rules: Vec<&Rule> = principal.iter().flat_map(|key| self.granted(*key, Capability::SyncWrite)).collect();
        let json = serde_json::to_vec(&(&*self.protected, rules)).expect("rules have only strings and numbers");
        let hash = sha256::Hash::hash(&json).to_byte_array();
        u64::from_be_bytes(std::array::from_fn(|place| hash[place])).max(1)
    }

    /// Adds a rule; `false` if it held already.
    ///
    /// # Errors
    /// Its filter is none that a rule can have.
    pub fn grant(&mut self, rule: Rule) -> Result<bool, MatchError> {
        check_match(&rule.events)?;
        let reader = rule.principal;
        let is_new = self.rules.insert(rule);
        self.note_reader(reader);
        Ok(is_new)
    }

    /// Takes a rule back; `false` if there is none.
    pub fn revoke(&mut self, rule: &Rule) -> bool {
        let was_there = self.rules.remove(rule);
        self.note_reader(rule.principal);
        was_there
    }

    /// Makes all rules of one key those of another; says how many there were.
    pub fn move_rules(&mut self, from: PublicKey, to: PublicKey) -> usize {
        let moved: Vec<Rule> = self.rules_of(from).cloned().collect();
        for rule in &moved {
            self.rules.remove(rule);
            self.rules.insert(Rule { principal: to, ..rule.clone() });
        }
        self.note_reader(from);
        self.note_reader(to);
        moved.len()
    }

    /// Protects what satisfies a filter; `false` if it was named before.
    ///
    /// # Errors
    /// It is no filter by which something can be protected.
    pub fn protect(&mut self, filter: Filter) -> Result<bool, MatchError> {
        check_match(&filter)?;
        let mut protected: BTreeSet<Filter> = self.protected.iter().cloned().collect();
        let is_new = protected.insert(filter);
        self.set_protected(protected);
        Ok(is_new)
    }

    /// What satisfies this very filter is no longer protected by it; `false` if it was not.
    pub fn unprotect(&mut self, filter: &Filter) -> bool {
        let mut protected: BTreeSet<Filter> = self.protected.iter().cloned().collect();
        let was_there = protected.remove(filter);
        self.set_protected(protected);
        was_there
    }

    /// Whose rights grew and shrank, after `older` rules.
    pub fn changes_since(&self, older: &Self) -> AccessChanges {
        let principals = |rules: &BTreeSet<Rule>, others: &BTreeSet<Rule>| {
            rules.difference(others).map(|rule| rule.principal).collect::<BTreeSet<PublicKey>>()
        };
        let lacks = |one: &[Filter], other: &[Filter]| other.iter().any(|filter| one.binary_search(filter).is_err());
        AccessChanges {
            gained: principals(&self.rules, &older.rules),
            lost: principals(&older.rules, &self.rules),
            is_freer: lacks(&self.protected, &older.protected),
            is_stricter: lacks(&older.protected, &self.protected),
        }
    }

    /// The rules by which a key may do something.
    fn granted(&self, principal: PublicKey, capability: Capability) -> impl Iterator<Item = &Rule> {
        // No filter sorts before the one without conditions.
        let first = Rule { principal, capability, events: Filter::new() };
        let is_about = move |rule: &&Rule| rule.principal == principal && rule.capability == capability;
        self.rules.range(first..).take_while(is_about)
    }

    fn set_protected(&mut self, protected: BTreeSet<Filter>) {
        let is_any_kind = protected.is_empty() || protected.iter().any(|filter| filter.kinds.is_none());
        self.kinds =
            (!is_any_kind).then(|| protected.iter().filter_map(|it| it.kinds.as_ref()).flatten().copied().collect());
        self.protected = protected.into_iter().collect();
    }

    /// Notes what a key may read, as the rules have it now.
    fn note_reader(&mut self, key: PublicKey) {
        let filters: Arc<[Filter]> = self.granted(key, Capability::SyncRead).map(|rule| rule.events.clone()).collect();
        if filters.is_empty() {
            self.readable.remove(&key);
        } else {
            self.readable.insert(key, filters);
        }
    }
}

/// Whose rights have changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessChanges {
    /// Keys that have a rule that they did not have.
    pub gained: BTreeSet<PublicKey>,
    /// Keys that have lost a rule.
    pub lost: BTreeSet<PublicKey>,
    /// Something is protected no longer, which everybody gains by.
    pub is_freer: bool,
    /// Something is protected that was not, which everybody loses by.
    pub is_stricter: bool,
}

impl AccessChanges {
    /// May this key do more than before?
    pub fn has_gained(&self, key: &PublicKey) -> bool {
        self.is_freer || self.gained.contains(key)
    }

    /// Has nothing changed for who has authenticated as `keys`, if anything?
    pub fn spare<'k>(&self, keys: impl IntoIterator<Item = &'k PublicKey>) -> bool {
        let is_spared = |key: &PublicKey| !self.gained.contains(key) && !self.lost.contains(key);
        !self.is_freer && !self.is_stricter && keys.into_iter().all(is_spared)
    }

    /// May this key do less than before?
    pub fn has_lost(&self, key: &PublicKey) -> bool {
        self.is_stricter || self.lost.contains(key)
    }
}

/// Who may read one protected event; worked out once a key, however many connections have authenticated with it.
#[derive(Debug)]
pub struct Audience<'a> {
    rules: &'a AccessRules,
    event: &'a nostr::event::Event,
    known: BTreeMap<PublicKey, bool>,
}

impl<'a> Audience<'a> {
    /// The audience of an event; `None` if all are, since it is not protected.
    pub fn of(rules: &'a AccessRules, event: &'a nostr::event::Event) -> Option<Self> {
        rules.protects(event).then(|| Self { rules, event, known: BTreeMap::new() })
    }

    /// Does whoever has authenticated as `keys` belong to it?
    pub fn has(&mut self, keys: &BTreeSet<PublicKey>) -> bool {
        let Self { rules, event, known } = self;
        let grants = |key: &PublicKey| rules.grants([key], Capability::SyncRead, event);
        keys.iter().any(|key| *known.entry(*key).or_insert_with(|| grants(key)))
    }
}
