//! The parameters of a call, read strictly: what is wrong is said with the parameter's name.

use serde_json::value::RawValue;

use super::methods::Fault;
use crate::peer::SpecMistakes;
use crate::protocol::{EventId, PublicKey};

/// One parameter, for whoever gets it wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Param {
    pub(super) name: &'static str,
    /// What to write.
    pub(super) form: &'static str,
}

/// The parameters of one call: as many as there are to be.
#[derive(Debug)]
pub(super) struct Params<'c> {
    method: &'static str,
    expected: &'static [Param],
    given: std::slice::Iter<'c, Box<RawValue>>,
}

/// Characters of a value that does not fit which are repeated.
const SHOWN_CHARS_MAX: usize = 80;

impl<'c> Params<'c> {
    pub(super) fn of(
        method: &'static str,
        expected: &'static [Param],
        given: &'c [Box<RawValue>],
    ) -> Result<Self, Fault> {
        if given.len() > expected.len() {
            let names: Vec<&str> = expected.iter().map(|param| param.name).collect();
            let takes =
                if names.is_empty() { "no parameters".to_owned() } else { format!("only {}", names.join(", ")) };
            return Err(Fault::wrong(format!("{method} takes {takes}, and {} were given", given.len())));
        }
        Ok(Self { method, expected, given: given.iter() })
    }

    /// Takes the next one by `read`, which gives what is wrong with its JSON.
    pub(super) fn next<T, E: Into<Wrong>>(&mut self, read: impl FnOnce(&str) -> Result<T, E>) -> Result<T, Fault> {
        let Some((param, rest)) = self.expected.split_first() else {
            return Err(Fault::broken(format!("{} has no such parameter", self.method)));
        };
        self.expected = rest;
        let Param { name, form } = param;
        let Some(raw) = self.given.next() else {
            return Err(Fault::wrong(format!("{}: {name} is missing; write {form}", self.method)));
        };
        read(raw.get()).map_err(|wrong| match wrong.into() {
            Wrong::Unfit => {
                let shown = shown(raw.get());
                Fault::wrong(format!("{}: {name}: {shown} does not fit here; write {form}", self.method))
            }
            Wrong::Secret => Fault::wrong(format!("{}: {name}: it does not fit here; write {form}", self.method)),
            Wrong::Mistakes(mistakes) => {
                let mistakes: Vec<String> = mistakes.0.iter().map(ToString::to_string).collect();
                Fault::wrong(format!("{}: {name}: {}", self.method, mistakes.join("; ")))
            }
        })
    }

    pub(super) fn text(&mut self) -> Result<String, Fault> {
        self.next(|json| serde_json::from_str(json).map_err(|_| Wrong::Unfit))
    }

    /// A text of which nothing is ever repeated.
    pub(super) fn secret(&mut self) -> Result<String, Fault> {
        self.next(|json| serde_json::from_str(json).map_err(|_| Wrong::Secret))
    }

    pub(super) fn public_key(&mut self) -> Result<PublicKey, Fault> {
        self.next(|json| {
            let text: String = serde_json::from_str(json).map_err(|_| Wrong::Unfit)?;
            PublicKey::parse(&text).map_err(|_| Wrong::Unfit)
        })
    }

    pub(super) fn event_id(&mut self) -> Result<EventId, Fault> {
        self.next(|json| {
            let text: String = serde_json::from_str(json).map_err(|_| Wrong::Unfit)?;
            EventId::parse(&text).map_err(|_| Wrong::Unfit)
        })
    }
}

/// What is wrong with a parameter.
#[derive(Debug)]
pub(super) enum Wrong {
    /// It is something else altogether.
    Unfit,
    /// The same, of what must not be shown.
    Secret,
    Mistakes(SpecMistakes),
}

impl From<SpecMistakes> for Wrong {
    fn from(mistakes: SpecMistakes) -> Self {
        Self::Mistakes(mistakes)
    }
}

/// A value, for a message. What may be a secret is not repeated.
pub(super) fn shown(json: &str) -> String {
    if json.contains("nsec1") {
        return "a secret key".to_owned();
    }
    let mut shown: String = json.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < json.len() {
        shown.push('…');
    }
    shown
}
