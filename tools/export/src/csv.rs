// SPDX-License-Identifier: GPL-2.0

//! `rtrace export csv`: a row for each event.
//!
//! The columns are `time,cpu,tid,comm,event`. If one type of event is chosen, each field and each context has a
//! column after these. Otherwise the column `fields` holds all of them.

use super::csv_row::CsvRow;
use super::format::{Format, Loss, Now, Task};
use super::values::{fields, is_length, is_shown_context, AsText, Pairs};
use analysis::whose::recorded_comm;
use analysis::{key, EventKey};
use ctf::{Event, EventLayout, FieldLayout, Metadata, StreamClass};
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};
use system::printing::Line;

/// Columns of every export.
const COLUMNS: [&str; 5] = ["time", "cpu", "tid", "comm", "event"];

/// Writes rows.
pub struct Csv {
    /// Columns after the common ones.
    columns: Vec<String>,
    has_column_per_field: bool,
    row: CsvRow,
}

impl Csv {
    /// For these events of a trace.
    pub fn new(metadata: &Metadata, chosen: &HashSet<EventKey>) -> Self {
        let classes = metadata.streams.iter();
        let mut layouts = classes
            .flat_map(|class| class.events.values().map(move |layout| (class, layout)))
            .filter(|(_, layout)| chosen.contains(&key(layout)));
        let only = layouts.next().filter(|_| layouts.next().is_none());
        let columns = match only {
            Some((class, layout)) => columns(class, layout),
            None => vec!["fields".to_owned()],
        };
        Self {
            columns,
            has_column_per_field: only.is_some(),
            row: CsvRow::default(),
        }
    }

    fn head(&mut self, ns: u64, cpu: u32) -> fmt::Result {
        let (s, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
        self.row.cell(format_args!("{s}.{ns:09}"))?;
        self.row.cell(cpu)
    }

    fn add(&mut self, event: &Event<'_>, now: &Now<'_>) -> fmt::Result {
        self.head(now.ns, now.cpu)?;
        let row = &mut self.row;
        match now.task {
            Some(Task { tid: 0, .. }) => {
                row.cell(0)?;
                row.cell(format_args!("swapper/{}", now.cpu))?;
            }
            Some(Task { tid, comm, .. }) => {
                row.cell(tid)?;
                row.cell(Line(comm.unwrap_or_default()))?;
            }
            None => {
                row.cell("")?;
                row.cell(Line(recorded_comm(event).unwrap_or_default()))?;
            }
        }
        row.cell(Line(event.layout.name.as_bytes()))?;
        if !self.has_column_per_field {
            return row.cell(Pairs(event));
        }
        let contexts = event.contexts();
        let contexts = contexts.filter(|(field, _)| is_column(field));
        for (field, value) in fields(event).chain(contexts) {
            row.cell(AsText(&field.ty, value))?;
        }
        Ok(())
    }

    fn add_loss(&mut self, loss: &Loss) -> fmt::Result {
        self.head(loss.ns, loss.cpu)?;
        self.row.cell("")?;
        self.row.cell("")?;
        self.row.cell(loss)?;
        self.columns.iter().try_for_each(|_| self.row.cell(""))
    }
}

/// Returns the columns of one type of event. A context with the same name as a field has the prefix `context.`.
fn columns(class: &StreamClass, layout: &EventLayout) -> Vec<String> {
    let fields = layout.fields.iter().filter(|field| !is_length(field));
    let mut columns: Vec<String> = fields.map(|field| field.name.clone()).collect();
    for context in class.contexts.iter().filter(|context| is_column(context)) {
        let name = &context.name;
        let is_taken = columns.contains(name) || COLUMNS.contains(&name.as_str());
        columns.push(if is_taken {
            format!("context.{name}")
        } else {
            name.clone()
        });
    }
    columns
}

/// Whether a context is a column after the fields.
fn is_column(context: &FieldLayout) -> bool {
    is_shown_context(context) || context.name.starts_with("callstack_")
}

impl Format for Csv {
    fn begin(&mut self, _ns: u64, out: &mut dyn Write) -> io::Result<()> {
        let columns = COLUMNS.into_iter();
        for column in columns.chain(self.columns.iter().map(String::as_str)) {
            self.row.cell(column).map_err(io::Error::other)?;
        }
        self.row.end(out)
    }

    fn event(&mut self, event: &Event<'_>, now: &Now<'_>, out: &mut dyn Write) -> io::Result<()> {
        self.add(event, now).map_err(io::Error::other)?;
        self.row.end(out)
    }

    fn loss(&mut self, loss: &Loss, out: &mut dyn Write) -> io::Result<()> {
        self.add_loss(loss).map_err(io::Error::other)?;
        self.row.end(out)
    }
}
