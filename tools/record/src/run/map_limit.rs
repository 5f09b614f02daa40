// SPDX-License-Identifier: GPL-2.0

//! The condition that a value of a map exceeds a limit: `map:NAME VALUE > NUMBER`.

use anyhow::bail;
use control::Session;
use rtrace_input::name;
use rustix::time::{
    timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags,
    Timespec,
};
use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use store::maps::{MapKey, MapTable};
use system::quantity;

/// Period of the looks at maps, in nanoseconds.
const PERIOD: i64 = 100_000_000;

/// A limit for a value of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapLimit {
    /// Name of the map.
    map: String,
    /// The value: `count`, `sum`, `min`, `max`, or the name of a column.
    value: String,
    /// The limit, as typed.
    typed: String,
    /// The limit; a duration in nanoseconds.
    limit: i128,
}

impl MapLimit {
    /// Parses the text after `map:`. The error has its place in the text.
    pub fn parse(text: &str) -> Result<Self, (usize, &'static str)> {
        let mut words = text.split_whitespace();
        let at = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        let Some(map) = words.next().filter(|map| name::refusal(map).is_none()) else {
            return Err((0, "expected the name of a map"));
        };
        let Some(value) = words.next() else {
            return Err((text.len(), "expected count, sum, min or max"));
        };
        match words.next() {
            Some(">") => {}
            Some(other) => return Err((at(other), "expected '>'")),
            None => return Err((text.len(), "expected '>'")),
        }
        let Some(typed) = words.next() else {
            return Err((text.len(), "expected a number or a duration"));
        };
        let number = typed.parse().ok();
        let duration = || Some(quantity::duration(typed).ok()?.as_nanos() as i128);
        let limit = number.or_else(duration);
        let limit = limit.ok_or((at(typed), "expected a number or a duration, as 50ms"))?;
        if let Some(more) = words.next() {
            return Err((at(more), "expected the end"));
        }
        Ok(Self {
            map: map.to_owned(),
            value: value.to_owned(),
            typed: typed.to_owned(),
            limit,
        })
    }

    /// The values of the rows that exceed the limit. `None`: the map has no such value. In a histogram, `max` is the
    /// number of events in buckets above the limit.
    fn above(&self, table: &MapTable) -> Option<BTreeMap<Vec<MapKey>, i128>> {
        let is_it = |column: &String| {
            let kind = column.split('(').next();
            *column == self.value || kind == Some(self.value.as_str())
        };
        let mut above = BTreeMap::new();
        if let Some(column) = table.columns.iter().position(is_it) {
            let mut numbers: BTreeMap<&[MapKey], i128> = BTreeMap::new();
            // The value of a key is that of all its buckets.
            let is_sum = self.value == "count" || self.value.starts_with("sum");
            for row in &table.rows {
                let number = row.numbers[column];
                let all = numbers.entry(&row.keys);
                let all = all.and_modify(|all| {
                    *all = if is_sum {
                        *all + number
                    } else {
                        number.max(*all)
                    }
                });
                all.or_insert(number);
            }
            let numbers = numbers
                .into_iter()
                .filter(|(_, number)| *number > self.limit);
            // A sum exceeds a limit once.
            let value = |number| if is_sum { 1 } else { number };
            above.extend(numbers.map(|(keys, number)| (keys.to_vec(), value(number))));
            return Some(above);
        }
        if self.value != "max" || table.hist.is_none() {
            return None;
        }
        for row in &table.rows {
            let (first, last) = row.bucket.unwrap_or_default();
            if first.min(last) > self.limit {
                *above.entry(row.keys.clone()).or_default() += row.numbers[0];
            }
        }
        Some(above)
    }
}

impl fmt::Display for MapLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            map, value, typed, ..
        } = self;
        write!(f, "map:{map} {value} > {typed}")
    }
}

/// The watch for limits. It reads the maps of a session at intervals.
#[derive(Debug)]
pub struct MapWatch {
    timer: OwnedFd,
    /// For each limit: the values that exceeded it, by the keys.
    known: Vec<(MapLimit, BTreeMap<Vec<MapKey>, i128>)>,
}

