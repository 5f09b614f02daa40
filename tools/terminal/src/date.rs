// SPDX-License-Identifier: GPL-2.0

//! Dates and times of the day, as shown and as typed: in the local time zone, or in UTC.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use std::str::FromStr;
use std::sync::OnceLock;
use system::quantity;

/// Time zone of all times that are shown or typed.
static ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Time before a trace's begin that a time of the day can mean: a user who rounds down means this day.
const SLACK_HOURS: i64 = 1;

/// Shows and reads all times in UTC. Has no effect after the first use of a time.
pub fn use_utc() {
    let _ = ZONE.set(TimeZone::UTC);
}

/// The local time zone, or UTC if [`use_utc`] chose it or the machine has none.
fn zone() -> TimeZone {
    let zone = ZONE.get_or_init(|| TimeZone::try_system().unwrap_or(TimeZone::UTC));
    zone.clone()
}

/// A time in the zone; [`None`] outside the calendar.
fn zoned(nanoseconds: i128) -> Option<Zoned> {
    let time = Timestamp::from_nanosecond(nanoseconds).ok()?;
    Some(time.to_zoned(zone()))
}

/// Nanoseconds since the epoch as `YYYY-MM-DD HH:MM:SS.mmm ZONE`; as a number outside the calendar.
pub fn readable(nanoseconds: i128) -> String {
    zoned(nanoseconds).map_or_else(
        || format!("{nanoseconds} ns after 1970"),
        |time| time.strftime("%Y-%m-%d %H:%M:%S.%3f %Z").to_string(),
    )
}

/// Nanoseconds since the epoch as `HH:MM:SS.nnnnnnnnn`.
pub fn time_of_day(nanoseconds: i64) -> String {
    zoned(nanoseconds.into()).map_or_else(
        || format!("{nanoseconds} ns after 1970"),
        |time| time.strftime("%H:%M:%S.%9f").to_string(),
    )
}

/// Nanoseconds since the epoch as `YYYY-MM-DD ZONE`: the day whose times [`time_of_day`] shows.
pub fn day(nanoseconds: i64) -> String {
    zoned(nanoseconds.into()).map_or_else(
        || format!("{nanoseconds} ns after 1970"),
        |time| time.strftime("%Y-%m-%d %Z").to_string(),
    )
}

/// Name of the zone in which times are shown: at this time, in nanoseconds since the epoch, or without one now.
pub fn zone_name(nanoseconds: Option<i64>) -> String {
    let then = nanoseconds.and_then(|time| zoned(time.into()));
    let then = then.unwrap_or_else(|| Timestamp::now().to_zoned(zone()));
    then.strftime("%Z").to_string()
}

/// Column of a table with times of the day. If the times are of several days, each has its date.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    has_dates: bool,
}

impl Column {
    /// A column of these times, in nanoseconds since the epoch, as far as they are known.
    pub fn of(times: impl Iterator<Item = Option<i64>>) -> Self {
        let mut days = times.flatten().map(day);
        let first = days.next();
        let has_dates = first.is_some_and(|first| days.any(|day| day != first));
        Self { has_dates }
    }

    /// Width of the column.
    pub fn width(self) -> usize {
        if self.has_dates {
            29
        } else {
            18
        }
    }

    /// A time, or a question mark if it is not known.
    pub fn show(self, time: Option<i64>) -> String {
        let Some(time) = time else {
            return "?".to_owned();
        };
        match zoned(time.into()).filter(|_| self.has_dates) {
            Some(time) => time.strftime("%Y-%m-%d %H:%M:%S.%9f").to_string(),
            None => time_of_day(time),
        }
    }
}

/// Watches times that only grow for the begin of a new day.
#[derive(Debug, Default)]
pub struct Days {
    /// Second of the last time: a day begins with a second.
    second: Option<i64>,
    day: Option<String>,
}

impl Days {
    /// The day of a time, in nanoseconds since the epoch, if the last time was of another day.
    pub fn new_day(&mut self, nanoseconds: i64) -> Option<String> {
        let second = Some(nanoseconds.div_euclid(1_000_000_000));
        if self.second == second {
            return None;
        }
        self.second = second;
        let now = day(nanoseconds);
        let last = self.day.replace(now.clone());
        last.is_some_and(|last| last != now).then_some(now)
    }
}

/// A point in time of a trace, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointInTime {
    /// Value of the trace's clock, in nanoseconds.
    Clock(u64),
    /// Nanoseconds after the trace's begin.
    AfterBegin(u64),
    /// Time of the day.
    Day(Time),
    /// Time of a date.
    Date(DateTime),
}

impl PointInTime {
    /// Nanoseconds from the begin of a trace to this point, negative before it. The trace begins at the value `clock`
    /// of its clock, which is `epoch` since the epoch, both in nanoseconds.
    pub fn after_begin(self, clock: u64, epoch: i128) -> i128 {
        let since_epoch = |time: Zoned| time.timestamp().as_nanosecond() - epoch;
        match self {
            Self::Clock(time) => i128::from(time) - i128::from(clock),
            Self::AfterBegin(time) => i128::from(time),
            // Outside the calendar nothing comes before it.
            Self::Date(date) => date.to_zoned(zone()).map_or(i128::MAX, since_epoch),
            Self::Day(time) => first(time, epoch).map_or(i128::MAX, since_epoch),
        }
    }
}

