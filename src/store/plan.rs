//! Which index answers a filter, and what is left to check.

use std::collections::BTreeSet;

use nostr::filter::SingleLetterTag;

use super::entry::{Key, Range};
use super::tables::Tables;
use crate::protocol::{Filter, Window};

/// So many keys of an index are measured; more are assumed to be like them.
const KEYS_MEASURED_MAX: usize = 8;

/// How a filter is answered: the union of `keys`, within `window`, and the conditions that the index does not prove.
#[derive(Debug)]
pub(crate) struct Plan<'f> {
    /// What to read.
    pub(crate) keys: Vec<Key>,
    /// The times that count.
    pub(crate) window: Window,
    /// The ids, of which keys hold but a part.
    pub(crate) ids: Option<&'f BTreeSet<nostr::event::EventId>>,
    /// The kinds to check.
    pub(crate) kinds: Option<&'f BTreeSet<nostr::event::Kind>>,
    /// The authors to check.
    pub(crate) authors: Option<&'f BTreeSet<nostr::key::PublicKey>>,
    /// The tag conditions to check.
    pub(crate) tags: Vec<(SingleLetterTag, &'f BTreeSet<String>)>,
}

impl<'f> Plan<'f> {
    /// Chooses the index that has the fewest entries to read.
    pub(crate) fn choose<T: Tables>(tables: &T, filter: &'f Filter, window: Window) -> Result<Self, T::Error> {
        let window = window.intersect(&Window::of(filter));
        let mut candidates = Self::candidates(filter, window);
        if candidates.len() == 1 || filter.ids.is_some() {
            return Ok(candidates.swap_remove(0));
        }
        let mut best = (usize::MAX, 0);
        for (position, plan) in candidates.iter().enumerate() {
            best = best.min((plan.estimate(tables)?, position));
        }
        Ok(candidates.swap_remove(best.1))
    }

    /// All plans for `filter`, the likely best first.
    fn candidates(filter: &'f Filter, window: Window) -> Vec<Self> {
        let authors = || filter.authors.iter().flatten();
        let kinds = || filter.kinds.iter().flatten().map(|kind| kind.as_u16());
        let all = |keys| Self {
            keys,
            window,
            ids: None,
            kinds: filter.kinds.as_ref(),
            authors: filter.authors.as_ref(),
            tags: filter.generic_tags.iter().map(|(name, values)| (*name, values)).collect(),
        };
        if let Some(ids) = &filter.ids {
            let keys = ids.iter().map(|id| Key::id(id.as_bytes())).collect();
            return vec![Self { ids: Some(ids), ..all(keys) }];
        }
        let mut plans = Vec::new();
        for (name, values) in &filter.generic_tags {
            let keys = values.iter().map(|value| Key::tag(name.as_byte(), value)).collect();
            let mut plan = all(keys);
            plan.tags.retain(|(other, _)| other != name);
            plans.push(plan);
        }
        match (filter.authors.is_some(), filter.kinds.is_some()) {
            (true, true) => {
                let pairs = authors().flat_map(|author| kinds().map(|kind| Key::author_kind(author.as_bytes(), kind)));
                plans.push(Self { authors: None, kinds: None, ..all(pairs.collect()) });
                plans.push(Self { authors: None, ..all(author_keys(filter)) });
                plans.push(Self { kinds: None, ..all(kinds().map(Key::kind).collect()) });
            }
            (true, false) => plans.push(Self { authors: None, ..all(author_keys(filter)) }),
            (false, true) => plans.push(Self { kinds: None, ..all(kinds().map(Key::kind).collect()) }),
            (false, false) if plans.is_empty() => plans.push(all(vec![Key::time()])),
            (false, false) => {}
        }
        plans
    }

    fn estimate<T: Tables>(&self, tables: &T) -> Result<usize, T::Error> {
        let measured = self.keys.len().min(KEYS_MEASURED_MAX);
        let mut entries = 0;
        for key in self.keys.iter().take(measured) {
            entries += tables.estimate(&Range::of(key, self.window))?;
        }
        // A key costs a search in itself, as much as reading some entries.
        Ok(entries * self.keys.len() / measured.max(1) + self.keys.len() * 16)
    }

    /// The ranges to read.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range> {
        self.keys.iter().map(|key| Range::of(key, self.window))
    }
}

/// The keys of the authors of a filter.
fn author_keys(filter: &Filter) -> Vec<Key> {
    filter.authors.iter().flatten().map(|author| Key::author(author.as_bytes())).collect()
}
