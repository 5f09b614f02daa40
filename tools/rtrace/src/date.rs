// SPDX-License-Identifier: GPL-2.0

//! Dates, for names and reports. UTC: the same trace reads the same everywhere.

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
}
