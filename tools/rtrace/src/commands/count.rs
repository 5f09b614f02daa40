// SPDX-License-Identifier: GPL-2.0

//! `rtrace count`: counts events by key in the kernel.

use crate::exit::Code;
use crate::failure;
use crate::options::{Count as Options, Place};
use crate::probe::Probes;
use crate::recipes;
use crate::run::condition::Happened;
use crate::run::launch::cannot_run;
use crate::run::watch::Watch;
use crate::run::workload::{self, Event, Run};
use crate::session::maker::Maker;
use crate::session::temporary::Temporary;
use anyhow::Context;
use control::{MapKey, MapRow, MapTable, Session};
use rustix::pipe::{pipe_with, PipeFlags};
use serde_json::{json, Map, Value};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::{Command, ExitCode};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use system::signals::Signals;
use terminal::{harmless, print, say, tell};

/// Characters of the longest bar of a histogram.
const BAR: usize = 40;

/// Counts, prints the tables, and returns the exit code.
pub fn count(place: &Place, options: &Options) -> ExitCode {
    let counted = run(place, options);
    ExitCode::from(counted.unwrap_or_else(|error| failure::report(&error)))
}

fn run(place: &Place, options: &Options) -> anyhow::Result<Code> {
    if let Some((program, _)) = &options.command {
        if let Err(error) = workload::find(program) {
            return Ok(cannot_run(program, &error));
        }
    }
    let signals = Signals::catch()?;
    let tracer = place.tracer()?;
    let me = Maker::me()?;
    let recipe = &options.recipe;
    // Defined before the session, so that its maps no longer use the events when they are deleted.
    let probes = (!recipe.probes.is_empty()).then(|| Probes::define(&tracer, &recipe.probes, &me));
    let _probes = probes.transpose()?;
    let temporary = Temporary::create(&tracer, None)?;
    let session = temporary.session();
    options.tasks.apply(session)?;
    options.functions.apply(session)?;
    let ends = options.tasks.ends()?;
    let watch = Watch::new(&options.conditions, session)?;
    for line in &recipe.maps {
        session.set_map(&recipes::with_subsystem(line, &me.subsystem()))?;
    }
    let child = match &options.command {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments);
            match options.tasks.spawn(session, command) {
                Ok(child) => Some(child),
                Err(error) => return Ok(cannot_run(program, &error)),
            }
        }
        None => {
            let until = match options.conditions.duration {
                Some(_) => "the time has passed, or Ctrl-C",
                None => "Ctrl-C",
            };
            tell(format_args!("counting until {until}"));
            None
        }
    };
    let mut run = Run::new(child, signals, &options.conditions, watch, ends)?;
    let mut counts = Counts::new(session, options);
    // `never` never becomes readable: `_kept` keeps the pipe open, and no code writes to it.
    let (never, _kept) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
    let (end, ended) = mpsc::channel::<()>();
    let (event, printed) = thread::scope(|scope| {
        let printer = scope.spawn(move || counts.print_until(&ended));
        let event = run.next(&never);
        drop(end);
        (event, printer.join())
    });
    let code = match event? {
        Event::Ended(code) => Some(code),
        Event::Happened(Happened::End(what)) => {
            say(what);
            None
        }
        Event::Happened(Happened::Snapshot(_)) => None,
    };
    printed.map_err(|_| anyhow::anyhow!("a thread panicked"))??;
    match code {
        Some(code) => Ok(code),
        None => run.rest(),
    }
}

/// The tables of a session's map.
struct Counts<'a> {
    session: &'a Session,
    options: &'a Options,
    begin: Instant,
    /// The tables as they were when they were last printed.
    before: Vec<MapTable>,
}

impl<'a> Counts<'a> {
    fn new(session: &'a Session, options: &'a Options) -> Self {
        let begin = Instant::now();
        Self {
            session,
            options,
            begin,
            before: Vec::new(),
        }
    }

