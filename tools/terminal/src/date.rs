// SPDX-License-Identifier: GPL-2.0

//! Dates, for names and reports. UTC: the same trace reads the same everywhere.

use jiff::civil::Time;
use jiff::Timestamp;

/// This moment as `YYYYMMDD-HHMMSS`.
pub fn now() -> String {
    Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}

/// Nanoseconds since the epoch as `YYYY-MM-DD HH:MM:SS.mmm UTC`; as a number, where the calendar
/// does not reach so far.
pub fn readable(nanoseconds: i128) -> String {
    Timestamp::from_nanosecond(nanoseconds).map_or_else(
        |_| format!("{nanoseconds} ns after 1970"),
        |time| time.strftime("%Y-%m-%d %H:%M:%S.%3f UTC").to_string(),
    )
}

/// Nanoseconds since the epoch as `HH:MM:SS.nnnnnnnnn`, as `babeltrace2 --clock-gmt` has it.
pub fn time_of_day(nanoseconds: i64) -> String {
    Timestamp::from_nanosecond(nanoseconds.into()).map_or_else(
        |_| format!("{nanoseconds} ns after 1970"),
        |time| time.strftime("%H:%M:%S.%9f").to_string(),
    )
}

/// Nanoseconds of the day at a time as [`time_of_day`] has it; the fraction may be shorter, or missing.
pub fn parse_time_of_day(text: &str) -> Result<u64, String> {
    let time = Time::strptime("%H:%M:%S%.f", text);
    let time = time.map_err(|_| "it is not HH:MM:SS or HH:MM:SS.FRACTION".to_owned())?;
    let since = time.duration_since(Time::midnight());
    u64::try_from(since.as_nanos()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00.000 UTC"),
            (951_782_400, "2000-02-29 00:00:00.000 UTC"),
            (1_700_000_000, "2023-11-14 22:13:20.000 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59.000 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00.000 UTC"),
        ] {
            assert_eq!(readable(seconds * 1_000_000_000), text);
        }
        assert_eq!(readable(1_999_999), "1970-01-01 00:00:00.001 UTC");
        assert!(readable(i128::MAX).ends_with(" ns after 1970"));
        assert_eq!(time_of_day(1_700_000_000_000_000_789), "22:13:20.000000789");
        assert_eq!(now().len(), 15);
    }

    #[test]
    fn times_of_the_day() {
        let second = 1_000_000_000;
        for (text, expected) in [
            ("00:00:00", 0),
            ("22:13:20", 80_000 * second),
            ("22:13:20.000000789", 80_000 * second + 789),
            ("23:59:59.5", 86_399 * second + second / 2),
        ] {
            assert_eq!(parse_time_of_day(text), Ok(expected), "{text}");
        }
        for wrong in ["", "12:00", "24:00:00", "12:00:00.", "-1:00:00", "noon"] {
            assert!(parse_time_of_day(wrong).is_err(), "{wrong}");
        }
    }
}
