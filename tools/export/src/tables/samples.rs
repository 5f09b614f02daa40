// SPDX-License-Identifier: GPL-2.0

//! `samples`: a row for each sample of a profile, with the names of functions.

use super::made::{Made, CPU, THREAD};
use crate::format::Now;
use analysis::{Catalogue, EventKey, Named, Sampled};
use ctf::Event;
use std::collections::HashSet;
use symbols::Symbols;
use tables::{ColumnKind, Folder};

/// Columns after the place and the thread.
const COLUMNS: [(&str, ColumnKind); 3] = [
    ("function", ColumnKind::Text),
    ("object", ColumnKind::Text),
    // Function names from the outermost to the innermost, with `;` between them.
    ("stack", ColumnKind::Text),
];

/// The table.
pub struct Samples {
    symbols: Symbols,
    events: Vec<Sampled>,
    table: Made,
    /// Buffer for the functions of a sample.
    stack: Vec<Named>,
}

impl Samples {
    /// For a trace, if samples are chosen.
    pub fn new(
        catalogue: &Catalogue<'_>,
        chosen: &HashSet<EventKey>,
        symbols: impl FnOnce() -> Symbols,
        folder: &mut Folder,
        begin: i64,
    ) -> tables::Result<Option<Self>> {
        let mut events = Sampled::all(catalogue);
        events.retain(|event| chosen.contains(&event.key));
        if events.is_empty() {
            return Ok(None);
        }
        let columns = [CPU].into_iter().chain(THREAD).chain(COLUMNS);
        let clock = catalogue.metadata().clock;
        let table = Made::new("samples", columns, clock, folder, begin)?;
        Ok(table.map(|table| Self {
            symbols: symbols(),
            events,
            table,
            stack: Vec::new(),
        }))
    }

    /// Adds an event, if it is a sample.
    pub fn event(
        &mut self,
        event: &Event<'_>,
        now: &Now<'_>,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        let key = analysis::key(event.layout);
        let Some(sampled) = self.events.iter().find(|event| event.key == key) else {
            return Ok(());
        };
        let tid = now.tid();
        sampled.stack(&mut self.symbols, event, tid, now.ns, &mut self.stack);
        let mut row = self.table.row(folder, event.timestamp)?;
        row.integer(now.cpu.into());
        row.number(tid);
        row.number(now.task.and_then(|task| task.process));
        row.text(now.comm());
        let inner = self.stack.first();
        row.text(inner.map(|function| function.name.as_bytes()));
        row.text(inner.map(|function| function.object.as_bytes()));
        let names = self.stack.iter().rev();
        let names: Vec<_> = names
            .map(|function| function.name.replace(';', ":"))
            .collect();
        row.text(
            (!names.is_empty())
                .then(|| names.join(";"))
                .as_ref()
                .map(String::as_bytes),
        );
        Ok(())
    }
}
