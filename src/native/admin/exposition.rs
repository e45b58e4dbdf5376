//! The text format of Prometheus, version 0.0.4.
//!
//! Written here rather than by a library: the values are a snapshot, not counters that are counted up in place, so a
//! registry would be built anew for each page; and the libraries that are kept write OpenMetrics, which renames
//! counters and forbids gauges whose names end in `_total`, as some that dashboards expect do.

use std::fmt::{self, Write as _};

/// What the page is served as.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The first part of the names of all metrics, such as `relaysync`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricPrefix(String);

/// Why a text cannot begin the names of metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricPrefixError {
    /// The text.
    pub prefix: String,
}

impl fmt::Display for MetricPrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid prefix {:?} of metrics: letters, digits and \"_\", and no digit first", self.prefix)
    }
}

impl std::error::Error for MetricPrefixError {}

impl MetricPrefix {
    /// Checks that `text` can begin the names of metrics.
    ///
    /// # Errors
    /// It is empty, begins with a digit, or has something else than ASCII letters, digits and `_`.
    pub fn parse(text: &str) -> Result<Self, MetricPrefixError> {
        let is_name = !text.starts_with(|first: char| first.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if text.is_empty() || !is_name {
            return Err(MetricPrefixError { prefix: text.to_owned() });
        }
        Ok(Self(text.to_owned()))
    }
}

impl Default for MetricPrefix {
    fn default() -> Self {
        Self("relaysync".to_owned())
    }
}

impl fmt::Display for MetricPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a metric's values mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows, or begins again at zero.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// A page being written.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

/// A metric being written.
pub(super) struct Family<'e> {
    text: &'e mut String,
    name: String,
}

impl Exposition {
    /// Begins a metric. `help` is one line of ours, without backslashes.
    pub(super) fn family(&mut self, name: String, kind: Kind, help: &str) -> Family<'_> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        // Writing to a String cannot fail, here and below.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Family { text: &mut self.text, name }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// Adds a value; the names of labels are ours, their values may be anything.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: u64) {
        self.text.push_str(&self.name);
        for (index, (name, value)) in labels.iter().enumerate() {
            let _ = write!(self.text, "{}{name}=\"", if index == 0 { '{' } else { ',' });
            escape(value, self.text);
            self.text.push('"');
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{close} {value}");
    }
}

fn escape(value: &str, text: &mut String) {
    for char in value.chars() {
        match char {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            char => text.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exposition, Kind, MetricPrefix};

    #[test]
    fn a_page_is_written_to_the_letter() {
        let mut page = Exposition::default();
        page.family("x_up".to_owned(), Kind::Gauge, "Is it up?").sample(&[], 1);
        let mut family = page.family("x_seen_total".to_owned(), Kind::Counter, "Seen.");
        family.sample(&[("relay", "a\\b\"c\nd\u{1b}é"), ("result", "")], u64::MAX);
        assert_eq!(
            page.into_text(),
            "# HELP x_up Is it up?\n# TYPE x_up gauge\nx_up 1\n\
             # HELP x_seen_total Seen.\n# TYPE x_seen_total counter\n\
             x_seen_total{relay=\"a\\\\b\\\"c\\nd\u{1b}é\",result=\"\"} 18446744073709551615\n"
        );
    }

    #[test]
    fn a_prefix_is_the_beginning_of_a_name() {
        for prefix in ["relaysync", "ngit_sync", "_", "A1"] {
            assert_eq!(MetricPrefix::parse(prefix).unwrap().to_string(), prefix);
        }
        for prefix in ["", "1a", "a-b", "a b", "é", "a\n", "a{"] {
            assert!(MetricPrefix::parse(prefix).is_err(), "{prefix:?}");
        }
    }
}
