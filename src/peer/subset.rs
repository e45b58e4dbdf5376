//! What filters select of each other, told from their conditions alone, never from what is held.
//!
//! An event has one kind and one author, but any number of tags of a name. So two conditions on one tag both stay when
//! filters are put together, and one is not narrowed by the other: an event with `t` tags `a` and `b` satisfies both
//! `#t: [a]` and `#t: [b]`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use nostr::event::Kind;
use nostr::filter::SingleLetterTag;

use crate::protocol::filter::is_void;
use crate::protocol::{Filter, PublicKey, Window};

/// Values and rules looked at to find out whether rules cover a filter together; beyond that they count as not covering
/// it. It is enough for a filter of 250 authors of which each has a rule, and takes a few milliseconds.
pub const COVER_VALUES_MAX: usize = 1 << 16;

/// Can an event satisfy both filters? Their tags are not looked at: they exclude nothing.
pub(crate) fn meet(one: &Filter, other: &Filter) -> bool {
    !is_void(one)
        && !is_void(other)
        && have_common(one.kinds.as_ref(), other.kinds.as_ref())
        && have_common(one.authors.as_ref(), other.authors.as_ref())
        && have_common(one.ids.as_ref(), other.ids.as_ref())
        && !Window::of(one).intersect(&Window::of(other)).is_empty()
}

/// What satisfies `filter` and is worth looking at for who wants to know what satisfies `other`, too: all that satisfies
/// both is in it. Where both have a condition on a tag, that of `filter` stands.
pub(crate) fn narrowed(filter: &Filter, other: &Filter) -> Filter {
    let window = Window::of(filter).intersect(&Window::of(other));
    let mut generic_tags = other.generic_tags.clone();
    generic_tags.extend(filter.generic_tags.iter().map(|(name, values)| (*name, values.clone())));
    let bare = Filter {
        ids: common(filter.ids.as_ref(), other.ids.as_ref()).map(Cow::into_owned),
        authors: common(filter.authors.as_ref(), other.authors.as_ref()).map(Cow::into_owned),
        kinds: common(filter.kinds.as_ref(), other.kinds.as_ref()).map(Cow::into_owned),
        generic_tags,
        ..Filter::new()
    };
    window.apply(&bare)
}

/// Does `filter` name what satisfies one of `wholes`: for one of its kinds, or for all of them if it has none, does
/// everything that it selects satisfy one of them? Never says so if it does not; says so if it does, as far as
/// [`COVER_VALUES_MAX`] goes.
pub(crate) fn names(filter: &Filter, wholes: &[Filter]) -> bool {
    if wholes.is_empty() || is_void(filter) {
        return false;
    }
    let all = Region::of_one(filter);
    let Some(kinds) = &filter.kinds else { return lies_within(filter, wholes) };
    let has_kind = |whole: &&Filter, kind: &Kind| whole.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind));
    let of_kind = |kind: &Kind| Region { kinds: Some(Cow::Owned([*kind].into())), ..all.clone() };
    let named = |kind: &&Kind| wholes.iter().any(|whole| has_kind(&whole, kind));
    let mut values_left = COVER_VALUES_MAX;
    kinds.iter().filter(named).any(|kind| {
        let of_kind = of_kind(kind);
        // Most are protected by one filter, which costs nothing to find out.
        let is_within_one = wholes.iter().filter(|whole| has_no_more(whole)).any(|whole| of_kind.lies_within(whole));
        is_within_one || of_kind.is_covered(wholes.iter(), &mut values_left)
    })
}

/// Does everything that `filter` selects satisfy one of `wholes`? Told as in [`names`].
pub(crate) fn lies_within(filter: &Filter, wholes: &[Filter]) -> bool {
    !is_void(filter) && Region::of_one(filter).is_covered(wholes.iter(), &mut COVER_VALUES_MAX.clone())
}

/// Does everything that satisfies both `filter` and `part` satisfy one of `rules`, too? Never says so if it does not;
/// says so if it does, as far as [`COVER_VALUES_MAX`] goes and unless it took all 65,536 kinds one by one.
pub(crate) fn is_covered<'f>(filter: &'f Filter, part: &'f Filter, rules: impl Iterator<Item = &'f Filter>) -> bool {
    let mut values_left = COVER_VALUES_MAX;
    !meet(filter, part) || Region::of(filter, part).is_covered(rules, &mut values_left)
}

/// Has the filter conditions on kinds, authors and tags only?
fn has_no_more(filter: &Filter) -> bool {
    filter.ids.is_none() && filter.since.is_none() && filter.until.is_none()
}

/// All events that satisfy some conditions; several of them may be on one tag.
#[derive(Debug, Clone)]
struct Region<'f> {
    kinds: Option<Cow<'f, BTreeSet<Kind>>>,
    authors: Option<Cow<'f, BTreeSet<PublicKey>>>,
    tags: Vec<(SingleLetterTag, Cow<'f, BTreeSet<String>>)>,
}

impl<'f> Region<'f> {
    /// What satisfies a filter, as far as kinds, authors and tags say.
    fn of_one(filter: &'f Filter) -> Self {
        Self {
            kinds: filter.kinds.as_ref().map(Cow::Borrowed),
            authors: filter.authors.as_ref().map(Cow::Borrowed),
            tags: filter.generic_tags.iter().map(|(name, values)| (*name, Cow::Borrowed(values))).collect(),
        }
    }

    /// What satisfies both, as far as kinds, authors and tags say.
    fn of(one: &'f Filter, other: &'f Filter) -> Self {
        let tags = one.generic_tags.iter().chain(&other.generic_tags);
        Self {
            kinds: common(one.kinds.as_ref(), other.kinds.as_ref()),
            authors: common(one.authors.as_ref(), other.authors.as_ref()),
            tags: tags.map(|(name, values)| (*name, Cow::Borrowed(values))).collect(),
        }
    }

