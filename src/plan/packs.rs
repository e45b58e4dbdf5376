//! Which interests of one relay are fetched together: the first half of `target − pending − confirmed`. What is wanted
//! and in no pack yet is the rest of that diff.

use std::collections::{BTreeMap, BTreeSet};

use super::{Interest, Pack};
use crate::protocol::filter::matches;
use crate::protocol::{Address, Event, Filter, hex};

/// All interests of one relay, in packs.
#[derive(Debug)]
pub struct Packs {
    /// Interests of one layer that are put together, at most.
    values_max: usize,
    /// Wanted, and in no pack yet.
    unpacked: BTreeSet<Interest>,
    bundle_of: BTreeMap<Interest, u32>,
    bundles: BTreeMap<u32, Bundle>,
    /// Bundles of which something is not wanted any more.
    thinned: BTreeSet<u32>,
    /// Interests that were packed together before a restart.
    remembered: Vec<Vec<Interest>>,
    last: u32,
}

/// The same interests, in all forms in which they are fetched; never empty.
type Bundle = Vec<Pack>;

/// Some packs give way to one that asks for the same, or less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// What is not asked for any more.
    pub old: Vec<Pack>,
    /// What is asked for instead; nothing, if nothing is left of it.
    pub new: Option<Pack>,
}

impl Packs {
    /// No interests yet; up to `values_max` of one layer go into one filter.
    pub fn new(values_max: usize) -> Self {
        Self {
            values_max: values_max.max(1),
            unpacked: BTreeSet::new(),
            bundle_of: BTreeMap::new(),
            bundles: BTreeMap::new(),
            thinned: BTreeSet::new(),
            remembered: Vec::new(),
            last: 0,
        }
    }