impl MapWatch {
    /// Begins to watch. Fails if the session has no such map, or the map has no such value.
    pub fn new(limits: Vec<MapLimit>, session: &Session) -> anyhow::Result<Self> {
        let maps = session.maps()?;
        for limit in &limits {
            let Some(map) = maps.iter().find(|map| map.name == limit.map) else {
                bail!(
                    "{limit}: there is no map `{}`: --map defines one",
                    limit.map
                );
            };
            if limit.above(map).is_none() {
                let columns = map.columns.join(", ");
                bail!("{limit}: the map has {columns}");
            }
        }
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let period = Timespec {
            tv_sec: 0,
            tv_nsec: PERIOD,
        };
        let times = Itimerspec {
            it_interval: period,
            it_value: period,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
        Ok(Self {
            timer,
            known: limits
                .into_iter()
                .map(|limit| (limit, BTreeMap::new()))
                .collect(),
        })
    }

    /// Readable when it is time to look.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Returns a limit that a value exceeded since the last call, if there is one, with the keys of that value.
    pub fn look(&mut self, session: &Session) -> anyhow::Result<Option<(MapLimit, String)>> {
        // Only clears the descriptor's state. It has nothing to read if a signal woke the caller.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
        let maps = session.maps()?;
        for (limit, known) in &mut self.known {
            let map = maps.iter().find(|map| map.name == limit.map);
            let above = map.and_then(|map| limit.above(map)).unwrap_or_default();
            let new = above
                .iter()
                .find(|(keys, value)| known.get(*keys).is_none_or(|known| known < *value));
            let new = new.map(|(keys, _)| keys.iter().map(ToString::to_string).collect::<Vec<_>>());
            *known = above;
            if let Some(keys) = new {
                return Ok(Some((limit.clone(), keys.join(", "))));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed() {
        let limit = MapLimit::parse("runq max > 50ms").unwrap();
        assert_eq!((limit.map.as_str(), limit.limit), ("runq", 50_000_000));
        assert_eq!(limit.to_string(), "map:runq max > 50ms");
        let limit = MapLimit::parse(" m  sum(len)  >  1000 ").unwrap();
        assert_eq!((limit.value.as_str(), limit.limit), ("sum(len)", 1000));
        for (text, at, reason) in [
            ("", 0, "expected the name"),
            ("-m", 0, "expected the name"),
            ("m", 1, "expected count"),
            ("m max", 5, "expected '>'"),
            ("m max < 5", 6, "expected '>'"),
            ("m max >", 7, "expected a number"),
            ("m max > x", 8, "expected a number"),
            ("m max > 5 ms", 10, "expected the end"),
        ] {
            let (place, why) = MapLimit::parse(text).unwrap_err();
            assert!(
                place == at && why.starts_with(reason),
                "{text}: {place} {why}"
            );
        }
    }

    #[test]
    fn values_above_a_limit_are_found() {
        let text = "\
map w e by comm max(n)
overflow 0 0
lacking 0
comm count max(n)
\"a\" 9 7
\"b\" 2 70

map h e hist(n)
overflow 0
lacking 0
n count
7..7 5
64..71 2
80..87 1

";
        let maps = store::maps::parse(text).unwrap();
        let above = |limit: &str, map: usize| -> Option<Vec<i128>> {
            let above = MapLimit::parse(limit).unwrap().above(&maps[map]);
            above.map(|above| above.into_values().collect())
        };
        assert_eq!(above("w max > 69", 0), Some(vec![70]));
        assert_eq!(above("w max(n) > 70", 0), Some(vec![]));
        assert_eq!(above("w count > 1", 0), Some(vec![1, 1]));
        assert_eq!(above("w min > 1", 0), None);
        assert_eq!(above("h max > 63", 1), Some(vec![3]));
        assert_eq!(above("h max > 64", 1), Some(vec![1]));
        assert_eq!(above("h count > 7", 1), Some(vec![1]));
        assert_eq!(above("h sum > 7", 1), None);
    }
}
