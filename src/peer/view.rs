//! What a reader may see.

use std::sync::Arc;

use super::subset;
use crate::protocol::Filter;
use crate::protocol::filter::matches;

/// Which events a reader may see: all but those that are hidden and not shown all the same. What it may not see is left
/// out as if it were not held: of pages, numbers and sets alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct View {
    hidden: Arc<[Filter]>,
    shown: Arc<[Filter]>,
}

impl View {
    /// Everything but what satisfies one of `hidden` and none of `shown`.
    pub fn new(hidden: Arc<[Filter]>, shown: Arc<[Filter]>) -> Self {
        Self { hidden, shown }
    }

    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Is nothing hidden?
    pub fn is_all(&self) -> bool {
        self.hidden.is_empty()
    }

    /// What is hidden, unless it is [shown](Self::shown).
    pub fn hidden(&self) -> &[Filter] {
        &self.hidden
    }

    /// What is shown of what is hidden.
    pub fn shown(&self) -> &[Filter] {
        &self.shown
    }

    /// May this event be seen?
    pub fn shows(&self, event: &nostr::event::Event) -> bool {
        let is_any = |filters: &[Filter]| filters.iter().any(|filter| matches(filter, event));
        !is_any(&self.hidden) || is_any(&self.shown)
    }

    /// The hidden filters that something may satisfy that satisfies `filter`.
    pub fn hidden_in<'f>(&'f self, filter: &'f Filter) -> impl Iterator<Item = &'f Filter> {
        self.hidden.iter().filter(|hidden| subset::meet(hidden, filter))
    }

    /// The shown ones.
    pub fn shown_in<'f>(&'f self, filter: &'f Filter) -> impl Iterator<Item = &'f Filter> {
        self.shown.iter().filter(|shown| subset::meet(shown, filter))
    }
}
