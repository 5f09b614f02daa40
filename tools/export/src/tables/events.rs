// SPDX-License-Identifier: GPL-2.0

//! A table for each type of event.

use super::columns::{columns, Filled};
use super::{epoch, row};
use crate::format::Now;
use analysis::whose::recorded_comm;
use analysis::{key, ByEvent, EventKey};
use ctf::{Clock, Event, Metadata};
use std::collections::HashSet;
use tables::{Folder, TableId};

/// Tables that rtrace makes from several events. The table of an event with such a name has another name.
const MADE: [&str; 9] = [
    "slices",
    "wakeups",
    "offcpu",
    "syscalls",
    "files",
    "io_uring",
    "interrupts",
    "samples",
    "losses",
];

/// The tables of the events of a trace.
pub struct Events {
    clock: Clock,
    tables: ByEvent<(TableId, Filled)>,
}

impl Events {
    /// Announces the tables of the chosen events.
    pub fn new(metadata: &Metadata, chosen: &HashSet<EventKey>, folder: &mut Folder) -> Self {
        let mut tables = ByEvent::default();
        for class in &metadata.streams {
            for layout in class.events.values() {
                if !chosen.contains(&key(layout)) {
                    continue;
                }
                let is_taken = MADE.contains(&layout.name.as_str());
                let prefix = if is_taken { "event_" } else { "" };
                let name = format!("{prefix}{}", layout.name);
                let table = folder.table(name, &columns(class, layout));
                if folder.wants(table) {
                    tables.insert(key(layout), (table, Filled::of(class, layout)));
                }
            }
        }
        Self {
            clock: metadata.clock,
            tables,
        }
    }

    /// Adds an event.
    pub fn event(
        &self,
        event: &Event<'_>,
        now: &Now<'_>,
        folder: &mut Folder,
    ) -> tables::Result<()> {
        let Some((table, filled)) = self.tables.get(&key(event.layout)) else {
            return Ok(());
        };
        let mut row = row(folder, *table, epoch(&self.clock, event.timestamp))?;
        row.integer(now.cpu.into());
        row.number(now.task.map(|task| task.tid));
        row.number(now.task.and_then(|task| task.process));
        row.text(match now.task {
            Some(task) => task.comm,
            None => recorded_comm(event),
        });
        filled.fill(&mut row, event);
        Ok(())
    }
}
