//! What of the events that are stored is looked at once more.

use crate::discover::Discovery;
use crate::protocol::Event;

/// Which events are given back once they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// None.
    #[default]
    Nothing,
    /// What discovery observes.
    Observed,
    /// All.
    All,
}

impl Keep {
    pub(super) fn wants(self, event: &Event) -> bool {
        match self {
            Self::Nothing => false,
            Self::Observed => Discovery::observes(event.kind_number()),
            Self::All => true,
        }
    }
}