/// First moment at a time of the day since [`SLACK_HOURS`] before `epoch`.
fn first(time: Time, epoch: i128) -> Option<Zoned> {
    let since = zoned(epoch)?.checked_sub(SLACK_HOURS.hours()).ok()?;
    let mut day = since.date();
    loop {
        let found = day.to_datetime(time).to_zoned(zone()).ok()?;
        if found >= since {
            return Some(found);
        }
        day = day.tomorrow().ok()?;
    }
}

/// `1234.567890` (seconds of the trace's clock), `+5s`, `23:00:01.5`, or `2026-11-27T23:00:01.5`.
impl FromStr for PointInTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(after) = text.strip_prefix('+') {
            let after = quantity::duration(after)?;
            let nanoseconds = u64::try_from(after.as_nanos()).ok();
            return nanoseconds
                .map(Self::AfterBegin)
                .ok_or_else(|| format!("`{text}` is too long"));
        }
        let time = || Time::strptime("%H:%M:%S%.f", text).ok();
        let date = || DateTime::strptime("%Y-%m-%dT%H:%M:%S%.f", text).ok();
        clock(text)
            .map(Self::Clock)
            .or_else(|| time().map(Self::Day))
            .or_else(|| date().map(Self::Date))
            .ok_or_else(|| {
                "not a time: write 23:00:01, 2026-11-27T23:00:01, +5s (after the trace's begin), \
                 or 1234.567890 (seconds of the trace's clock)"
                    .to_owned()
            })
    }
}

/// Parses seconds with up to nine decimals into nanoseconds.
fn clock(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(decimals) || decimals.len() > 9 {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    let rest: u64 = format!("{decimals:0<9}").parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        use_utc();
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
        assert_eq!(day(1_700_000_000_000_000_789), "2023-11-14 UTC");
    }

    #[test]
    fn a_new_day_is_seen_once() {
        use_utc();
        let second = 1_000_000_000;
        let mut days = Days::default();
        // 23:59:59 and the next seconds.
        let midnight = 1_700_006_400 * second;
        let times = [midnight - second, midnight - 1, midnight, midnight + second];
        let seen = times.map(|time| days.new_day(time));
        let next = Some("2023-11-15 UTC".to_owned());
        assert_eq!(seen, [None, None, next, None]);
        assert_eq!(zone_name(Some(midnight)), "UTC");
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn points_in_time() {
        let day = |hour, minute, second, ns| {
            Ok(PointInTime::Day(Time::constant(hour, minute, second, ns)))
        };
        for (text, expected) in [
            ("0", Ok(PointInTime::Clock(0))),
            ("1234.56789", Ok(PointInTime::Clock(1_234_567_890_000))),
            ("1.000000001", Ok(PointInTime::Clock(S + 1))),
            ("+1.5s", Ok(PointInTime::AfterBegin(S + S / 2))),
            ("+2h30m", Ok(PointInTime::AfterBegin(9_000 * S))),
            ("00:00:00", day(0, 0, 0, 0)),
            ("22:13:20.000000789", day(22, 13, 20, 789)),
            ("23:59:59.5", day(23, 59, 59, 500_000_000)),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
        use_utc();
        let at: PointInTime = "2023-11-14T22:13:20.5".parse().unwrap();
        assert_eq!(at.after_begin(7, 1_700_000_000_000_000_000), 500_000_000);
        for wrong in [
            "",
            "-1",
            "1.",
            "+",
            "+5",
            "1e3",
            "1.0000000001",
            "99999999999999",
            "1.+5",
            "12:00",
            "24:00:00",
            "12:00:00.",
            "-1:00:00",
            "noon",
            "+-5s",
            "2023-11-14",
        ] {
            assert!(wrong.parse::<PointInTime>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_column_has_dates_if_midnight_is_in_it() {
        use_utc();
        let late = 1_700_000_000_000_000_000;
        let column = Column::of([Some(late), None, Some(late + 60 * S as i64)].into_iter());
        assert_eq!(column.show(Some(late)), "22:13:20.000000000");
        assert_eq!(column.show(None), "?");
        let column = Column::of([None, Some(late), Some(late + 7200 * S as i64)].into_iter());
        let shown = column.show(Some(late + 7200 * S as i64));
        assert_eq!(shown, "2023-11-15 00:13:20.000000000");
        assert_eq!(shown.len(), column.width());
    }

    #[test]
    fn a_time_of_the_day_is_the_first_one_in_the_trace() {
        use_utc();
        // 22:13:20.
        let begin = 1_700_000_000_000_000_000;
        let after = |text: &str| {
            let point: PointInTime = text.parse().unwrap();
            point.after_begin(5 * S, begin) / i128::from(S)
        };
        assert_eq!(after("22:13:21"), 1);
        assert_eq!(after("22:13:00"), -20);
        assert_eq!(after("21:00:00"), 86_400 - 4_400);
        assert_eq!(after("00:00:00"), 6_400);
        assert_eq!(after("+3s"), 3);
        assert_eq!(after("7"), 2);
        assert_eq!(after("4"), -1);
    }
}
