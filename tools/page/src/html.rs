// SPDX-License-Identifier: GPL-2.0

//! Assembles the page: the template, the data, and the script that draws the data.
//!
//! A trace may contain any text: a thread may have the name `</script>`. The page holds texts of the trace only
//! as JSON without a `<`, and as base64. The script inserts them as text, never as HTML.

use super::columns;
use super::data::{Data, Numbers};
use super::detail::Details;
use super::moments::{Moment, Why};
use super::timeline::Timeline;
use analysis::loss::Loss;
use analysis::schedule_events::Left;
use ctf::Clock;
use serde::Serialize;
use serde_json::{json, Value as Json};
use std::io::{self, Write};
use terminal::{date, duration, harmless_json};

/// The page, without style, data and script.
const TEMPLATE: &str = include_str!("page.html");

/// Permissions of the page: no network, or only the server of the page.
const NO_SERVER: &str = "default-src 'none'";
const SERVER: &str = "default-src 'none'; connect-src 'self'";

/// Style of the page.
const STYLE: [&str; 3] = [
    include_str!("theme.css"),
    include_str!("layout.css"),
    include_str!("tables.css"),
];

/// Script of the page: one module, made of these files.
const SCRIPT: [&str; 25] = [
    include_str!("script/elements.js"),
    include_str!("script/format.js"),
    include_str!("script/columns.js"),
    include_str!("script/slices.js"),
    include_str!("script/trace.js"),
    include_str!("script/detail.js"),
    include_str!("script/theme.js"),
    include_str!("script/view.js"),
    include_str!("script/rows.js"),
    include_str!("script/paint.js"),
    include_str!("script/frames.js"),
    include_str!("script/ruler.js"),
    include_str!("script/overview.js"),
    include_str!("script/timeline.js"),
    include_str!("script/pointer.js"),
    include_str!("script/details.js"),
    include_str!("script/search.js"),
    include_str!("script/keys.js"),
    include_str!("script/tables.js"),
    include_str!("script/questions.js"),
    include_str!("script/latency.js"),
    include_str!("script/flame.js"),
    include_str!("script/tabs.js"),
    include_str!("script/head.js"),
    include_str!("script/main.js"),
];

/// Maximum number of rows of a table on a page.
const ROWS: usize = 10_000;

/// Contents of a page.
pub struct Page<'a> {
    /// The timeline.
    pub timeline: &'a Timeline,
    /// Answers to the questions, as in `rtrace report --json`.
    pub report: Json,
    /// The end of every report: the losses in words, then the totals.
    pub losses: String,
    /// Reasons for questions that were left out.
    pub left_out: Vec<String>,
    /// The clock of the trace.
    pub clock: Clock,
    /// Begin of the trace, in clock ticks.
    pub begin: u64,
    /// End of the trace, in clock ticks.
    pub end: u64,
    /// Number of recorded events.
    pub recorded: u64,
    /// Reads the important moments, or the parts that the page requests from a server.
    pub details: Option<&'a Details<'a>>,
    /// Whether a server provides the rest of the trace.
    pub is_served: bool,
}

/// Maximum size of the important moments of a page, in bytes.
const DETAILS: usize = 8 << 20;

/// Expected number of events in an important moment, at the trace's average rate.
const AROUND: u64 = 10_000;

/// Number of places with losses that count as important moments.
const LOSSES: usize = 10;

