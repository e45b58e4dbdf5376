//! Writing: the commented file, and the settings that hold.

use super::keys::{Name, Slot, Walker};
use super::{Loaded, Origin, Settings, sections};

/// The width of comments.
const LINE_CHARS_MAX: usize = 100;

/// How the file begins.
const HEAD: &str = include_str!("head.toml");

/// The file with all settings, explained, each with its default.
pub fn template() -> String {
    let mut template = Template(HEAD.to_owned());
    sections::walk(&mut Settings::default(), &mut template);
    template.0
}

struct Template(String);

impl Walker for Template {
    fn section(&mut self, name: &'static str, about: &'static str) {
        self.0.push('\n');
        comment(&mut self.0, about);
        self.0 += &format!("[{name}]\n");
    }

    fn key(&mut self, name: Name, about: &'static str, slot: &mut dyn Slot) {
        self.0.push('\n');
        let (value, hint) = match slot.write() {
            None => (slot.example(), " Not set by default; for example:".to_owned()),
            Some(empty) if empty == "[]" => (empty, format!(" Like {}.", slot.example())),
            Some(value) => (value, String::new()),
        };
        comment(&mut self.0, &format!("{about}{hint}"));
        self.0 += &format!("#{} = {value}\n", name.key);
    }
}

/// Adds `words` as lines of comment.
fn comment(text: &mut String, words: &str) {
    let mut line = "#".to_owned();
    for word in words.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > LINE_CHARS_MAX {
            text.push_str(&line);
            text.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

impl Loaded {
    /// All settings that hold, as a file, with where each was set.
    pub fn effective(&self) -> String {
        let mut listing = Listing { loaded: self, text: String::new() };
        sections::walk(&mut self.settings.clone(), &mut listing);
        listing.text
    }
}

struct Listing<'a> {
    loaded: &'a Loaded,
    text: String,
}

impl Walker for Listing<'_> {
    fn section(&mut self, name: &'static str, _about: &'static str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text += &format!("[{name}]\n");
    }

    fn key(&mut self, name: Name, _about: &'static str, slot: &mut dyn Slot) {
        let origin = match self.loaded.origins.get(&name.to_string()) {
            None | Some(Origin::Default) => "default".to_owned(),
            Some(Origin::Line(line)) => format!("line {line}"),
            Some(Origin::Environment(by) | Origin::Flag(by)) => by.clone(),
        };
        let line = match slot.write() {
            Some(value) => format!("{} = {value}  # {origin}\n", name.key),
            None => format!("#{} is not set\n", name.key),
        };
        self.text += &line;
    }
}

impl Settings {
    /// The names, as `section.key`, of all settings in which `other` differs.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let values = |settings: &Self| {
            let mut values = Values::default();
            sections::walk(&mut settings.clone(), &mut values);
            values.0
        };
        let pairs = values(self).into_iter().zip(values(other));
        pairs.filter(|((_, one), (_, two))| one != two).map(|((name, _), _)| name.to_string()).collect()
    }
}

/// All settings, in order, as they are written.
#[derive(Default)]
struct Values(Vec<(Name, Option<String>)>);

impl Walker for Values {
    fn section(&mut self, _name: &'static str, _about: &'static str) {}

    fn key(&mut self, name: Name, _about: &'static str, slot: &mut dyn Slot) {
        self.0.push((name, slot.write()));
    }
}
