//! From what is wanted to what is to be done: target − pending − confirmed.

mod coverage;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use coverage::{Todo, windows_to_fetch};

use crate::protocol::Filter;

/// The atom of all planning: one thing that is wanted of a relay.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interest {
    /// Whatever satisfies this filter; what it means is the caller's affair.
    Opaque(Arc<Filter>),
}

impl Interest {
    /// The filter that fetches this interest.
    pub fn filter(&self) -> &Arc<Filter> {
        match self {
            Self::Opaque(filter) => filter,
        }
    }
}

/// The interests of one relay, by how far they are. Every interest is in at most one of `pending` and `confirmed`.
#[derive(Debug, Default)]
pub struct Interests {
    target: BTreeSet<Interest>,
    pending: BTreeSet<Interest>,
    confirmed: BTreeSet<Interest>,
}

impl Interests {
    /// Replaces the target. Gives back what is under way or done and no longer wanted; it is forgotten here.
    pub fn set_target(&mut self, target: BTreeSet<Interest>) -> Vec<Interest> {
        let dropped: Vec<Interest> =
            self.pending.union(&self.confirmed).filter(|held| !target.contains(held)).cloned().collect();
        for interest in &dropped {
            self.pending.remove(interest);
            self.confirmed.remove(interest);
        }
        self.target = target;
        dropped
    }

    /// The three-way diff, `target − pending − confirmed`: what is to be begun. It is pending from now on.
    pub fn begin_new(&mut self) -> Vec<Interest> {
        let new: Vec<Interest> = self
            .target
            .iter()
            .filter(|interest| !self.pending.contains(interest) && !self.confirmed.contains(interest))
            .cloned()
            .collect();
        self.pending.extend(new.iter().cloned());
        new
    }

    /// A pending interest has been fetched, or given up with a gap on record.
    pub fn confirm(&mut self, interest: &Interest) {
        if let Some(interest) = self.pending.take(interest) {
            self.confirmed.insert(interest);
        }
    }

    /// Forgets what was done, so that all is begun anew: pending first, then confirmed.
    pub fn clear(&mut self) {
        self.pending.clear();
        self.confirmed.clear();
    }

    /// What was done is to be looked at again; what is under way stays so.
    pub fn unconfirm_all(&mut self) {
        self.confirmed.clear();
    }

    /// This one is to be looked at again.
    pub fn unconfirm(&mut self, interest: &Interest) {
        self.confirmed.remove(interest);
    }

    /// Everything wanted.
    pub fn target(&self) -> &BTreeSet<Interest> {
        &self.target
    }

    /// What has been fetched.
    pub fn confirmed(&self) -> &BTreeSet<Interest> {
        &self.confirmed
    }

    /// Is nothing under way or still to be begun?
    pub fn is_settled(&self) -> bool {
        self.pending.is_empty() && self.target.is_subset(&self.confirmed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interest(kind: u16) -> Interest {
        Interest::Opaque(Arc::new(Filter::new().kind(kind.into())))
    }

    #[test]
    fn only_what_is_neither_pending_nor_confirmed_is_begun() {
        let mut interests = Interests::default();
        interests.set_target([interest(1), interest(2)].into());
        assert_eq!(interests.begin_new().len(), 2);
        assert_eq!(interests.begin_new(), vec![]);
        interests.confirm(&interest(1));
        interests.set_target([interest(1), interest(2), interest(3)].into());
        assert_eq!(interests.begin_new(), vec![interest(3)]);
        assert_eq!(
            interests.set_target([interest(3)].into()),
            vec![interest(2), interest(1)].into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        );
        interests.confirm(&interest(3));
        assert!(interests.is_settled());
        interests.clear();
        assert_eq!(interests.begin_new(), vec![interest(3)]);
    }
}
