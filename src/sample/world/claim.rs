//! What the world says of its events.

use std::fmt;

/// What is to become of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// It is held in the end. Each of these leads to it, and nothing else does.
    Wanted(&'static [Form]),
    /// A newer version takes its place, or its author deletes it: it is held at most for a while.
    Passing,
    /// It must not be held.
    Unwanted(Reason),
}

/// A form of reference that leads to events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Layer 1: it is asked for by its kind.
    Kind,
    /// `a`, naming a repository.
    LowerA,
    /// `A`, naming a repository (NIP-22).
    UpperA,
    /// `q`, naming a repository (NIP-18).
    QuoteOfRepository,
    /// `e`, naming an issue, patch or pull request.
    LowerE,
    /// `E`, naming an issue, patch or pull request (NIP-22).
    UpperE,
    /// `q`, naming an issue, patch or pull request (NIP-18).
    QuoteOfRoot,
}

impl Form {
    /// All of them, in the order of the layers.
    pub const ALL: [Self; 7] = [
        Self::Kind,
        Self::LowerA,
        Self::UpperA,
        Self::QuoteOfRepository,
        Self::LowerE,
        Self::UpperE,
        Self::QuoteOfRoot,
    ];
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kind => "kind",
            Self::LowerA => "a",
            Self::UpperA => "A",
            Self::QuoteOfRepository => "q of a repository",
            Self::LowerE => "e",
            Self::UpperE => "E",
            Self::QuoteOfRoot => "q of a root",
        })
    }
}

/// Why an event is not wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It announces a repository that does not list our service, or belongs to one.
    Foreign,
    /// As [`Reason::Foreign`], of a repository that lists services whose URLs look like ours.
    LookAlike,
    /// It has to do with no repository.
    Unrelated,
    /// It refers to no repository or root, only to another reply.
    TooDeep,
    /// It claims the identifier of an accepted repository, but is by nobody who has a say in it.
    Usurper,
    /// Its id is not that of its content; an honest event has that id.
    ForgedContent,
    /// Its signature is wrong.
    ForgedSignature,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "of other repositories",
            Self::LookAlike => "of repositories that list a look-alike of our service",
            Self::Unrelated => "of no repository",
            Self::TooDeep => "answers that name no repository, issue, patch or pull request",
            Self::Usurper => "by people without a say",
            Self::ForgedContent => "with a false content",
            Self::ForgedSignature => "with a false signature",
        })
    }
}
