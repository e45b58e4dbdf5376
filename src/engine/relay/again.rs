//! Asking again for announcements, states and lists that were not wanted when the relay sent them and are now.

use std::collections::BTreeSet;

use super::{Ctx, Relay};
use crate::plan::{Pack, without};

/// What of the announcements is to be asked for again.
#[derive(Debug, Default)]
pub(super) struct Again {
    /// What is dated so, in seconds since 1970.
    seconds: BTreeSet<u64>,
}

impl Relay {
    /// What is dated so, in seconds since 1970, was not wanted when the relay sent it and is wanted now.
    pub(in crate::engine) fn ask_again(&mut self, seconds: &[u64], ctx: &mut Ctx<'_>) {
        self.again.seconds.extend(seconds);
        self.pump(ctx);
    }

    /// What is proven of the announcements does not hold for what is asked for again. A pass that is under way has asked
    /// before: its end is awaited.
    pub(super) fn begin_again_if_due(&mut self, ctx: &mut Ctx<'_>) {
        let is_under_way = || self.histories.values().any(|history| history.pack.is_announcements());
        if self.again.seconds.is_empty() || is_under_way() {
            return;
        }
        let again = std::mem::take(&mut self.again);
        let pack = Pack::announcements();
        if !self.progress.target().contains(&pack) {
            return;
        }
        self.note_live(ctx);
        if let Some(mark) = self.coverage.get_mut(pack.key()) {
            mark.windows = again.seconds.iter().fold(std::mem::take(&mut mark.windows), |left, at| without(&left, *at));
            let mark = mark.clone();
            self.push_mark(mark, ctx);
        }
        self.progress.unconfirm(&pack);
        self.waiting.extend(self.progress.begin_new());
    }
}
