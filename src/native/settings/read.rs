//! Reading: the file, then the environment, then flags; each over what came before.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::keys::{Name, Slot, Walker};
use super::raw::Raw;
use super::source::Gathered;
use super::{Mistake, Mistakes, Origin, Settings, check, sections};

/// Where settings come from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The file's name, for messages, and its text.
    pub file: Option<(String, String)>,
    /// The environment; variables of other programs do not count.
    pub environment: Vec<(OsString, OsString)>,
    /// Flags of the command line.
    pub flags: Vec<Flag>,
}

/// A flag of the command line that sets a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    pub(super) flag: String,
    pub(super) setting: String,
    pub(super) raw: Raw,
}

impl Flag {
    /// `flag` gives `setting`, a `section.key`, this value.
    pub fn new(flag: impl Into<String>, setting: impl Into<String>, value: impl Into<String>) -> Self {
        Self { flag: flag.into(), setting: setting.into(), raw: Raw::Loose(value.into()) }
    }

    /// `flag`, repeated, gives `setting`, a `section.key`, these values.
    pub fn list(flag: impl Into<String>, setting: impl Into<String>, values: impl IntoIterator<Item = String>) -> Self {
        Self { flag: flag.into(), setting: setting.into(), raw: Raw::list(values) }
    }
}

/// Settings, and where those were set that are not as in the defaults.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// Where they were set, by `section.key`.
    pub origins: BTreeMap<String, Origin>,
}

/// Reads and checks all settings.
///
/// # Errors
/// All mistakes at once.
pub fn load(sources: &Sources) -> Result<Loaded, Mistakes> {
    let mut gathered = Gathered::new(sections::names());
    if let Some((_, text)) = &sources.file {
        gathered.add_file(text);
    }
    gathered.add_environment(&sources.environment);
    gathered.add_flags(&sources.flags);

    let mut loaded = Loaded::default();
    let mut filling = Filling { gathered, origins: BTreeMap::new() };
    sections::walk(&mut loaded.settings, &mut filling);
    loaded.origins = filling.origins;
    let mut mistakes = filling.gathered.mistakes;
    mistakes.extend(check::mistakes(&loaded));
    if mistakes.is_empty() {
        return Ok(loaded);
    }
    mistakes.sort();
    mistakes.dedup();
    Err(Mistakes { file: sources.file.as_ref().map(|(name, _)| name.clone()), mistakes })
}

/// Puts what was gathered into its places.
struct Filling {
    gathered: Gathered,
    origins: BTreeMap<String, Origin>,
}

impl Walker for Filling {
    fn section(&mut self, _name: &'static str, _about: &'static str) {}

    fn key(&mut self, name: Name, _about: &'static str, slot: &mut dyn Slot) {
        for (origin, raw) in self.gathered.values.remove(&name).unwrap_or_default() {
            match slot.read(&raw) {
                Ok(()) => drop(self.origins.insert(name.to_string(), origin)),
                Err(faults) => self.gathered.mistakes.extend(faults.into_iter().map(|fault| {
                    let origin = fault.line.map_or_else(|| origin.clone(), Origin::Line);
                    Mistake::new(origin, name.to_string(), fault.reason)
                })),
            }
        }
    }
}
