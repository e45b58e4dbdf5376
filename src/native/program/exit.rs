//! How the program ends.

use std::fmt;
use std::process::ExitCode;

/// The exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: everything was done.
    Complete,
    /// 1: the command could not do its work.
    Failed,
    /// 2: it was called wrongly.
    Usage,
    /// 3: done, except for what was reported.
    Partial,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Complete => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Partial => 3,
        })
    }
}

/// Why the command ends early: one line for the person who called it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// The command could not do its work: status 1.
    pub fn new(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Failed, message: message.to_string() }
    }

    /// The command was called wrongly: status 2.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// Says it on stderr.
    pub fn report(&self) -> Exit {
        eprintln!("error: {}", self.message.replace('\n', " "));
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
