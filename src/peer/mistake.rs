//! What is wrong with a peer's specification.

use std::fmt;

use serde::Serialize;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SpecMistake {
    /// The field, like `tls.pins[0].value`; empty if all of it is meant.
    pub path: String,
    /// What is wrong, and what to write instead.
    pub reason: String,
}

impl fmt::Display for SpecMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.reason),
            path => write!(f, "{path}: {}", self.reason),
        }
    }
}

/// All mistakes of a specification: at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SpecMistakes(pub Vec<SpecMistake>);

impl fmt::Display for SpecMistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecMistakes {}
