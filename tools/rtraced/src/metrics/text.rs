// SPDX-License-Identifier: GPL-2.0

//! The maps of a session as OpenMetrics, or in Prometheus's older text format.
//!
//! A map has one metric for each column: `rtrace_MAP_total` for the count, `rtrace_MAP_COLUMN...` for the others. A
//! histogram is one metric with the buckets. The keys are labels. Durations are in seconds, as Prometheus expects.
//!
//! Different maps and columns may lead to the same name. The first one has the metric; `rtrace_map_hidden` lists the
//! others.

use rtrace_input::map::DURATION;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::iter::once;
use store::maps::{MapKey, MapRow, MapTable};

/// Label of the keys for which there is no room.
const OTHER: &str = "other";

/// Labels that no key may have: that of the session, and those of histograms and summaries.
const RESERVED: [&str; 3] = ["session", "le", "quantile"];

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// Exponents of the upper bounds of buckets: from 2^10 ns (1 us) to 2^36 ns (69 s), or from 1 to 2^40.
const OF_DURATIONS: std::ops::RangeInclusive<u32> = 10..=36;
const OF_NUMBERS: std::ops::RangeInclusive<u32> = 0..=40;

/// Name, form and help of a metric that is not a map's.
type Own = (&'static str, Kind, &'static str);

const RECORDED: Own = (
    "rtrace_events_recorded",
    Kind::Count,
    "Events recorded in the channel's current or last trace",
);
const LOST: Own = (
    "rtrace_events_lost",
    Kind::Count,
    "Events of that trace that were lost",
);
const MISSED: Own = (
    "rtrace_map_missed",
    Kind::Count,
    "Events that a map did not count",
);
const HIDDEN: Own = (
    "rtrace_map_hidden",
    Kind::Gauge,
    "Metrics of maps that are not shown because another metric has the name: rename the map",
);

/// The keys that have series of their own, for each map. The first keys keep theirs, so that a counter never gets
/// smaller.
#[derive(Debug)]
pub struct Known {
    /// Maximum number of keys of a map.
    limit: usize,
    /// By the line of the map.
    keys: BTreeMap<String, BTreeSet<Vec<MapKey>>>,
}

impl Known {
    /// At most `limit` keys of a map.
    pub fn new(limit: usize) -> Self {
        let keys = BTreeMap::new();
        Self { limit, keys }
    }

    /// Whether each row of a table has a key with series of its own. Takes new keys, as long as there is room: those with
    /// the largest counts.
    fn of(&mut self, table: &MapTable) -> Vec<bool> {
        let known = self.keys.entry(table.line.clone()).or_default();
        let mut counts: BTreeMap<&[MapKey], i128> = BTreeMap::new();
        for row in table.rows.iter().filter(|row| !known.contains(&row.keys)) {
            *counts.entry(&row.keys).or_default() += row.numbers[0];
        }
        let mut new: Vec<_> = counts.into_iter().collect();
        new.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let room = self.limit.saturating_sub(known.len());
        known.extend(new.into_iter().take(room).map(|(keys, _)| keys.to_vec()));
        let rows = table.rows.iter();
        rows.map(|row| known.contains(&row.keys)).collect()
    }
}

/// The text of a session's maps, and of its counters of events: in OpenMetrics, or in the older format.
pub fn text(
    session: &str,
    maps: &[MapTable],
    events: &[(String, u64, u64)],
    known: &mut Known,
    is_open: bool,
) -> String {
    let mut metrics = Metrics::default();
    for (name, kind, _) in [RECORDED, LOST, MISSED, HIDDEN] {
        metrics.taken.extend(kind.names(name));
    }
    for table in maps {
        metrics.add_map(session, table, &known.of(table));
    }
    for (channel, recorded, lost) in events {
        let labels = labels([("session", session), ("channel", channel)]);
        metrics.add_own(RECORDED, &labels, *recorded);
        metrics.add_own(LOST, &labels, *lost);
    }
    for (map, metric) in std::mem::take(&mut metrics.hidden) {
        let labels = labels([("session", session), ("map", &map), ("metric", &metric)]);
        metrics.add_own(HIDDEN, &labels, 1);
    }
    let mut text = String::new();
    for (name, metric) in &metrics.by_name {
        metric.write(name, is_open, &mut text);
    }
    text + if is_open { "# EOF\n" } else { "" }
}

