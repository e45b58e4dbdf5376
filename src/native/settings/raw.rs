//! Values as they were written, before anybody knows what they are to be.

use toml::de::DeValue;

/// A value from the file, the environment or a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Raw {
    /// A string of the file.
    Text(String),
    /// A number of the file that is whole and not negative, if it is not too large.
    Number(u64),
    /// `true` or `false` in the file.
    Boolean(bool),
    /// A list of the file, or of flags that were repeated.
    List(Vec<Element>),
    /// Anything else, in words: no setting has such a value.
    Other(String),
    /// From the environment or a flag: what it is depends on the setting.
    Loose(String),
}

/// One element of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    /// Its line in the file.
    pub(super) line: Option<usize>,
    pub(super) raw: Raw,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The line, if it is another than that of the value as a whole.
    pub(super) line: Option<usize>,
    pub(super) reason: String,
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self { line: None, reason }
    }
}

impl Raw {
    /// From the file, whose lines begin at `lines`.
    pub(super) fn from_toml(value: &DeValue<'_>, lines: &Lines) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Integer(integer) => match u64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(number) => Self::Number(number),
                Err(_) => Self::Other(format!("the number {integer}")),
            },
            DeValue::Float(float) => Self::Other(format!("the number {float}")),
            DeValue::Boolean(is) => Self::Boolean(*is),
            DeValue::Datetime(moment) => Self::Other(format!("the date {moment}")),
            DeValue::Array(array) => Self::List(
                array
                    .iter()
                    .map(|element| Element {
                        line: Some(lines.line_at(element.span().start)),
                        raw: Self::from_toml(element.get_ref(), lines),
                    })
                    .collect(),
            ),
            DeValue::Table(_) => Self::Other("a table".to_owned()),
        }
    }

    /// From flags that were repeated.
    pub(super) fn list(values: impl IntoIterator<Item = String>) -> Self {
        Self::List(values.into_iter().map(|text| Element { line: None, raw: Self::Loose(text) }).collect())
    }

    /// In words, for who wrote it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Text(text) | Self::Loose(text) => format!("{text:?}"),
            Self::Number(number) => format!("the number {number}"),
            Self::Boolean(is) => is.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Other(what) => what.clone(),
        }
    }
}

/// Where the lines of a text begin.
#[derive(Debug)]
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(after_breaks).collect())
    }

    /// The line, counted from one, of the byte at `at`.
    pub(super) fn line_at(&self, at: usize) -> usize {
        self.0.partition_point(|begin| *begin <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn lines_are_counted_from_one() {
        let lines = Lines::of("ab\n\nc");
        assert_eq!([0, 2, 3, 4, 5].map(|at| lines.line_at(at)), [1, 1, 2, 3, 3]);
        assert_eq!(Lines::of("").line_at(0), 1);
    }
}
