//! Moments as text: seconds since 1970 ⇄ `2026-03-16T10:00:02Z` (RFC 3339, in UTC).

const DAY_SECS: u64 = 24 * 3600;
/// Of the civil calendar, which repeats itself after so many.
const ERA_DAYS: u64 = 146_097;
/// From 0000-03-01, where an era begins, to 1970-01-01.
const EPOCH_DAYS: u64 = 719_468;
/// The last moment that has a year of four digits: `9999-12-31T23:59:59Z`.
pub const SECS_MAX: u64 = 253_402_300_799;

/// The text of a moment; of [`SECS_MAX`], if it lies behind.
pub fn format(secs: u64) -> String {
    let secs = secs.min(SECS_MAX);
    let (year, month, day) = date(secs / DAY_SECS);
    let (hour, minute, second) = (secs % DAY_SECS / 3600, secs % 3600 / 60, secs % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The moment that a text of exactly this form means; `None` for any other text.
pub fn parse(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let days = days(year, month, day)?;
    let secs = days * DAY_SECS + hour * 3600 + minute * 60 + second;
    // Whatever does not come out the same is no such date, or written differently.
    (format(secs) == text).then_some(secs)
}

/// Year, month and day of a day since 1970. The year begins in March here, so that its leap day is its last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + EPOCH_DAYS;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The reverse; `None` for what lies before 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || day < 1 {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * ERA_DAYS + day_of_era - EPOCH_DAYS)
}

/// For `#[serde(with = …)]`: a moment.
pub mod moment {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    /// Writes the text.
    pub fn serialize<S: Serializer>(secs: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::format(*secs))
    }

    /// Reads the text.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        super::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no moment like 2026-03-16T10:00:02Z")))
    }
}

/// For `#[serde(with = …)]`: a moment, or `null`.
pub mod optional {
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::Serializer;

    #[derive(serde::Deserialize)]
    struct Moment(#[serde(with = "super::moment")] u64);

    /// Writes the text, or `null`.
    pub fn serialize<S: Serializer>(secs: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match secs {
            Some(secs) => super::moment::serialize(secs, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads the text, or `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Moment>::deserialize(deserializer)?.map(|Moment(secs)| secs))
    }
}

#[cfg(test)]
mod tests {
    use super::{SECS_MAX, format, parse};

    #[test]
    fn well_known_moments_are_written_as_they_are() {
        for (secs, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_773_655_202, "2026-03-16T10:00:02Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (SECS_MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(format(secs), text);
            assert_eq!(parse(text), Some(secs));
        }
        assert_eq!(format(u64::MAX), format(SECS_MAX));
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        for n in 0..20_000 {
            let secs = n * 12_670_117 + n;
            assert_eq!(parse(&format(secs)), Some(secs));
        }
    }

    #[test]
    fn no_other_text_is_a_moment() {
        for text in [
            "",
            "2026-03-16",
            "2026-03-16T10:00:02",
            "2026-03-16t10:00:02z",
            "2026-02-30T10:00:02Z",
            "2026-13-01T10:00:02Z",
            "2026-00-01T10:00:02Z",
            "2026-01-00T10:00:02Z",
            "2026-03-16T24:00:00Z",
            "+026-03-16T10:00:02Z",
            "1969-12-31T23:59:59Z",
            "2026-03-16T10:00:02Zß",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
