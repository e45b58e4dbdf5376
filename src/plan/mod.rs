//! From what is wanted to what is to be done: target − pending − confirmed.

mod coverage;
mod interest;
mod pack;

use std::collections::BTreeSet;

pub use coverage::{Todo, windows_to_fetch};
pub use interest::Interest;
pub use pack::{ANNOUNCEMENT_KINDS, Pack};

/// The packs of one relay, by how far they are. Every pack is in at most one of `pending` and `confirmed`.
#[derive(Debug, Default)]
pub struct Interests {
    target: BTreeSet<Pack>,
    pending: BTreeSet<Pack>,
    confirmed: BTreeSet<Pack>,
}

impl Interests {
    /// Replaces the target. Gives back what is under way or done and no longer wanted; it is forgotten here.
    pub fn set_target(&mut self, target: BTreeSet<Pack>) -> Vec<Pack> {
        let dropped: Vec<Pack> =
            self.pending.union(&self.confirmed).filter(|held| !target.contains(held)).cloned().collect();
        for interest in &dropped {
            self.pending.remove(interest);
            self.confirmed.remove(interest);
        }
        self.target = target;
        dropped
    }

    /// The three-way diff, `target − pending − confirmed`: what is to be begun. It is pending from now on.
    pub fn begin_new(&mut self) -> Vec<Pack> {
        let new: Vec<Pack> = self
            .target
            .iter()
            .filter(|interest| !self.pending.contains(interest) && !self.confirmed.contains(interest))
            .cloned()
            .collect();
        self.pending.extend(new.iter().cloned());
        new
    }

    /// A pending interest has been fetched, or given up with a gap on record.
    pub fn confirm(&mut self, interest: &Pack) {
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
    pub fn unconfirm(&mut self, interest: &Pack) {
        self.confirmed.remove(interest);
    }

    /// Everything wanted.
    pub fn target(&self) -> &BTreeSet<Pack> {
        &self.target
    }

    /// What has been fetched.
    pub fn confirmed(&self) -> &BTreeSet<Pack> {
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

    fn interest(kind: u16) -> Pack {
        Pack::opaque(std::sync::Arc::new(crate::protocol::Filter::new().kind(kind.into())))
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