impl Page<'_> {
    /// Writes the page.
    pub fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        let (top, rest) = part(TEMPLATE, "<!--style-->");
        let (middle, rest) = part(rest, "<!--data-->");
        let (last, bottom) = part(rest, "<!--script-->");
        let top = match self.is_served {
            true => top.replace(NO_SERVER, SERVER),
            false => top.to_owned(),
        };
        out.write_all(top.as_bytes())?;
        writeln!(out, "<style>\n{}</style>", STYLE.concat())?;
        out.write_all(middle.as_bytes())?;
        shorten_tables(&mut self.report);
        large_numbers_to_texts(&mut self.report);
        self.data(out)?;
        out.write_all(last.as_bytes())?;
        writeln!(
            out,
            "<script type=\"module\">\n{}</script>",
            SCRIPT.concat()
        )?;
        out.write_all(bottom.as_bytes())
    }

    fn data(&self, out: &mut impl Write) -> io::Result<()> {
        let timeline = self.timeline;
        let threads = timeline.threads.sorted();
        let all = |count: usize| (0..count as u32).collect();
        let numbers = Numbers {
            threads: threads.numbers().to_vec(),
            rows: threads.threads.len() as u32,
            events: all(timeline.events.len()),
            calls: all(timeline.calls.names().len()),
            interrupts: all(timeline.interrupts.len()),
        };
        let data = Data::new(timeline, &numbers, self.clock, self.begin, None);
        let parts = self.parts()?;
        let begin = self.clock.since_epoch(self.begin);
        // The head of the page shows the totals.
        let mut losses: Vec<_> = self.losses.trim().lines().collect();
        losses.pop();
        let index = json!({
            "report": self.report,
            "losses": losses,
            "left_out": self.left_out,
            "date": date::readable(begin),
            "begin_s": begin.div_euclid(1_000_000_000) as i64,
            "begin_ns": begin.rem_euclid(1_000_000_000) as i64,
            "cpus": timeline.cpus,
            "threads": threads.threads,
            "nameless_threads": threads.nameless,
            "lanes": data.lanes(),
            "marks": data.marks(),
            "parts": parts.iter().map(|(part, _)| part).collect::<Vec<_>>(),
            "is_served": self.is_served,
            "slice_resolution_ns": self.clock.nanoseconds(timeline.lanes.resolution()),
            "mark_resolution_ns": self.clock.nanoseconds(timeline.marks.resolution()),
            "events": timeline.events,
            "calls": timeline.calls.names(),
            "interrupts": timeline.interrupts.iter().map(|source| json!({
                "is_hard": source.is_hard, "number": source.number, "name": source.name,
            })).collect::<Vec<_>>(),
            "ways": Left::NAMES.map(|(name, _)| name),
            "gaps": timeline.gaps.iter().map(|gap| self.gap(gap)).collect::<Vec<_>>(),
            "labels": timeline.stacks.labels(&timeline.events),
            "stacks_cut": timeline.stacks.cut,
        });
        json_element(out, "trace", &index)?;

        for (name, text) in data.columns()? {
            columns::write_packed(out, name, &text)?;
        }
        for (number, (_, part)) in parts.iter().enumerate() {
            writeln!(
                out,
                "<script type=\"application/json\" id=\"part-{number}\">{part}</script>"
            )?;
        }

        let nodes = || timeline.stacks.nodes.iter();
        let parents = nodes().map(|node| node.parent.map_or(0, |parent| u64::from(parent) + 1));
        columns::write(out, "stack-parents", parents)?;
        columns::write(out, "stack-labels", nodes().map(|node| node.label.into()))?;
        columns::write(out, "stack-counts", nodes().map(|node| node.count))
    }

    /// Returns the important moments, if the timeline had to merge something. Each has its description for the
    /// page, and its data.
    fn parts(&self) -> io::Result<Vec<(Json, String)>> {
        let timeline = self.timeline;
        let Some(details) = self.details.filter(|_| !self.is_served) else {
            return Ok(Vec::new());
        };
        let losses = timeline.gaps.iter().map(|gap| Moment {
            from: gap.from,
            to: gap.to,
            why: Why::Lost(gap.cpu),
        });
        let moments = timeline.moments.all().chain(losses.take(LOSSES));
        let length = self.ns(self.end);
        let around = (length / self.recorded.max(1)).saturating_mul(AROUND / 2);
        let (mut parts, mut bytes) = (Vec::<(Json, String)>::new(), 0);
        for moment in moments {
            let (begin, end) = (self.ns(moment.from), self.ns(moment.to));
            let from = begin.saturating_sub(around);
            let to = end.saturating_add(around).min(length);
            let part = details.read(from, to).map_err(io::Error::other)?;
            let Some(part) = part.filter(|part| bytes + part.len() <= DETAILS) else {
                continue;
            };
            bytes += part.len();
            let why = self.why(&moment, end - begin);
            let what =
                json!({"from_ns": from, "to_ns": to, "begin_ns": begin, "end_ns": end, "why": why});
            parts.push((what, part));
        }
        Ok(parts)
    }

    fn why(&self, moment: &Moment, ns: u64) -> String {
        let thread = |place: u32| {
            let thread = &self.timeline.threads.all()[place as usize];
            format!("{} {}", thread.comm, thread.tid)
        };
        match moment.why {
            Why::Waited(place) => format!("{} waited {} for a CPU", thread(place), duration(ns)),
            Why::Failed {
                call,
                thread: place,
            } => {
                let call = &self.timeline.calls.names()[call as usize];
                format!(
                    "{call}() of {} failed after {}",
                    thread(place),
                    duration(ns)
                )
            }
            Why::Marked => "a marker".to_owned(),
            Why::Lost(cpu) => format!("events of CPU {cpu} are missing"),
        }
    }

    /// Returns nanoseconds from the begin of the trace.
    fn ns(&self, time: u64) -> u64 {
        self.clock.nanoseconds(time.saturating_sub(self.begin))
    }

    fn gap(&self, gap: &Loss) -> Json {
        json!({
            "cpu": gap.cpu,
            "from_ns": self.ns(gap.from),
            "to_ns": self.ns(gap.to),
            "events": gap.events,
            "packets": gap.packets.saturating_add(gap.packets_before),
        })
    }
}

