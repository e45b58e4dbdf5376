//! Counts, sizes in bytes, and durations.

use std::time::Duration;

use super::raw::{Fault, Raw};
use super::value::unfit;

/// The largest count and the largest size: more is a mistake, and would overflow somewhere.
const NUMBER_MAX: u64 = 1 << 40;
/// The longest duration, a hundred years.
const SECS_MAX: u64 = 100 * 365 * 24 * 3600;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
}

impl Unit {
    pub(super) const fn form(self) -> &'static str {
        match self {
            Self::Count => "a whole number, like 100",
            Self::Bytes => "a size in bytes, like 65536, \"64 KiB\" or \"4 MiB\"",
        }
    }

    pub(super) fn read(self, raw: &Raw) -> Result<u64, Vec<Fault>> {
        let number = match raw {
            Raw::Number(number) => Some(*number),
            Raw::Loose(text) if self == Self::Count => parse_digits(text.trim()),
            Raw::Text(text) | Raw::Loose(text) if self == Self::Bytes => parse_bytes(text),
            _ => None,
        };
        number.ok_or_else(|| unfit(raw, self.form()))
    }

    pub(super) fn write(self, number: u64) -> String {
        match self {
            Self::Count => grouped(number),
            Self::Bytes => write_bytes(number),
        }
    }
}

/// A type that numbers of settings have.
pub(super) trait Number: Copy + TryFrom<u64> {
    /// The largest that the type holds, or that makes sense.
    const MAX: u64;

    fn value(self) -> u64;
}

macro_rules! numbers {
    ($($type:ty),*) => { $(
        impl Number for $type {
            const MAX: u64 = if (<$type>::MAX as u64) < NUMBER_MAX { <$type>::MAX as u64 } else { NUMBER_MAX };

            fn value(self) -> u64 {
                u64::try_from(self).unwrap_or(u64::MAX)
            }
        }
    )* };
}

numbers!(u8, u32, u64, usize);

fn parse_digits(text: &str) -> Option<u64> {
    text.replace('_', "").parse().ok()
}

fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" | "k" => 1 << 10,
        "mib" | "m" => 1 << 20,
        "gib" | "g" => 1 << 30,
        _ => return None,
    };
    parse_digits(digits)?.checked_mul(factor)
}

fn write_bytes(number: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(factor, _)| number >= *factor && number.is_multiple_of(*factor)) {
        Some((factor, unit)) => format!("\"{} {unit}\"", number / factor),
        None => grouped(number),
    }
}

/// `1000000` as `1_000_000`, which TOML reads.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && digits.len() > 4 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// How durations are written.
pub(super) const DURATION_FORM: &str = "a duration, like \"500ms\", \"5s\", \"15m\" or \"24h\", or a number of seconds";

pub(super) fn read_duration(raw: &Raw) -> Result<Duration, Vec<Fault>> {
    let duration = match raw {
        Raw::Number(secs) => Some(Duration::from_secs(*secs)),
        Raw::Text(text) | Raw::Loose(text) => parse_duration(text),
        _ => None,
    };
    match duration {
        Some(duration) if duration <= Duration::from_secs(SECS_MAX) => Ok(duration),
        Some(_) => Err(vec![format!("{} is longer than a hundred years", raw.describe()).into()]),
        None => Err(unfit(raw, DURATION_FORM)),
    }
}

/// `90`, `5s`, `1h 30m`.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if let Some(secs) = parse_digits(rest) {
        return Some(Duration::from_secs(secs));
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].trim_start();
        let end = unit.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(unit.len());
        let millis = match &unit[..end] {
            "ms" => 1,
            "s" => 1000,
            "m" | "min" => 60 * 1000,
            "h" => 3600 * 1000,
            "d" => 24 * 3600 * 1000,
            _ => return None,
        };
        total = total.checked_add(Duration::from_millis(number.checked_mul(millis)?))?;
        rest = unit[end..].trim_start();
    }
    (total > Duration::ZERO || text.trim().starts_with('0')).then_some(total)
}

pub(super) fn write_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s")];
    match units.into_iter().find(|(factor, _)| millis >= *factor && millis.is_multiple_of(*factor)) {
        Some((factor, unit)) => format!("\"{}{unit}\"", millis / factor),
        None if millis == 0 => "\"0s\"".to_owned(),
        None => format!("\"{millis}ms\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loose(text: &str) -> Raw {
        Raw::Loose(text.to_owned())
    }

    #[test]
    fn durations_have_units_or_are_seconds() {
        let read = |text: &str| read_duration(&loose(text)).ok().map(|duration| duration.as_millis());
        let readable = ["0s", "5", "500ms", "5s", "15m", "24h", "2d", "1h30m", "1h 30 m"];
        let millis = [0, 5000, 500, 5000, 900_000, 86_400_000, 172_800_000, 5_400_000, 5_400_000];
        assert_eq!(readable.map(read), millis.map(Some));
        for wrong in ["", "s", "5 weeks", "1.5s", "-5s", "5s5", "99999999999h", "18446744073709551615d", "5é"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let written = [0, 250, 5000, 65_000, 900_000, 5_400_000, 86_400_000].map(Duration::from_millis);
        assert_eq!(
            written.map(write_duration),
            ["\"0s\"", "\"250ms\"", "\"5s\"", "\"65s\"", "\"15m\"", "\"90m\"", "\"24h\""]
        );
    }

    #[test]
    fn sizes_have_units_or_are_bytes() {
        let read = |text: &str| Unit::Bytes.read(&loose(text)).ok();
        let readable = ["65536", "64 KiB", "4MiB", "1 GiB", "1 MB", "7 kB", "65_536", "12 b"];
        let bytes = [65_536, 65_536, 4 << 20, 1 << 30, 1_000_000, 7000, 65_536, 12];
        assert_eq!(readable.map(read), bytes.map(Some));
        for wrong in ["", "MiB", "4 parsecs", "-1", "1.5 MiB", "99999999999999999999", "18446744073709551615 GiB"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(
            [0, 1000, 60_000, 1 << 20, 3 << 19].map(|size| Unit::Bytes.write(size)),
            ["0", "1000", "60_000", "\"1 MiB\"", "\"1536 KiB\""]
        );
    }
}
