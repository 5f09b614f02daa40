// SPDX-License-Identifier: GPL-2.0

//! The maps of a session as OpenMetrics.
//!
//! A map has one metric for each column: `rtrace_MAP_total` for the count, `rtrace_MAP_COLUMN...` for the others. A
//! histogram is one metric with the buckets. The keys are labels. Durations are in seconds, as Prometheus expects.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use rtrace_input::map::DURATION;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use store::maps::{MapKey, MapRow, MapTable};

/// Label of the keys for which there is no room.
const OTHER: &str = "other";

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// Exponents of the upper bounds of buckets: from 2^10 ns (1 us) to 2^36 ns (69 s), or from 1 to 2^40.
const OF_DURATIONS: std::ops::RangeInclusive<u32> = 10..=36;
const OF_NUMBERS: std::ops::RangeInclusive<u32> = 0..=40;

type Labels = Vec<(String, String)>;

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

/// The text of a session's maps, and of its counters of events.
pub fn text(
    session: &str,
    maps: &[MapTable],
    events: &[(String, u64, u64)],
    known: &mut Known,
) -> Result<String, fmt::Error> {
    let mut metrics = Metrics(BTreeMap::new());
    for table in maps {
        let own = known.of(table);
        metrics.add(session, table, &own);
    }
    for (channel, recorded, lost) in events {
        let labels = || labels([("session", session), ("channel", channel)]);
        let help = "Events recorded in the channel's current or last trace";
        metrics.put(
            ("rtrace_events_recorded", Kind::Count, help),
            labels(),
            Number::Count(*recorded),
        );
        let help = "Events of that trace that were lost";
        metrics.put(
            ("rtrace_events_lost", Kind::Count, help),
            labels(),
            Number::Count(*lost),
        );
    }
    let mut registry = Registry::default();
    registry.register_collector(Box::new(metrics));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// The same text in Prometheus's older format, for readers that do not ask for OpenMetrics: a counter has its suffix in
/// the comments, too.
pub fn older(text: &str) -> String {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let counters = types.filter_map(|line| line.strip_suffix(" counter"));
    let counters: BTreeSet<_> = counters.collect();
    let mut older = String::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let head = (words.next(), words.next(), words.next(), words.next());
        match head {
            (Some("#"), Some("UNIT" | "EOF"), ..) => continue,
            (Some("#"), Some(kind), Some(name), Some(rest)) if counters.contains(name) => {
                older += &format!("# {kind} {name}_total {rest}");
            }
            _ => older += line,
        }
        older.push('\n');
    }
    older
}

/// The form of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A number that never gets smaller.
    Count,
    /// Any number.
    Gauge,
    /// Buckets.
    Histogram,
}

/// A value of a metric.
#[derive(Clone, Debug)]
enum Number {
    Count(u64),
    Float(f64),
    Histogram(Histogram),
}

#[derive(Clone, Debug, Default)]
struct Histogram {
    sum: f64,
    count: u64,
    /// Counts by upper bound. The last is infinite.
    buckets: Vec<(f64, u64)>,
}

/// Series of a metric.
#[derive(Debug)]
struct Metric {
    kind: Kind,
    help: String,
    is_seconds: bool,
    series: BTreeMap<Labels, Number>,
}

/// Metrics by name.
#[derive(Debug)]
struct Metrics(BTreeMap<String, Metric>);

impl Metrics {
    fn metric(&mut self, name: &str, kind: Kind, help: &str, is_seconds: bool) -> &mut Metric {
        self.0.entry(name.to_owned()).or_insert_with(|| Metric {
            kind,
            help: help.to_owned(),
            is_seconds,
            series: BTreeMap::new(),
        })
    }

    fn put(&mut self, (name, kind, help): (&str, Kind, &str), labels: Labels, number: Number) {
        self.metric(name, kind, help, false)
            .series
            .insert(labels, number);
    }

