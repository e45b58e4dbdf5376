//! Faults put into the engine on purpose, to see that the simulation catches them. None can be put in without feature
//! `testing`, and none is where [`Config::planted`](super::Config) does not ask for it.

/// A fault to be put in.
#[cfg_attr(not(feature = "testing"), expect(unreachable_pub, reason = "it is public with feature `testing`"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Planted {
    /// A page of fewer than 75 events counts as the last one, whatever the relay's cap is.
    PageThreshold,
    /// The next page begins one second below the oldest event of the last one.
    OldestMinusOne,
    /// An id counts as seen before the store has committed its event.
    SeenBeforeCommit,
    /// Coverage marks are committed before the events that they cover.
    CoverageFirst,
    /// The quarter of an hour of a quick reconnect is counted from the connect, not from the disconnect.
    QuickFromConnect,
}

#[cfg(feature = "testing")]
impl Planted {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::PageThreshold,
        Self::OldestMinusOne,
        Self::SeenBeforeCommit,
        Self::CoverageFirst,
        Self::QuickFromConnect,
    ];

    /// Its name, as it is written on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PageThreshold => "page-threshold",
            Self::OldestMinusOne => "oldest-minus-one",
            Self::SeenBeforeCommit => "seen-before-commit",
            Self::CoverageFirst => "coverage-first",
            Self::QuickFromConnect => "quick-from-connect",
        }
    }
}