/// The form of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A number that never gets smaller.
    Count,
    /// Any number.
    Gauge,
    /// Buckets.
    Histogram,
}

impl Kind {
    /// Name of the form, and suffixes of its series.
    const fn form(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Count => ("counter", &["_total"]),
            Self::Gauge => ("gauge", &[""]),
            Self::Histogram => ("histogram", &["_sum", "_count", "_bucket"]),
        }
    }

    /// The name of a metric, and those of its series.
    fn names(self, name: &str) -> BTreeSet<String> {
        let suffixes = self.form().1.iter().chain(&[""]);
        suffixes.map(|suffix| format!("{name}{suffix}")).collect()
    }
}

/// A metric.
#[derive(Debug)]
struct Metric {
    kind: Kind,
    help: String,
    is_seconds: bool,
    /// The lines of its series.
    series: String,
}

impl Metric {
    fn write(&self, name: &str, is_open: bool, text: &mut String) {
        let (form, suffixes) = self.kind.form();
        // In the older format a counter's comments have the suffix, and quotes need no escape.
        let suffix = if self.kind == Kind::Count && !is_open {
            suffixes[0]
        } else {
            ""
        };
        let help = escaped(&self.help, is_open);
        *text += &format!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {form}\n");
        if self.is_seconds && is_open {
            *text += &format!("# UNIT {name} seconds\n");
        }
        *text += &self.series;
    }
}

/// Metrics by name.
#[derive(Debug, Default)]
struct Metrics {
    by_name: BTreeMap<String, Metric>,
    /// The names of metrics and of their series.
    taken: BTreeSet<String>,
    /// Maps, and their metrics whose names are taken.
    hidden: BTreeSet<(String, String)>,
}

impl Metrics {
    /// Adds a number of a metric that is not a map's.
    fn add_own(&mut self, (name, kind, help): Own, labels: &str, number: u64) {
        let metric = self
            .by_name
            .entry(name.to_owned())
            .or_insert_with(|| Metric {
                kind,
                help: help.to_owned(),
                is_seconds: false,
                series: String::new(),
            });
        let suffix = kind.form().1[0];
        metric.series += &format!("{name}{suffix}{{{labels}}} {number}\n");
    }

    /// Adds a metric of a map, unless another metric has one of its names. `series` makes its lines.
    fn add(
        &mut self,
        table: &MapTable,
        name: &str,
        (kind, is_seconds): (Kind, bool),
        series: impl FnOnce(&str) -> String,
    ) {
        let name = format!("{name}{}", if is_seconds { "_seconds" } else { "" });
        let names = kind.names(&name);
        if !self.taken.is_disjoint(&names) {
            self.hidden.insert((table.name.clone(), name));
            return;
        }
        self.taken.extend(names);
        let metric = Metric {
            kind,
            help: table.line.clone(),
            is_seconds,
            series: series(&name),
        };
        self.by_name.insert(name, metric);
    }

