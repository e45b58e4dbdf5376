//! What a history has proven so far.

use crate::engine::Gap;
use crate::protocol::Window;
use crate::store::{Method, Proof};

/// Proven windows, and seconds inside them that are not.
#[derive(Debug)]
pub(super) struct Proofs {
    kept: Vec<Proof>,
    proven: Vec<Proof>,
    holes: Vec<Window>,
    asked_at_secs: u64,
}

impl Proofs {
    pub(super) fn new(kept: Vec<Proof>, asked_at_secs: u64) -> Self {
        Self { kept, proven: Vec::new(), holes: Vec::new(), asked_at_secs }
    }

    /// Everything is fetched again, so what was proven earlier does not matter.
    pub(super) fn forget_kept(&mut self) {
        self.kept.clear();
    }

    /// The moment of the oldest earlier proof that is relied on.
    pub(super) fn relied_on_secs(&self) -> Option<u64> {
        self.kept.iter().map(|proof| proof.asked_at_secs).min()
    }

    pub(super) fn add(&mut self, window: Window, method: Method) {
        self.proven.push(Proof::new(window, method, self.asked_at_secs));
    }

    /// A second inside a proven window that is not proven yet.
    pub(super) fn add_hole(&mut self, second: u64) {
        self.holes.push(Window { since: second, until: second });
    }

    pub(super) fn fill_hole(&mut self, second: u64) {
        self.holes.retain(|hole| hole.since != second);
    }

    /// All proven windows, newest first, without holes and gaps. `current` is the window being paged and what is left
    /// of it.
    pub(super) fn windows(&self, current: Option<(Window, Window)>, gaps: &[Gap]) -> Vec<Proof> {
        let mut all: Vec<Proof> = self.kept.iter().chain(&self.proven).copied().collect();
        if let Some((rest, whole)) = current
            && rest.until < whole.until
        {
            let window = Window { since: rest.until + 1, until: whole.until };
            all.push(Proof::new(window, Method::Req, self.asked_at_secs));
        }
        for hole in self.holes.iter().chain(gaps.iter().map(|gap| &gap.window)) {
            all = all.into_iter().flat_map(|proof| without(proof, *hole)).collect();
        }
        all.sort_by_key(|proof| std::cmp::Reverse(proof.window.until));
        all
    }
}

fn without(proof: Proof, hole: Window) -> impl Iterator<Item = Proof> {
    let window = proof.window;
    let above = hole.until.checked_add(1).map(|since| Window { since: since.max(window.since), until: window.until });
    let below = hole.since.checked_sub(1).map(|until| Window { since: window.since, until: until.min(window.until) });
    let apart = hole.intersect(&window).is_empty();
    let parts = if apart { [Some(window), None] } else { [above, below] };
    parts.into_iter().flatten().filter(|window| !window.is_empty()).map(move |window| Proof { window, ..proof })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_cut_out() {
        let mut proofs = Proofs::new(Vec::new(), 99);
        proofs.add(Window { since: 0, until: 100 }, Method::Req);
        proofs.add_hole(50);
        proofs.add_hole(0);
        let windows: Vec<Window> = proofs.windows(None, &[]).iter().map(|proof| proof.window).collect();
        assert_eq!(windows, vec![Window { since: 51, until: 100 }, Window { since: 1, until: 49 }]);
        proofs.fill_hole(50);
        assert_eq!(proofs.windows(None, &[]).len(), 1);
        let rest = Window { since: 0, until: 40 };
        let current = Window { since: 0, until: 45 };
        assert!(
            Proofs::new(Vec::new(), 1)
                .windows(Some((rest, current)), &[])
                .iter()
                .all(|proof| proof.window == Window { since: 41, until: 45 })
        );
    }
}
