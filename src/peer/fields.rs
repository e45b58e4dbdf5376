//! The fields of a JSON object, taken one by one; what is wrong with any of them is noted, and the others go on.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::SpecMistake;
use crate::protocol::PublicKey;

/// The fields of one object that have not been taken yet.
pub(super) struct Fields<'m> {
    /// Its own place; empty for the whole.
    path: String,
    fields: BTreeMap<String, Box<RawValue>>,
    mistakes: &'m mut Vec<SpecMistake>,
}

impl<'m> Fields<'m> {
    /// The fields of the object `json` at `path`; none, and a mistake, if it is something else. `form`: what it is to be.
    pub(super) fn of(json: &str, path: &str, form: &str, mistakes: &'m mut Vec<SpecMistake>) -> Option<Self> {
        match serde_json::from_str::<Object>(json) {
            Ok(Object { fields, repeated }) => {
                let mut fields = Self { path: path.to_owned(), fields, mistakes };
                for name in repeated {
                    fields.fault(&name, "it is there twice; leave one out");
                }
                Some(fields)
            }
            Err(error) => {
                let reason = if error.is_syntax() || error.is_eof() {
                    format!("{error}; write {form}")
                } else {
                    format!("{} does not fit here; write {form}", describe(json))
                };
                mistakes.push(SpecMistake { path: path.to_owned(), reason });
                None
            }
        }
    }

    /// The place of a field.
    pub(super) fn place(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Notes a mistake of a field.
    pub(super) fn fault(&mut self, name: &str, reason: impl Into<String>) {
        let path = self.place(name);
        self.mistakes.push(SpecMistake { path, reason: reason.into() });
    }

    /// All mistakes so far, for what looks at a field by itself.
    pub(super) fn mistakes(&mut self) -> &mut Vec<SpecMistake> {
        self.mistakes
    }

    /// Takes a field as it was written.
    pub(super) fn raw(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.fields.remove(name)
    }

    /// Takes a field that must be there. `form`: what to write.
    pub(super) fn required(&mut self, name: &str, form: &str) -> Option<Box<RawValue>> {
        let raw = self.raw(name);
        if raw.is_none() {
            self.fault(name, format!("it is missing; write {form}"));
        }
        raw
    }

    /// Reads `raw`, the field of this name, by `read`, which says what is wrong with it.
    pub(super) fn read<T>(
        &mut self,
        name: &str,
        raw: &RawValue,
        form: &str,
        read: impl FnOnce(&Value) -> Result<T, Option<String>>,
    ) -> Option<T> {
        let result = match serde_json::from_str(raw.get()) {
            Ok(value) => read(&value),
            Err(error) => Err(Some(error.to_string())),
        };
        match result {
            Ok(value) => Some(value),
            Err(reason) => {
                let reason = reason.unwrap_or_else(|| format!("{} does not fit here", describe(raw.get())));
                self.fault(name, format!("{reason}; write {form}"));
                None
            }
        }
    }

    /// Takes a field with a text that must be there.
    pub(super) fn text<T>(
        &mut self,
        name: &str,
        form: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let raw = self.required(name, form)?;
        self.read(name, &raw, form, |value| read(value.as_str().ok_or(None)?).map_err(Some))
    }

    /// Takes a field that may be left out. Its default, too, if it is at fault.
    pub(super) fn optional<T: Default>(&mut self, name: &str, form: &str, read: impl FnOnce(&Value) -> Option<T>) -> T {
        let Some(raw) = self.raw(name) else { return T::default() };
        self.read(name, &raw, form, |value| read(value).ok_or(None)).unwrap_or_default()
    }

    /// Takes a field that is one of these words; the first of them if it is left out.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> T {
        let names: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        let form = names.join(" or ");
        let raw = self.raw(name);
        let chosen = raw.and_then(|raw| {
            self.read(name, &raw, &form, |value| {
                let word = value.as_str().ok_or(None)?;
                words.iter().find(|(known, _)| *known == word).map(|(_, meant)| *meant).ok_or(None)
            })
        });
        chosen.unwrap_or(words[0].1)
    }

    /// Whatever is left is not known. `known`: the names that are.
    pub(super) fn end(mut self, known: &str) {
        for name in std::mem::take(&mut self.fields).into_keys() {
            self.fault(&name, format!("unknown field; known are {known}"));
        }
    }
}

/// A text that does not fit, for a message.
pub(super) fn shown(text: &str) -> String {
    format!("{} does not fit here", describe(&format!("{text:?}")))
}

/// A public key, in each usual form; if it is none, `otherwise` says what to write.
pub(crate) fn public_key(text: &str, otherwise: impl FnOnce(&str) -> String) -> Result<PublicKey, String> {
    if text.starts_with("nsec1") {
        // Nobody wants to read it again in a log.
        return Err("this is a secret key, which must not stand here".to_owned());
    }
    PublicKey::parse(text).map_err(|_| otherwise(text))
}

/// A value in a few words, for a message. Longer ones are cut, and what looks like a secret key is not repeated.
fn describe(json: &str) -> String {
    const CHARS_MAX: usize = 80;
    if json.contains("nsec1") {
        return "a secret key".to_owned();
    }
    let mut text: String = json.chars().take(CHARS_MAX).collect();
    if text.len() < json.len() {
        text.push('…');
    }
    text
}

/// The fields of an object, and the names of those that are there more than once.
struct Object {
    fields: BTreeMap<String, Box<RawValue>>,
    repeated: Vec<String>,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut object = Object { fields: BTreeMap::new(), repeated: Vec::new() };
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            if object.fields.insert(name.clone(), value).is_some() {
                object.repeated.push(name);
            }
        }
        Ok(object)
    }
}