    /// Prints a table at each interval, and the last one when the other side of `ended` is dropped.
    fn print_until(&mut self, ended: &mpsc::Receiver<()>) -> anyhow::Result<()> {
        let mut intervals = 0;
        loop {
            let left = self.options.interval.map_or(Duration::MAX, |interval| {
                intervals += 1;
                let due = interval.saturating_mul(intervals);
                due.saturating_sub(self.begin.elapsed())
            });
            match ended.recv_timeout(left) {
                Err(RecvTimeoutError::Timeout) => self.print()?,
                _ => return self.print(),
            }
        }
    }

    fn print(&mut self) -> anyhow::Result<()> {
        let mut tables = self.session.maps()?;
        if self.options.interval.is_some() && !self.options.cumulative {
            // The kernel goes on counting: to clear the maps after they were read would lose what came meanwhile.
            let before = std::mem::replace(&mut self.before, tables.clone());
            for (table, before) in tables.iter_mut().zip(&before) {
                subtract(table, before);
            }
        }
        let seconds = self.begin.elapsed().as_secs_f64();
        for table in &mut tables {
            // By the first column beside the count, if there is one.
            let by = usize::from(table.columns.len() > 1);
            table.rows.sort_by_key(|row| Reverse(row.numbers[by]));
            if self.options.json {
                print(&format!("{}\n", object(table, seconds)))?;
                continue;
            }
            let mut text = String::new();
            if self.options.interval.is_some() {
                writeln!(text, "\nafter {seconds:.1} s")?;
            }
            text_of(table, self.options.rows, &mut text)?;
            print(&text)?;
            if table.overflow[0] != 0 {
                say(format_args!(
                    "{} events had no room and are not in the table: choose a larger --size",
                    table.overflow[0]
                ));
            }
            if let Some(unpaired) = &table.unpaired {
                if unpaired.dropped != 0 {
                    say(format_args!(
                        "{} begins had no room: their durations are missing",
                        unpaired.dropped
                    ));
                }
            }
            if table.lacking != 0 {
                say(format_args!(
                    "{} events lacked a value and are not in the table",
                    table.lacking
                ));
            }
        }
        Ok(())
    }
}

/// Leaves in a table what was added since `before`. Rows without a new event vanish.
fn subtract(table: &mut MapTable, before: &MapTable) {
    let less = |numbers: &mut [i128], earlier: &[i128]| {
        for (number, earlier) in numbers.iter_mut().zip(earlier) {
            *number -= earlier;
        }
    };
    let key = |row: &MapRow| (row.keys.clone(), row.bucket);
    let earlier: BTreeMap<_, _> = before.rows.iter().map(|row| (key(row), row)).collect();
    for row in &mut table.rows {
        if let Some(earlier) = earlier.get(&key(row)) {
            less(&mut row.numbers, &earlier.numbers);
        }
    }
    // The first number is the count.
    table.rows.retain(|row| row.numbers[0] != 0);
    less(&mut table.overflow, &before.overflow);
    table.lacking -= before.lacking;
    if let (Some(unpaired), Some(before)) = (&mut table.unpaired, &before.unpaired) {
        unpaired.unmatched -= before.unmatched;
        unpaired.repeated -= before.repeated;
        unpaired.dropped -= before.dropped;
    }
}

/// The table as an object for JSON.
fn object(table: &MapTable, seconds: f64) -> Value {
    let rows = table.rows.iter().map(|row| {
        let mut object = Map::new();
        for (name, key) in table.keys.iter().zip(&row.keys) {
            let value = match key {
                MapKey::Number(number) => number_value(*number),
                MapKey::Text(text) => json!(text),
            };
            object.insert(name.clone(), value);
        }
        if let Some((first, last)) = row.bucket {
            object.insert("from".to_owned(), number_value(first));
            object.insert("to".to_owned(), number_value(last));
        }
        object.extend(numbers(table, &row.numbers));
        Value::Object(object)
    });
    let mut object = json!({
        "map": table.name,
        "seconds": seconds,
        "rows": rows.collect::<Vec<_>>(),
        "overflow": Value::Object(numbers(table, &table.overflow).collect()),
        "lacking": table.lacking,
    });
    if let Some(unpaired) = &table.unpaired {
        object["unmatched"] = json!(unpaired.unmatched);
        object["repeated"] = json!(unpaired.repeated);
        object["dropped"] = json!(unpaired.dropped);
    }
    object
}

