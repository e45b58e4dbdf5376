//! What is wrong with a configuration, and where.

use std::fmt;

/// Where a setting was set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// In the file, on this line, counted from one.
    Line(usize),
    /// By this environment variable.
    Environment(String),
    /// By this flag of the command line.
    Flag(String),
    /// Nowhere: it is the default, or the configuration as a whole is meant.
    Default,
}

/// One mistake, for the person who is to mend it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// Where.
    pub origin: Origin,
    /// Which setting, as `section.key`; empty if it is about none in particular.
    pub setting: String,
    /// What is wrong, and what to write instead.
    pub reason: String,
}

impl Mistake {
    pub(super) fn new(origin: Origin, setting: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { origin, setting: setting.into(), reason: reason.into() }
    }
}

/// Every mistake of a configuration: never empty, in the order of the file, then environment, then flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    /// The file, as it was named; `None` if there is none.
    pub file: Option<String>,
    /// The mistakes.
    pub mistakes: Vec<Mistake>,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_deref().unwrap_or("configuration");
        for (index, Mistake { origin, setting, reason }) in self.mistakes.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            match origin {
                Origin::Line(line) => write!(f, "{file}:{line}: ")?,
                Origin::Environment(name) | Origin::Flag(name) => write!(f, "{name}: ")?,
                Origin::Default => write!(f, "{file}: ")?,
            }
            if !setting.is_empty() {
                write!(f, "{setting}: ")?;
            }
            f.write_str(reason)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}