    /// Adds the metrics of a map.
    fn add_map(&mut self, session: &str, table: &MapTable, own: &[bool]) {
        let base = format!("rtrace_{}", identifier(&table.name));
        let keys = key_labels(&table.keys);
        // Rows by their labels: those of all keys without series of their own together.
        let mut groups: BTreeMap<String, Vec<&MapRow>> = BTreeMap::new();
        for (row, is_own) in table.rows.iter().zip(own) {
            let values = row.keys.iter().map(|key| match is_own {
                true => key.to_string(),
                false => OTHER.to_owned(),
            });
            let values: Vec<_> = values.collect();
            let keys = keys.iter().zip(&values);
            let keys = keys.map(|(name, value)| (name.as_str(), value.as_str()));
            let labels = labels(once(("session", session)).chain(keys));
            groups.entry(labels).or_default().push(row);
        }
        match &table.hist {
            Some(value) => {
                let sum = format!("sum({value})");
                let sum = table.columns.iter().position(|column| *column == sum);
                let is_seconds = value == DURATION;
                self.add(table, &base, (Kind::Histogram, is_seconds), |name| {
                    let groups = groups.iter();
                    let one = |(labels, rows): (&String, &Vec<_>)| {
                        histogram(name, labels, rows, is_seconds, sum)
                    };
                    groups.map(one).collect()
                });
            }
            None => self.add(table, &base, (Kind::Count, false), |name| {
                let groups = groups.iter();
                let one = |(labels, rows): (&String, &Vec<&MapRow>)| {
                    let count = rows.iter().map(|row| count(row)).sum::<u64>();
                    format!("{name}_total{{{labels}}} {count}\n")
                };
                groups.map(one).collect()
            }),
        }
        for (place, column) in table.columns.iter().enumerate().skip(1) {
            let (action, value) = column.split_once('(').unwrap_or((column, ""));
            let value = value.trim_end_matches(')');
            let is_seconds = value == DURATION;
            // A sum of other values may get smaller, if some of them are negative.
            let (suffix, kind, all): (_, _, fn(i128, i128) -> i128) = match action {
                "sum" if is_seconds => ("", Kind::Count, |a, b| a + b),
                "sum" => ("", Kind::Gauge, |a, b| a + b),
                "min" => ("_min", Kind::Gauge, i128::min),
                _ => ("_max", Kind::Gauge, i128::max),
            };
            let scale = if is_seconds { SECOND } else { 1.0 };
            let name = format!("{base}_{}{suffix}", identifier(value));
            self.add(table, &name, (kind, is_seconds), |name| {
                let total = kind.form().1[0];
                let lines = groups.iter().filter_map(|(labels, rows)| {
                    let number = rows.iter().map(|row| row.numbers[place]).reduce(all)?;
                    let number = float(number as f64 / scale);
                    Some(format!("{name}{total}{{{labels}}} {number}\n"))
                });
                lines.collect()
            });
        }
        let overflow = table.overflow.first().copied().unwrap_or(0);
        let missed = [("overflow", unsigned(overflow)), ("lacking", table.lacking)];
        let unpaired = table.unpaired.iter().flat_map(|unpaired| {
            [
                ("unmatched", unpaired.unmatched),
                ("repeated", unpaired.repeated),
                ("dropped", unpaired.dropped),
            ]
        });
        let stackless = table.stackless.map(|count| ("stackless", count));
        for (reason, count) in missed.into_iter().chain(unpaired).chain(stackless) {
            let map = ("map", table.name.as_str());
            let labels = labels([("session", session), map, ("reason", reason)]);
            self.add_own(MISSED, &labels, count);
        }
    }
}

/// The series of a histogram. Without a column with the sum, it is that of the middles of the kernel's buckets.
fn histogram(
    name: &str,
    labels: &str,
    rows: &[&MapRow],
    is_seconds: bool,
    sum: Option<usize>,
) -> String {
    let (exponents, scale) = match is_seconds {
        true => (OF_DURATIONS, SECOND),
        false => (OF_NUMBERS, 1.0),
    };
    let bucket = |row: &MapRow| row.bucket.unwrap_or_default();
    let sums = rows.iter().map(|row| match sum {
        Some(sum) => row.numbers[sum] as f64,
        None => (bucket(row).0 + bucket(row).1) as f64 / 2.0 * count(row) as f64,
    });
    let sum = float(sums.sum::<f64>() / scale);
    let all: u64 = rows.iter().map(|row| count(row)).sum();
    let mut text = format!("{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {all}\n");
    // The kernel's buckets end before powers of two, so each lies in one of these.
    for bound in exponents.map(|exponent| (1_i128 << exponent) - 1) {
        let below = rows.iter().filter(|row| bucket(row).1 <= bound);
        let below: u64 = below.map(|row| count(row)).sum();
        let bound = float(bound as f64 / scale);
        let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\",{labels}}} {below}");
    }
    text + &format!("{name}_bucket{{le=\"+Inf\",{labels}}} {all}\n")
}

/// The count of a row.
fn count(row: &MapRow) -> u64 {
    unsigned(row.numbers[0])
}

/// A count, which is never negative.
fn unsigned(count: i128) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// A number, as OpenMetrics writes the bounds of buckets.
fn float(number: f64) -> String {
    let text = number.to_string();
    let is_whole = !text.contains('.');
    text + if is_whole { ".0" } else { "" }
}

/// Labels as a list in the text.
fn labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let labels = labels.into_iter();
    let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value, true)));
    labels.collect::<Vec<_>>().join(",")
}