    /// The same, but what was packed together before, as these filters say, is to be packed so again: then what is known
    /// of it holds.
    pub fn remembering<'f>(filters: impl Iterator<Item = &'f Filter>, values_max: usize) -> Self {
        let remembered = filters.map(Pack::unpack).filter(|interests| !interests.is_empty()).collect();
        Self { remembered, ..Self::new(values_max) }
    }

    /// What was packed together before does not matter any more. Gives back those of these packs that are none now.
    pub fn forget_remembered(&mut self) -> Vec<Pack> {
        let bundles = std::mem::take(&mut self.remembered);
        bundles.iter().flat_map(|interests| packs_of(interests)).collect()
    }

    /// This is wanted from now on.
    pub fn add(&mut self, interest: Interest) {
        if !self.bundle_of.contains_key(&interest) {
            self.unpacked.insert(interest);
        }
    }

    /// This is not wanted any more.
    pub fn remove(&mut self, interest: &Interest) {
        if !self.unpacked.remove(interest)
            && let Some(bundle) = self.bundle_of.remove(interest)
        {
            self.thinned.insert(bundle);
        }
    }

    /// What is wanted becomes this and nothing else.
    pub fn set(&mut self, target: BTreeSet<Interest>) {
        let gone: Vec<Interest> =
            self.bundle_of.keys().chain(&self.unpacked).filter(|held| !target.contains(held)).cloned().collect();
        gone.iter().for_each(|interest| self.remove(interest));
        target.into_iter().for_each(|interest| self.add(interest));
    }

    /// The filters of the caller's become these and no others.
    pub fn set_opaque(&mut self, target: &BTreeSet<Interest>) {
        let gone: Vec<Interest> = self.opaque().filter(|held| !target.contains(held)).cloned().collect();
        gone.iter().for_each(|interest| self.remove(interest));
        target.iter().for_each(|interest| self.add(interest.clone()));
    }

    /// All packs.
    pub fn iter(&self) -> impl Iterator<Item = &Pack> {
        self.bundles.values().flatten()
    }

    /// Is nothing wanted?
    pub fn is_empty(&self) -> bool {
        self.bundle_of.is_empty() && self.unpacked.is_empty()
    }

    /// Interests that are wanted.
    pub fn len(&self) -> usize {
        self.bundle_of.len() + self.unpacked.len()
    }

    /// Interests that are wanted and in no pack yet.
    pub fn unpacked(&self) -> usize {
        self.unpacked.len()
    }

    /// Does this belong to what is wanted, by its kind or by what it refers to? Interests that are filters of the
    /// caller's are looked at last, since all of them have to be.
    pub fn want(&self, event: &Event) -> bool {
        let is_announcement = super::ANNOUNCEMENT_KINDS.contains(&event.kind_number());
        is_announcement && self.is_wanted(&Interest::Announcements)
            || event.tags.iter().any(|tag| self.wants_reference(tag.as_slice()))
            || self.opaque().any(|interest| matches!(interest, Interest::Opaque(filter) if matches(filter, event)))
    }

    /// Of what is wanted, the filters of the caller's.
    pub fn opaque(&self) -> impl Iterator<Item = &Interest> {
        // The variant that is ordered last: everything from the smallest that it has.
        let packed = self.bundle_of.keys().rev().take_while(|interest| matches!(interest, Interest::Opaque(_)));
        packed.chain(self.unpacked.iter().rev().take_while(|interest| matches!(interest, Interest::Opaque(_))))
    }

    fn wants_reference(&self, tag: &[String]) -> bool {
        let [name, value, ..] = tag else { return false };
        let by_address = || Address::parse(value).is_ok_and(|address| self.is_wanted(&Interest::Repo(address)));
        let by_id = || id_of(value).is_some_and(|id| self.is_wanted(&Interest::Root(id)));
        match name.as_str() {
            "a" | "A" => by_address(),
            "e" | "E" => by_id(),
            "q" => by_id() || by_address(),
            _ => false,
        }
    }

    fn is_wanted(&self, interest: &Interest) -> bool {
        self.bundle_of.contains_key(interest) || self.unpacked.contains(interest)
    }

    /// Packs what is in no pack yet: as much as possible in each.
    pub fn pack(&mut self) -> Vec<Pack> {
        let mut packs = Vec::new();
        let is_unpacked = |interests: &mut Vec<Interest>| interests.iter().all(|one| self.unpacked.contains(one));
        for interests in self.remembered.extract_if(.., is_unpacked).collect::<Vec<_>>() {
            interests.iter().for_each(|interest| drop(self.unpacked.take(interest)));
            packs.extend_from_slice(self.insert(&interests));
        }
        for interests in bundles(std::mem::take(&mut self.unpacked), self.values_max) {
            packs.extend_from_slice(self.insert(&interests));
        }
        packs
    }

    fn insert(&mut self, interests: &[Interest]) -> &Bundle {
        self.last += 1;
        let number = self.last;
        self.bundle_of.extend(interests.iter().map(|interest| (interest.clone(), number)));
        self.bundles.entry(number).or_insert_with(|| packs_of(interests))
    }

    /// Makes smaller packs of those of which something is not wanted any more.
    pub fn thin(&mut self) -> Vec<Replaced> {
        let mut replaced = Vec::new();
        for number in std::mem::take(&mut self.thinned) {
            let Some(bundle) = self.bundles.remove(&number) else { continue };
            let is_left = |interest: &Interest| self.bundle_of.get(interest) == Some(&number);
            let left: Vec<Interest> = interests_of(&bundle).filter(is_left).collect();
            let packs = if left.is_empty() { Bundle::new() } else { self.insert(&left).clone() };
            let mut new = packs.into_iter();
            replaced.extend(bundle.into_iter().map(|old| Replaced { old: vec![old], new: new.next() }));
        }
        replaced
    }

    /// Makes full packs of small ones, of those whose packs are all `done`.
    pub fn consolidate(&mut self, done: impl Fn(&Pack) -> bool) -> Vec<Replaced> {
        let is_small = |bundle: &Bundle| {
            let mergeable = bundle[0].layer().is_some() && bundle[0].len() < self.values_max;
            mergeable && bundle.iter().all(&done)
        };
        let small = self.bundles.iter().filter(|(_, bundle)| is_small(bundle));
        let small: Vec<u32> = small.map(|(number, _)| *number).collect();
        let mut layers: BTreeMap<u8, Vec<Bundle>> = BTreeMap::new();
        for bundle in small.iter().filter_map(|number| self.bundles.remove(number)) {
            layers.entry(bundle[0].layer().unwrap_or_default()).or_default().push(bundle);
        }
        layers.into_values().flat_map(|bundles| self.merge(bundles)).collect()
    }

    /// Merges whole bundles of one layer, smallest first, as long as they fit into one.
    fn merge(&mut self, mut bundles: Vec<Bundle>) -> Vec<Replaced> {
        let mut replaced = Vec::new();
        bundles.sort_by_key(|bundle| bundle[0].len());
        let mut bundles = bundles.into_iter().peekable();
        while let Some(first) = bundles.next() {
            let mut room = self.values_max.saturating_sub(first[0].len());
            let mut merged = vec![first];
            while let Some(next) = bundles.next_if(|next| next[0].len() <= room) {
                room -= next[0].len();
                merged.push(next);
            }
            replaced.extend(self.join(merged));
        }
        replaced
    }

    fn join(&mut self, mut merged: Vec<Bundle>) -> Vec<Replaced> {
        let interests: Vec<Interest> = merged.iter().flat_map(interests_of).collect();
        if merged.len() == 1 {
            self.last += 1;
            self.bundle_of.extend(interests.into_iter().map(|interest| (interest, self.last)));
            self.bundles.extend(merged.pop().map(|bundle| (self.last, bundle)));
            return Vec::new();
        }
        let new = self.insert(&interests);
        let of_form = |form: usize| merged.iter().filter_map(|packs| packs.get(form).cloned()).collect();
        new.iter().enumerate().map(|(form, new)| Replaced { old: of_form(form), new: Some(new.clone()) }).collect()
    }

    /// How many filters would have to be followed if all packs were as full as possible.
    pub fn filters_min(&self) -> usize {
        let mut values: BTreeMap<u8, (usize, usize)> = BTreeMap::new();
        let mut others = 0;
        for bundle in self.bundles.values() {
            let followed = bundle.iter().filter(|pack| pack.is_followed()).count();
            match bundle[0].layer() {
                Some(layer) => {
                    let (count, forms) = values.entry(layer).or_default();
                    *count += bundle[0].len();
                    *forms = followed;
                }
                None => others += followed,
            }
        }
        others + values.values().map(|(count, forms)| count.div_ceil(self.values_max) * forms).sum::<usize>()
    }
}

