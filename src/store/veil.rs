//! What a view hides of what a filter selects. Most filters cannot meet a hidden one, which kinds and authors tell at
//! once; then nothing is looked at.

use std::collections::BTreeMap;

use nostr::event::Kind;
use nostr::key::PublicKey;

use super::entry::{Rank, Sequence};
use super::select::{parsed, select};
use super::tables::{Body, Damaged, Tables};
use crate::peer::{View, subset};
use crate::protocol::filter::matches;
use crate::protocol::{Filter, Window};

/// A view, as far as it concerns one filter.
#[derive(Debug)]
pub(super) struct Veil<'f> {
    filter: &'f Filter,
    hidden: Vec<&'f Filter>,
    shown: Vec<&'f Filter>,
}

/// The events that a [`Veil`] hides.
#[derive(Debug, Default)]
pub(super) struct Hidden<'f> {
    kinds: Vec<&'f Filter>,
    sequences: Vec<Sequence>,
}

impl<'f> Veil<'f> {
    pub(super) fn over(view: &'f View, filter: &'f Filter) -> Self {
        let hidden: Vec<&Filter> = view.hidden_in(filter).collect();
        let shown = if hidden.is_empty() { Vec::new() } else { view.shown_in(filter).collect() };
        Self { filter, hidden, shown }
    }

    /// Is an event with this entry hidden, as its kind alone says? Others may be hidden, too.
    pub(super) fn hides_kind(&self, rank: &Rank) -> bool {
        self.whole_kinds().any(|hidden| has_kind(hidden, rank))
    }

    /// May an event with this entry be hidden, as far as its kind says?
    pub(super) fn may_hide_kind(&self, rank: &Rank) -> bool {
        self.hidden.iter().any(|hidden| has_kind(hidden, rank))
    }

    /// May an event with this entry, which is gone, have been hidden? Of its kind, only what is shown whatever its author and
    /// tags was surely none of those.
    pub(super) fn may_hide_gone(&self, rank: &Rank) -> bool {
        let is_plain = |filter: &&Filter| {
            let Filter { ids, authors, since, until, generic_tags, .. } = *filter;
            ids.is_none() && authors.is_none() && since.is_none() && until.is_none() && generic_tags.is_empty()
        };
        let is_shown = || self.shown.iter().copied().any(|shown| is_plain(&shown) && has_kind(shown, rank));
        self.may_hide_kind(rank) && !is_shown()
    }

    /// Is this event, which is held, hidden?
    pub(super) fn hides(&self, rank: &Rank, body: &Body) -> Result<bool, Damaged> {
        let may_hide = |hidden: &&Filter| has_kind(hidden, rank) && has_author(hidden, body);
        if !self.hidden.iter().any(may_hide) {
            return Ok(false);
        }
        let event = parsed(rank, body)?;
        let is_any = |filters: &[&Filter]| filters.iter().any(|filter| matches(filter, &event));
        Ok(is_any(&self.hidden) && !is_any(&self.shown))
    }

    /// All that is hidden in `window`, by entries alone. `with_gone`: what is gone counts as hidden if it may have been,
    /// since the tags of what is gone are not known.
    pub(super) fn hidden<T: Tables>(
        &self,
        tables: &T,
        window: Window,
        with_gone: bool,
    ) -> Result<Hidden<'f>, T::Error> {
        let is_gone = |rank: &Rank| tables.fate(rank.sequence()).is_some();
        let (mut hidden, mut shown) = (Vec::new(), Vec::new());
        for filter in self.hidden.iter().filter(|filter| !self.is_whole_kinds(filter)) {
            let asked = subset::narrowed(filter, self.filter);
            select(tables, &asked, window, &mut |rank| hidden.push(rank.sequence()))?;
            if with_gone && !asked.generic_tags.is_empty() {
                let without_tags = Filter { generic_tags: BTreeMap::new(), ..asked };
                let mut note = |rank: &Rank| hidden.extend(is_gone(rank).then(|| rank.sequence()));
                select(tables, &without_tags, window, &mut note)?;
            }
        }
        for filter in self.shown.iter().filter(|_| !hidden.is_empty()) {
            let is_known = |rank: &Rank| filter.generic_tags.is_empty() || !is_gone(rank);
            let mut note = |rank: &Rank| shown.extend(is_known(rank).then(|| rank.sequence()));
            select(tables, &subset::narrowed(filter, self.filter), window, &mut note)?;
        }
        hidden.sort_unstable();
        hidden.dedup();
        shown.sort_unstable();
        hidden.retain(|sequence| shown.binary_search(sequence).is_err());
        Ok(Hidden { kinds: self.whole_kinds().collect(), sequences: hidden })
    }

    /// The hidden filters for which an event's kind is enough.
    fn whole_kinds(&self) -> impl Iterator<Item = &'f Filter> {
        self.hidden.iter().copied().filter(|hidden| self.is_whole_kinds(hidden))
    }

    fn is_whole_kinds(&self, hidden: &Filter) -> bool {
        let Filter { ids, authors, since, until, generic_tags, .. } = hidden;
        let has_no_more = ids.is_none() && authors.is_none() && since.is_none() && until.is_none();
        self.shown.is_empty() && has_no_more && generic_tags.is_empty()
    }
}

impl Hidden<'_> {
    /// Is the event with this entry among them?
    pub(super) fn has(&self, rank: &Rank) -> bool {
        self.kinds.iter().any(|hidden| has_kind(hidden, rank)) || self.sequences.binary_search(&rank.sequence()).is_ok()
    }
}

/// Takes out of a page what a veil hides: event by event, until there were so many that it is cheaper to list them all.
#[derive(Debug)]
pub(super) struct Sieve<'f> {
    veil: Veil<'f>,
    hidden: Hidden<'f>,
    taken_out: usize,
}

/// So many hidden events are read for one page, before all of them are listed by their entries.
const TAKEN_OUT_MAX: usize = 4096;

impl<'f> Sieve<'f> {
    pub(super) fn new(veil: Veil<'f>) -> Self {
        Self { veil, hidden: Hidden::default(), taken_out: 0 }
    }

    /// May the event with this entry pass?
    pub(super) fn may_pass(&self, rank: &Rank) -> bool {
        !self.veil.hides_kind(rank) && !self.hidden.has(rank)
    }

    /// Does this event, which is held, pass? `window` has all that are to come.
    pub(super) fn passes<T: Tables>(
        &mut self,
        tables: &T,
        window: Window,
        rank: &Rank,
        body: &Body,
    ) -> Result<bool, T::Error> {
        let is_hidden = self.veil.hides(rank, body)?;
        self.taken_out += usize::from(is_hidden);
        if is_hidden && self.taken_out == TAKEN_OUT_MAX {
            self.hidden = self.veil.hidden(tables, window, false)?;
        }
        Ok(!is_hidden)
    }
}

fn has_kind(filter: &Filter, rank: &Rank) -> bool {
    filter.kinds.as_ref().is_none_or(|kinds| kinds.contains(&Kind::from(rank.kind())))
}

fn has_author(filter: &Filter, body: &Body) -> bool {
    filter.authors.as_ref().is_none_or(|authors| authors.contains(&PublicKey::from_byte_array(body.author)))
}
