//! What was written where, and whether there is a setting of that name.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use toml::de::{DeTable, DeValue};

use super::keys::{Name, VARIABLE_PREFIX};
use super::raw::{Lines, Raw};
use super::read::Flag;
use super::suggest::nearest;
use super::{Mistake, Origin};

/// Variables that begin like settings and are none: they name the file, and what builds and tests use.
const OTHER_VARIABLES: &[&str] = &["RELAYSYNC_CONFIG", "RELAYSYNC_CACHE"];
/// How further such variables begin.
const OTHER_PREFIXES: &[&str] = &["RELAYSYNC_BENCH_", "RELAYSYNC_TEST_"];

/// The values of each setting, in the order in which they take effect, and mistakes.
pub(super) struct Gathered {
    names: Vec<Name>,
    pub(super) values: BTreeMap<Name, Vec<(Origin, Raw)>>,
    pub(super) mistakes: Vec<Mistake>,
}

impl Gathered {
    pub(super) fn new(names: Vec<Name>) -> Self {
        Self { names, values: BTreeMap::new(), mistakes: Vec::new() }
    }

    pub(super) fn add_file(&mut self, text: &str) {
        let lines = Lines::of(text);
        let (document, errors) = DeTable::parse_recoverable(text);
        let mut broken = BTreeSet::new();
        for error in errors {
            let line = lines.line_at(error.span().map_or(0, |span| span.start));
            // One slip of the pen makes several errors; the first tells.
            if broken.insert(line) {
                self.mistakes.push(Mistake::new(Origin::Line(line), "", format!("not TOML: {}", error.message())));
            }
        }
        for (section, value) in document.get_ref() {
            let line = lines.line_at(section.span().start);
            match value.get_ref() {
                DeValue::Table(table) => self.add_section(section.get_ref(), line, table, &lines, &broken),
                _ if broken.contains(&line) => {}
                _ => self.outside_of_sections(section.get_ref(), line),
            }
        }
    }

    fn add_section(
        &mut self,
        section: &str,
        line: usize,
        table: &DeTable<'_>,
        lines: &Lines,
        broken: &BTreeSet<usize>,
    ) {
        if !self.names.iter().any(|name| name.section == section) {
            if !broken.contains(&line) {
                let reason = self.unknown_section(section);
                self.mistakes.push(Mistake::new(Origin::Line(line), "", reason));
            }
            return;
        }
        for (key, value) in table {
            let line = lines.line_at(key.span().start);
            // What the parser made of a broken line is a guess.
            if !broken.contains(&line) {
                self.add(section, key.get_ref(), Origin::Line(line), Raw::from_toml(value.get_ref(), lines));
            }
        }
    }

    fn add(&mut self, section: &str, key: &str, origin: Origin, raw: Raw) {
        match self.names.iter().find(|name| name.section == section && name.key == key) {
            Some(name) => self.values.entry(*name).or_default().push((origin, raw)),
            None => {
                let reason = self.unknown_key(section, key);
                self.mistakes.push(Mistake::new(origin, format!("{section}.{key}"), reason));
            }
        }
    }

    fn outside_of_sections(&mut self, key: &str, line: usize) {
        let reason = match self.names.iter().find(|name| name.key == key) {
            Some(name) => format!("each setting belongs into a section; write it below [{}]", name.section),
            None if self.names.iter().any(|name| name.section == key) => {
                format!("this is a section, not a setting; write [{key}], and its settings on the lines below")
            }
            None => self.unknown_section(key),
        };
        self.mistakes.push(Mistake::new(Origin::Line(line), key, reason));
    }

    fn unknown_section(&self, section: &str) -> String {
        let sections: BTreeSet<&str> = self.names.iter().map(|name| name.section).collect();
        match nearest(section, sections.iter().copied()) {
            Some(meant) => format!("there is no section [{section}]; did you mean [{meant}]?"),
            None => {
                let sections: Vec<&str> = sections.into_iter().collect();
                format!("there is no section [{section}]; there are {}", sections.join(", "))
            }
        }
    }

    fn unknown_key(&self, section: &str, key: &str) -> String {
        if let Some(name) = self.names.iter().find(|name| name.key == key) {
            return format!("there is no such setting; it belongs into [{}]", name.section);
        }
        let same_section = self.names.iter().filter(|name| name.section == section).map(|name| name.key);
        if let Some(meant) = nearest(key, same_section) {
            return format!("there is no such setting; did you mean {meant}?");
        }
        match nearest(key, self.names.iter().map(|name| name.key)) {
            Some(meant) => {
                let sections = self.names.iter().filter(|name| name.key == meant).map(|name| name.section);
                format!(
                    "there is no such setting; did you mean {meant} of [{}]?",
                    Vec::from_iter(sections).join("], [")
                )
            }
            None => "there is no such setting; `relaysync config init -` shows all".to_owned(),
        }
    }

    pub(super) fn add_environment(&mut self, variables: &[(OsString, OsString)]) {
        for (variable, value) in variables {
            let Some(variable) = variable.to_str().filter(|variable| is_ours(variable)) else { continue };
            let origin = Origin::Environment(variable.to_owned());
            let Some(name) = self.names.iter().copied().find(|name| name.variable() == variable) else {
                let known: Vec<String> = self.names.iter().map(Name::variable).collect();
                let meant = nearest(variable, known.iter().map(String::as_str));
                let hint = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
                let reason = format!("there is no such setting{hint}");
                self.mistakes.push(Mistake::new(origin, "", reason));
                continue;
            };
            match value.to_str() {
                Some(value) => self.values.entry(name).or_default().push((origin, Raw::Loose(value.to_owned()))),
                None => self.mistakes.push(Mistake::new(origin, name.to_string(), "the value is not UTF-8")),
            }
        }
    }

    pub(super) fn add_flags(&mut self, flags: &[Flag]) {
        for Flag { flag, setting, raw } in flags {
            let origin = Origin::Flag(flag.clone());
            match setting.split_once('.') {
                Some((section, key)) => self.add(section.trim(), key.trim(), origin, raw.clone()),
                None => {
                    let reason = "write SECTION.KEY=VALUE, like sync.backoff_max=30m";
                    self.mistakes.push(Mistake::new(origin, setting.clone(), reason));
                }
            }
        }
    }
}

fn is_ours(variable: &str) -> bool {
    variable.starts_with(VARIABLE_PREFIX)
        && !OTHER_VARIABLES.contains(&variable)
        && !OTHER_PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
}