fn interests_of(bundle: &Bundle) -> impl Iterator<Item = Interest> + '_ {
    bundle.first().into_iter().flat_map(Pack::interests)
}

/// Interests of one layer at a time, as many as go together. Filters of the caller's stay apart.
fn bundles(interests: BTreeSet<Interest>, values_max: usize) -> Vec<Vec<Interest>> {
    let mut bundles: Vec<Vec<Interest>> = Vec::new();
    for interest in interests {
        let fits = |bundle: &&mut Vec<Interest>| {
            bundle.len() < values_max
                && matches!(
                    (&bundle[0], &interest),
                    (Interest::Repo(_), Interest::Repo(_)) | (Interest::Root(_), Interest::Root(_))
                )
        };
        match bundles.last_mut().filter(fits) {
            Some(bundle) => bundle.push(interest),
            None => bundles.push(vec![interest]),
        }
    }
    bundles
}

/// All forms in which interests of one layer are fetched.
fn packs_of(interests: &[Interest]) -> Bundle {
    let addresses = interests.iter().filter_map(|interest| match interest {
        Interest::Repo(address) => Some(address.clone()),
        _ => None,
    });
    let ids = interests.iter().filter_map(|interest| match interest {
        Interest::Root(id) => Some(*id),
        _ => None,
    });
    match interests.first() {
        None => Bundle::new(),
        Some(Interest::Announcements) => vec![Pack::announcements()],
        Some(Interest::Opaque(filter)) => vec![Pack::opaque(filter.clone())],
        Some(Interest::Repo(_)) => Pack::of_repositories(addresses.collect()),
        Some(Interest::Root(_)) => Pack::of_roots(ids.collect()),
    }
}

fn id_of(value: &str) -> Option<[u8; 32]> {
    if value.len() == 64 { hex::decode(value)?.try_into().ok() } else { None }
}