    /// Does each event in it satisfy one of `rules`? Takes what it has looked at from `values_left`, and does not say so
    /// once nothing is left.
    fn is_covered<'r>(&self, rules: impl Iterator<Item = &'r Filter>, values_left: &mut usize) -> bool {
        let rules: Vec<&Filter> = rules.filter(|rule| has_no_more(rule) && !is_void(rule)).collect();
        let mut regions = vec![(self.clone(), rules)];
        while let Some((region, mut rules)) = regions.pop() {
            let cost = region.values() + rules.len();
            let Some(left) = values_left.checked_sub(cost) else { return false };
            *values_left = left;
            if rules.iter().any(|rule| region.lies_within(rule)) {
                continue;
            }
            // A rule that a region does not touch touches no part of it.
            rules.retain(|rule| region.may_have_part_within(rule));
            let Some((inside, outside)) = rules.first().and_then(|rule| region.split(rule)) else { return false };
            regions.push((inside, rules.clone()));
            // First: it is more likely not to be covered.
            regions.push((outside, rules));
        }
        true
    }

    /// How many values its conditions have.
    fn values(&self) -> usize {
        let kinds = self.kinds.as_ref().map_or(0, |kinds| kinds.len());
        let authors = self.authors.as_ref().map_or(0, |authors| authors.len());
        kinds + authors + self.tags.iter().map(|(_, values)| values.len()).sum::<usize>()
    }

    fn tags_of(&self, name: SingleLetterTag) -> impl Iterator<Item = &BTreeSet<String>> {
        self.tags.iter().filter(move |(own, _)| *own == name).map(|(_, values)| &**values)
    }

    fn lies_within(&self, rule: &Filter) -> bool {
        is_within(self.kinds.as_deref(), rule.kinds.as_ref())
            && is_within(self.authors.as_deref(), rule.authors.as_ref())
            && rule.generic_tags.iter().all(|(name, values)| self.tags_of(*name).any(|own| own.is_subset(values)))
    }

    /// May some part of it, by [splitting](Self::split), lie within the rule?
    fn may_have_part_within(&self, rule: &Filter) -> bool {
        touches(self.kinds.as_deref(), rule.kinds.as_ref())
            && touches(self.authors.as_deref(), rule.authors.as_ref())
            && rule.generic_tags.iter().all(|(name, values)| self.tags_of(*name).any(|own| !own.is_disjoint(values)))
    }

    /// Its part that satisfies one more condition of `rule`, and the rest; `None` if there are not two such parts.
    fn split(&self, rule: &Filter) -> Option<(Self, Self)> {
        if let Some((inside, outside)) = parted(self.kinds.as_deref(), rule.kinds.as_ref()) {
            let with = |kinds| Self { kinds: Some(Cow::Owned(kinds)), ..self.clone() };
            return Some((with(inside), with(outside)));
        }
        if let Some((inside, outside)) = parted(self.authors.as_deref(), rule.authors.as_ref()) {
            let with = |authors| Self { authors: Some(Cow::Owned(authors)), ..self.clone() };
            return Some((with(inside), with(outside)));
        }
        let is_open = |(name, values): &(&SingleLetterTag, &BTreeSet<String>)| {
            !self.tags_of(**name).any(|own| own.is_subset(values))
        };
        let (name, values) = rule.generic_tags.iter().find(is_open)?;
        let part = |(place, (own, held)): (usize, &(SingleLetterTag, Cow<'_, BTreeSet<String>>))| {
            (own == name).then(|| parted(Some(&**held), Some(values))).flatten().map(|parts| (place, parts))
        };
        let (place, (inside, outside)) = self.tags.iter().enumerate().find_map(part)?;
        let with = |values| {
            let mut region = self.clone();
            region.tags[place].1 = Cow::Owned(values);
            region
        };
        Some((with(inside), with(outside)))
    }
}

/// The values that two conditions both allow.
fn common<'f, T: Ord + Clone>(
    one: Option<&'f BTreeSet<T>>,
    other: Option<&'f BTreeSet<T>>,
) -> Option<Cow<'f, BTreeSet<T>>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Cow::Owned(one & other)),
        (one, other) => one.or(other).map(Cow::Borrowed),
    }
}

fn have_common<T: Ord>(one: Option<&BTreeSet<T>>, other: Option<&BTreeSet<T>>) -> bool {
    one.zip(other).is_none_or(|(one, other)| !one.is_disjoint(other))
}

/// Does a condition allow nothing but what `whole` allows?
fn is_within<T: Ord>(condition: Option<&BTreeSet<T>>, whole: Option<&BTreeSet<T>>) -> bool {
    whole.is_none_or(|whole| condition.is_some_and(|condition| condition.is_subset(whole)))
}

/// The same for a part of the condition.
fn touches<T: Ord>(condition: Option<&BTreeSet<T>>, whole: Option<&BTreeSet<T>>) -> bool {
    whole.is_none_or(|whole| condition.is_some_and(|condition| !condition.is_disjoint(whole)))
}

/// The values inside and outside of `whole`, if there are both.
fn parted<T: Ord + Clone>(
    condition: Option<&BTreeSet<T>>,
    whole: Option<&BTreeSet<T>>,
) -> Option<(BTreeSet<T>, BTreeSet<T>)> {
    let (condition, whole) = condition.zip(whole)?;
    let (inside, outside) = (condition & whole, condition - whole);
    (!inside.is_empty() && !outside.is_empty()).then_some((inside, outside))
}