/// The labels of keys. Each is different from the others, and from those that have a meaning.
fn key_labels(keys: &[String]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for key in keys {
        let mut label = identifier(key);
        let begins_badly =
            |label: &str| label.starts_with("__") || label.as_bytes()[0].is_ascii_digit();
        while begins_badly(&label) || RESERVED.contains(&&*label) || labels.contains(&label) {
            label.insert_str(0, "key_");
        }
        labels.push(label);
    }
    labels
}

/// A text without characters that would end it.
fn escaped(text: &str, escapes_quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    match escapes_quotes {
        true => text.replace('"', "\\\""),
        false => text,
    }
}

/// A name that OpenMetrics accepts.
fn identifier(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(text: &str) -> Vec<MapTable> {
        store::maps::parse(text).unwrap()
    }

    #[test]
    fn maps_are_metrics() {
        let maps = tables(
            "\
map calls e by comm sum(duration) sum(n) max(n) from b
overflow 1 0 0 0
lacking 2
unmatched 3
repeated 4
dropped 5
comm count sum(duration) sum(n) max(n)
\"a\\x22\\x5c\" 9 2500000000 -5 7

map run.q e hist(duration) from b
overflow 0
lacking 0
unmatched 0
repeated 0
dropped 0
duration count
896..1023 2
1024..1151 1
137438953472..154618822655 1

",
        );
        let events = [("channel0".to_owned(), 10, 3)];
        let [open, older] =
            [true, false].map(|is_open| text("web", &maps, &events, &mut Known::new(10), is_open));
        for line in [
            "# TYPE rtrace_calls counter",
            r#"rtrace_calls_total{session="web",comm="a\"\\"} 9"#,
            "# UNIT rtrace_calls_duration_seconds seconds",
            r#"rtrace_calls_duration_seconds_total{session="web",comm="a\"\\"} 2.5"#,
            r#"rtrace_calls_n{session="web",comm="a\"\\"} -5.0"#,
            r#"rtrace_calls_n_max{session="web",comm="a\"\\"} 7.0"#,
            "# TYPE rtrace_run_q_seconds histogram",
            r#"rtrace_run_q_seconds_count{session="web"} 4"#,
            r#"rtrace_run_q_seconds_bucket{le="0.000001023",session="web"} 2"#,
            r#"rtrace_run_q_seconds_bucket{le="0.000002047",session="web"} 3"#,
            r#"rtrace_run_q_seconds_bucket{le="+Inf",session="web"} 4"#,
            r#"rtrace_map_missed_total{session="web",map="calls",reason="dropped"} 5"#,
            r#"rtrace_events_lost_total{session="web",channel="channel0"} 3"#,
        ] {
            assert!(open.lines().any(|known| known == line), "{line}\n{open}");
        }
        assert!(open.ends_with("# EOF\n"));
        for line in [
            "# HELP rtrace_calls_total calls e by comm sum(duration) sum(n) max(n) from b",
            "# TYPE rtrace_calls_total counter",
            r#"rtrace_calls_total{session="web",comm="a\"\\"} 9"#,
            "# TYPE rtrace_run_q_seconds histogram",
        ] {
            assert!(older.lines().any(|known| known == line), "{line}\n{older}");
        }
        assert!(!older.contains("# UNIT") && !older.contains("# EOF"));
    }

    #[test]
    fn keys_are_bounded_and_keep_their_series() {
        let table = |rows: &str| {
            tables(&format!(
                "map m e by comm\noverflow 0\nlacking 0\ncomm count\n{rows}\n"
            ))
        };
        let mut known = Known::new(2);
        let mut shown = |rows: &str| -> Vec<String> {
            let text = text("s", &table(rows), &[], &mut known, true);
            let lines = text
                .lines()
                .filter(|line| line.starts_with("rtrace_m_total"));
            lines
                .map(|line| line.split_once("comm=").unwrap().1.to_owned())
                .collect()
        };
        let first = shown("\"a\" 5\n\"b\" 9\n\"c\" 1\n\"d\" 1\n");
        assert_eq!(first, [r#""a"} 5"#, r#""b"} 9"#, r#""other"} 2"#]);
        // A key without series of its own stays there, however large it gets.
        let next = shown("\"a\" 5\n\"b\" 9\n\"c\" 100\n\"d\" 1\n");
        assert_eq!(next, [r#""a"} 5"#, r#""b"} 9"#, r#""other"} 101"#]);
    }
}
