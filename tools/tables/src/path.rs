// SPDX-License-Identifier: GPL-2.0

//! Names of folders in Hive's form.

use jiff::civil::Date;
use jiff::Span;
use std::fmt::Write;
use std::path::PathBuf;

/// Nanoseconds in a day.
const DAY: i64 = 86_400_000_000_000;

/// Number of the day of a time in nanoseconds since the epoch.
pub fn day(ns: i64) -> i64 {
    ns.div_euclid(DAY)
}

/// The day of a time in nanoseconds since the epoch, UTC.
pub fn date(ns: i64) -> Date {
    of_day(day(ns))
}

fn of_day(day: i64) -> Date {
    Date::constant(1970, 1, 1).saturating_add(Span::new().days(day))
}

/// Folder of a table's rows of a day, relative to the folder of all tables.
pub fn partition(table: &str, host: &str, day: i64) -> PathBuf {
    let date = of_day(day);
    let names = [escaped(table), self::host(host), format!("date={date}")];
    names.iter().collect()
}

/// Folder of a host's rows, relative to that of a table.
pub fn host(host: &str) -> String {
    format!("host={}", escaped(host))
}

/// Escapes a name for a folder. Letters, digits and `-` stay, and so do `_` and `.` after another character.
/// Each other byte becomes `%` and two hexadecimal digits, which readers decode.
fn escaped(name: &str) -> String {
    let mut out = String::new();
    for (place, byte) in name.bytes().enumerate() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' => out.push(byte.into()),
            b'_' | b'.' if place > 0 => out.push(byte.into()),
            // Writing to a String cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_hives() {
        let path = |host, day| partition("sched_switch", host, day).display().to_string();
        assert_eq!(
            path("web-1.example", 19_675),
            "sched_switch/host=web-1.example/date=2023-11-14"
        );
        assert_eq!(
            path("../a b=ü", 0),
            "sched_switch/host=%2E.%2Fa%20b%3D%C3%BC/date=1970-01-01"
        );
    }

    #[test]
    fn days_end_at_midnight() {
        for (ns, expected) in [
            (0, 0),
            (DAY - 1, 0),
            (DAY, 1),
            (-1, -1),
            (i64::MAX, 106_751),
        ] {
            assert_eq!(day(ns), expected, "{ns}");
        }
        let last = partition("t", "h", day(i64::MAX));
        assert_eq!(last.display().to_string(), "t/host=h/date=2262-04-11");
    }
}
