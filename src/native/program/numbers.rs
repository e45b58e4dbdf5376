//! Numbers as people read them.

/// `1234567` as `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1` `event`, `2` `events`.
pub(super) fn counted(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", count(number)) }
}

/// `3, 17, 240`; `none` for no number. Without groups: to be copied.
#[cfg(feature = "testing")]
pub(super) fn list(numbers: &[u64]) -> String {
    match numbers {
        [] => "none".to_owned(),
        _ => numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// `1234567` as `1.2 MB`, in powers of ten.
pub(super) fn bytes(number: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if number < 1000 {
        return format!("{number} B");
    }
    let mut scaled = number as f64 / 1000.0;
    let mut unit = 0;
    // What would be written as 1000.0 is one of the next unit.
    while scaled >= 999.95 && unit + 1 < UNITS.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", UNITS[unit])
}

/// Seconds as `43 s`, `12 min`, `3 h 5 min`, `2 d 3 h`.
pub(super) fn duration(secs: u64) -> String {
    let two = |large: u64, unit: &str, small: u64, subunit: &str| match small {
        0 => format!("{} {unit}", count(large)),
        _ => format!("{} {unit} {small} {subunit}", count(large)),
    };
    match secs {
        0..60 => format!("{secs} s"),
        60..3_600 => format!("{} min", secs / 60),
        3_600..86_400 => two(secs / 3_600, "h", secs % 3_600 / 60, "min"),
        _ => two(secs / 86_400, "d", secs % 86_400 / 3_600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, counted, duration};

    #[test]
    fn durations_have_two_units_at_most() {
        let durations = [0, 59, 119, 3_600, 11_100, 86_400, 183_000].map(duration);
        assert_eq!(durations, ["0 s", "59 s", "1 min", "1 h", "3 h 5 min", "1 d", "2 d 2 h"]);
    }

    #[test]
    fn counts_have_groups() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "gap"), "1 gap");
        assert_eq!(counted(2000, "gap"), "2,000 gaps");
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!([0, 999, 1000, 999_949, 999_950].map(bytes), ["0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB"]);
        assert_eq!(bytes(12_345_678_901), "12.3 GB");
    }
}
