// SPDX-License-Identifier: GPL-2.0

//! Dates, for names and reports. UTC: the same trace reads the same everywhere.

use std::time::{SystemTime, UNIX_EPOCH};

/// This moment as `YYYYMMDD-HHMMSS`.
pub fn now() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    let (date, time) = split(seconds as i64);
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        date.0, date.1, date.2, time.0, time.1, time.2
    )
}

/// Nanoseconds since the epoch as `YYYY-MM-DD HH:MM:SS.mmm UTC`.
pub fn readable(nanoseconds: i128) -> String {
    let seconds = nanoseconds.div_euclid(1_000_000_000);
    let (date, time) = split(i64::try_from(seconds).unwrap_or(0));
    let milliseconds = nanoseconds.rem_euclid(1_000_000_000) / 1_000_000;
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{milliseconds:03} UTC",
        date.0, date.1, date.2, time.0, time.1, time.2
    )
}

/// Year, month, day and hour, minute, second of a time since the epoch.
fn split(seconds: i64) -> ((i64, i64, i64), (i64, i64, i64)) {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years from 1 March, 0000, so that the leap day ends a year; 400 of them are an era.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = (
        era * 400 + year + i64::from(month >= 10),
        if month < 10 { month + 3 } else { month - 9 },
        day - (153 * month + 2) / 5 + 1,
    );
    (date, (second / 3600, second / 60 % 60, second % 60))
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
        assert_eq!(now().len(), 15);
    }
}