/// Shortens large tables, and adds the number of removed rows.
fn shorten_tables(report: &mut Json) {
    let answers = report.as_object_mut().into_iter().flatten();
    for answer in answers.filter_map(|(_, answer)| answer.as_object_mut()) {
        let mut left = Vec::new();
        for (name, table) in answer.iter_mut() {
            if let Some(rows) = table.as_array_mut().filter(|rows| rows.len() > ROWS) {
                left.push((format!("{name}_left_out"), rows.len() - ROWS));
                rows.truncate(ROWS);
            }
        }
        answer.extend(left.into_iter().map(|(name, rows)| (name, rows.into())));
    }
}

/// Turns large integers into texts: JavaScript has no integers above 2^53.
fn large_numbers_to_texts(value: &mut Json) {
    match value {
        Json::Number(number) => {
            let is_exact = number
                .as_f64()
                .is_some_and(|value| value.abs() < (1_u64 << 53) as f64);
            if !is_exact {
                *value = Json::String(number.to_string());
            }
        }
        Json::Array(values) => values.iter_mut().for_each(large_numbers_to_texts),
        Json::Object(values) => values.values_mut().for_each(large_numbers_to_texts),
        Json::Null | Json::Bool(_) | Json::String(_) => {}
    }
}

/// Returns the parts of the template before and after a placeholder.
fn part(text: &'static str, place: &str) -> (&'static str, &'static str) {
    text.split_once(place).expect("the template has all places")
}

/// Writes a value that the script can read. The JSON never closes the element, because it has no `<`.
fn json_element(out: &mut impl Write, name: &str, value: &impl Serialize) -> io::Result<()> {
    let text = harmless_json(serde_json::to_string(value)?).replace('<', "\\u003c");
    writeln!(
        out,
        "<script type=\"application/json\" id=\"{name}\">{text}</script>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_tables_are_cut_and_it_is_said() {
        let rows = |count| Json::from((0..count).collect::<Vec<_>>());
        let mut report = json!({"lost": 0, "irq": {"a": rows(ROWS + 5), "b": rows(ROWS), "c": 7}});
        shorten_tables(&mut report);
        let expected = json!({"a": rows(ROWS), "a_left_out": 5, "b": rows(ROWS), "c": 7});
        assert_eq!(report, json!({"lost": 0, "irq": expected}));
    }

    #[test]
    fn only_what_javascript_would_round_becomes_a_text() {
        let mut report =
            json!([[1_u64 << 52, (1_u64 << 53) + 1], {"a": i64::MIN, "b": 0.001, "c": "x"}]);
        large_numbers_to_texts(&mut report);
        let expected = json!([
            [1_u64 << 52, "9007199254740993"],
            {"a": "-9223372036854775808", "b": 0.001, "c": "x"},
        ]);
        assert_eq!(report, expected);
    }
}
