//! How far the packs of a relay are.

use std::collections::BTreeSet;

use super::Pack;

/// The packs of one relay, by how far they are. Each is new, pending or confirmed.
#[derive(Debug, Default)]
pub struct Progress {
    target: BTreeSet<Pack>,
    /// `target − pending − confirmed`.
    new: BTreeSet<Pack>,
    pending: BTreeSet<Pack>,
    confirmed: BTreeSet<Pack>,
}

impl Progress {
    /// This is to be fetched.
    pub fn add(&mut self, pack: Pack) {
        if self.target.insert(pack.clone()) {
            self.new.insert(pack);
        }
    }

    /// This is to be followed, and need not be fetched.
    pub fn add_confirmed(&mut self, pack: Pack) {
        if self.target.insert(pack.clone()) {
            self.confirmed.insert(pack);
        }
    }

    /// This is not wanted any more.
    pub fn remove(&mut self, pack: &Pack) {
        self.target.remove(pack);
        self.new.remove(pack);
        self.pending.remove(pack);
        self.confirmed.remove(pack);
    }

    /// The three-way diff, `target − pending − confirmed`: what is to be begun. It is pending from now on.
    pub fn begin_new(&mut self) -> Vec<Pack> {
        let new: Vec<Pack> = std::mem::take(&mut self.new).into_iter().collect();
        self.pending.extend(new.iter().cloned());
        new
    }

    /// A pending pack has been fetched, or given up with a gap on record.
    pub fn confirm(&mut self, pack: &Pack) {
        if let Some(pack) = self.pending.take(pack) {
            self.confirmed.insert(pack);
        }
    }

    /// Forgets what was done, so that all is begun anew: pending first, then confirmed.
    pub fn clear(&mut self) {
        self.pending.clear();
        self.confirmed.clear();
        self.new.clone_from(&self.target);
    }

    /// What was done is to be looked at again; what is under way stays so.
    pub fn unconfirm_all(&mut self) {
        self.new.append(&mut self.confirmed);
    }

    /// This one is to be looked at again.
    pub fn unconfirm(&mut self, pack: &Pack) {
        if let Some(pack) = self.confirmed.take(pack) {
            self.new.insert(pack);
        }
    }

    /// This one is to be begun anew, whether it is done or under way.
    pub fn begin_again(&mut self, pack: &Pack) {
        if let Some(pack) = self.confirmed.take(pack).or_else(|| self.pending.take(pack)) {
            self.new.insert(pack);
        }
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
        self.pending.is_empty() && self.new.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::protocol::Filter;

    fn pack(kind: u16) -> Pack {
        Pack::opaque(Arc::new(Filter::new().kind(kind.into())))
    }

    #[test]
    fn only_what_is_neither_pending_nor_confirmed_is_begun() {
        let mut progress = Progress::default();
        progress.add(pack(1));
        progress.add(pack(2));
        assert_eq!(progress.begin_new().len(), 2);
        assert_eq!(progress.begin_new(), vec![]);
        progress.confirm(&pack(1));
        progress.add(pack(1));
        progress.add(pack(3));
        assert_eq!(progress.begin_new(), vec![pack(3)]);
        progress.remove(&pack(1));
        progress.remove(&pack(2));
        progress.confirm(&pack(3));
        assert!(progress.is_settled());
        progress.clear();
        assert_eq!(progress.begin_new(), vec![pack(3)]);
        progress.add_confirmed(pack(4));
        assert_eq!(progress.begin_new(), vec![]);
        progress.confirm(&pack(3));
        assert_eq!(progress.confirmed().len(), 2);
    }
}