fn numbers<'a>(
    table: &'a MapTable,
    numbers: &'a [i128],
) -> impl Iterator<Item = (String, Value)> + 'a {
    let named = table.columns.iter().zip(numbers);
    named.map(|(name, number)| (name.clone(), number_value(*number)))
}

/// A number that is at least i64::MIN and at most u64::MAX.
fn number_value(number: i128) -> Value {
    match u64::try_from(number) {
        Ok(number) => json!(number),
        Err(_) => json!(number as i64),
    }
}

/// Writes the table as text.
fn text_of(table: &MapTable, rows: usize, out: &mut String) -> std::fmt::Result {
    if let Some(value) = &table.hist {
        return histograms(table, value, rows, out);
    }
    let heading = table.columns.iter().chain(&table.keys).cloned().collect();
    let lines = table.rows.iter().take(rows).map(|row| {
        let keys = row.keys.iter().map(key_text);
        let numbers = row.numbers.iter().map(i128::to_string);
        numbers.chain(keys).collect()
    });
    let lines: Vec<Vec<String>> = [heading].into_iter().chain(lines).collect();
    columns(&lines, table.columns.len(), out)?;
    more(table.rows.len(), rows, out)
}

fn key_text(key: &MapKey) -> String {
    harmless(&key.to_string()).into_owned()
}

/// Writes lines of cells, of which the first `right` are aligned at the right.
fn columns(lines: &[Vec<String>], right: usize, out: &mut String) -> std::fmt::Result {
    let count = lines.first().map_or(0, Vec::len);
    let widths: Vec<_> = (0..count)
        .map(|at| lines.iter().map(|line| line[at].chars().count()).max())
        .collect();
    for line in lines {
        let mut text = String::new();
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let width = width.unwrap_or(0);
            match at < right {
                true => write!(text, "{cell:>width$}  ")?,
                false => write!(text, "{cell:<width$}  ")?,
            }
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

fn more(all: usize, rows: usize, out: &mut String) -> std::fmt::Result {
    match all.saturating_sub(rows) {
        0 => Ok(()),
        left => writeln!(out, "and {left} more rows (-n 0 shows all)"),
    }
}

/// Writes a histogram for each key, those with the largest counts first.
fn histograms(table: &MapTable, value: &str, rows: usize, out: &mut String) -> std::fmt::Result {
    let mut by_key: BTreeMap<_, BTreeMap<(i128, i128), &MapRow>> = BTreeMap::new();
    for row in &table.rows {
        let buckets = by_key.entry(&row.keys).or_default();
        buckets.insert(row.bucket.unwrap_or_default(), row);
    }
    let total = |buckets: &BTreeMap<_, &MapRow>| -> i128 {
        buckets.values().map(|row| row.numbers[0]).sum()
    };
    let mut sorted: Vec<_> = by_key.into_iter().collect();
    sorted.sort_by(|(a, one), (b, other)| total(other).cmp(&total(one)).then(a.cmp(b)));
    for (keys, buckets) in sorted.iter().take(rows) {
        let names = table.keys.iter().zip(keys.iter());
        let names = names.map(|(name, key)| format!("{name} {}, ", key_text(key)));
        let names: String = names.collect();
        writeln!(out, "\n{names}{} events by {value}", total(buckets))?;
        let largest = buckets.values().map(|row| row.numbers[0]).max();
        let lines: Vec<_> = buckets
            .iter()
            .map(|((first, last), row)| {
                let length = row.numbers[0] * BAR as i128 / largest.unwrap_or(1).max(1);
                let range = match first == last {
                    true => first.to_string(),
                    false => format!("{}..{}", first.min(last), first.max(last)),
                };
                let numbers = row.numbers.iter().map(i128::to_string);
                let bar = "#".repeat(usize::try_from(length).unwrap_or(0).max(1));
                let cells = [range].into_iter().chain(numbers);
                cells.chain([bar]).collect::<Vec<_>>()
            })
            .collect();
        columns(&lines, 1 + table.columns.len(), out)?;
    }
    more(sorted.len(), rows, out)
}