    /// Adds the metrics of a map.
    fn add(&mut self, session: &str, table: &MapTable, own: &[bool]) {
        let name = format!("rtrace_{}", identifier(&table.name));
        // Rows by their labels: those of all keys without series of their own together.
        let mut groups: BTreeMap<Labels, Vec<&MapRow>> = BTreeMap::new();
        for (row, is_own) in table.rows.iter().zip(own) {
            let keys = table.keys.iter().zip(&row.keys).map(|(name, key)| {
                let value = if *is_own {
                    key.to_string()
                } else {
                    OTHER.to_owned()
                };
                (identifier(name), value)
            });
            let keys = [("session".to_owned(), session.to_owned())]
                .into_iter()
                .chain(keys);
            groups.entry(escaped(keys)).or_default().push(row);
        }
        let help = harmless(&table.line);
        match &table.hist {
            Some(value) => {
                let is_seconds = value == DURATION;
                let sum = table
                    .columns
                    .iter()
                    .position(|column| *column == format!("sum({value})"));
                let metric = self.metric(&name, Kind::Histogram, &help, is_seconds);
                metric.series.extend(groups.iter().map(|(labels, rows)| {
                    let histogram = Histogram::of(rows, is_seconds, sum);
                    (labels.clone(), Number::Histogram(histogram))
                }));
            }
            None => {
                let metric = self.metric(&name, Kind::Count, &help, false);
                metric.series.extend(groups.iter().map(|(labels, rows)| {
                    let count = rows.iter().map(|row| row.numbers[0]).sum();
                    (labels.clone(), Number::Count(unsigned(count)))
                }));
            }
        }
        for (place, column) in table.columns.iter().enumerate().skip(1) {
            let (kind, value) = column.split_once('(').unwrap_or((column, ""));
            let value = value.trim_end_matches(')');
            let is_seconds = value == DURATION;
            // A sum of other values may get smaller, if some of them are negative.
            let (metric, kind, all): (_, _, fn(i128, i128) -> i128) = match kind {
                "sum" if is_seconds => (value.to_owned(), Kind::Count, |a, b| a + b),
                "sum" => (value.to_owned(), Kind::Gauge, |a, b| a + b),
                "min" => (format!("{value}_min"), Kind::Gauge, i128::min),
                _ => (format!("{value}_max"), Kind::Gauge, i128::max),
            };
            let metric = format!("{name}_{}", identifier(&metric));
            let metric = self.metric(&metric, kind, &help, is_seconds);
            metric
                .series
                .extend(groups.iter().filter_map(|(labels, rows)| {
                    let number = rows.iter().map(|row| row.numbers[place]).reduce(all)?;
                    let scale = if is_seconds { SECOND } else { 1.0 };
                    Some((labels.clone(), Number::Float(number as f64 / scale)))
                }));
        }
        let missed = [
            (
                "overflow",
                table.overflow.first().map_or(0, |count| unsigned(*count)),
            ),
            ("lacking", table.lacking),
        ];
        let unpaired = table.unpaired.iter().flat_map(|unpaired| {
            [
                ("unmatched", unpaired.unmatched),
                ("repeated", unpaired.repeated),
                ("dropped", unpaired.dropped),
            ]
        });
        let stackless = table.stackless.map(|count| ("stackless", count));
        for (reason, count) in missed.into_iter().chain(unpaired).chain(stackless) {
            let labels = labels([
                ("session", session),
                ("map", &table.name),
                ("reason", reason),
            ]);
            let help = "Events that a map did not count";
            self.put(
                ("rtrace_map_missed", Kind::Count, help),
                labels,
                Number::Count(count),
            );
        }
    }
}

impl Histogram {
    /// Adds up rows. Without a column with the sum, it is that of the middles of the kernel's buckets.
    fn of(rows: &[&MapRow], is_seconds: bool, sum: Option<usize>) -> Self {
        let (exponents, scale) = match is_seconds {
            true => (OF_DURATIONS, SECOND),
            false => (OF_NUMBERS, 1.0),
        };
        // The kernel's buckets end before powers of two, so each lies in one of these.
        let bounds = exponents.map(|exponent| (1_i128 << exponent) - 1);
        let mut counts: Vec<_> = bounds.map(|bound| (bound, 0)).collect();
        let mut all = Self::default();
        let mut beyond = 0;
        for row in rows {
            let (first, last) = row.bucket.unwrap_or_default();
            let number = unsigned(row.numbers[0]);
            all.count += number;
            all.sum += match sum.and_then(|sum| row.numbers.get(sum)) {
                Some(sum) => *sum as f64,
                None => (first + last) as f64 / 2.0 * number as f64,
            };
            match counts
                .iter_mut()
                .find(|(bound, _)| first.max(last) <= *bound)
            {
                Some((_, count)) => *count += number,
                None => beyond += number,
            }
        }
        all.sum /= scale;
        let bounds = counts.into_iter();
        all.buckets = bounds
            .map(|(bound, count)| (bound as f64 / scale, count))
            .collect();
        all.buckets.push((f64::MAX, beyond));
        all
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, metric) in &self.0 {
            let kind = match metric.kind {
                Kind::Count => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let unit = metric.is_seconds.then_some(&Unit::Seconds);
            let mut described = encoder.encode_descriptor(name, &metric.help, unit, kind)?;
            for (labels, number) in &metric.series {
                number.encode(metric.kind, described.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

impl Number {
    fn encode(&self, kind: Kind, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        match (self, kind) {
            (Self::Count(count), _) => encoder.encode_counter::<NoLabelSet, _, u64>(count, None),
            (Self::Float(number), Kind::Count) => {
                encoder.encode_counter::<NoLabelSet, _, u64>(number, None)
            }
            (Self::Float(number), _) => encoder.encode_gauge(number),
            (Self::Histogram(all), _) => {
                encoder.encode_histogram::<NoLabelSet>(all.sum, all.count, &all.buckets, None)
            }
        }
    }
}

/// A count, which is never negative.
fn unsigned(count: i128) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

fn labels<const N: usize>(labels: [(&str, &str); N]) -> Labels {
    escaped(
        labels
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter(),
    )
}

/// The library writes values as they are.
fn escaped(labels: impl Iterator<Item = (String, String)>) -> Labels {
    labels
        .map(|(name, value)| (name, harmless(&value)))
        .collect()
}

/// A text without characters that would end it.
fn harmless(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
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
        let text = text("web", &maps, &events, &mut Known::new(10)).unwrap();
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
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
        let older = older(&text);
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
            let text = text("s", &table(rows), &[], &mut known).unwrap();
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
